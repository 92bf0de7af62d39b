/* preview: serves previews of ports at origins of their own. */
#include "api/native/preview.h"

#include "api/native/handlers.h"
#include "api/page.h"
#include "api/share/sandbox.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/identity/preview.h"
#include "ops/port.h"

#define OWN_PATHS "/.holt/"
#define OPEN_PATH OWN_PATHS "open"
#define DOMAIN ".localhost" /* RFC 6761: loopback, with any prefix */

struct place { /* from a preview's Host */
    char sandbox[ID_SIZE];
    int port;
};

/* --- the link --- */

static const struct listener_info *preview_listener(const struct api *a)
{
    for (size_t i = 0; a->server && i < server_listener_count(a->server); i++)
        if (server_listener(a->server, i)->role == LISTEN_PREVIEW)
            return server_listener(a->server, i);
    return NULL;
}

static const char *origin_of(const struct listener_info *l, const struct preview_grant *g,
                             struct arena *a)
{
    char label[ID_SIZE];

    memcpy(label, g->sandbox, sizeof label);
    for (char *c = label; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return arena_printf(a, "%s://%d-%s" DOMAIN ":%d", l->tls_only ? "https" : "http", g->port,
                        label, l->port);
}

static void send_link(struct request *r, const char *origin, const char *code)
{
    struct jw w = request_json(r);

    xchg_add_header(r->x, "cache-control", STR("no-store"));
    jw_object(&w);
    jw_kc(&w, "url", arena_printf(xchg_arena(r->x), "%s" OPEN_PATH "#%s", origin, code));
    jw_kc(&w, "origin", origin);
    jw_ktime(&w, "expires_at", clock_wall_ms() + PREVIEW_CODE_MS);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void port_preview_run(struct request *r)
{
    const struct port_preview_in *in = r->in;
    const struct listener_info *l = preview_listener(r->api);
    struct sandbox *s = request_sandbox(r, in->id);
    struct preview_grant g = {.port = (int)in->port, .who = request_who(r)};
    struct sandbox_info info;
    char code[TOKEN_TEXT];
    struct err e = {0};

    if (!s)
        return;
    if (!l) {
        err_set(&e, ERR_UNAVAILABLE, 0, "there is no preview listener");
        err_hint(&e, "give the setting 'preview_listen' a free address and restart holtd");
        request_fail(r, &e);
        return;
    }
    sandbox_info(s, &info);
    (void)snprintf(g.sandbox, sizeof g.sandbox, "%s", info.id);
    send_link(r, origin_of(l, &g, xchg_arena(r->x)), preview_code(r->api->previews, &g, code));
    mem_wipe(code, sizeof code);
}

/* --- finding the preview --- */

static int read_place(struct str authority, struct place *ret, struct err *e)
{
    struct str host = auth_host(authority), label = host, id, port;
    int64_t n;

    *ret = (struct place){0};
    if (str_ends(host, STR(DOMAIN)))
        label.n -= strlen(DOMAIN);
    port = str_cut(label, '-', &id);
    if (label.n < host.n && id.n < sizeof ret->sandbox && str_starts(id, STR("sb-")) &&
        str_parse_i64(port, &n) == 0 && n >= 1 && n <= UINT16_MAX && port.p[0] != '0') {
        (void)snprintf(ret->sandbox, sizeof ret->sandbox, "sb_" STR_FMT, (int)id.n - 3, id.p + 3);
        ret->port = (int)n;
        if (id_is_valid("sb", str_of(ret->sandbox)))
            return 0;
    }
    err_set(e, ERR_FORBIDDEN, 0, "the Host '" STR_FMT "' is not the name of a preview",
            (int)size_min(host.n, 100), host.p ? host.p : "");
    return err_hint(e, "this address is for previews of servers inside sandboxes; get a link: holt "
                       "preview SANDBOX PORT");
}

/* The grant uses the rights of its token, and ends with it. */
static bool become(struct request *r, const struct preview_grant *g)
{
    struct str actor = str_of(g->who.actor), prefix = STR("token/");

    r->who = g->who;
    r->how = AUTH_PREVIEW;
    if (!str_starts(actor, prefix))
        return true;
    r->who.token = identity_get(r->api->c.identity, str_skip(actor, prefix.n));
    if (r->who.token)
        r->who.role = r->who.token->role;
    return r->who.token != NULL;
}

/* A page can add cookies of any name for its own paths: accept any valid one. */
static int find_viewer(struct request *r, const struct place *at, struct err *e)
{
    struct http_cookies left = {.req = xchg_req(r->x)};
    struct str name, value;

    while (http_cookie_next(&left, &name, &value)) {
        const struct preview_grant *g = NULL;

        if (str_eq_c(name, OP_PREVIEW_COOKIE))
            g = preview_check(r->api->previews, value, at->sandbox, at->port);
        if (g && become(r, g) && request_authorise(r, r->route->perm, e) == 0)
            return 0;
    }
    if (e->code != ERR_NONE)
        return -1;
    r->who = (struct principal){.role = ROLE_NONE, .actor = "anonymous"};
    r->how = AUTH_NOBODY;
    err_set(e, ERR_UNAUTHENTICATED, 0, "open this preview by its link");
    return err_hint(e, "get one: holt preview %s %d", at->sandbox, at->port);
}

/* --- from code to cookie --- */

static const char open_head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>holt</title>\n"
    "</head>\n<body>\n<p id=\"state\" role=\"status\">One moment.</p>\n<script>";

/* A navigation from here has this origin, and so carries a strict cookie whoever opened the
 * link. */
static const char open_script[] =
    "const code = location.hash.slice(1);\n"
    "history.replaceState(null, '', location.pathname);\n"
    "fetch(location.pathname, {method: 'POST', body: code}).then(async r => {\n"
    "  if (r.ok) return location.replace('/');\n"
    "  const body = await r.json();\n"
    "  throw new Error(body.error.message + '; ' + body.error.hint);\n"
    "}).catch(e => { document.getElementById('state').textContent = e.message; });\n";

static void refuse_code(struct request *r, const struct place *at)
{
    struct auth_view v = request_view(r);
    struct err e = {0};

    auth_failed(&r->api->auth, &v);
    err_set(&e, ERR_UNAUTHENTICATED, 0, "the link is wrong, was used before, or has expired");
    err_hint(&e, "get a new one: holt preview %s %d", at->sandbox, at->port);
    request_refuse(r, &e);
}

static void on_code(struct xchg *x, struct str code)
{
    struct request *r = xchg_arg(x);
    const struct preview_grant *g = NULL;
    char text[TOKEN_TEXT];
    struct place at;
    struct err e = {0};

    if (read_place(xchg_req(x)->authority, &at, &e) == 0)
        g = preview_redeem(r->api->previews, code, at.sandbox, at.port, text);
    if (!g || !become(r, g)) {
        refuse_code(r, &at);
        return;
    }
    xchg_add_header(
        x, "set-cookie",
        str_of(arena_printf(xchg_arena(x),
                            OP_PREVIEW_COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; "
                                              "Max-Age=%d%s",
                            text, SESSION_MS / 1000, xchg_peer(x)->tls ? "; Secure" : "")));
    mem_wipe(text, sizeof text);
    xchg_add_header(x, "cache-control", STR("no-store"));
    request_audit(r, "preview.opened",
                  arena_printf(xchg_arena(x), "sandbox/%s:%d", at.sandbox, at.port), 204);
    r->status = 204;
    xchg_reply_with(x, 204, NULL, 0, STR(""));
}

static void open_run(struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    struct auth_view v = request_view(r);
    int64_t retry_ms;
    struct err e = {0};

    if (str_eq_c(req->method, "GET")) {
        page_send(r, open_head, open_script);
    } else if (!str_eq_c(req->method, "POST")) {
        err_set(&e, ERR_METHOD, 0, "a preview accepts only GET and POST here");
        request_fail(r, &e);
    } else if (auth_throttle(&r->api->auth, &v, &retry_ms, &e) < 0) {
        request_refuse_for(r, retry_ms, &e);
    } else {
        xchg_collect(r->x, TOKEN_TEXT, on_code);
    }
}

/* --- requests --- */

static void show(struct request *r, const struct place *at)
{
    struct arena *a = xchg_arena(r->x);
    struct port_proxy_in *in = arena_zalloc(a, sizeof *in);

    in->id = str_of(arena_printf(a, "%s", at->sandbox));
    in->port = str_of(arena_printf(a, "%d", at->port));
    in->path = str_skip(xchg_req(r->x)->path, 1);
    r->op = &op_port_proxy;
    r->in = in;
    port_proxy_run(r);
}

void preview_handle(struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    struct auth_view v = request_view(r);
    struct place at;
    struct err e = {0};

    r->route = &r->api->preview_route;
    if (read_place(req->authority, &at, &e) < 0 || auth_check_page(&v, &e) < 0) {
        request_refuse(r, &e);
    } else if (!str_starts(req->path, STR("/"))) {
        err_set(&e, ERR_INVALID, 0, "the path of a preview must begin with '/'");
        request_fail(r, &e);
    } else if (str_eq_c(req->path, OPEN_PATH)) {
        open_run(r);
    } else if (str_starts(req->path, STR(OWN_PATHS))) {
        err_set(&e, ERR_NOT_FOUND, 0, "paths below " OWN_PATHS " are reserved");
        request_fail(r, &e);
    } else if (find_viewer(r, &at, &e) < 0) {
        request_refuse(r, &e);
    } else {
        xchg_trust(r->x);
        show(r, &at);
    }
}
