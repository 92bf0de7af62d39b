/* egress: the link to holt-egress: policies out, verdicts and questions in. */
#include "core/network/egress.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/id.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "base/starter.h"
#include "link/helper.h"
#include "proto/jwt.h"

#include <stdio.h>
#include <unistd.h>

#define CALLS_MAX 8192

struct call {
    struct helper_call h;
    struct egress *g;
    char id[ID_SIZE]; /* of put: the sandbox it makes known */
    store_done done;
    void *arg;
};

struct egress {
    struct egress_config c;
    char *user, *dns, *ca_file, *proxy_host, *proxy_key;
    struct helper *link;
    bool started;
    struct map known;
};

/* ---- calls ---- */

static void call_ended(struct helper_call *h, const void *msg)
{
    struct call *x = CONTAINER_OF(h, struct call, h);
    const struct egress_msg *m = msg;

    if (m && m->type == EGRESS_DONE)
        h->err = m->u.done.err;
    if (h->err.code != ERR_NONE && x->id[0])
        (void)map_remove(&x->g->known, str_of(x->id));
    if (x->done)
        x->done(x->arg, &h->err);
}

/* After a lost connection the owner puts everything again: nothing is sent twice. */
static struct call *call_new(struct egress *g, store_done done, void *arg)
{
    struct call *x = helper_call_new(g->link, sizeof *x, HELPER_ONCE | HELPER_PATIENT);

    x->h.end = call_ended;
    x->g = g;
    x->done = done;
    x->arg = arg;
    return x;
}

static void call_ask(struct call *x, struct egress_msg *m)
{
    x->g->started = true;
    helper_call_send(&x->h, m);
}

bool egress_is_up(const struct egress *g)
{
    return helper_is_up(g->link);
}

bool egress_knows(const struct egress *g, const char *id)
{
    return helper_is_up(g->link) && map_get(&g->known, str_of(id)) != NULL;
}

void egress_put(struct egress *g, const char *id, const struct egress_terms *terms, store_done done,
                void *arg)
{
    const struct egress_listeners *l = terms->l;
    struct call *x = call_new(g, done, arg);
    struct egress_msg m = {.type = EGRESS_SET};

    if (l) {
        assert(l->n <= ARRAY_LEN(x->h.out.fd));
        memcpy(x->h.out.fd, l->fds, l->n * sizeof l->fds[0]);
        x->h.out.n = l->n;
    }
    if (l || terms->led)
        (void)snprintf(x->id, sizeof x->id, "%s", id);
    m.u.set = (struct egress_set){
        .id = str_of(id),
        .kinds = l ? l->kinds : 0,
        .policy = str_of(terms->policy),
        .learned = terms->learned.p ? terms->learned : STR(""),
        .alias = terms->alias.p ? terms->alias : STR(""),
        .led = terms->led,
    };
    (void)map_set(&g->known, str_of(id), g);
    call_ask(x, &m);
}

void egress_put_secrets(struct egress *g, const char *id, struct str list, store_done done,
                        void *arg)
{
    struct egress_msg m = {.type = EGRESS_SECRETS};

    m.u.secrets = (struct egress_secrets){str_of(id), list};
    call_ask(call_new(g, done, arg), &m);
}

void egress_lead(struct egress *g, const char *id, const struct guest_relay *from, int fd)
{
    struct egress_msg m = {.type = EGRESS_LEAD};
    struct call *x = call_new(g, NULL, NULL);

    x->h.out.fd[0] = fd;
    x->h.out.n = 1;
    m.u.lead = (struct egress_lead){.id = str_of(id),
                                    .dns = from->service == GUEST_DNS,
                                    .host = from->host,
                                    .port = from->port};
    call_ask(x, &m);
}

void egress_drop(struct egress *g, const char *id)
{
    struct egress_msg m = {.type = EGRESS_REMOVE};

    if (!g->started)
        return;
    m.u.name.id = str_of(id);
    (void)map_remove(&g->known, str_of(id));
    call_ask(call_new(g, NULL, NULL), &m);
}

void egress_reply(struct egress *g, uint64_t question, bool allow, const char *reason)
{
    struct egress_msg m = {.type = EGRESS_ANSWER};

    m.u.answer = (struct egress_answer){question, allow, str_of(reason)};
    call_ask(call_new(g, NULL, NULL), &m);
}

/* ---- the connection ---- */

static void proxy_opened(void *arg, const struct err *e)
{
    const struct egress *g = arg;

    if (e->code != ERR_NONE && e->code != ERR_CANCELLED)
        log_error("the egress proxy does not listen on TCP", LOG_C("host", g->proxy_host),
                  LOG_E(e));
}

/* Also to close one: holt-egress may have one from an earlier holtd. */
static void open_proxy(struct egress *g)
{
    struct egress_msg m = {.type = EGRESS_LISTEN};

    m.u.listen = (struct egress_listen){str_of(g->proxy_host), (uint16_t)g->c.proxy_port,
                                        str_of(g->proxy_key)};
    call_ask(call_new(g, proxy_opened, g), &m);
}

static void authority_taken(void *arg, const struct err *e)
{
    (void)arg;
    if (e->code != ERR_NONE && e->code != ERR_CANCELLED)
        log_error("holt-egress refused the certificate authority", LOG_E(e));
}

