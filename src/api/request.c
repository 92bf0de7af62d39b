/* request: replies, refusals, permissions and waiting of requests. */
#include "api/request.h"

#include "api/idempotency.h"
#include "api/rpc.h"
#include "api/team/gates.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "core/team/revoked.h"

#include <inttypes.h>
#include <stdio.h>

#define SCRATCH_KEEP (256 * 1024)
#define AUDIT_PATH_MAX 256 /* limit of a path chosen by a client */

struct jw request_json(struct request *r)
{
    buf_clear(&r->api->scratch);
    buf_shrink(&r->api->scratch, SCRATCH_KEEP);
    return (struct jw){.to = &r->api->scratch};
}

static int status_of(const struct request *r, int status)
{
    if (status)
        return status;
    return r->op && r->op->status ? r->op->status : 200;
}

void request_send(struct request *r, int status, const char *content_type, struct str body)
{
    r->status = status_of(r, status);
    xchg_reply(r->x, r->status, content_type, body);
}

void request_send_json(struct request *r, int status)
{
    buf_add_char(&r->api->scratch, '\n');
    request_send(r, status, "application/json", buf_str(&r->api->scratch));
}

void request_send_empty(struct request *r)
{
    r->status = status_of(r, 0);
    xchg_reply_with(r->x, r->status, NULL, 0, STR(""));
}

void request_fail(struct request *r, const struct err *e)
{
    r->status = err_table[e->code].http;
    if (r->rpc)
        rpc_fail(r, e);
    else if (r->route && r->route->fail)
        r->route->fail(r, r->status, e);
    else
        xchg_fail(r->x, e);
}

void request_audit(struct request *r, const char *type, const char *object, int status)
{
    const struct http_req *req = xchg_req(r->x);
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    char peer[AUTH_PEER], name[128];

    jw_object(&w);
    jw_kstr(&w, "method", str_make(req->method.p, size_min(req->method.n, 32)));
    jw_kstr(&w, "path", str_make(req->path.p, size_min(req->path.n, AUDIT_PATH_MAX)));
    jw_kc(&w, "peer", auth_peer_name(xchg_peer(r->x), peer));
    jw_kint(&w, "code", status);
    if (r->who.agent[0])
        jw_kc(&w, "agent", r->who.agent);
    jw_object_end(&w);
    (void)snprintf(name, sizeof name, "operation/%s", r->route ? r->route->name : "unknown");
    events_audit(r->api->c.events, &(struct event_spec){
                                       .type = type,
                                       .object = object ? object : name,
                                       .actor = r->who.actor[0] ? r->who.actor : "anonymous",
                                       .data = buf_str(&data),
                                       .audit = true,
                                       /* Anyone can make up paths that are refused. */
                                       .apart = strcmp(type, "request.refused") != 0,
                                   });
}

void request_refuse(struct request *r, const struct err *e)
{
    request_audit(r, "request.refused", NULL, err_table[e->code].http);
    request_fail(r, e);
}

void request_refuse_for(struct request *r, int64_t retry_ms, const struct err *e)
{
    if (e->code == ERR_LIMIT)
        xchg_add_header(r->x, "retry-after",
                        str_of(arena_printf(xchg_arena(r->x), "%" PRId64, retry_ms / 1000 + 1)));
    if (e->code == ERR_INVALID)
        request_fail(r, e);
    else
        request_refuse(r, e);
}

struct str api_agent_of(const struct api *a, const struct sandbox *s)
{
    const struct token *maker;
    struct sandbox_info i;
    struct str id;

    sandbox_info(s, &i);
    if (i.agent.n > 0)
        return i.agent;
    (void)str_cut(i.owner, '/', &id);
    maker = identity_get(a->c.identity, id);
    return maker && maker->agent ? str_of(maker->agent) : STR("");
}

struct str request_agent(const struct request *r)
{
    struct err e = {0};
    const struct sandbox *s;

    if (r->who.role != ROLE_AGENT)
        return STR("");
    if (!principal_is_inside(&r->who))
        return str_of(r->who.agent);
    s = sandbox_find(r->api->c.sandboxes, &r->who, principal_sandbox(&r->who), &e);
    return s ? api_agent_of(r->api, s) : STR("");
}

