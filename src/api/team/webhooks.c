/* webhooks: delivers events to their receivers. */
#include "api/team/webhooks.h"

#include "api/native/handlers.h"
#include "api/share/event_stream.h"
#include "api/team/team.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/exec/tool.h"
#include "core/keyfile.h"
#include "core/notify/webhook.h"
#include "net/client.h"
#include "ops/webhook.h"
#include "proto/digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#define ATTEMPTS 8 /* with pauses of 1, 2, 4 … 64 s: about two minutes */
#define PAUSE_FIRST_MS 1000
#define CONNECT_MS 5000
#define TOTAL_MS 15000
#define KEY_BYTES 32
#define COMMAND_MS 30000
#define COMMAND_MEMORY (256LL << 20)
#define COMMAND_PIDS 64
#define OUTPUT_MAX 8192

struct hook { /* one webhook */
    struct list link;
    struct webhooks *all; /* NULL: it was removed or closed; freed with its request */
    struct arena arena;
    struct webhook w;
    struct subscription *sub;
    struct buf body; /* of the event being delivered; empty: none */
    char type[64];
    int64_t seq, attempts, at_ms; /* at_ms: of the next attempt, clock_mono_ms */
    struct client *client;
    struct tool *tool; /* the run of a command */
    size_t given;      /* bytes of the event that it has taken */
    int status;
    bool stuck, resume, seen;
};

struct webhooks {
    struct api *api;
    char key[2 * KEY_BYTES + 1];
    struct list hooks;
    struct subscription *sub; /* of changes of webhooks */
    bool stuck, stopped;
};

/* --- the request --- */

struct signed_headers {
    struct http_header v[6];
    size_t n;
    char stamp[24], signature[2 * SHA256_SIZE + 8], delivery[96];
};

static void sign(struct signed_headers *h, const struct webhooks *all, struct str id,
                 const char *type, int64_t seq, struct str body)
{
    unsigned char mac[SHA256_SIZE];
    AUTO(buf_done) struct buf text = {0};
    char secret[WEBHOOK_SECRET], hex[2 * SHA256_SIZE + 1];

    webhook_secret(str_of(all->key), id, secret);
    (void)snprintf(h->stamp, sizeof h->stamp, "%" PRId64, clock_wall_ms() / 1000);
    buf_printf(&text, "%s.", h->stamp);
    buf_add_str(&text, body);
    hmac_sha256(str_of(secret), buf_str(&text), mac);
    enc_hex(mac, sizeof mac, hex);
    (void)snprintf(h->signature, sizeof h->signature, "sha256=%s", hex);
    (void)snprintf(h->delivery, sizeof h->delivery, STR_FMT "-%" PRId64, STR_ARG(id), seq);
    h->v[0] = (struct http_header){STR("content-type"), STR("application/json")};
    h->v[1] = (struct http_header){STR("user-agent"), STR("holt-webhook")};
    h->v[2] = (struct http_header){STR("holt-event"), str_of(type)};
    h->v[3] = (struct http_header){STR("holt-delivery"), str_of(h->delivery)};
    h->v[4] = (struct http_header){STR("holt-timestamp"), str_of(h->stamp)};
    h->v[5] = (struct http_header){STR("holt-signature"), str_of(h->signature)};
    h->n = 6;
}

static bool is_allowed(const struct config *c, const struct client_url *u)
{
    for (size_t i = 0; i < c->webhook_hosts.n; i++)
        if (strcmp(c->webhook_hosts.v[i], u->authority) == 0 ||
            strcmp(c->webhook_hosts.v[i], u->host) == 0)
            return true;
    return false;
}

/* The server of a URL; *ret_target is its path and query: at least "/". */
static int parse_url(struct str url, struct client_url *ret, char **ret_target, struct err *e)
{
    AUTO(mem_free) char *base = str_dup(url);
    char *host = strstr(base, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    AUTO(mem_free) char *target = xstrdup(path ? path : "/");

    if (path)
        *path = '\0';
    if (client_url_parse(base, ret, e) < 0)
        return err_wrap(e, "field 'url'");
    *ret_target = TAKE(target);
    return 0;
}

int webhooks_check_url(const struct api *a, struct str url, struct err *e)
{
    AUTO(client_url_done) struct client_url u = {0};
    AUTO(mem_free) char *target = NULL;

    if (parse_url(url, &u, &target, e) < 0)
        return -1;
    if (!u.host)
        return err_set(e, ERR_INVALID, 0, "field 'url': it must be http:// or https://");
    if (is_allowed(a->c.conf, &u))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "webhooks may not be sent to '%.100s'", u.authority);
    return err_hint(e, "add the host to the setting 'webhook_hosts'");
}

