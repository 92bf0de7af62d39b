/* kube: calls to an API server: rate, repetition, tokens. */
#include "kube/kube.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "base/starter.h"
#include "kube/status.h"
#include "link/timers.h"

#include <inttypes.h>

#define TOKEN_MAX (64 * 1024)
#define TOKEN_FRESH_MS 60000 /* the kubelet replaces it long before it expires */
#define BACKOFF_TIMES 30
#define RETRY_AFTER_MAX_S 120
#define CONNECT_MS 10000
#define HEAD_MS 30000
#define IDLE_MS 15000

struct kube {
    uv_loop_t *loop;
    struct timers *timers;
    struct client_url url;
    struct dial_tls *tls;
    struct kube_config c;
    struct kube_limits limits;
    struct list calls;
    size_t call_count;
    struct buf authorization; /* value of the header */
    int64_t token_read_ms;    /* 0: never, or refused since */
    int64_t budget_ns;        /* when the rate allows the next request, less the burst */
};

struct kube_call {
    struct list link;
    struct kube *k;
    char *method, *target;
    struct buf body;
    enum kube_body kind;
    bool once, refused; /* refused: a 401 was answered with a fresh token already */
    kube_done done;
    void *arg;
    struct client *client; /* under way */
    struct timer timer;    /* until the next try */
    struct buf reply;
    int64_t deadline_ms, retry_after_ms;
    int status, tries;
    bool gone; /* cancelled: freed when the client has ended */
};

static const char *const body_types[] = {
    [KUBE_JSON] = "application/json",
    [KUBE_MERGE_PATCH] = "application/merge-patch+json",
    [KUBE_APPLY] = "application/apply-patch+yaml",
};

static void call_try(struct kube_call *c);

/* ---- settings ---- */

const char *kube_space(const struct kube *k)
{
    return k->c.space;
}

uv_loop_t *kube_loop(const struct kube *k)
{
    return k->loop;
}

struct timers *kube_timers(struct kube *k)
{
    return k->timers;
}

const struct client_url *kube_url(const struct kube *k)
{
    return &k->url;
}

struct dial_tls *kube_tls(const struct kube *k)
{
    return k->tls;
}

const struct kube_limits *kube_limits_of(const struct kube *k)
{
    return &k->limits;
}

/* ---- who we are ---- */

static void read_token(struct kube *k)
{
    AUTO(buf_wipe) struct buf text = {0};

    /* A small file, mostly in memory (a projected volume), once a minute: not worth a thread. */
    if (starter_read(k->c.token_file, TOKEN_MAX, &text) < 0)
        return; /* the old one may still be good */
    while (buf_len(&text) > 0 && buf_data(&text)[buf_len(&text) - 1] <= ' ')
        buf_truncate(&text, buf_len(&text) - 1);
    buf_wipe(&k->authorization);
    buf_printf(&k->authorization, "Bearer " STR_FMT, STR_ARG(buf_str(&text)));
    k->token_read_ms = clock_mono_ms();
}

static void make_authorization(struct kube *k)
{
    AUTO(buf_wipe) struct buf plain = {0};

    if (k->c.token) {
        buf_printf(&k->authorization, "Bearer %s", k->c.token);
    } else if (k->c.user && k->c.password) {
        buf_printf(&plain, "%s:%s", k->c.user, k->c.password);
        buf_add_c(&k->authorization, "Basic ");
        enc_base64(&k->authorization, buf_data(&plain), buf_len(&plain));
    }
}

void kube_authorise(struct kube *k, struct kube_auth *to)
{
    to->n = 0;
    if (k->c.token_file &&
        (k->token_read_ms == 0 || clock_mono_ms() - k->token_read_ms >= TOKEN_FRESH_MS))
        read_token(k);
    if (buf_len(&k->authorization) > 0)
        to->v[to->n++] = (struct http_header){STR("authorization"), buf_str(&k->authorization)};
    if (k->c.as)
        to->v[to->n++] = (struct http_header){STR("impersonate-user"), str_of(k->c.as)};
    /* An exec has no JSON to give, and is refused with 406 where nothing else is accepted. */
    to->v[to->n++] = (struct http_header){STR("accept"), STR("application/json, */*")};
    to->v[to->n++] = (struct http_header){STR("user-agent"), STR("holt")};
}

