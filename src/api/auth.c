/* auth: checks Host, Origin and credentials of a request. */
#include "api/auth.h"

#include "base/enc.h"
#include "net/cors.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

/* --- Host --- */

struct str auth_host(struct str authority)
{
    if (authority.n > 0 && authority.p[0] == '[') {
        ptrdiff_t end = str_index(authority, ']');

        /* Anything but a port after the bracket is invalid. */
        if (end < 0 || ((size_t)end + 1 < authority.n && authority.p[end + 1] != ':'))
            return authority;
        return str_make(authority.p, (size_t)end + 1);
    }
    return str_cut(authority, ':', &(struct str){0});
}

static bool is_ipv4(struct str host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr a;

    if (host.n >= sizeof text)
        return false;
    (void)snprintf(text, sizeof text, STR_FMT, STR_ARG(host));
    return inet_pton(AF_INET, text, &a) == 1;
}

static bool is_address(struct str host)
{
    return is_ipv4(host) || (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']');
}

/* A name that only this machine resolves to itself.  RFC 6761: localhost is loopback. */
static bool is_loopback_host(struct str host)
{
    return str_case_eq_c(host, "localhost") || str_eq_c(host, "[::1]") ||
           (is_ipv4(host) && str_starts(host, STR("127.")));
}

static struct str listener_host(const struct listener_info *l)
{
    struct str address = str_of(l->address);

    if (str_starts(address, STR("tls://")))
        address = str_skip(address, 6);
    return auth_host(address);
}

static bool is_listed(const struct conf_list *list, struct str value)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_case_eq_c(value, list->v[i]))
            return true;
    return false;
}

int auth_check_host(const struct auth *a, const struct auth_view *v, struct err *e)
{
    struct str host = auth_host(v->req->authority);
    struct str own = listener_host(v->listener);
    bool everywhere = str_eq_c(own, "0.0.0.0") || str_eq_c(own, "[::]") || own.n == 0;

    if (v->peer->kind != PEER_TCP || is_loopback_host(host) || str_case_eq(host, own))
        return 0;
    /* DNS rebinding needs a name; a listener on all addresses is reached by any of them. */
    if (everywhere && is_address(host))
        return 0;
    if (host.n > 0 && (is_listed(&a->conf->host_names, host) ||
                       is_listed(&a->conf->host_names, v->req->authority)))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "the Host '" STR_FMT "' is not a name of this server",
            (int)size_min(host.n, 100), host.p ? host.p : "");
    return err_hint(e, "use the listener's address, or add the name to the setting 'host_names'");
}

/* --- Origin --- */

static bool is_safe(struct str method)
{
    return str_eq_c(method, "GET") || str_eq_c(method, "HEAD") || str_eq_c(method, "OPTIONS");
}

static bool is_same_origin(const struct http_req *req, struct str origin)
{
    struct str rest = origin;

    if (!str_starts(rest, req->scheme))
        return false;
    rest = str_skip(rest, req->scheme.n);
    return str_starts(rest, STR("://")) && str_case_eq(str_skip(rest, 3), req->authority);
}

static bool is_origin(const struct conf_list *list, struct str origin)
{
    for (size_t i = 0; i < list->n; i++)
        if (cors_fits(list->v[i], origin))
            return true;
    return false;
}

bool auth_is_seed_origin(const struct auth *a, const struct auth_view *v)
{
    struct str origin = http_req_header(v->req, "origin");

    return origin.p && v->listener->role == LISTEN_SEED && !is_same_origin(v->req, origin) &&
           !is_origin(&a->conf->cors_origins, origin) && is_origin(&a->conf->seed_origins, origin);
}

int auth_check_origin(const struct auth *a, const struct auth_view *v, struct err *e)
{
    struct str origin = http_req_header(v->req, "origin");
    struct str site = http_req_header(v->req, "sec-fetch-site");

    if (!origin.p && str_eq_c(site, "cross-site") && !is_safe(v->req->method))
        return err_set(e, ERR_FORBIDDEN, 0, "a page of another site sent this request");
    if (!origin.p || is_same_origin(v->req, origin) || is_origin(&a->conf->cors_origins, origin) ||
        auth_is_seed_origin(a, v))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "the Origin '" STR_FMT "' is not allowed",
            (int)size_min(origin.n, 100), origin.p);
    return err_hint(e, "add it to the setting 'cors_origins' if you trust that site");
}

