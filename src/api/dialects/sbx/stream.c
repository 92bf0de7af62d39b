/* stream: streams a sandbox's journal to sbx clients. */
#include "api/dialects/sbx/stream.h"

#include "api/share/revocable_stream.h"
#include "base/mem.h"
#include "net/ws.h"

#define RING_BYTES (8 << 20) /* of events that a channel keeps */

struct channel {
    char id[ID_SIZE]; /* of the sandbox */
    struct sbx *sbx;
    struct sandbox *s;
    struct journal *journal; /* NULL: it has ended */
    struct sbx_encoder encoder;
    struct sbx_event *ring; /* the event number n is ring[n % size] */
    size_t size;
    uint64_t first, next; /* the numbers kept: [first, next) */
    size_t bytes;
    bool cut; /* there are fewer than there should be, because of their size */
    struct list readers;
};

struct reader {
    struct list link;
    struct channel *c;
    struct ws *ws;
    struct revocable_stream live;
    struct journal *journal;    /* while it is behind the events the channel keeps */
    struct sbx_encoder encoder; /* … */
    uint64_t next;              /* otherwise: the channel's number of the next event */
    int64_t seen;               /* seq of the last event sent */
    bool gap;                   /* events are missing, and the next one reports that */
    bool waiting;               /* for room in the socket */
    bool closing;
    bool close_at_exit;
    char exec[64]; /* this command only; "": all */
};

/* --- a channel --- */

static void drop_first(struct channel *c)
{
    struct sbx_event *e = &c->ring[c->first++ % c->size];

    c->bytes -= buf_len(&e->frame);
    buf_done(&e->frame);
}

static void channel_free(struct channel *c)
{
    (void)map_remove(&c->sbx->channels, str_of(c->id));
    journal_close(c->journal);
    while (c->first < c->next)
        drop_first(c);
    sbx_encoder_done(&c->encoder);
    sandbox_unref(c->s);
    mem_free(c->ring);
    mem_free(c);
}

static void serve(struct reader *r);

/* Serving one reader may end another, but never frees it before the loop turns. */
static void serve_all(struct channel *c)
{
    LIST_EACH (&c->readers, node)
        serve(LIST_ENTRY(node, struct reader, link));
}

/* False: not an event. */
static bool make_event(struct sbx_encoder *n, const struct journal_entry *j, struct sbx_event *e)
{
    sbx_encode(n, j, e);
    if (buf_len(&e->json) == 0)
        return false;
    ws_frame(WS_TEXT, buf_str(&e->json), &e->frame);
    buf_done(&e->json);
    return true;
}

static int on_entry(void *arg, const struct journal_entry *j)
{
    struct channel *c = arg;
    struct sbx_event e = {0};

    if (!make_event(&c->encoder, j, &e))
        return 0;
    while (c->first < c->next &&
           (c->next - c->first == c->size || c->bytes + buf_len(&e.frame) > RING_BYTES)) {
        c->cut = c->cut || c->next - c->first < c->size;
        drop_first(c);
    }
    c->bytes += buf_len(&e.frame);
    c->ring[c->next++ % c->size] = e;
    serve_all(c);
    return 0;
}

static void reader_close(struct reader *r, int code, const char *why)
{
    if (r->closing)
        return;
    r->closing = true;
    ws_close(r->ws, code, why);
}

static void on_journal_end(void *arg, const struct err *e)
{
    struct channel *c = arg;

    c->journal = NULL;
    LIST_EACH (&c->readers, node)
        reader_close(LIST_ENTRY(node, struct reader, link),
                     e->code == ERR_GONE ? WS_NORMAL : WS_INTERNAL, e->msg);
}

static struct channel *channel_of(struct request *r, struct sandbox *s)
{
    static const struct journal_ops ops = {.entry = on_entry, .end = on_journal_end};
    struct sbx *sbx = sbx_of(r->api);
    struct sandbox_info i;
    struct channel *c;

