/* event_stream: streams events over SSE or WebSocket. */
#include "api/share/event_stream.h"

#include "base/enc.h"
#include "base/mem.h"
#include "net/sse.h"
#include "net/ws.h"
#include "proto/sse.h"

#include <inttypes.h>

#define KEEPALIVE_MS 15000
#define TOLD_MAX 64          /* formatted events kept for other streams */
#define TOLD_BYTES_MAX 16384 /* limit of one of them */

struct event_stream { /* in the exchange's arena */
    struct list link;
    struct api *api;
    struct subscription *sub;
    struct sse *sse; /* one of these two */
    struct ws *ws;
    event_form form;     /* NULL: the native one */
    char token[ID_SIZE]; /* "": none */
    bool ending;
};

void event_write_json(struct jw *w, const struct event *ev)
{
    char hash[2 * sizeof ev->hash + 1];

    enc_hex(ev->hash, sizeof ev->hash, hash);
    jw_object(w);
    jw_kint(w, "seq", ev->seq);
    jw_ktime(w, "time", ev->time_ms);
    jw_kstr(w, "type", ev->type);
    jw_kstr(w, "object", ev->object);
    jw_kstr(w, "actor", ev->actor);
    jw_key(w, "data");
    if (ev->data.n > 0)
        jw_raw(w, ev->data);
    else
        jw_null(w);
    jw_kbool(w, "audit", ev->audit);
    jw_kint(w, "count", ev->count);
    jw_kc(w, "hash", hash);
    jw_object_end(w);
}

static void stream_end(struct event_stream *s, int ws_code, const char *why)
{
    if (s->ending)
        return;
    s->ending = true;
    subscription_end(s->sub);
    s->sub = NULL;
    if (s->sse)
        sse_end(s->sse);
    else
        ws_close(s->ws, ws_code, why);
}

/* --- formatted events, written once for all streams --- */

struct told {
    int64_t seq; /* 0: nothing yet */
    event_form form;
    bool sse;        /* in event stream format, else plain JSON */
    struct buf text; /* empty: not for these streams */
};

static void write_told(struct told *t, const struct event *ev)
{
    AUTO(buf_done) struct buf json = {0};
    struct jw w = {.to = &json};
    struct str name = ev->type;
    char id[24];

    buf_clear(&t->text);
    buf_shrink(&t->text, TOLD_BYTES_MAX);
    if (!t->form)
        event_write_json(&w, ev);
    else if (!t->form(ev, &json, &name))
        return;
    (void)snprintf(id, sizeof id, "%" PRId64, ev->seq);
    if (t->sse)
        sse_write(&t->text, str_of(id), name, buf_str(&json));
    else
        buf_add_str(&t->text, buf_str(&json));
}

/* A commit is passed to one stream after the other: the first formats an event, the others reuse
 * it. */
static struct str event_text(struct event_stream *s, const struct event *ev)
{
    struct api *a = s->api;
    struct told *t;

    if (!a->told)
        a->told = xzalloc(TOLD_MAX * sizeof *a->told);
    t = &a->told[(uint64_t)ev->seq % TOLD_MAX];
    if (t->seq != ev->seq || t->form != s->form || t->sse != (s->sse != NULL)) {
        t->seq = ev->seq;
        t->form = s->form;
        t->sse = s->sse != NULL;
        write_told(t, ev);
    }
    return buf_str(&t->text);
}

void event_streams_done(struct api *a)
{
    for (size_t i = 0; a->told && i < TOLD_MAX; i++)
        buf_done(&a->told[i].text);
    mem_free(a->told);
    a->told = NULL;
}

static int send_event(void *arg, const struct event *ev)
{
    struct event_stream *s = arg;
    struct str text = event_text(s, ev);

    if (text.n == 0)
        return 0;
    return s->ws ? ws_send(s->ws, WS_TEXT, text) : sse_send_text(s->sse, text);
}

static void sub_failed(void *arg, const struct err *e)
{
    stream_end(arg, WS_INTERNAL, e->msg);
}

static struct event_stream *stream_make(struct request *r)
{
    struct event_stream *s = arena_zalloc(xchg_arena(r->x), sizeof *s);

    s->api = r->api;
    if (r->who.token)
        memcpy(s->token, r->who.token->id, sizeof s->token);
    list_init(&s->link);
    return s;
}

static void stream_open(struct event_stream *s, struct request *r, const struct event_filter *f)
{
    request_count(r, s->ws ? 101 : 200);
    list_push(&s->api->streams, &s->link);
    s->sub = events_subscribe(s->api->c.events, f, send_event, sub_failed, s);
}

static void stream_closed(struct event_stream *s)
{
    list_unlink(&s->link);
    s->ending = true;
    subscription_end(s->sub);
    s->sub = NULL;
}

static void stream_drained(struct event_stream *s)
{
    if (s->sub)
        subscription_resume(s->sub);
}

static void on_sse_drained(struct sse *sse)
{
    stream_drained(sse_arg(sse));
}

static void on_sse_closed(struct sse *sse)
{
    stream_closed(sse_arg(sse));
}

void event_stream_sse(struct request *r, const struct event_filter *f, event_form form)
{
    static const struct sse_ops ops = {.drained = on_sse_drained, .closed = on_sse_closed};
    struct event_stream *s = stream_make(r);

    s->form = form;
    s->sse = sse_start(r->x, KEEPALIVE_MS, &ops, s);
    stream_open(s, r, f);
}

static void on_ws_message(struct ws *w, enum ws_kind kind, struct str data)
{
    (void)w, (void)kind, (void)data; /* messages from readers are ignored */
}

static void on_ws_drained(struct ws *w)
{
    stream_drained(ws_arg(w));
}

static void on_ws_closed(struct ws *w, int code, struct str reason)
{
    (void)code, (void)reason;
    stream_closed(ws_arg(w));
}

void event_stream_ws(struct request *r, const struct event_filter *f)
{
    static const struct ws_ops ops = {
        .message = on_ws_message, .drained = on_ws_drained, .closed = on_ws_closed};
    struct event_stream *s = stream_make(r);

    s->ws = ws_accept(r->x, NULL, &ops, s);
    if (s->ws)
        stream_open(s, r, f);
}

void event_streams_check(struct api *a)
{
    LIST_EACH (&a->streams, at) {
        struct event_stream *s = LIST_ENTRY(at, struct event_stream, link);

        if (s->token[0] && !identity_get(a->c.identity, str_of(s->token)))
            stream_end(s, WS_POLICY, "the token is revoked or expired");
    }
}

void event_streams_end(struct api *a)
{
    LIST_EACH (&a->streams, at)
        stream_end(LIST_ENTRY(at, struct event_stream, link), WS_GOING_AWAY, "holtd is stopping");
}