int auth_check_page(const struct auth_view *v, struct err *e)
{
    struct str origin = http_req_header(v->req, "origin");
    struct str site = http_req_header(v->req, "sec-fetch-site");
    bool foreign = site.p && !str_eq_c(site, "same-origin") && !str_eq_c(site, "none");
    bool visit = str_eq_c(http_req_header(v->req, "sec-fetch-mode"), "navigate") &&
                 str_eq_c(http_req_header(v->req, "sec-fetch-dest"), "document") &&
                 is_safe(v->req->method);

    if ((!origin.p || is_same_origin(v->req, origin)) && (!foreign || visit))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "a page of another origin sent this request");
    return err_hint(e, "a preview accepts requests only from pages of its own sandbox and port");
}

/* --- credentials --- */

char *auth_peer_name(const struct peer *p, char *to)
{
    struct in6_addr v6;
    char text[AUTH_PEER];
    char *end;

    if (p->kind == PEER_INSIDE) {
        (void)snprintf(to, AUTH_PEER, "%s", p->address);
        return to;
    }
    if (p->kind == PEER_UNIX) {
        (void)snprintf(to, AUTH_PEER, "uid %u", p->uid);
        return to;
    }
    (void)snprintf(text, sizeof text, "%s", p->address + (p->address[0] == '['));
    end = strrchr(text, p->address[0] == '[' ? ']' : ':');
    if (end)
        *end = '\0';
    /* The owner of one IPv6 address has its whole /64. */
    if (inet_pton(AF_INET6, text, &v6) == 1 && !IN6_IS_ADDR_V4MAPPED(&v6)) {
        memset(&v6.s6_addr[8], 0, 8);
        (void)inet_ntop(AF_INET6, &v6, to, AUTH_PEER);
    } else {
        (void)snprintf(to, AUTH_PEER, "%s", text);
    }
    return to;
}

static int refuse_url_tokens(const struct http_req *req, struct err *e)
{
    struct str left = req->query, name, value;

    while (left.n > 0 && http_query_next(&left, &name, &value)) {
        if (!str_case_eq_c(name, "token") && !str_case_eq_c(name, "access_token"))
            continue;
        err_set(e, ERR_INVALID, 0, "a token must not be in the URL: URLs are logged and shared");
        return err_hint(e, "send it as 'Authorization: Bearer TOKEN', and revoke the one you sent");
    }
    return 0;
}

/* A page of another origin on the same site (another port of this host) can make the browser send
 * our cookie; without an Origin listed in cors_origins the cookie is ignored. */
static bool may_use_cookie(const struct http_req *req)
{
    struct str site = http_req_header(req, "sec-fetch-site");

    return !site.p || str_eq_c(site, "same-origin") || str_eq_c(site, "none") ||
           http_req_header(req, "origin").p;
}

/* Basic credentials of a URL (http://NAME:TOKEN@HOST), for clients that cannot send a token
 * otherwise: the password is the token, the name is ignored.  Browsers store such credentials and
 * send them automatically: then they are ignored like a cookie. */
static struct str basic_password(const struct http_req *req, struct str encoded, struct buf *hold)
{
    struct str password;

    if (!may_use_cookie(req) || dec_base64(hold, encoded) < 0)
        return STR("");
    (void)str_cut(buf_str(hold), ':', &password);
    return password.p ? password : STR("");
}

/* p is NULL: no such header; an empty text: the header is malformed or has another scheme. */
static struct str bearer_text(const struct http_req *req, struct buf *hold)
{
    struct str value = http_req_header(req, "authorization"), scheme, rest;

    if (!value.p)
        return value;
    scheme = str_cut(str_trim(value), ' ', &rest);
    if (!rest.p)
        return STR("");
    if (str_case_eq_c(scheme, "basic"))
        return basic_password(req, str_trim(rest), hold);
    return str_case_eq_c(scheme, "bearer") ? str_trim(rest) : STR("");
}