static int refuse_role(const struct request *r, enum perm p, struct err *e)
{
    if (r->how == AUTH_NOBODY) {
        err_set(e, ERR_UNAUTHENTICATED, 0, "%s needs a token", r->route->name);
        return err_hint(e, "send 'Authorization: Bearer TOKEN'; the first one is in "
                           "STATE/admin-token");
    }
    err_set(e, ERR_FORBIDDEN, 0, "%s needs the permission '%s', which role %s does not have",
            r->route->name, perm_name(p), role_name(r->who.role));
    if (role_may(r->who.role, p))
        err_set(e, ERR_FORBIDDEN, 0, "%s needs the permission '%s', which no token of a tenant has",
                r->route->name, perm_name(p));
    return err_hint(e, "ask an admin for a token of another role: holt token create");
}

int request_authorise(const struct request *r, enum perm p, struct err *e)
{
    if (!principal_may(&r->who, p))
        return refuse_role(r, p, e);
    if (gates_check_dialect(r, p, e) < 0)
        return -1;
    return revoked_check(r->api->c.revoked, request_agent(r), p, e);
}

bool request_may(const struct request *r, enum perm p)
{
    struct err e;

    return request_authorise(r, p, &e) == 0;
}

int request_still_may(struct request *r, struct err *e)
{
    if (r->who.token) {
        r->who.token = identity_get(r->api->c.identity, str_of(r->who.actor + strlen("token/")));
        if (!r->who.token)
            return err_set(e, ERR_UNAUTHENTICATED, 0, "the token was revoked during the request");
    }
    return request_authorise(r, r->route->perm, e);
}

struct auth_view request_view(const struct request *r)
{
    return (struct auth_view){
        .req = xchg_req(r->x),
        .peer = xchg_peer(r->x),
        .listener = xchg_listener(r->x),
    };
}

void request_wait(struct request *r, struct waiter *w)
{
    assert(!r->waiter);
    r->waiter = w;
    w->r = r;
}

struct request *waiter_end(struct waiter *w)
{
    struct request *r = w->r;

    w->r = NULL;
    if (r)
        r->waiter = NULL;
    return r;
}

struct waiter *request_wait_end(struct request *r)
{
    struct waiter *w = xzalloc(sizeof *w);

    request_wait(r, w);
    return w;
}

void request_ended(void *arg, const struct err *e)
{
    struct request *r = waiter_end(arg);

    mem_free(arg);
    if (r && e->code == ERR_NONE)
        request_send_empty(r);
    else if (r)
        request_fail(r, e);
}

int request_decode(const struct request *r, struct str raw, struct str *ret, struct err *e)
{
    AUTO(buf_done) struct buf b = {0};

    if (dec_percent(&b, raw, false) < 0 || (buf_len(&b) && memchr(buf_data(&b), 0, buf_len(&b))) ||
        !str_is_utf8(buf_str(&b)))
        return err_set(e, ERR_INVALID, 0, "the name in the path is malformed");
    *ret = arena_str(xchg_arena(r->x), buf_str(&b));
    return 0;
}

/* The quality an Accept header gives a media type, in thousandths (RFC 9110 12.5.1): an exact name
 * wins over a range. */
static int accept_quality(struct str accept, struct str type)
{
    int exact = -1, group = -1, any = -1;
    struct str major = str_cut(type, '/', &(struct str){0});

    while (accept.n > 0) {
        struct str params, item = str_trim(str_cut(accept, ',', &accept));
        struct str name = str_trim(str_cut(item, ';', &params)), minor;
        double q = 1;

        while (params.n > 0) {
            struct str p = str_trim(str_cut(params, ';', &params));

            if (str_starts(p, STR("q=")) && str_parse_double(str_skip(p, 2), &q) < 0)
                q = 0;
        }
        if (str_case_eq(name, type))
            exact = (int)(q * 1000);
        else if (str_eq_c(name, "*/*"))
            any = (int)(q * 1000);
        else if (str_case_eq(str_cut(name, '/', &minor), major) && str_eq_c(minor, "*"))
            group = (int)(q * 1000);
    }
    return exact >= 0 ? exact : group >= 0 ? group : any >= 0 ? any : 0;
}

bool accept_prefers(const struct xchg *x, const char *media_type)
{
    struct str accept = http_req_header(xchg_req(x), "accept");

    return accept.p && accept_quality(accept, str_of(media_type)) >
                           accept_quality(accept, STR("application/json"));
}
