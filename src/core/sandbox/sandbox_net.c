/* sandbox_net: a sandbox's network policy, and its exchange with holt-egress. */
#include "core/sandbox/sandbox_internal.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "proto/jwt.h"
#include "proto/policy.h"
#include "wire/spawn.h"

#include <stdio.h>

static struct metric connections = {
    .name = "holt_egress_verdicts_total",
    .help = "Connections out of sandboxes, by decision.",
    .kind = METRIC_COUNTER,
};
static struct metric bytes = {
    .name = "holt_egress_bytes_total",
    .help = "Bytes of connections out of sandboxes that have ended, by direction.",
    .kind = METRIC_COUNTER,
};
static struct metric *by_what[EGRESS_WHAT_COUNT], *bytes_up, *bytes_down;

/* ---- the policy ---- */

int sandbox_net_read(struct str text, bool intercept, struct sandbox_net *ret, struct err *e)
{
    AUTO(policy_free) struct policy *p = NULL;

    if (policy_parse(text.n > 0 ? text : STR("none"), intercept, &p, e) < 0)
        return err_wrap(e, "field 'network'");
    policy_print(p, &ret->policy);
    ret->reach = policy_mode(p) == POLICY_NONE  ? SANDBOX_REACHES_NOTHING
                 : policy_mode(p) == POLICY_RAW ? SANDBOX_REACHES_RAW
                                                : SANDBOX_REACHES_PROXY;
    return 0;
}

/* People decide what an agent may reach: otherwise it could free itself. */
static int may_choose(const struct principal *by, struct err *e)
{
    if (!by || (by->role != ROLE_AGENT && !principal_is_inside(by)))
        return 0;
    (void)err_set(e, ERR_FORBIDDEN, 0, "an agent may not set the network of a sandbox");
    return err_hint(e, "ask an operator to create or change it");
}

static bool leads_out(const struct driver *d)
{
    return (d->ops->caps & DRIVER_LEADS_OUT) != 0;
}

int sandbox_net_check(const struct sandboxes *all, const struct driver *d, struct str text,
                      const struct principal *by, struct sandbox_net *ret, struct err *e)
{
    if (sandbox_net_read(text, all->authority != NULL, ret, e) < 0)
        return -1;
    if (ret->reach == SANDBOX_REACHES_NOTHING)
        return 0;
    if (d && (ret->reach == SANDBOX_REACHES_RAW ? (d->ops->caps & DRIVER_CAN_RAW) != 0
                                                : d->ops->listen || leads_out(d)))
        return may_choose(by, e);
    (void)err_set(e, ERR_UNSUPPORTED, 0, "field 'network': runtime '%s' has no network control",
                  d ? d->ops->name : "?");
    return err_hint(e, "leave it 'none'");
}

int sandbox_net_change(struct sandbox *s, struct str text, const struct principal *by,
                       struct err *e)
{
    AUTO(sandbox_net_done) struct sandbox_net n = {0};
    bool was_raw = s->traits.reach == SANDBOX_REACHES_RAW, raw;
    bool up = s->sm.state == SANDBOX_RUNNING || s->sm.state == SANDBOX_PAUSED;

    if (sandbox_net_check(s->all, s->driver, text, by, &n, e) < 0)
        return -1;
    raw = n.reach == SANDBOX_REACHES_RAW;
    if (up && ((n.reach == SANDBOX_REACHES_PROXY && !sandbox_is_networked(s)) || raw != was_raw)) {
        (void)err_set(e, ERR_CONFLICT, 0, "sandbox '%s' was started %s", s->id,
                      was_raw ? "with a raw network"
                      : raw   ? "without an interface"
                              : "without a network");
        (void)err_hint(e, "stop it, change it and start it again");
        return err_object(e, "sandbox", s->id);
    }
    sandbox_net_take(s, &n);
    return 0;
}

void sandbox_net_take(struct sandbox *s, const struct sandbox_net *n)
{
    text_set(&s->network, buf_str(&n->policy));
    s->traits.reach = n->reach;
}

/* ---- to holt-egress ---- */

static void network_wired(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;
    bool again = s->wiring == WIRING_AGAIN;

    s->wiring = WIRING_NONE;
    if (s->all->closed || !sandbox_is_listed(s))
        return;
    if (again && e->code == ERR_NONE) {
        sandbox_wire(s);
        return;
    }
    sandbox_updated(s, e);
    if (sandbox_is_making(s)) {
        sandbox_made_wired(s, e);
        return;
    }
    if (e->code != ERR_NONE) /* when holt-egress is back, ready is called and all are sent again */
        log_warn("holt-egress refused the network policy of a sandbox", LOG_C("id", s->id),
                 LOG_E(e));
}

static void secrets_taken(void *arg, const struct err *e)
{
    AUTO(sandbox_unref) struct sandbox *s = arg;

    if (e->code == ERR_NONE || s->all->closed || !sandbox_is_listed(s))
        return;
    if (sandbox_is_making(s))
        sandbox_made_wired(s, e);
    else /* without them no value is sent out; when holt-egress is back, all are sent again */
        log_warn("holt-egress refused the secrets of a sandbox", LOG_C("id", s->id), LOG_E(e));
}