/* Another server on this host may have set a cookie of the same name: accept any valid one. */
static const struct token *check_cookies(const struct auth *a, const struct http_req *req)
{
    struct http_cookies left = {.req = req};
    const struct token *t = NULL;
    struct str name, value;

    if (!may_use_cookie(req))
        return NULL;
    while (!t && http_cookie_next(&left, &name, &value))
        if (str_eq_c(name, OP_COOKIE))
            t = identity_check_cookie(a->identity, value);
    return t;
}

static void become_named(struct principal *to, enum role role, const char *actor)
{
    *to = (struct principal){.role = role};
    (void)snprintf(to->actor, sizeof to->actor, "%s", actor);
}

/* Without credentials: seed ports and auth = off have an identity for the caller. */
static enum auth_how imply(const struct auth *a, const struct auth_view *v, struct principal *ret)
{
    enum role role = ROLE_OPERATOR;

    if (a->conf->auth == CONF_AUTH_OFF && v->listener->loopback) {
        become_named(ret, ROLE_ADMIN, "anonymous");
        return AUTH_IMPLIED;
    }
    if (v->listener->role == LISTEN_SEED && v->peer->loopback) {
        if (a->conf->seed_identity && str_eq_c(STR("none"), a->conf->seed_identity))
            return AUTH_NOBODY;
        if (!a->conf->seed_identity || !role_parse(str_of(a->conf->seed_identity), &role) ||
            role == ROLE_ADMIN || role == ROLE_AGENT)
            role = ROLE_OPERATOR; /* never admin; an agent would need a name */
        become_named(ret, role, "seed-port");
        return AUTH_IMPLIED;
    }
    return AUTH_NOBODY;
}

int auth_throttle(const struct auth *a, const struct auth_view *v, int64_t *ret_retry_ms,
                  struct err *e)
{
    char name[AUTH_PEER];

    if (!identity_throttled(a->identity, auth_peer_name(v->peer, name), ret_retry_ms))
        return 0;
    err_set(e, ERR_LIMIT, 0, "too many failed logins from %s", name);
    return err_limit(e, "login_failures", a->conf->login_failures,
                     "wait %" PRId64 " s (of login_window_ms)", *ret_retry_ms / 1000 + 1);
}

void auth_failed(const struct auth *a, const struct auth_view *v)
{
    char name[AUTH_PEER];

    identity_failed(a->identity, auth_peer_name(v->peer, name));
}

int auth_authenticate(const struct auth *a, const struct auth_view *v, struct principal *ret,
                      enum auth_how *ret_how, int64_t *ret_retry_ms, struct err *e)
{
    AUTO(buf_done) struct buf hold = {0};
    struct str bearer = bearer_text(v->req, &hold);
    const struct token *t = NULL;

    if (v->listener->role == LISTEN_RELAY || v->listener->role == LISTEN_PROCESS) {
        *ret = principal_inside(v->peer->address + strlen("sandbox/"));
        *ret_how = AUTH_INSIDE;
        return 0;
    }
    become_named(ret, ROLE_NONE, "anonymous");
    *ret_how = AUTH_NOBODY;
    if (refuse_url_tokens(v->req, e) < 0)
        return -1;
    if (bearer.p) {
        t = identity_check(a->identity, bearer);
        *ret_how = AUTH_BEARER;
    } else {
        t = auth_is_seed_origin(a, v) ? NULL : check_cookies(a, v->req);
        *ret_how = t ? AUTH_COOKIE : AUTH_NOBODY;
    }
    if (t) {
        *ret = principal_of(t);
        return 0;
    }
    /* An old cookie is not an attack: the browser sends it automatically; treat it as no
     * credentials.  With auth = off, nothing sent can be wrong. */
    if (!bearer.p || (a->conf->auth == CONF_AUTH_OFF && v->listener->loopback)) {
        *ret_how = imply(a, v, ret);
        return 0;
    }
    if (auth_throttle(a, v, ret_retry_ms, e) < 0)
        return -1;
    auth_failed(a, v);
    err_set(e, ERR_UNAUTHENTICATED, 0,
            bearer.n > 0 ? "the token is wrong, revoked or expired"
                         : "the Authorization header is not 'Bearer TOKEN'");
    return err_hint(e, "the first token is in STATE/admin-token; holt token create creates others");
}
