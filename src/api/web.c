/* web: serves the files of the dashboard. */
#include "api/web.h"

#include "net/static.h"
#include "proto/inflate.h"

/* 'self' covers WebSockets of the same host and port (CSP level 3).  Trusted Types: no script of
 * the page can turn text into HTML, whatever a sandbox made it show. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "        \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'"

static const struct web_file *find_file(struct str path)
{
    for (size_t i = 0; i < web_file_count; i++)
        if (str_eq_c(path, web_files[i].path))
            return &web_files[i];
    return NULL;
}

static bool takes_gzip(const struct http_req *req)
{
    struct str rest, list = http_req_header(req, "accept-encoding");

    while (list.n > 0) {
        struct str weight, one = str_trim(str_cut(list, ',', &rest));
        struct str name = str_trim(str_cut(one, ';', &weight));

        if (str_eq_c(name, "gzip") || str_eq_c(name, "*"))
            return !str_eq_c(str_trim(weight), "q=0");
        list = rest;
    }
    return false;
}

/* A name with a hash in it never changes its content; the page itself is asked for each time. */
static struct str cache_rule(const struct web_file *f)
{
    return str_starts(str_of(f->path), STR("assets/")) ? STR("public, max-age=31536000, immutable")
                                                       : STR("no-cache");
}

static void send_file(struct request *r, const struct web_file *f)
{
    const struct http_req *req = xchg_req(r->x);
    struct str known = http_req_header(req, "if-none-match");
    struct str body = {(const char *)f->packed, f->packed_size};
    AUTO(buf_done) struct buf plain = {0};
    struct http_header h[10] = {
        {STR("content-type"), str_of(f->type)},
        {STR("etag"), str_of(f->etag)},
        {STR("cache-control"), cache_rule(f)},
        {STR("vary"), STR("accept-encoding")},
        {STR("content-security-policy"), STR(POLICY)},
        {STR("x-content-type-options"), STR("nosniff")},
        {STR("x-frame-options"), STR("DENY")},
        {STR("referrer-policy"), STR("no-referrer")},
        {STR("cross-origin-opener-policy"), STR("same-origin")},
    };
    size_t n = 9;

    if (known.p && static_etag_matches(known, str_of(f->etag))) {
        r->status = 304;
        xchg_reply_with(r->x, 304, h, n, STR(""));
        return;
    }
    if (takes_gzip(req)) {
        h[n++] = (struct http_header){STR("content-encoding"), STR("gzip")};
    } else if (inflate_all(body, f->size, &plain) < 0) {
        request_fail(
            r, &(struct err){.code = ERR_INTERNAL, .msg = "a file of the dashboard is damaged"});
        return;
    } else {
        body = buf_str(&plain);
    }
    r->status = 200;
    xchg_reply_with(r->x, 200, h, n, body);
}

static void page_run(struct request *r)
{
    const struct web_file *f = find_file(STR("index.html"));

    assert(f);
    send_file(r, f);
}

static void asset_run(struct request *r)
{
    const struct web_file *f = find_file(str_skip(xchg_req(r->x)->path, 1));
    struct err e = {0};

    if (f) {
        send_file(r, f);
        return;
    }
    err_set(&e, ERR_NOT_FOUND, 0, "the dashboard has no such file");
    err_hint(&e, "reload the page: holtd was replaced by another version");
    request_fail(r, &e);
}

const struct route web_routes[] = {
    {.method = "GET", .path = "/", .name = "page", .perm = PERM_NONE, .handler = page_run},
    {.method = "GET",
     .path = "/assets/{file}",
     .name = "page.file",
     .perm = PERM_NONE,
     .handler = asset_run},
};
const size_t web_route_count = ARRAY_LEN(web_routes);