int webhooks_post(struct api *a, const struct webhook_post *p, struct client **ret, struct err *e)
{
    AUTO(client_url_done) struct client_url u = {0};
    AUTO(mem_free) char *target = NULL;

    if (webhooks_check_url(a, p->url, e) < 0 || parse_url(p->url, &u, &target, e) < 0)
        return -1;
    if (u.tls && !a->registry_tls && dial_tls_new(NULL, &a->registry_tls, e) < 0)
        return -1;
    return client_start(&(struct client_request){.loop = store_loop(a->c.store),
                                                 .url = &u,
                                                 .tls = a->registry_tls,
                                                 .method = "POST",
                                                 .target = target,
                                                 .headers = p->headers,
                                                 .header_count = p->header_count,
                                                 .body = p->body,
                                                 .connect_ms = CONNECT_MS,
                                                 .head_ms = TOTAL_MS,
                                                 .total_ms = TOTAL_MS,
                                                 .ops = p->ops,
                                                 .arg = p->arg},
                        ret, e);
}

static int send_to(struct webhooks *all, struct str url, const struct signed_headers *h,
                   struct str body, const struct client_ops *ops, void *arg, struct client **ret,
                   struct err *e)
{
    return webhooks_post(all->api,
                         &(struct webhook_post){.url = url,
                                                .headers = h->v,
                                                .header_count = h->n,
                                                .body = body,
                                                .ops = ops,
                                                .arg = arg},
                         ret, e);
}

/* --- results --- */

struct result {
    struct arena arena;
    struct team t;
    struct delivery d;
};

static int result_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct result *r = arg;

    team_enter(&r->t, tx);
    return webhook_delivered(&r->t, &r->d, e);
}

static void result_stored(void *arg, const struct err *e)
{
    struct result *r = arg;

    if (e->code != ERR_NONE)
        log_warn("the result of a webhook was not stored", LOG_E(e));
    arena_done(&r->arena);
    mem_free(r);
}

static void store_result(const struct hook *h, enum delivery_state state, const char *error,
                         struct str output)
{
    struct result *r = xzalloc(sizeof *r);

    r->t = (struct team){.arena = &r->arena, .who = {.actor = "system"}, .now_ms = clock_wall_ms()};
    r->d = (struct delivery){.webhook = arena_str(&r->arena, h->w.id),
                             .type = arena_str(&r->arena, str_of(h->type)),
                             .error = arena_str(&r->arena, str_of(error)),
                             .output = arena_str(&r->arena, output),
                             .seq = h->seq,
                             .attempts = h->attempts,
                             .status = h->status,
                             .state = state};
    store_write(h->all->api->c.store, STORE_RELAXED, result_work, result_stored, r);
}

static void hook_free(struct hook *h)
{
    if (h->client) { /* closed follows */
        h->all = NULL;
        client_cancel(h->client);
        return;
    }
    if (h->tool)
        tool_cancel(h->tool);
    buf_done(&h->body);
    arena_done(&h->arena);
    mem_free(h);
}

static void hook_end(struct hook *h)
{
    list_unlink(&h->link);
    subscription_end(h->sub);
    h->sub = NULL;
    hook_free(h);
}

/* --- one delivery --- */

static void on_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    (void)h, (void)count;
    ((struct hook *)client_arg(c))->status = status;
}

static void on_body(struct client *c, struct str part)
{
    client_consume(c, part.n); /* what a receiver says does not matter */
}

static void attempt_ended(struct hook *h, bool ok, const char *error, struct str output)
{
    bool dead = !ok && h->attempts >= ATTEMPTS;

    store_result(h,
                 ok     ? DELIVERY_DONE
                 : dead ? DELIVERY_DEAD
                        : DELIVERY_FAILING,
                 ok ? "" : error, output);
    if (ok || dead) {
        if (dead)
            log_warn("a webhook gave an event up", LOG_S("webhook", h->w.id),
                     LOG_C("error", error));
        buf_clear(&h->body);
        h->resume = true; /* by the caller: not from within the subscription's callback */
        h->at_ms = 0;
    } else {
        h->at_ms = clock_mono_ms() + (PAUSE_FIRST_MS << (h->attempts - 1));
    }
}