void kube_token_refused(struct kube *k)
{
    k->token_read_ms = 0;
}

int64_t kube_backoff_ms(const struct kube *k, int n)
{
    int64_t most = k->limits.retry_ms * BACKOFF_TIMES;
    int64_t wait = i64_min(most, k->limits.retry_ms << (n < 16 ? n : 16));

    return wait / 2 + (int64_t)(rnd_u64() % (uint64_t)(wait / 2 + 1));
}

/* ---- the end of a call ---- */

static void call_free(struct kube_call *c)
{
    timer_stop(&c->timer);
    list_unlink(&c->link);
    if (c->k)
        c->k->call_count--;
    mem_free(c->method);
    mem_free(c->target);
    buf_done(&c->body);
    buf_done(&c->reply);
    mem_free(c);
}

static void call_end(struct kube_call *c, const json_t *reply, const struct err *e)
{
    kube_done done = c->done;
    void *arg = c->arg;
    int status = c->status;

    call_free(c);
    done(arg, status, reply, e);
}

void kube_call_cancel(struct kube_call *c)
{
    c->gone = true;
    if (c->client)
        client_cancel(c->client);
    else
        call_free(c);
}

/* ---- repetition ---- */

static void retry_due(struct timer *t)
{
    call_try(CONTAINER_OF(t, struct kube_call, timer));
}

/* False: there is no time left for another try. */
static bool call_again(struct kube_call *c)
{
    int64_t wait = c->retry_after_ms > 0 ? c->retry_after_ms : kube_backoff_ms(c->k, c->tries);
    int64_t at = clock_mono_ms() + wait;

    if (c->once || at >= c->deadline_ms)
        return false;
    c->tries++;
    timer_set(c->k->timers, &c->timer, at, retry_due);
    return true;
}

static bool is_repeatable(const char *method)
{
    return strcmp(method, "POST") != 0;
}

/* What the server did not do may be asked for again; what it may have done only if that is
 * harmless. */
static bool worth_again(const struct kube_call *c, const struct err *e)
{
    if (c->status == 429 || c->status == 503)
        return true;
    if (c->status == 500 || c->status == 504 || c->status == 502)
        return is_repeatable(c->method);
    return c->status == 0 && e->code != ERR_TOO_LARGE && e->code != ERR_FORBIDDEN &&
           is_repeatable(c->method);
}

static void call_replied(struct kube_call *c)
{
    AUTO(json_decref) json_t *o = NULL;
    struct err e = {0};

    if (c->status == 401 && c->k->c.token_file && !c->refused) {
        c->refused = true;
        kube_token_refused(c->k);
        call_try(c);
        return;
    }
    if (c->status >= 300)
        (void)kube_status_err(c->status, buf_str(&c->reply), &e);
    else if (buf_len(&c->reply) > 0 && json_read_lax(buf_str(&c->reply), &o, &e) < 0)
        (void)err_wrap(&e, "read the reply of the cluster to %s %.100s", c->method, c->target);
    if (c->status >= 300 && worth_again(c, &e) && call_again(c))
        return;
    call_end(c, e.code == ERR_NONE ? o : NULL, &e);
}

/* ---- one try ---- */

static void on_head(struct client *client, int status, const struct http_header *h, size_t n)
{
    struct kube_call *c = client_arg(client);
    const struct http_header *after = http_get(h, n, "retry-after");
    uint64_t s;

    c->status = status;
    if (after && str_parse_u64(after->value, &s) == 0 && s <= RETRY_AFTER_MAX_S)
        c->retry_after_ms = (int64_t)s * 1000;
}

static void on_body(struct client *client, struct str part)
{
    struct kube_call *c = client_arg(client);

    client_consume(client, part.n);
    if (buf_len(&c->reply) + part.n <= KUBE_REPLY_MAX) {
        buf_add_str(&c->reply, part);
        return;
    }
    buf_done(&c->reply);
    c->status = -1; /* told apart in on_closed */
    client_cancel(client);
}

