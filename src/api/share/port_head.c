/* port_head: rewrites the heads of proxied requests and replies. */
#include "api/share/port_head.h"

#include "ops/port.h"

static bool is_one_of(struct str name, const char *const *list)
{
    for (; *list; list++)
        if (str_case_eq_c(name, *list))
            return true;
    return false;
}

static const char *const hop_by_hop[] = {"connection",        "keep-alive", "te", "trailer",
                                         "transfer-encoding", "upgrade",    NULL};

/* Fields listed in Connection are for the next hop only. */
static bool is_hop(struct str name, const struct http_header *h, size_t count)
{
    const struct http_header *c;
    size_t at = 0;

    if (is_one_of(name, hop_by_hop) || str_starts(name, STR("proxy-")))
        return true;
    while ((c = http_find(h, count, "connection", &at))) {
        struct str rest = c->value;

        while (rest.n > 0)
            if (str_case_eq(str_trim(str_cut(rest, ',', &rest)), name))
                return true;
    }
    return false;
}

/* --- request --- */

static bool goes_in(const struct http_header *f, const struct http_req *req)
{
    /* Credentials are for us; the others are written anew, or are the client's claims about facts
     * we know. */
    static const char *const ours[] = {"authorization",
                                       "cookie",
                                       "host",
                                       "content-length",
                                       "expect",
                                       "forwarded",
                                       "x-forwarded-for",
                                       "x-forwarded-host",
                                       "x-forwarded-proto",
                                       "x-forwarded-prefix",
                                       NULL};

    return f->name.n > 0 && f->name.p[0] != ':' && !is_one_of(f->name, ours) &&
           !is_hop(f->name, req->headers, req->header_count);
}

/* For a preview: the cookies of its own pages, without ours.  A cookie without a name could be read
 * as ours. */
static void write_cookies(const struct http_req *req, struct buf *to)
{
    struct http_cookies left = {.req = req};
    const char *before = "cookie: ";
    struct str name, value;

    while (http_cookie_next(&left, &name, &value)) {
        if (name.n == 0 || str_eq_c(name, OP_COOKIE) || str_eq_c(name, OP_PREVIEW_COOKIE))
            continue;
        buf_printf(to, "%s" STR_FMT "=" STR_FMT, before, STR_ARG(name), STR_ARG(value));
        before = "; ";
    }
    if (before[0] == ';')
        buf_add_c(to, "\r\n");
}

static void write_field(const struct port_request *q, const struct http_header *f, struct buf *to)
{
    if (q->trace.n > 0 && str_eq_c(f->name, "traceparent"))
        return;
    /* Servers compare it with the Host they see; it was checked to be the preview's own. */
    if (q->preview && str_eq_c(f->name, "origin"))
        buf_printf(to, "origin: http://localhost:%d\r\n", q->port);
    else
        buf_printf(to, STR_FMT ": " STR_FMT "\r\n", STR_ARG(f->name), STR_ARG(f->value));
}

static bool may_lack_length(struct str method)
{
    static const char *const bodiless[] = {"GET", "HEAD", "OPTIONS", "DELETE", "TRACE", NULL};

    return is_one_of(method, bodiless);
}

void port_write_head(const struct port_request *q, struct buf *to, bool *ret_chunked)
{
    const struct http_req *req = q->req;

    *ret_chunked = req->content_length == HTTP_LENGTH_UNKNOWN;
    buf_printf(to, STR_FMT " /" STR_FMT "%s" STR_FMT " HTTP/1.1\r\n", STR_ARG(req->method),
               STR_ARG(q->path), req->query.p ? "?" : "", (int)req->query.n,
               req->query.p ? req->query.p : "");
    buf_printf(to, "host: localhost:%d\r\n", q->port);
    for (size_t i = 0; i < req->header_count; i++)
        if (goes_in(&req->headers[i], req))
            write_field(q, &req->headers[i], to);
    if (q->trace.n > 0)
        buf_printf(to, "traceparent: " STR_FMT "\r\n", STR_ARG(q->trace));
    if (q->preview)
        write_cookies(req, to);
    buf_printf(to, "x-forwarded-host: " STR_FMT "\r\nx-forwarded-proto: " STR_FMT "\r\n",
               STR_ARG(req->authority), STR_ARG(req->scheme));
    if (!q->preview)
        buf_printf(to, "x-forwarded-prefix: " STR_FMT "\r\n", STR_ARG(q->prefix));
    if (*ret_chunked)
        buf_add_c(to, "transfer-encoding: chunked\r\n");
    else if (req->content_length > 0 || !may_lack_length(req->method))
        buf_printf(to, "content-length: %lld\r\n", (long long)req->content_length);
    if (q->upgrade)
        buf_printf(to, "connection: Upgrade\r\nupgrade: " STR_FMT "\r\n\r\n",
                   STR_ARG(http_req_header(req, "upgrade")));
    else
        buf_add_c(to, "connection: close\r\n\r\n");
}

