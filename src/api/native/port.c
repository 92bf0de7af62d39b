/* port: proxies HTTP requests to a server inside a sandbox. */
#include "ops/port.h"

#include "api/native/handlers.h"
#include "api/share/port_proxy.h"
#include "api/share/sandbox.h"

static int read_port(struct str text, int *ret, struct err *e)
{
    int64_t n;

    if (str_parse_i64(text, &n) < 0 || n < 1 || n > 65535)
        return err_set(e, ERR_INVALID, 0, "field 'port' must be a number from 1 to 65535");
    *ret = (int)n;
    return 0;
}

/* Our path before the server's: the prefix of redirects within it. */
static struct str own_prefix(const struct http_req *req, struct str path)
{
    struct str prefix = {req->path.p, req->path.n - path.n};

    while (prefix.n > 0 && prefix.p[prefix.n - 1] == '/')
        prefix.n--;
    return prefix;
}

void port_proxy_run(struct request *r)
{
    const struct port_proxy_in *in = r->in;
    struct port_target t = {.name = in->id, .path = in->path};
    struct err e = {0};
    struct guest *g;

    if (!port_proxy_check(r))
        return;
    if (read_port(in->port, &t.port, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    t.prefix = own_prefix(xchg_req(r->x), in->path);
    g = request_guest(r, in->id);
    if (g)
        port_proxy(r, g, &t);
}