static void on_closed(struct client *client, const struct err *why)
{
    struct kube_call *c = client_arg(client);
    struct err e = *why;

    c->client = NULL;
    if (c->gone) {
        call_free(c);
        return;
    }
    if (c->status < 0) {
        c->status = 0;
        (void)err_set(&e, ERR_TOO_LARGE, 0, "the reply has more than %d bytes", KUBE_REPLY_MAX);
    } else if (e.code == ERR_NONE) {
        call_replied(c);
        return;
    } else {
        c->status = 0; /* a reply that was cut off says nothing */
    }
    (void)err_wrap(&e, "ask the cluster at %.80s", c->k->c.server);
    if (worth_again(c, &e) && call_again(c))
        return;
    call_end(c, NULL, &e);
}

static int call_send(struct kube_call *c, struct err *e)
{
    static const struct client_ops ops = {.head = on_head, .body = on_body, .closed = on_closed};
    struct kube_auth auth;

    kube_authorise(c->k, &auth);
    if (buf_len(&c->body) > 0)
        auth.v[auth.n++] = (struct http_header){STR("content-type"), str_of(body_types[c->kind])};
    return client_start(
        &(struct client_request){.loop = c->k->loop,
                                 .url = &c->k->url,
                                 .tls = c->k->tls,
                                 .method = c->method,
                                 .target = c->target,
                                 .headers = auth.v,
                                 .header_count = auth.n,
                                 .body = buf_str(&c->body),
                                 .connect_ms = CONNECT_MS,
                                 .head_ms = HEAD_MS,
                                 .idle_ms = IDLE_MS,
                                 .total_ms = i64_max(1, c->deadline_ms - clock_mono_ms()),
                                 .ops = &ops,
                                 .arg = c},
        &c->client, e);
}

/* A token bucket as one moment in time: each request moves it on by 1/rate. */
static int64_t take_turn(struct kube *k)
{
    int64_t now = clock_mono_ns(), step = 1000000000 / k->limits.per_second;
    int64_t free_at = i64_max(k->budget_ns, now - step * k->limits.burst);

    k->budget_ns = free_at + step;
    return k->budget_ns <= now ? 0 : (k->budget_ns - now + 999999) / 1000000;
}

static void send_due(struct timer *t)
{
    struct kube_call *c = CONTAINER_OF(t, struct kube_call, timer);
    struct err e = {0};

    if (call_send(c, &e) < 0)
        call_end(c, NULL, &e);
}

static void call_try(struct kube_call *c)
{
    int64_t wait = take_turn(c->k);

    c->status = 0;
    c->retry_after_ms = 0;
    buf_clear(&c->reply);
    timer_set(c->k->timers, &c->timer, wait > 0 ? clock_mono_ms() + wait : TIMER_SOON, send_due);
}

struct kube_call *kube_call(struct kube *k, const struct kube_request *r, kube_done done, void *arg,
                            struct err *e)
{
    struct kube_call *c;

    if (k->call_count >= KUBE_CALLS_MAX) {
        (void)err_set(e, ERR_LIMIT, 0, "too many calls to the cluster are under way");
        (void)err_limit_fixed(e, KUBE_CALLS_MAX, "try again when some have ended");
        return NULL;
    }
    c = xzalloc(sizeof *c);
    *c = (struct kube_call){.k = k,
                            .method = xstrdup(r->method),
                            .target = xstrdup(r->target),
                            .kind = r->kind,
                            .once = r->once,
                            .done = done,
                            .arg = arg,
                            .deadline_ms = clock_mono_ms() + k->limits.deadline_ms};
    buf_add_str(&c->body, r->body);
    list_push(&k->calls, &c->link);
    k->call_count++;
    call_try(c);
    return c;
}

