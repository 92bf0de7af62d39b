/* watch: list, watch, and both again. */
#include "kube/watch.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/map.h"
#include "base/mem.h"
#include "kube/status.h"
#include "link/timers.h"

#define PAGE "100"
#define TURN_S "240" /* the server ends a watch after it */
#define SILENCE_MS 300000
#define CONNECT_MS 10000
#define HEAD_MS 30000
#define OBJECTS_MAX 100000

struct kube_watch {
    struct kube *k;
    char *path;
    struct buf selector; /* percent-encoded */
    const struct kube_watch_ops *ops;
    void *arg;
    struct map known; /* "namespace/name": the value is the pass of the list that saw it */
    size_t pass;
    struct buf version; /* resourceVersion */
    struct buf next;    /* of a list: `continue` */
    struct kube_call *list;
    struct client *client; /* the watch's own */
    struct kube_lines lines;
    struct timer timer;
    struct err fault; /* of this try */
    int status, tries;
    bool relist, sick, freed, in_call;
    struct buf refusal;
};

static void begin(struct kube_watch *w);

const char *kube_watch_version(const struct kube_watch *w)
{
    return buf_len(&w->version) > 0 ? buf_cstr((struct buf *)(uintptr_t)&w->version) : "";
}

/* ---- life ---- */

static void watch_done(struct kube_watch *w)
{
    mem_free(w->path);
    buf_done(&w->selector);
    buf_done(&w->version);
    buf_done(&w->next);
    buf_done(&w->refusal);
    map_done(&w->known);
    kube_lines_done(&w->lines);
    mem_free(w);
}

struct kube_watch *kube_watch_free(struct kube_watch *w)
{
    if (!w)
        return NULL;
    w->freed = true;
    timer_stop(&w->timer);
    if (w->list)
        kube_call_cancel(w->list);
    w->list = NULL;
    if (w->client)
        client_cancel(w->client); /* on_closed frees */
    else if (!w->in_call)
        watch_done(w);
    return NULL;
}

/* ---- reporting ---- */

static void tell_health(struct kube_watch *w, const struct err *e)
{
    bool sick = e->code != ERR_NONE;

    if (sick == w->sick)
        return;
    w->sick = sick;
    if (w->ops->health)
        w->ops->health(w->arg, e);
}

static const json_t *meta_of(const json_t *object)
{
    return json_object_get(object, "metadata");
}

static const char *meta_text(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(meta_of(object), key));

    return s ? s : "";
}

static void take_version(struct kube_watch *w, const json_t *object)
{
    const char *v = meta_text(object, "resourceVersion");

    if (!v[0])
        return;
    buf_clear(&w->version);
    buf_add_c(&w->version, v);
}

static void *pass_value(const struct kube_watch *w)
{
    return (void *)(uintptr_t)(w->pass + 1);
}

static void take_object(struct kube_watch *w, enum kube_change change, const json_t *object)
{
    AUTO(mem_free)
    char *key = xasprintf("%s/%s", meta_text(object, "namespace"), meta_text(object, "name"));
    struct str k = str_of(key);

    if (change == KUBE_DELETED) {
        (void)map_remove(&w->known, k);
    } else {
        if (w->known.count >= OBJECTS_MAX && !map_get(&w->known, k))
            return;
        change = map_set(&w->known, k, pass_value(w)) ? KUBE_MODIFIED : KUBE_ADDED;
    }
    w->ops->object(w->arg, change, object);
}

/* What this list did not have is gone. */
static void sweep_known(struct kube_watch *w)
{
    struct str key;
    size_t at = 0;
    void *seen;

    while (!w->freed && map_next(&w->known, &at, &key, &seen)) {
        AUTO(json_decref) json_t *o = NULL;
        struct str name, space;

        if (seen == pass_value(w))
            continue;
        space = str_cut(key, '/', &name);
        o = json_pack("{s:{s:s%,s:s%}}", "metadata", "name", name.p, name.n, "namespace", space.p,
                      space.n);
        (void)map_remove(&w->known, key);
        w->ops->object(w->arg, KUBE_DELETED, o);
    }
}