/* Its alias in the dialect that made it; NULL: none. */
static const struct alias_name *own_alias(const struct sandbox *s)
{
    const struct alias *a = alias_first(s->all->aliases, str_of(s->id));

    for (; a; a = a->next)
        if (s->dialect && str_eq_c(a->name.dialect, s->dialect))
            return &a->name;
    return NULL;
}

/* "=HOST NETWORK": names that the operator lets resolve into internal networks. */
static void put_internal(const struct sandboxes *all, struct buf *to)
{
    for (size_t i = 0; i < all->internal_count; i++) {
        struct str net, host = str_cut(str_of(all->internal[i]), '=', &net);

        if (buf_len(to) + host.n + net.n + 3 <= EGRESS_LEARNED_MAX)
            buf_printf(to, "=" STR_FMT " " STR_FMT "\n", STR_ARG(host), STR_ARG(net));
    }
}

/* The secrets first: no request may pass with a placeholder that holt-egress does not know. */
static void put(struct sandbox *s, const struct egress_listeners *l)
{
    AUTO(buf_done) struct buf learned = {0}, alias = {0};
    const struct alias_name *own = own_alias(s);
    const struct sandboxes *all = s->all;

    if (own && all->session_dialect && str_eq_c(own->dialect, all->session_dialect))
        buf_add_str(&alias, own->alias);
    if (s->secret_count > 0)
        sandbox_tell_secrets(s, secrets_taken, sandbox_ref(s));
    put_internal(all, &learned);
    if (all->asker)
        all->asker->learned(all->asker_arg, s, &learned);
    egress_put(all->egress, s->id,
               &(struct egress_terms){.policy = s->network,
                                      .learned = buf_str(&learned),
                                      .alias = buf_str(&alias),
                                      .l = l,
                                      .led = leads_out(s->driver)},
               network_wired, s);
}

static void listeners_opened(void *arg, const struct egress_listeners *l, const struct err *e)
{
    struct sandbox *s = arg;

    if (e->code != ERR_NONE || s->all->closed) {
        for (size_t i = 0; l && i < l->n; i++)
            fd_close(l->fds[i]);
        network_wired(s, e);
        return;
    }
    put(s, l);
}

void sandbox_wire(struct sandbox *s)
{
    if (!sandbox_is_networked(s) || !s->driver)
        return;
    if (s->wiring != WIRING_NONE) {
        s->wiring = WIRING_AGAIN; /* what is under way tells the policy of before */
        return;
    }
    s->wiring = WIRING_TELLS;
    if (leads_out(s->driver) || egress_knows(s->all->egress, s->id))
        put(sandbox_ref(s), NULL);
    else
        s->driver->ops->listen(s->driver, s->id, listeners_opened, sandbox_ref(s));
}

void sandbox_unwire(struct sandbox *s)
{
    if (sandbox_is_networked(s) && s->all->egress)
        egress_drop(s->all->egress, s->id);
    s->wire = WIRE_NONE;
}

/* ---- from holt-egress ---- */

/* Whether to send its policy: one being made is sent when it is ready. */
static bool is_to_be_told(const struct sandbox *s)
{
    return !sandbox_is_making(s) &&
           (s->sm.state == SANDBOX_RUNNING || s->sm.state == SANDBOX_PAUSED) &&
           s->origin == ORIGIN_SETTLED;
}

static void on_ready(void *arg)
{
    struct sandboxes *all = arg;

    if (all->asker)
        all->asker->ready(all->asker_arg);
    for (size_t i = 0; i < all->count; i++) {
        struct sandbox *s = all->sorted[i];

        if (is_to_be_told(s))
            sandbox_wire(s);
    }
}

static void put_verdict(struct buf *to, const struct egress_verdict *v)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kstr(&w, "sandbox", v->id);
    jw_kstr(&w, "host", v->host);
    jw_kint(&w, "port", v->port);
    jw_kc(&w, "verdict", egress_whats[v->what]);
    jw_kc(&w, "via", egress_vias[v->via]);
    jw_kstr(&w, "rule", v->rule);
    jw_kint(&w, "bytes_up", (int64_t)v->up);
    jw_kint(&w, "bytes_down", (int64_t)v->down);
    if (v->what == EGRESS_CLOSED)
        jw_kint(&w, "duration_ms", (int64_t)v->ms);
    if (v->folded > 0)
        jw_kint(&w, "folded", v->folded);
    jw_object_end(&w);
}

static void on_verdict(void *arg, const struct egress_verdict *v)
{
    static const char *const types[EGRESS_WHAT_COUNT] = {"egress.denied", "egress.allowed",
                                                         "egress.closed"};
    AUTO(buf_done) struct buf data = {0};
    char id[ID_SIZE] = "";

    metric_inc(by_what[v->what], 1 + (int64_t)(v->what == EGRESS_DENIED ? v->folded : 0));
    metric_inc(bytes_up, (int64_t)v->up);
    metric_inc(bytes_down, (int64_t)v->down);
    memcpy(id, v->id.p, size_min(v->id.n, sizeof id - 1));
    put_verdict(&data, v);
    sandbox_note_data(arg, types[v->what], id, buf_str(&data));
}