static void on_closed(struct client *c, const struct err *e)
{
    struct hook *h = client_arg(c);
    char error[300];

    h->client = NULL;
    if (!h->all) {
        hook_free(h);
        return;
    }
    if (h->status)
        (void)snprintf(error, sizeof error, "the receiver replied %d", h->status);
    else
        (void)snprintf(error, sizeof error, "%s", e->msg);
    attempt_ended(h, h->status >= 200 && h->status < 300, error, STR(""));
    if (h->resume) {
        h->resume = false;
        subscription_resume(h->sub);
    }
}

/* --- one run of a command --- */

static void command_room(void *arg)
{
    struct hook *h = arg;

    h->given += tool_write(h->tool, str_skip(buf_str(&h->body), h->given));
    if (h->given == buf_len(&h->body))
        tool_eof(h->tool);
}

static void command_done(void *arg, const struct tool_result *r, const struct err *e)
{
    struct hook *h = arg;
    AUTO(buf_done) struct buf output = {0};
    char error[300];

    h->tool = NULL;
    h->status = r->exit_code;
    (void)utf8_replace(&output, r->out, true);
    (void)utf8_replace(&output, r->err, true);
    if (e->code != ERR_NONE)
        (void)snprintf(error, sizeof error, "%s", e->msg);
    else if (r->timed_out)
        (void)snprintf(error, sizeof error, "the command took more than %d s", COMMAND_MS / 1000);
    else
        (void)snprintf(error, sizeof error, "the command ended with status %d", r->exit_code);
    attempt_ended(h, e->code == ERR_NONE && !r->timed_out && r->exit_code == 0, error,
                  buf_str(&output));
    if (h->resume) {
        h->resume = false;
        subscription_resume(h->sub);
    }
}

static void put_network(struct str allow, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "mode", allow.n > 0 ? "allowlist" : "none");
    jw_key(&w, "allow");
    team_write_tags(&w, allow);
    jw_object_end(&w);
}

static void run_command(struct hook *h)
{
    const struct str argv[] = {STR("/bin/sh"), STR("-c"), h->w.command};
    const struct pair env[] = {{STR("HOLT_EVENT"), str_of(h->type)}};
    AUTO(buf_done) struct buf network = {0};

    if (h->w.allow.n > 0)
        put_network(h->w.allow, &network);
    h->given = 0;
    h->tool = tool_start(h->all->api->c.sandboxes,
                         &(struct tool_spec){
                             .name = "notify",
                             .argv = argv,
                             .argc = ARRAY_LEN(argv),
                             .env = env,
                             .env_count = ARRAY_LEN(env),
                             .network = h->w.allow.n > 0 ? buf_str(&network) : STR("none"),
                             .limits = {.memory_bytes = COMMAND_MEMORY, .pids = COMMAND_PIDS},
                             .time_ms = COMMAND_MS,
                             .output_max = OUTPUT_MAX / 2,
                             .takes_input = true,
                             .events = {.room = command_room, .done = command_done, .arg = h},
                         });
    command_room(h);
}

static void attempt(struct hook *h)
{
    static const struct client_ops ops = {.head = on_head, .body = on_body, .closed = on_closed};
    struct signed_headers headers;
    struct err e = {0};

    h->attempts++;
    h->status = 0;
    if (h->w.command.n > 0) {
        run_command(h);
        return;
    }
    sign(&headers, h->all, h->w.id, h->type, h->seq, buf_str(&h->body));
    if (send_to(h->all, h->w.url, &headers, buf_str(&h->body), &ops, h, &h->client, &e) < 0)
        attempt_ended(h, false, e.msg, STR(""));
}

/* --- events --- */

/* The sandbox of a command makes events itself: it would run for ever. */
static bool is_of_its_own(const struct event *ev)
{
    return (str_starts(ev->object, STR("sandbox/")) || str_starts(ev->object, STR("exec/"))) &&
           (str_eq_c(ev->actor, "system") || str_starts(ev->actor, STR("sandbox/")));
}

static bool wants(const struct hook *h, const struct event *ev)
{
    struct str types = h->w.types;

    if (h->w.command.n > 0 && is_of_its_own(ev))
        return false;
    if (types.n == 0)
        return true;
    while (types.n > 0)
        if (event_matches(&(struct event_filter){.type = str_cut(types, ',', &types)}, ev))
            return true;
    return false;
}