    sandbox_info(s, &i);
    c = map_get(&sbx->channels, str_of(i.id));
    if (c)
        return c;
    c = xzalloc(sizeof *c);
    (void)snprintf(c->id, sizeof c->id, "%s", i.id);
    (void)snprintf(c->encoder.sandbox, sizeof c->encoder.sandbox, STR_FMT,
                   STR_ARG(sbx_namespace(s)));
    c->sbx = sbx;
    c->s = sandbox_ref(s);
    c->size = (size_t)sbx_settings(r->api->c.conf)->stream_buffer;
    c->ring = xzalloc(c->size * sizeof *c->ring);
    list_init(&c->readers);
    map_set(&sbx->channels, str_of(c->id), c);
    c->journal = journal_open(s, &(struct journal_from){.last = c->size}, &ops, c);
    return c;
}

/* --- a reader --- */

static void give(struct reader *r, const struct sbx_event *e)
{
    r->seen = e->seq;
    if (r->closing || (r->exec[0] && strcmp(r->exec, e->exec) != 0))
        return;
    r->gap = false;
    if (ws_send_frame(r->ws, &e->frame) != 0)
        r->waiting = true;
    if (r->close_at_exit && e->is_exit)
        reader_close(r, WS_NORMAL, "");
}

/* Whether the channel still keeps the event after the last one sent. */
static bool reaches(const struct reader *r, int64_t next_seq)
{
    const struct channel *c = r->c;

    return c->first < c->next && c->ring[c->first % c->size].seq <= next_seq;
}

/* When a reader of its own journal reaches an event the channel has, it continues with the channel,
 * unless the event reports a gap to this reader alone. */
static int on_own_entry(void *arg, const struct journal_entry *j)
{
    struct reader *r = arg;
    struct channel *c = r->c;
    struct journal_entry own = *j;
    struct sbx_event e = {0};

    own.gap = r->gap = r->gap || j->gap;
    if (!r->gap && reaches(r, j->us)) {
        r->next = c->first;
        while (r->next < c->next && c->ring[r->next % c->size].seq < j->us)
            r->next++;
        journal_close(r->journal);
        r->journal = NULL;
        sbx_encoder_done(&r->encoder);
        serve(r);
        return 0;
    }
    if (make_event(&r->encoder, &own, &e))
        give(r, &e);
    buf_done(&e.frame);
    return r->waiting;
}

static void on_own_end(void *arg, const struct err *e)
{
    struct reader *r = arg;

    r->journal = NULL;
    reader_close(r, e->code == ERR_GONE ? WS_NORMAL : WS_INTERNAL, e->msg);
}

static void read_alone(struct reader *r, const struct journal_from *from)
{
    static const struct journal_ops ops = {.entry = on_own_entry, .end = on_own_end};

    memcpy(r->encoder.sandbox, r->c->encoder.sandbox, sizeof r->encoder.sandbox);
    r->journal = journal_open(r->c->s, from, &ops, r);
}

static void serve(struct reader *r)
{
    struct channel *c = r->c;

    if (r->journal || r->closing)
        return;
    if (r->next < c->first && !r->waiting) { /* too slow: it reads what it missed from the log */
        read_alone(r, &(struct journal_from){.after_us = r->seen});
        return;
    }
    while (!r->waiting && !r->closing && r->next < c->next)
        give(r, &c->ring[r->next++ % c->size]);
}

static void on_message(struct ws *w, enum ws_kind kind, struct str data)
{
    (void)w, (void)kind, (void)data; /* messages from readers are ignored */
}

static void on_drained(struct ws *w)
{
    struct reader *r = ws_arg(w);

    r->waiting = false;
    if (r->journal)
        journal_resume(r->journal);
    else
        serve(r);
}

