/* cors: checks origins, answers preflights, adds CORS headers. */
#include "net/cors.h"

enum match { NOT_LISTED, BY_STAR, BY_NAME };

/* "http://host:5173-5183": any of these ports. */
bool cors_fits(const char *pattern, struct str origin)
{
    const char *colon = strrchr(pattern, ':'), *dash = NULL;
    size_t n = colon ? (size_t)(colon + 1 - pattern) : 0;
    uint64_t first, last, port;

    if (colon && colon[1] >= '0' && colon[1] <= '9')
        dash = strchr(colon, '-');
    if (!dash)
        return str_case_eq_c(origin, pattern);
    return origin.n > n && str_case_eq(str_make(origin.p, n), str_make(pattern, n)) &&
           str_parse_u64(str_make(colon + 1, (size_t)(dash - colon - 1)), &first) == 0 &&
           str_parse_u64(str_of(dash + 1), &last) == 0 &&
           str_parse_u64(str_skip(origin, n), &port) == 0 && port >= first && port <= last;
}

static enum match match_origin(const struct cors *c, struct str origin)
{
    enum match m = NOT_LISTED;

    for (size_t i = 0; i < c->count; i++) {
        if (cors_fits(c->origins[i], origin))
            return BY_NAME;
        if (strcmp(c->origins[i], "*") == 0)
            m = BY_STAR;
    }
    return m;
}

static void answer_preflight(struct xchg *x, struct str headers)
{
    const struct http_header h[] = {
        {STR("access-control-allow-methods"), STR("GET, HEAD, POST, PUT, PATCH, DELETE")},
        {STR("access-control-max-age"), STR("600")},
        {STR("access-control-allow-headers"), headers},
    };

    xchg_reply_with(x, 204, h, headers.n > 0 ? 3 : 2, STR(""));
}

bool cors_apply(const struct cors *c, struct xchg *x)
{
    const struct http_req *r = xchg_req(x);
    struct str origin = http_req_header(r, "origin");
    struct str method = http_req_header(r, "access-control-request-method");
    bool preflight = origin.p && method.p && str_eq_c(r->method, "OPTIONS");
    enum match m;
    struct err e;

    if (c->count == 0 && !preflight)
        return false;
    xchg_add_header(x, "vary", STR("Origin"));
    if (!origin.p)
        return false;
    m = match_origin(c, origin);
    if (m == NOT_LISTED) {
        if (!preflight)
            return false; /* without the headers the browser hides the reply from the page */
        (void)err_set(&e, ERR_FORBIDDEN, 0, "pages of this origin may not use the API");
        (void)err_hint(&e, "add the origin to the setting 'cors_origins'");
        xchg_fail(x, &e);
        return true;
    }
    xchg_add_header(x, "access-control-allow-origin", m == BY_NAME ? origin : STR("*"));
    if (m == BY_NAME && !c->without_cookies)
        xchg_add_header(x, "access-control-allow-credentials", STR("true"));
    if (preflight)
        answer_preflight(x, http_req_header(r, "access-control-request-headers"));
    else
        xchg_add_header(x, "access-control-expose-headers",
                        STR("content-range, etag, location, retry-after, grpc-status, "
                            "grpc-message"));
    return preflight;
}
