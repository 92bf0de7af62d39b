/* router: passes requests to the sandbox that a header names. */
#include "api/dialects/k8s/k8s.h"

#include "api/share/port_proxy.h"

#include <stdarg.h>

#define PORT_PRESET 8888   /* of the python runtime */
#define PORT_SANDBOXD 8080 /* of sandboxd's REST interface */

bool k8s_takes(const struct xchg *x)
{
    return http_req_header(xchg_req(x), "x-sandbox-id").p;
}

void k8s_detail(struct request *r, int status, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    if (status == 401)
        xchg_add_header(r->x, "www-authenticate", STR("Bearer"));
    w = request_json(r);
    jw_object(&w);
    jw_kstr(&w, "detail", buf_str(&text));
    jw_object_end(&w);
    request_send_json(r, status);
}

void k8s_router_fail(struct request *r, int status, const struct err *e)
{
    k8s_detail(r, e->code == ERR_UNAVAILABLE ? 502 : status, "%s%s%s%s", e->msg,
               e->hint[0] ? " (" : "", e->hint, e->hint[0] ? ")" : "");
}

static struct str header(const struct request *r, const char *name, const char *preset)
{
    struct str v = http_req_header(xchg_req(r->x), name);

    return v.p ? str_trim(v) : str_of(preset);
}

/* The id of the runtime's object, if the client says which it means. */
static bool is_meant(struct request *r, struct str space, struct str id)
{
    struct str uid = header(r, "x-sandbox-uid", "");
    json_t *o;
    bool meant;

    if (uid.n == 0)
        return true;
    o = k8s_sandboxes.find(r->api, &r->who, space, id, &(struct err){0});
    meant = str_eq(uid, k8s_text(k8s_meta(o), "uid"));
    json_decref(o);
    return meant;
}

static void pass_on(struct request *r, struct sandbox *s, struct str id, int port)
{
    const struct port_target t = {
        .name = id, .port = port, .path = str_skip(xchg_req(r->x)->path, 1)};
    struct err e = {0};
    struct guest *g;

    if (!port_proxy_check(r))
        return;
    g = sandbox_guest(s, &e);
    if (g)
        port_proxy(r, g, &t);
    else
        k8s_detail(r, 502, "Could not connect to the backend sandbox: " STR_FMT ": %s", STR_ARG(id),
                   e.msg);
}

struct sandbox *k8s_target(struct request *r, int *ret_port)
{
    struct str id = header(r, "x-sandbox-id", ""),
               space = header(r, "x-sandbox-namespace", K8S_SPACE);
    struct str port = header(r, "x-sandbox-port", "");
    int64_t n = PORT_PRESET;
    struct err e = {0};
    struct sandbox *s = NULL;

    if (id.n == 0)
        k8s_detail(r, 400, "X-Sandbox-ID header is required.");
    else if (!k8s_is_label(id))
        k8s_detail(r, 400, "Invalid sandbox ID format.");
    else if (!k8s_is_label(space))
        k8s_detail(r, 400, "Invalid namespace format.");
    else if (port.n > 0 && (str_parse_i64(port, &n) < 0 || n < 1 || n > UINT16_MAX))
        k8s_detail(r, 400, "Invalid port format.");
    else {
        s = k8s_sandbox(r->api, &r->who, space, id, &e);
        if (s && !is_meant(r, space, id))
            s = NULL;
        if (!s)
            k8s_detail(r, 404, "Sandbox not found: " STR_FMT, STR_ARG(id));
    }
    if (ret_port)
        *ret_port = (int)n;
    return s;
}

void k8s_router(struct request *r)
{
    int port;
    struct sandbox *s = k8s_target(r, &port);

    if (!s || (port == PORT_PRESET && k8s_legacy(r, s)) ||
        ((port == PORT_PRESET || port == PORT_SANDBOXD) && k8s_sandboxd(r, s)))
        return;
    pass_on(r, s, header(r, "x-sandbox-id", ""), port);
}