static int on_event(void *arg, const struct event *ev)
{
    struct hook *h = arg;
    struct jw w = {.to = &h->body};

    if (!wants(h, ev))
        return 0;
    event_write_json(&w, ev);
    h->seq = ev->seq;
    h->attempts = 0;
    (void)snprintf(h->type, sizeof h->type, STR_FMT, STR_ARG(ev->type));
    attempt(h);
    return 1; /* one at a time */
}

static void on_stuck(void *arg, const struct err *e)
{
    struct hook *h = arg;

    (void)e;
    h->stuck = true;
}

static void hook_start(struct webhooks *all, const struct webhook *w)
{
    struct hook *h = xzalloc(sizeof *h);
    bool one = w->types.n > 0 && str_index(w->types, ',') < 0;

    h->all = all;
    h->seen = true;
    h->w = (struct webhook){.id = arena_str(&h->arena, w->id),
                            .url = arena_str(&h->arena, w->url),
                            .types = arena_str(&h->arena, w->types),
                            .command = arena_str(&h->arena, w->command),
                            .allow = arena_str(&h->arena, w->allow),
                            .done_seq = w->done_seq};
    list_push(&all->hooks, &h->link);
    h->sub = events_subscribe(all->api->c.events,
                              &(struct event_filter){.since_seq = w->done_seq,
                                                     .type = one ? h->w.types : (struct str){0}},
                              on_event, on_stuck, h);
}

void webhooks_tick(struct api *a)
{
    int64_t now = clock_mono_ms();

    if (!a->webhooks || a->webhooks->stopped)
        return;
    if (a->webhooks->stuck)
        subscription_resume(a->webhooks->sub);
    a->webhooks->stuck = false;
    LIST_EACH (&a->webhooks->hooks, node) {
        struct hook *h = LIST_ENTRY(node, struct hook, link);

        if (h->resume || h->stuck) {
            h->resume = h->stuck = false;
            subscription_resume(h->sub);
        } else if (h->at_ms > 0 && h->at_ms <= now && !h->client && !h->tool) {
            h->at_ms = 0;
            attempt(h);
        }
    }
}

/* --- which there are --- */

struct load {
    struct webhooks *all;
    struct arena arena;
    struct team t;
    struct webhook_list list;
};

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct load *l = arg;

    team_enter(&l->t, tx);
    return webhook_all(&l->t, &l->list, e);
}

static struct load *load_new(struct webhooks *all)
{
    struct load *l = xzalloc(sizeof *l);

    l->all = all;
    l->t = (struct team){.arena = &l->arena, .who = {.actor = "system"}};
    return l;
}

static void load_free(struct load *l)
{
    arena_done(&l->arena);
    mem_free(l);
}

static struct hook *hook_find(struct webhooks *all, struct str id)
{
    LIST_EACH (&all->hooks, node) {
        struct hook *h = LIST_ENTRY(node, struct hook, link);

        if (str_eq(h->w.id, id))
            return h;
    }
    return NULL;
}

static void load_apply(struct load *l)
{
    struct webhooks *all = l->all;

    LIST_EACH (&all->hooks, node)
        LIST_ENTRY(node, struct hook, link)->seen = false;
    for (size_t i = 0; i < l->list.n; i++) {
        struct hook *h = hook_find(all, l->list.v[i].id);

        if (h)
            h->seen = true;
        else
            hook_start(all, &l->list.v[i]);
    }
    LIST_EACH (&all->hooks, node) {
        struct hook *h = LIST_ENTRY(node, struct hook, link);

        if (!h->seen)
            hook_end(h);
    }
}

static void loaded(void *arg, const struct err *e)
{
    struct load *l = arg;

    if (e->code == ERR_NONE && !l->all->stopped)
        load_apply(l);
    else if (e->code != ERR_NONE)
        log_warn("the webhooks could not be read again", LOG_E(e));
    load_free(l);
}

static int on_change(void *arg, const struct event *ev)
{
    struct webhooks *all = arg;

    (void)ev;
    store_read(all->api->c.store, load_work, loaded, load_new(all));
    return 0;
}

static void on_change_stuck(void *arg, const struct err *e)
{
    struct webhooks *all = arg;

    (void)e;
    all->stuck = true;
}

