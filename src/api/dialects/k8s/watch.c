/* watch: the changes of objects as they happen: a view of the event log. */
#include "api/dialects/k8s/k8s.h"

#include "api/share/revocable_stream.h"
#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>

#define TIMEOUT_S 3600 /* without one in the request */
#define BOOKMARK_MS 10000
#define WATCHES_MAX 1024

struct k8s_watch { /* in the exchange's arena */
    struct list link;
    struct request *r;
    const struct k8s_kind *kind;
    const struct k8s_query *q;
    struct str space;
    struct principal by;
    struct subscription *sub;
    struct revocable_stream live;
    int64_t ends_ms, bookmark_ms, told; /* told: the version of the last bookmark */
    bool head_sent;                     /* of tables: their columns */
    bool blocked, over;
};

static void watch_stop(struct k8s_watch *w)
{
    w->over = true;
    subscription_end(TAKE(w->sub));
    revocable_stream_end(&w->live);
    list_unlink(&w->link);
}

static void watch_end(struct k8s_watch *w)
{
    if (w->over)
        return;
    watch_stop(w);
    xchg_end(w->r->x, NULL, 0);
}

/* Takes object. */
static void send_line(struct k8s_watch *w, const char *type, json_t *object)
{
    AUTO(buf_done) struct buf line = {0};
    struct jw j = {.to = &line};

    jw_object(&j);
    jw_kc(&j, "type", type);
    jw_key(&j, "object");
    jw_json(&j, object);
    jw_object_end(&j);
    buf_add_char(&line, '\n');
    json_decref(object);
    if (xchg_write(w->r->x, buf_data(&line), buf_len(&line)))
        w->blocked = true;
}

static void send_object(struct k8s_watch *w, const char *type, json_t *object)
{
    if (w->q->form == K8S_TABLE) {
        object = k8s_table(w->kind, w->q, json_pack("[o]", object), !w->head_sent);
        w->head_sent = true;
    }
    send_line(w, type, object);
}