/* ---- trying again ---- */

static void begin_due(struct timer *t)
{
    begin(CONTAINER_OF(t, struct kube_watch, timer));
}

static void again(struct kube_watch *w, int64_t wait_ms)
{
    timer_set(kube_timers(w->k), &w->timer, wait_ms > 0 ? clock_mono_ms() + wait_ms : TIMER_SOON,
              begin_due);
}

static void failed(struct kube_watch *w, const struct err *e)
{
    tell_health(w, e);
    if (!w->freed)
        again(w, kube_backoff_ms(w->k, w->tries++));
}

/* ---- the watch ---- */

/* Too old to continue: HTTP 200 with an ERROR event, or HTTP 410. */
static void take_error(struct kube_watch *w, const json_t *status)
{
    (void)kube_status_json(500, status, &w->fault);
    if (w->fault.code == ERR_GONE || kube_status_is(status, "Expired"))
        w->relist = true;
}

static void take_event(struct kube_watch *w, const struct kube_event *ev)
{
    if (ev->change == KUBE_ERROR) {
        take_error(w, ev->object);
        client_cancel(w->client);
        return;
    }
    if (ev->change != KUBE_BOOKMARK)
        take_object(w, ev->change, ev->object);
    take_version(w, ev->object);
}

static void on_head(struct client *c, int status, const struct http_header *h, size_t n)
{
    struct kube_watch *w = client_arg(c);

    (void)h;
    (void)n;
    w->status = status;
    if (status == 200)
        tell_health(w, &(struct err){0});
}

static void read_events(struct kube_watch *w)
{
    struct kube_event ev;
    int r = 0;

    while (!w->freed && w->fault.code == ERR_NONE &&
           (r = kube_lines_next(&w->lines, &ev, &w->fault)) > 0) {
        AUTO(json_decref) json_t *owned = ev.object;

        w->tries = 0;
        take_event(w, &ev);
    }
    if (r < 0)
        w->relist = true; /* a line that we cannot read would come again */
}

static void on_body(struct client *c, struct str part)
{
    struct kube_watch *w = client_arg(c);

    client_consume(c, part.n);
    if (w->freed || w->fault.code != ERR_NONE)
        return;
    if (w->status != 200) {
        buf_add(&w->refusal, part.p, size_min(part.n, 65536 - buf_len(&w->refusal)));
        return;
    }
    while (part.n > 0 && !w->freed && w->fault.code == ERR_NONE) {
        size_t n = size_min(part.n, 65536);

        if (kube_lines_feed(&w->lines, str_make(part.p, n), &w->fault) < 0)
            w->relist = true;
        part = str_skip(part, n);
        read_events(w);
    }
    if (!w->freed && w->fault.code != ERR_NONE)
        client_cancel(c);
}

static void watch_refused(struct kube_watch *w, struct err *e)
{
    (void)kube_status_err(w->status, buf_str(&w->refusal), e);
    if (w->status == 410)
        w->relist = true;
    if (w->status == 401)
        kube_token_refused(w->k);
}

/* A reply that ends, also in the middle of a line, is the ordinary end of a watch. */
static void on_closed(struct client *c, const struct err *why)
{
    struct kube_watch *w = client_arg(c);
    struct err e = *why;

    w->client = NULL;
    if (w->freed) {
        watch_done(w);
        return;
    }
    kube_lines_done(&w->lines);
    if (w->fault.code != ERR_NONE) {
        e = w->fault;
        if (w->relist && e.code == ERR_GONE) { /* not a fault of anybody */
            again(w, 0);
            return;
        }
    } else if (w->status == 200) {
        again(w, w->tries++ == 0 ? 0 : kube_backoff_ms(w->k, w->tries));
        return;
    } else if (w->status != 0) {
        watch_refused(w, &e);
    }
    (void)err_wrap(&e, "watch %.80s", w->path);
    failed(w, &e);
}