/* --- reply --- */

static bool comes_out(const struct http_header *f, const struct http1_response *res)
{
    /* We set length and date; the others would apply to all pages of this origin. */
    static const char *const kept_back[] = {"content-length",
                                            "date",
                                            "set-cookie",
                                            "set-cookie2",
                                            "service-worker-allowed",
                                            "clear-site-data",
                                            "alt-svc",
                                            "strict-transport-security",
                                            "public-key-pins",
                                            "report-to",
                                            "reporting-endpoints",
                                            "nel",
                                            NULL};

    return !is_one_of(f->name, kept_back) && !is_hop(f->name, res->headers, res->header_count);
}

/* A cookie of a preview is for its own host alone: with a Domain, browsers may send it to other
 * hosts below .localhost.  p is NULL: it is one of ours, or could be read as one. */
static struct str own_cookie(struct str value, struct arena *a)
{
    static const char *const ours[] = {OP_COOKIE, OP_PREVIEW_COOKIE, "", NULL};
    struct str rest, pair = str_trim(str_cut(value, ';', &rest));
    struct str name = str_trim(str_cut(pair, '=', &(struct str){0}));
    char *to, *at;

    if (str_index(pair, '=') < 0 || is_one_of(name, ours))
        return (struct str){0};
    at = to = arena_alloc(a, value.n + 1);
    memcpy(at, pair.p, pair.n);
    at += pair.n;
    while (rest.n > 0) {
        struct str part = str_cut(rest, ';', &rest);

        if (str_case_eq_c(str_trim(str_cut(part, '=', &(struct str){0})), "domain"))
            continue;
        *at++ = ';';
        memcpy(at, part.p, part.n);
        at += part.n;
    }
    return str_make(to, (size_t)(at - to));
}

/* A redirect within the server inside stays within it. */
static struct str location(const struct port_request *q, struct str to, struct arena *a)
{
    const char *own[] = {arena_printf(a, "http://localhost:%d", q->port),
                         arena_printf(a, "http://127.0.0.1:%d", q->port)};

    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        struct str rest;

        if (!str_starts(to, str_of(own[i])))
            continue;
        rest = str_skip(to, strlen(own[i]));
        if (rest.n == 0 || rest.p[0] == '/')
            to = rest.n ? rest : STR("/");
    }
    if (to.n == 0 || to.p[0] != '/' || str_starts(to, STR("//")))
        return to;
    return str_of(arena_printf(a, STR_FMT STR_FMT, STR_ARG(q->prefix), STR_ARG(to)));
}

size_t port_reply_headers(const struct port_request *q, const struct http1_response *res,
                          struct arena *a, struct http_header *h)
{
    size_t n = 0;

    for (size_t i = 0; i < res->header_count && n < PORT_HEADERS_MAX - 2; i++) {
        const struct http_header *f = &res->headers[i];

        bool cookie = q->preview && str_eq_c(f->name, "set-cookie");

        if (!cookie && !comes_out(f, res))
            continue;
        h[n] = *f;
        if (str_eq_c(f->name, "location"))
            h[n].value = location(q, f->value, a);
        if (cookie)
            h[n].value = own_cookie(f->value, a);
        n += !cookie || h[n].value.p;
    }
    if (res->status == 101) /* neither content nor length */
        return n;
    /* In addition to the server's own policy: a browser obeys both (CSP3 section 8.1). */
    if (!q->preview)
        h[n++] = (struct http_header){STR("content-security-policy"), STR("sandbox")};
    if (res->framing == HTTP1_LENGTH || (res->framing == HTTP1_NO_BODY && res->content_length > 0))
        h[n++] = (struct http_header){
            STR("content-length"), str_of(arena_printf(a, "%lld", (long long)res->content_length))};
    return n;
}