static int read_key(struct webhooks *all, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/webhook-key", all->api->c.conf->state);
    AUTO(buf_done) struct buf text = {0};
    unsigned char key[KEY_BYTES];
    int r = keyfile_read(path, sizeof all->key, &text, e);

    if (r < 0)
        return -1;
    if (r > 0 && buf_len(&text) == sizeof all->key - 1) {
        memcpy(all->key, buf_data(&text), sizeof all->key - 1);
        return 0;
    }
    if (r > 0)
        return err_set(e, ERR_INVALID, 0, "'%s' is not a key: remove it to make a new one", path);
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return err_set(e, ERR_INTERNAL, errno, "make the key of webhooks");
    enc_hex(key, sizeof key, all->key);
    return keyfile_write(path, str_of(all->key), e);
}

int webhooks_open(struct api *a, struct err *e)
{
    struct webhooks *all = xzalloc(sizeof *all);
    struct load *l;

    a->webhooks = all;
    all->api = a;
    list_init(&all->hooks);
    if (read_key(all, e) < 0)
        return err_wrap(e, "read the key of webhooks");
    l = load_new(all);
    if (store_now(a->c.store, load_work, l, e) < 0) {
        load_free(l);
        return err_wrap(e, "read the webhooks");
    }
    load_apply(l);
    load_free(l);
    all->sub = events_subscribe(a->c.events,
                                &(struct event_filter){.type = STR("webhook.*"),
                                                       .since_seq = events_head(a->c.events, NULL)},
                                on_change, on_change_stuck, all);
    return 0;
}

void webhooks_stop(struct api *a)
{
    struct webhooks *all = a->webhooks;

    if (!all || all->stopped)
        return;
    all->stopped = true;
    subscription_end(all->sub);
    all->sub = NULL;
    while (!list_is_empty(&all->hooks))
        hook_end(LIST_ENTRY(all->hooks.next, struct hook, link));
}

void webhooks_close(struct api *a)
{
    struct webhooks *all = a->webhooks;

    if (!all)
        return;
    webhooks_stop(a);
    mem_wipe(all->key, sizeof all->key);
    mem_free(all);
    a->webhooks = NULL;
}

int webhooks_check_command(size_t types, struct err *e)
{
    if (types > 0)
        return 0;
    err_set(e, ERR_INVALID, 0, "field 'types': a command needs the types of its events");
    return err_hint(e, "approval.* is a whole kind");
}

struct str webhooks_key(const struct api *a)
{
    return str_of(a->webhooks->key);
}

/* --- a test --- */

struct trial {
    struct waiter waiter;
    int status;
};

static void trial_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    (void)h, (void)count;
    ((struct trial *)client_arg(c))->status = status;
}

static void trial_closed(struct client *c, const struct err *e)
{
    struct trial *t = client_arg(c);
    struct request *r = waiter_end(&t->waiter);
    bool ok = t->status >= 200 && t->status < 300;
    struct jw w;

    if (r) {
        w = request_json(r);
        jw_object(&w);
        jw_kbool(&w, "delivered", ok);
        jw_kint(&w, "status", t->status);
        jw_kc(&w, "error", ok ? "" : t->status ? "the receiver refused it" : e->msg);
        jw_object_end(&w);
        request_send_json(r, 0);
    }
    mem_free(t);
}

void webhook_test_run(struct request *r)
{
    static const struct client_ops ops = {
        .head = trial_head, .body = on_body, .closed = trial_closed};
    const struct webhook_id_in *in = r->in;
    struct webhooks *all = r->api->webhooks;
    const struct hook *h = hook_find(all, in->id);
    struct signed_headers headers;
    struct client *c;
    struct trial *t;
    struct err e = {0};

    if (!h) {
        err_set(&e, ERR_NOT_FOUND, 0, "there is no webhook '" STR_FMT "'", STR_ARG(in->id));
        err_hint(&e, "holt webhook ls lists those there are");
        request_fail(r, &e);
        return;
    }
    if (h->w.command.n > 0) {
        err_set(&e, ERR_CONFLICT, 0, "webhook '" STR_FMT "' is a command", STR_ARG(in->id));
        err_hint(&e, "holt run tries a command; its deliveries have its output");
        request_fail(r, &e);
        return;
    }
    t = xzalloc(sizeof *t);
    sign(&headers, all, h->w.id, "webhook.test", 0, STR("{\"type\":\"webhook.test\"}"));
    if (send_to(all, h->w.url, &headers, STR("{\"type\":\"webhook.test\"}"), &ops, t, &c, &e) < 0) {
        mem_free(t);
        request_fail(r, &e);
        return;
    }
    request_wait(r, &t->waiter);
}