static void start_watch(struct kube_watch *w)
{
    static const struct client_ops ops = {.head = on_head, .body = on_body, .closed = on_closed};
    AUTO(mem_free)
    char *target = xasprintf("%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=" TURN_S
                             "&resourceVersion=%s&labelSelector=" STR_FMT,
                             w->path, kube_watch_version(w), STR_ARG(buf_str(&w->selector)));
    struct kube_auth auth;
    struct err e;

    w->status = 0;
    w->fault = (struct err){0};
    buf_clear(&w->refusal);
    kube_authorise(w->k, &auth);
    if (client_start(&(struct client_request){.loop = kube_loop(w->k),
                                              .url = kube_url(w->k),
                                              .tls = kube_tls(w->k),
                                              .method = "GET",
                                              .target = target,
                                              .headers = auth.v,
                                              .header_count = auth.n,
                                              .connect_ms = CONNECT_MS,
                                              .head_ms = HEAD_MS,
                                              .idle_ms = SILENCE_MS,
                                              .ops = &ops,
                                              .arg = w},
                     &w->client, &e) < 0)
        failed(w, &e);
}

/* ---- the list ---- */

static void listed(void *arg, int status, const json_t *reply, const struct err *e);

static void start_list(struct kube_watch *w)
{
    AUTO(mem_free)
    char *target = xasprintf("%s?limit=" PAGE "&labelSelector=" STR_FMT "%s" STR_FMT, w->path,
                             STR_ARG(buf_str(&w->selector)),
                             buf_len(&w->next) > 0 ? "&continue=" : "", STR_ARG(buf_str(&w->next)));
    struct err why;

    w->list =
        kube_call(w->k, &(struct kube_request){.method = "GET", .target = target}, listed, w, &why);
    if (!w->list)
        failed(w, &why);
}

static void take_page(struct kube_watch *w, const json_t *reply)
{
    json_t *item;
    size_t at;

    json_array_foreach(json_object_get(reply, "items"), at, item)
    {
        if (!w->freed && json_is_object(item))
            take_object(w, KUBE_ADDED, item);
    }
    buf_clear(&w->next);
    enc_percent(&w->next, str_of(meta_text(reply, "continue")));
}

static void list_complete(struct kube_watch *w, const json_t *reply)
{
    take_version(w, reply);
    sweep_known(w);
    w->relist = false;
    w->tries = 0;
    if (!w->freed)
        tell_health(w, &(struct err){0});
    if (!w->freed && w->ops->synced)
        w->ops->synced(w->arg);
    if (!w->freed)
        start_watch(w);
}

static void listed(void *arg, int status, const json_t *reply, const struct err *e)
{
    struct kube_watch *w = arg;
    struct err why = *e;

    (void)status;
    w->list = NULL;
    if (why.code == ERR_NONE && !json_is_array(json_object_get(reply, "items")))
        (void)err_set(&why, ERR_UNAVAILABLE, 0, "the reply is no list");
    if (why.code == ERR_CANCELLED)
        return; /* the kube is being freed */
    if (why.code != ERR_NONE) {
        buf_clear(&w->next); /* a page that has expired: from the first one */
        (void)err_wrap(&why, "list %.80s", w->path);
        failed(w, &why);
        return;
    }
    w->in_call = true;
    take_page(w, reply);
    if (!w->freed && buf_len(&w->next) > 0)
        start_list(w);
    else if (!w->freed)
        list_complete(w, reply);
    w->in_call = false;
    if (w->freed && !w->client)
        watch_done(w);
}

static void begin(struct kube_watch *w)
{
    if (!w->relist) {
        start_watch(w);
        return;
    }
    buf_clear(&w->next);
    w->pass++;
    start_list(w);
}

struct kube_watch *kube_watch_new(struct kube *k, const char *path, const char *selector,
                                  const struct kube_watch_ops *ops, void *arg)
{
    struct kube_watch *w = xzalloc(sizeof *w);

    *w = (struct kube_watch){.k = k, .path = xstrdup(path), .ops = ops, .arg = arg, .relist = true};
    enc_percent(&w->selector, str_of(selector));
    again(w, 0);
    return w;
}
