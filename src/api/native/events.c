/* events: lists and streams of events. */
#include "api/native/handlers.h"
#include "api/share/event_stream.h"
#include "base/mem.h"
#include "net/sse.h"
#include "net/ws.h"
#include "ops/event.h"

#include <inttypes.h>

/* --- a page --- */

struct page_job {
    struct waiter waiter;
    struct events *events;
    struct buf json;
    struct jw w;
    int64_t last_seq; /* 0: the page is empty */
};

static void page_each(void *arg, const struct event *ev)
{
    struct page_job *j = arg;

    event_write_json(&j->w, ev);
    j->last_seq = ev->seq;
}

static void page_done(void *arg, const struct err *e)
{
    struct page_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    char cursor[24];

    if (r && e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (r) {
        jw_array_end(&j->w);
        (void)snprintf(cursor, sizeof cursor, "%" PRId64, j->last_seq);
        /* A page may end before its limit (its bytes are limited too): only at the head of the log
         * is it certain that nothing follows. */
        jw_kc(&j->w, "cursor",
              j->last_seq && j->last_seq < events_head(j->events, NULL) ? cursor : NULL);
        jw_object_end(&j->w);
        request_send(r, 200, "application/json", buf_str(&j->json));
    }
    buf_done(&j->json);
    mem_free(j);
}

static void send_page(struct request *r, const struct event_filter *f)
{
    struct page_job *j = xzalloc(sizeof *j);

    j->w.to = &j->json;
    j->events = r->api->c.events;
    jw_object(&j->w);
    jw_key(&j->w, "events");
    jw_array(&j->w);
    request_wait(r, &j->waiter);
    events_read(r->api->c.events, f, page_each, page_done, j);
}

/* --- filters --- */

static void since(struct event_filter *f, const struct op_since *s, struct str cursor)
{
    if (s->seq != OP_ABSENT)
        f->since_seq = s->seq;
    if (s->time_ms != OP_ABSENT)
        f->since_ms = s->time_ms;
    /* The pattern allows only digits; a number beyond int64 is beyond every event. */
    if (cursor.n > 0 && str_parse_i64(cursor, &f->since_seq) < 0)
        f->since_seq = INT64_MAX;
}

/* A reconnecting EventSource repeats its URL: Last-Event-ID is newer than the URL. */
static void since_last_id(struct event_filter *f, const struct xchg *x)
{
    struct str id = sse_last_id(x);
    int64_t seq;

    if (id.p && str_parse_i64(id, &seq) == 0 && seq > f->since_seq)
        f->since_seq = seq;
}

void event_list_run(struct request *r)
{
    const struct event_list_in *in = r->in;
    bool head = str_eq_c(xchg_req(r->x)->method, "HEAD");
    struct event_filter f = {
        .type = in->type,
        .object = in->object,
        .actor = in->actor,
        .audit_too = in->audit,
        .limit = in->limit,
    };
    struct err e = {0};

    if (in->audit && !request_may(r, PERM_AUDIT)) {
        err_set(&e, ERR_FORBIDDEN, 0,
                "audit rows need the permission 'audit', which role %s does "
                "not have",
                role_name(r->who.role));
        request_refuse(r, &e);
        return;
    }
    since(&f, &in->since, in->cursor);
    if (ws_is_handshake(r->x)) {
        event_stream_ws(r, &f);
    } else if (!head && (in->follow || accept_prefers(r->x, "text/event-stream"))) {
        since_last_id(&f, r->x);
        event_stream_sse(r, &f, NULL);
    } else {
        send_page(r, &f);
    }
}

void audit_list_run(struct request *r)
{
    const struct audit_list_in *in = r->in;
    struct event_filter f = {
        .type = in->type,
        .object = in->object,
        .actor = in->actor,
        .audit_only = true,
        .limit = in->limit,
    };

    since(&f, &in->since, in->cursor);
    send_page(r, &f);
}