struct kube_call *kube_delete(struct kube *k, const char *target, const char *uid, int64_t grace_s,
                              kube_done done, void *arg, struct err *e)
{
    AUTO(buf_done) struct buf body = {0};
    struct jw w = {.to = &body};

    jw_object(&w);
    jw_kc(&w, "kind", "DeleteOptions");
    jw_kc(&w, "apiVersion", "v1");
    jw_kc(&w, "propagationPolicy", "Background");
    if (grace_s >= 0)
        jw_kint(&w, "gracePeriodSeconds", grace_s);
    if (uid && uid[0]) {
        jw_key(&w, "preconditions");
        jw_object(&w);
        jw_kc(&w, "uid", uid);
        jw_object_end(&w);
    }
    jw_object_end(&w);
    return kube_call(
        k, &(struct kube_request){.method = "DELETE", .target = target, .body = buf_str(&body)},
        done, arg, e);
}

struct kube_call *kube_apply(struct kube *k, const char *target, struct str object,
                             const char *manager, bool force, kube_done done, void *arg,
                             struct err *e)
{
    AUTO(mem_free)
    char *full = xasprintf("%s?fieldManager=%s%s", target, manager, force ? "&force=true" : "");

    return kube_call(k,
                     &(struct kube_request){
                         .method = "PATCH", .target = full, .body = object, .kind = KUBE_APPLY},
                     done, arg, e);
}

/* ---- life ---- */

static int64_t or_preset(int64_t v, int64_t preset)
{
    return v > 0 ? v : preset;
}

/* The client takes the texts over. */
static void take_config(struct kube *k, const struct kube_config *c)
{
    k->c.server = xstrdup(c->server);
    k->c.space = xstrdup(c->space ? c->space : "default");
    k->c.token = c->token ? xstrdup(c->token) : NULL;
    k->c.token_file = c->token_file ? xstrdup(c->token_file) : NULL;
    k->c.user = c->user ? xstrdup(c->user) : NULL;
    k->c.password = c->password ? xstrdup(c->password) : NULL;
    k->c.as = c->as ? xstrdup(c->as) : NULL;
    make_authorization(k);
}

int kube_new(uv_loop_t *loop, const struct kube_config *c, const struct kube_limits *l,
             struct kube **ret, struct err *e)
{
    AUTO(kube_free) struct kube *k = xzalloc(sizeof *k);

    list_init(&k->calls);
    k->loop = loop;
    take_config(k, c);
    k->limits = (struct kube_limits){
        .per_second = or_preset(l ? l->per_second : 0, 50),
        .burst = or_preset(l ? l->burst : 0, 100),
        .retry_ms = or_preset(l ? l->retry_ms : 0, 200),
        .deadline_ms = or_preset(l ? l->deadline_ms : 0, 30000),
    };
    if (client_url_parse(c->server, &k->url, e) < 0)
        return err_wrap(e, "use the cluster of the kubeconfig");
    if (k->url.tls && dial_tls_make(&(struct dial_tls_config){.ca = buf_str(&c->ca),
                                                              .cert = buf_str(&c->cert),
                                                              .key = buf_str(&c->key),
                                                              .name = c->tls_name,
                                                              .unverified = c->unverified},
                                    &k->tls, e) < 0)
        return err_wrap(e, "use the cluster at %.80s", c->server);
    k->timers = timers_new(loop);
    *ret = TAKE(k);
    return 0;
}

/* A client that is cancelled ends in a later turn: its call outlives the kube. */
static void call_orphan(struct kube_call *c)
{
    struct err e;
    kube_done done = c->gone ? NULL : c->done;
    void *arg = c->arg;

    list_unlink(&c->link);
    c->k->call_count--;
    timer_stop(&c->timer);
    c->k = NULL;
    if (done)
        kube_call_cancel(c);
    (void)err_set(&e, ERR_CANCELLED, 0, "the connection to the cluster is closed");
    if (done)
        done(arg, 0, NULL, &e);
}

struct kube *kube_free(struct kube *k)
{
    if (!k)
        return NULL;
    while (!list_is_empty(&k->calls))
        call_orphan(LIST_ENTRY(k->calls.next, struct kube_call, link));
    timers_free(k->timers);
    client_url_done(&k->url);
    k->tls = dial_tls_free(k->tls);
    kube_config_done(&k->c);
    buf_wipe(&k->authorization);
    mem_free(k);
    return NULL;
}