static void on_question(void *arg, const struct egress_question *q)
{
    struct sandboxes *all = arg;

    if (all->asker)
        all->asker->question(all->asker_arg, q);
    else
        egress_reply(all->egress, q->question, false,
                     "nobody can be asked: there is no queue of approvals");
}

void sandboxes_set_asker(struct sandboxes *all, const struct sandbox_asker *ops, void *arg)
{
    all->asker = ops;
    all->asker_arg = arg;
}

void sandboxes_answer(struct sandboxes *all, uint64_t question, bool allow, const char *reason)
{
    egress_reply(all->egress, question, allow, reason);
}

void sandboxes_learned(struct sandboxes *all, struct str sandbox, struct str tenant)
{
    for (size_t i = 0; i < all->count; i++) {
        struct sandbox *s = all->sorted[i];

        if ((sandbox.n > 0 ? str_eq_c(sandbox, s->id) : str_eq_c(tenant, s->tenant)) &&
            is_to_be_told(s))
            sandbox_wire(s);
    }
}

void sandboxes_open_egress(struct sandboxes *all, const struct sandboxes_config *c)
{
    static const struct egress_ops ops = {on_ready, on_verdict, on_question};

    metric_add(&connections);
    metric_add(&bytes);
    for (size_t i = 0; i < EGRESS_WHAT_COUNT; i++) {
        char labels[32];

        (void)snprintf(labels, sizeof labels, "verdict=\"%s\"", egress_whats[i]);
        by_what[i] = metric_child(&connections, labels);
    }
    bytes_up = metric_child(&bytes, "direction=\"up\"");
    bytes_down = metric_child(&bytes, "direction=\"down\"");
    all->internal = c->egress_internal;
    all->internal_count = c->egress_internal_count;
    all->session_dialect = c->session_dialect;
    all->egress = egress_new(&(struct egress_config){.loop = all->loop,
                                                     .state = all->state,
                                                     .bindir = all->bindir,
                                                     .user = c->egress_user,
                                                     .dns = c->egress_dns,
                                                     .ca_file = c->egress_ca_file,
                                                     .proxy_host = c->proxy_host,
                                                     .proxy_port = c->proxy_port,
                                                     .proxy_key = c->signing_key,
                                                     .authority = c->authority,
                                                     .ops = &ops,
                                                     .arg = all});
    if (c->proxy_host && *c->proxy_host)
        egress_start(all->egress);
}

bool sandbox_proxy_url(const struct sandbox *s, struct str hosts, struct buf *to)
{
    const struct alias_name *own = own_alias(s);
    struct jwt_claims c = {.session = own ? own->alias : str_of(s->id),
                           .sandbox = str_of(s->id),
                           .tenant = str_of(s->tenant ? s->tenant : ""),
                           .hosts = hosts};

    return s->traits.reach == SANDBOX_REACHES_PROXY && s->all->egress &&
           egress_proxy_url(s->all->egress, &c, to);
}

/* ---- the environment ---- */

#define PROXY STR("http://127.0.0.1:3128")
#define DIRECT STR("localhost,127.0.0.1,::1,.localhost,hub")
const struct pair sandbox_net_env[] = {
    /* libcurl reads only the lower-case http_proxy */
    {STR("HTTP_PROXY"), PROXY},
    {STR("HTTPS_PROXY"), PROXY},
    {STR("ALL_PROXY"), PROXY},
    {STR("NO_PROXY"), DIRECT},
    {STR("http_proxy"), PROXY},
    {STR("https_proxy"), PROXY},
    {STR("all_proxy"), PROXY},
    {STR("no_proxy"), DIRECT},
    {STR("PIP_PROXY"), PROXY},
    {STR("npm_config_proxy"), PROXY},
    {STR("npm_config_https_proxy"), PROXY},
    {STR("npm_config_noproxy"), DIRECT},
    {STR("CARGO_HTTP_PROXY"), PROXY},
};
const size_t sandbox_net_env_count = ARRAY_LEN(sandbox_net_env);

/* Each program looks for authorities elsewhere; the bundle is the image's plus ours, made by
 * holt-spawn (docs/egress.md).  Node adds it to its built-in ones and reads no others: so it gets
 * the host's authorities, a company's own too, from here as well. */
#define BUNDLE STR(SPAWN_BUNDLE_PATH)
const struct pair sandbox_trust_env[] = {
    {STR("SSL_CERT_FILE"), BUNDLE},       {STR("REQUESTS_CA_BUNDLE"), BUNDLE},
    {STR("CURL_CA_BUNDLE"), BUNDLE},      {STR("PIP_CERT"), BUNDLE},
    {STR("GIT_SSL_CAINFO"), BUNDLE},      {STR("CARGO_HTTP_CAINFO"), BUNDLE},
    {STR("NODE_EXTRA_CA_CERTS"), BUNDLE},
};
const size_t sandbox_trust_env_count = ARRAY_LEN(sandbox_trust_env);