static void send_bookmark(struct k8s_watch *w, int64_t version, bool begun)
{
    json_t *o = json_object(), *meta = json_object();

    json_object_set_new(o, "kind", json_string(w->kind->kind));
    json_object_set_new(o, "apiVersion", json_sprintf("%s/" K8S_VERSION, w->kind->group));
    json_object_set_new(meta, "resourceVersion", json_sprintf("%" PRId64, version));
    json_object_set_new(meta, "creationTimestamp", json_null());
    if (begun)
        json_object_set_new(meta, "annotations",
                            json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
    json_object_set_new(o, "metadata", meta);
    send_line(w, "BOOKMARK", o);
    w->told = version;
}

/* --- events --- */

/* An object that was relabelled and fits no more is gone from here; a client that never had it
 * ignores that. */
static int event_came(void *arg, const struct event *ev)
{
    struct k8s_watch *w = arg;
    bool gone = false, made = false;
    json_t *o = w->kind->at_event(w->r->api, &w->by, ev, &gone, &made);

    if (o && w->kind->everywhere && w->space.n > 0)
        json_object_set_new(json_object_get(o, "metadata"), "namespace", k8s_str(w->space));
    if (!o || (w->space.n > 0 && !str_eq(w->space, k8s_space(o)))) {
        json_decref(o);
        return 0;
    }
    if (k8s_selects(&w->q->selector, o))
        send_object(w, gone ? "DELETED" : made ? "ADDED" : "MODIFIED", o);
    else if (str_ends(ev->type, STR(".relabelled")))
        send_object(w, "DELETED", o);
    else
        json_decref(o);
    return w->blocked;
}

static void log_failed(void *arg, const struct err *e)
{
    (void)e;
    watch_end(arg); /* the client watches again from where it is */
}

static void send_all(struct k8s_watch *w)
{
    json_t *all = w->kind->list(w->r->api, &w->by, w->space), *o;
    size_t i;

    json_array_foreach(all, i, o)
    {
        if (k8s_selects(&w->q->selector, o))
            send_object(w, "ADDED", json_incref(o));
    }
    json_decref(all);
}

/* --- the exchange --- */

static void on_drained(struct xchg *x)
{
    struct k8s_watch *w = xchg_arg(x);

    w->blocked = false;
    if (w->sub)
        subscription_resume(w->sub);
}

static void on_closed(struct xchg *x, bool done)
{
    struct k8s_watch *w = xchg_arg(x);

    if (!w->over)
        watch_stop(w);
    request_end(w->r, done);
}

static void on_body(struct xchg *x, struct str part)
{
    xchg_consume(x, part.n);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    (void)ws_code, (void)why;
    watch_end(CONTAINER_OF(l, struct k8s_watch, live));
}

static void begin(struct k8s_watch *w, int64_t version, bool all)
{
    static const struct xchg_ops ops = {
        .body = on_body, .drained = on_drained, .closed = on_closed};
    static const struct http_header h[] = {{STR("content-type"), STR("application/json")},
                                           {STR("cache-control"), STR("no-cache, private")}};
    struct request *r = w->r;

    request_count(r, 200);
    xchg_handle(r->x, &ops, w);
    xchg_head(r->x, 200, h, ARRAY_LEN(h));
    revocable_stream_begin(&w->live, r, on_live_end);
    list_push(&k8s_of(r->api)->watches, &w->link);
    w->bookmark_ms = clock_mono_ms();
    w->ends_ms = w->bookmark_ms + (w->q->timeout_s > 0 ? w->q->timeout_s : TIMEOUT_S) * 1000;
    if (all)
        send_all(w);
    if (all && w->q->initial && w->q->bookmarks)
        send_bookmark(w, version, true);
    w->sub = events_subscribe(
        r->api->c.events,
        &(struct event_filter){.object = str_of(w->kind->event), .since_seq = version}, event_came,
        log_failed, w);
    if (w->over) /* it ended within the call */
        subscription_end(TAKE(w->sub));
}

/* As an API server: the watch begins, and says that it cannot. */
static void begin_too_old(struct k8s_watch *w)
{
    static const struct http_header h[] = {{STR("content-type"), STR("application/json")}};
    static const struct xchg_ops ops = {.body = on_body, .closed = on_closed};

    list_init(&w->link);
    request_count(w->r, 200);
    xchg_handle(w->r->x, &ops, w);
    xchg_head(w->r->x, 200, h, ARRAY_LEN(h));
    send_line(
        w, "ERROR",
        k8s_status(410, "Expired",
                   str_of(arena_printf(xchg_arena(w->r->x), "too old resource version: " STR_FMT,
                                       STR_ARG(w->q->version)))));
    w->over = true;
    xchg_end(w->r->x, NULL, 0);
}

/* --- is the version still in the log? --- */

struct version_check {
    struct waiter waiter;
    struct k8s_watch *w; /* valid as long as the request */
    int64_t version, first;
};

static void first_came(void *arg, const struct event *ev)
{
    struct version_check *c = arg;

    if (c->first == 0)
        c->first = ev->seq;
}

static void version_checked(void *arg, const struct err *e)
{
    struct version_check *c = arg;
    struct request *r = waiter_end(&c->waiter);

    if (r && e->code != ERR_NONE)
        k8s_refuse(r, e);
    else if (r && c->first != c->version + 1)
        begin_too_old(c->w);
    else if (r)
        begin(c->w, c->version, false);
    mem_free(c);
}

static void check_version(struct k8s_watch *w, int64_t version)
{
    struct version_check *c = xzalloc(sizeof *c);

    c->w = w;
    c->version = version;
    request_wait(w->r, &c->waiter);
    events_read(w->r->api->c.events,
                &(struct event_filter){.since_seq = version, .audit_too = true, .limit = 1},
                first_came, version_checked, c);
}

static size_t count_watches(const struct k8s *k)
{
    size_t n = 0;

    LIST_EACH (&k->watches, node)
        n++;
    return n;
}

void k8s_watch(struct request *r, const struct k8s_kind *kind, const struct k8s_query *q,
               struct str space)
{
    struct k8s_watch *w = arena_zalloc(xchg_arena(r->x), sizeof *w);
    int64_t head = events_head(r->api->c.events, NULL), version = 0;
    struct err e = {0};

    *w = (struct k8s_watch){.r = r, .kind = kind, .q = q, .space = space, .by = request_who(r)};
    list_init(&w->link);
    if (count_watches(k8s_of(r->api)) >= WATCHES_MAX) {
        err_set(&e, ERR_LIMIT, 0, "there are %d watches already", WATCHES_MAX);
        err_limit_fixed(&e, WATCHES_MAX, "end one of them");
        k8s_refuse(r, &e);
    } else if (q->version.n > 0 && (str_parse_i64(q->version, &version) < 0 || version < 0)) {
        k8s_error(r, 400, NULL, STR(""), "resourceVersion: Invalid value: \"" STR_FMT "\"",
                  (int)size_min(q->version.n, 40), q->version.p);
    } else if (version == 0 || q->initial) {
        begin(w, head, true);
    } else if (version == head) {
        begin(w, head, false);
    } else if (version > head) {
        begin_too_old(w); /* of another log, or from before this one was restored */
    } else {
        check_version(w, version);
    }
}

void k8s_watches_tick(struct k8s *k)
{
    int64_t now = clock_mono_ms(), at;

    LIST_EACH (&k->watches, node) {
        struct k8s_watch *w = LIST_ENTRY(node, struct k8s_watch, link);

        at = w->sub ? subscription_at(w->sub) : 0;
        if (now >= w->ends_ms) {
            watch_end(w);
        } else if (w->q->bookmarks && !w->blocked && at > w->told &&
                   now - w->bookmark_ms >= BOOKMARK_MS) {
            w->bookmark_ms = now;
            send_bookmark(w, at, false);
        }
    }
}