static void on_closed(struct ws *w, int code, struct str reason)
{
    struct reader *r = ws_arg(w);
    struct channel *c = r->c;

    (void)code, (void)reason;
    revocable_stream_end(&r->live);
    journal_close(r->journal);
    sbx_encoder_done(&r->encoder);
    list_unlink(&r->link);
    mem_free(r);
    if (list_is_empty(&c->readers))
        channel_free(c);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    reader_close(CONTAINER_OF(l, struct reader, live), ws_code, why);
}

/* --- the request --- */

struct asked {
    struct str exec;
    int64_t since; /* -1: the last ones */
    bool close;
};

static int read_query(struct request *r, struct asked *ret, struct err *e)
{
    struct str query = xchg_req(r->x)->query, since = {0}, close = {0};
    struct arena *a = xchg_arena(r->x);

    *ret = (struct asked){.since = -1};
    if (http_query_get(query, "exec_id", a, &ret->exec) < 0 ||
        http_query_get(query, "since", a, &since) < 0 ||
        http_query_get(query, "close", a, &close) < 0)
        return err_set(e, ERR_INVALID, 0, "the query is malformed");
    if (since.n > 0 && (str_parse_i64(since, &ret->since) < 0 || ret->since < 0))
        return err_set(e, ERR_INVALID, 0, "since must be the seq of an event");
    if (close.n > 0 && str_parse_bool(close, &ret->close) < 0)
        return err_set(e, ERR_INVALID, 0, "close must be true or false");
    return 0;
}

/* Chooses where a reader begins: with the channel's events, if they include the requested one. */
static void place(struct reader *r, const struct asked *q, bool new_channel)
{
    struct channel *c = r->c;

    r->seen = i64_max(q->since, 0);
    r->next = c->first;
    if (q->since < 0 && (new_channel || !c->cut)) {
        serve(r);
    } else if (q->since >= 0 && !new_channel && reaches(r, q->since)) {
        while (r->next < c->next && c->ring[r->next % c->size].seq <= q->since)
            r->next++;
        serve(r);
    } else {
        read_alone(r,
                   &(struct journal_from){.after_us = r->seen, .last = q->since < 0 ? c->size : 0});
    }
}

/* Events have sbx's id of a command; an unknown id may be a sidecar's. */
static void choose_exec(struct reader *r, struct sandbox *s, struct str name)
{
    const struct exec *x = name.n > 0 ? sbx_exec_find(s, name) : NULL;

    if (x)
        sbx_exec_id(x, r->exec);
    else
        (void)snprintf(r->exec, sizeof r->exec, STR_FMT, (int)size_min(name.n, 63),
                       name.p ? name.p : "");
}

void sbx_stream(struct request *r)
{
    static const struct ws_ops ops = {
        .message = on_message, .drained = on_drained, .closed = on_closed};
    struct sandbox *s = sbx_find(r);
    struct asked q;
    struct reader *reader;
    struct err e = {0};
    size_t channels = sbx_of(r->api)->channels.count;

    if (!ws_is_handshake(r->x)) {
        request_send(r, 400, "text/plain; charset=utf-8", STR("Bad Request\n"));
        return;
    }
    if (!s) {
        sbx_error(r, 404, "namespaces \"" STR_FMT "\" not found",
                  (int)size_min(r->params.v[0].n, 100), r->params.v[0].p);
        return;
    }
    if (read_query(r, &q, &e) < 0) {
        sbx_error(r, 400, "%s", e.msg);
        return;
    }
    sbx_audit(r, s);
    reader = xzalloc(sizeof *reader);
    reader->ws = ws_accept(r->x, NULL, &ops, reader);
    if (!reader->ws) {
        mem_free(reader);
        return;
    }
    request_count(r, 101);
    revocable_stream_begin(&reader->live, r, on_live_end);
    choose_exec(reader, s, q.exec);
    reader->close_at_exit = q.close;
    reader->c = channel_of(r, s);
    list_push(&reader->c->readers, &reader->link);
    place(reader, &q, sbx_of(r->api)->channels.count > channels);
}