static void put_authority(struct egress *g)
{
    struct egress_msg m = {.type = EGRESS_CA};

    if (!g->c.authority)
        return;
    m.u.ca = (struct egress_ca){buf_str(&g->c.authority->cert), buf_str(&g->c.authority->key)};
    call_ask(call_new(g, authority_taken, NULL), &m);
}

static void link_hello(void *arg, void *msg)
{
    struct egress_msg *m = msg;

    (void)arg;
    m->u.hello = (struct egress_hello){EGRESS_VERSION, EGRESS_VERSION};
}

static void link_welcomed(void *arg, const void *msg)
{
    struct egress *g = arg;
    const struct egress_msg *m = msg;

    if (m->u.welcome.dropped > 0)
        log_warn("events of connections were lost because the database was too slow",
                 LOG_N("count", m->u.welcome.dropped));
    open_proxy(g);
    put_authority(g);
}

static void link_up(void *arg)
{
    struct egress *g = arg;

    g->c.ops->ready(g->c.arg);
}

static void link_event(void *arg, const void *msg, struct helper_fds *fds)
{
    struct egress *g = arg;
    const struct egress_msg *m = msg;

    (void)fds;
    if (m->type == EGRESS_KNOWN)
        (void)map_set(&g->known, m->u.name.id, g);
    else if (m->type == EGRESS_VERDICT)
        g->c.ops->verdict(g->c.arg, &m->u.verdict);
    else if (m->type == EGRESS_QUESTION)
        g->c.ops->question(g->c.arg, &m->u.question);
}

static void link_down(void *arg, const struct err *e)
{
    struct egress *g = arg;

    map_done(&g->known);
    g->known = (struct map){0};
    log_warn("holt-egress has exited", LOG_E(e));
}

static const struct helper_ops link_ops = {
    .hello = link_hello,
    .welcomed = link_welcomed,
    .up = link_up,
    .event = link_event,
    .down = link_down,
};

/* Defines how to start it: before the starter's seal. */
static void define(struct egress *g)
{
    AUTO(mem_free) char *state = xstrdup(g->c.state);
    char name[] = "holt-egress", state_option[] = "--state", dns_option[] = "--dns";
    char ca_option[] = "--cacert", user_option[] = "--user", for_option[] = "--for", served[16];
    char *argv[12] = {name, state_option, state};
    size_t n = 3;
    struct err e = {0};

    if (*g->dns) {
        argv[n++] = dns_option;
        argv[n++] = g->dns;
    }
    if (*g->ca_file) {
        argv[n++] = ca_option;
        argv[n++] = g->ca_file;
    }
    if (starter_uid() != geteuid()) { /* it starts as root, and changes to a user of its own */
        (void)snprintf(served, sizeof served, "%u", geteuid());
        argv[n++] = for_option;
        argv[n++] = served;
        argv[n++] = user_option;
        argv[n++] = g->user;
    }
    if (helper_define(g->link, argv, &e) < 0)
        log_error("holt-egress cannot be started", LOG_E(&e));
}

void egress_start(struct egress *g)
{
    g->started = true;
    helper_start(g->link);
}

/* Nobody else has it, so all credentials are refused. */
static char *random_key(void)
{
    unsigned char bytes[32];
    char *key = xmalloc(2 * sizeof bytes + 1);

    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, key);
    return key;
}

struct egress *egress_new(const struct egress_config *c)
{
    struct helper_config link = {
        .loop = c->loop,
        .protocol = &egress_protocol,
        .state = c->state,
        .bindir = c->bindir,
        .name = "egress",
        .calls_max = CALLS_MAX,
        .ops = &link_ops,
    };
    struct egress *g = xzalloc(sizeof *g);

    link.arg = g;
    g->link = helper_new(&link);
    g->c = *c;
    g->user = xstrdup(c->user ? c->user : "");
    g->dns = xstrdup(c->dns ? c->dns : "");
    g->ca_file = xstrdup(c->ca_file ? c->ca_file : "");
    g->proxy_host = xstrdup(c->proxy_host ? c->proxy_host : "");
    g->proxy_key = c->proxy_key && *c->proxy_key ? xstrdup(c->proxy_key) : random_key();
    define(g);
    g->c.state = g->c.bindir = NULL; /* the caller's */
    return g;
}

bool egress_proxy_url(const struct egress *g, struct jwt_claims *c, struct buf *to)
{
    bool v6 = strchr(g->proxy_host, ':') != NULL;

    if (!*g->proxy_host)
        return false;
    c->exp_s = clock_wall_ms() / 1000 + JWT_LIFE_S;
    buf_add_c(to, "http://sandbox:jwt_");
    jwt_mint(c, str_of(g->proxy_key), to);
    buf_printf(to, "@%s%s%s:%d", v6 ? "[" : "", g->proxy_host, v6 ? "]" : "", (int)g->c.proxy_port);
    return true;
}

struct egress *egress_free(struct egress *g)
{
    if (!g)
        return NULL;
    g->link = helper_free(g->link);
    map_done(&g->known);
    mem_free(g->user);
    mem_free(g->dns);
    mem_free(g->ca_file);
    mem_free(g->proxy_host);
    mem_wipe(g->proxy_key, strlen(g->proxy_key));
    mem_free(g->proxy_key);
    mem_free(g);
    return NULL;
}
