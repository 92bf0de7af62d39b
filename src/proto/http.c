/* http: header lists, cookies, queries, paths and status texts for HTTP/1.1 and HTTP/2. */
#include "proto/http.h"

#include "base/enc.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>

const struct http_header *http_find(const struct http_header *h, size_t count, const char *name,
                                    size_t *at)
{
    struct str want = str_of(name);

    while (*at < count) {
        const struct http_header *one = &h[(*at)++];

        if (str_eq(one->name, want))
            return one;
    }
    return NULL;
}

const struct http_header *http_get(const struct http_header *h, size_t count, const char *name)
{
    size_t at = 0;

    return http_find(h, count, name, &at);
}

struct str http_req_header(const struct http_req *r, const char *name)
{
    const struct http_header *h = http_get(r->headers, r->header_count, name);

    return h ? h->value : (struct str){NULL, 0};
}

bool http_has_token(struct str value, const char *token)
{
    while (value.n > 0) {
        struct str rest, part = str_cut(value, ',', &rest), params;

        if (str_case_eq_c(str_trim(str_cut(part, ';', &params)), token))
            return true;
        value = rest;
    }
    return false;
}

bool http_is_hop(const struct http_header *all, size_t count, struct str name)
{
    static const char *const names[] = {"connection", "keep-alive", "te", "trailer", "upgrade"};
    const struct http_header *h;
    char token[64];
    size_t at = 0;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(name, names[i]))
            return true;
    if (str_starts(name, STR("proxy-")))
        return true;
    if (name.n >= sizeof token)
        return false;
    memcpy(token, name.p, name.n);
    token[name.n] = '\0';
    while ((h = http_find(all, count, "connection", &at)))
        if (http_has_token(h->value, token))
            return true;
    return false;
}

/* RFC 3986 section 3.2.2: characters of a registered name, without '%': no server has such a
 * name. */
static bool is_reg_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (c != '\0' && strchr("-._~!$&'()*+,;=", c))))
            return false;
    }
    return true;
}

static bool is_port(struct str s)
{
    uint64_t port;

    return s.n == 0 || (s.n <= 5 && str_parse_u64(s, &port) == 0 && port <= 65535);
}

bool http_authority_is_valid(struct str s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    struct str host, rest;
    ptrdiff_t end = s.n > 0 && s.p[0] == '[' ? str_index(s, ']') : 0;

    if (end == 0) {
        host = str_cut(s, ':', &rest);
        return is_reg_name(host) && (!rest.p || (host.n > 0 && is_port(rest)));
    }
    if (end < 0 || (size_t)end > sizeof text)
        return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)end - 1, s.p + 1);
    rest = str_skip(s, (size_t)end + 1);
    return inet_pton(AF_INET6, text, &v6) == 1 &&
           (rest.n == 0 || (rest.p[0] == ':' && is_port(str_skip(rest, 1))));
}

const char *http_repeated(const struct http_req *r)
{
    /* Each decides the caller's identity, the origin, the form of the body, or how it is
     * handled. */
    static const char *const single[] = {
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "if-range",
        "origin",
        "range",
        "sec-fetch-dest",
        "sec-fetch-mode",
        "sec-fetch-site",
        "sec-websocket-key",
        "transfer-encoding",
        "sec-websocket-version",
        "x-ingest-token",
        "cookie", /* RFC 6265 section 5.4; the crumbs of an HTTP/2 client are already joined */
    };
    uint32_t seen = 0;

    static_assert(ARRAY_LEN(single) <= 32, "a bit for each");
    for (size_t i = 0; i < r->header_count; i++) {
        for (size_t k = 0; k < ARRAY_LEN(single); k++) {
            if (!str_eq_c(r->headers[i].name, single[k]))
                continue;
            if (seen & (1u << k))
                return single[k];
            seen |= 1u << k;
        }
    }
    return NULL;
}

/* clang-format off */
static const struct {
    int status;
    const char *text;
} status_texts[] = {
    {100, "Continue"}, {101, "Switching Protocols"},
    {200, "OK"}, {201, "Created"}, {202, "Accepted"}, {203, "Non-Authoritative Information"},
    {204, "No Content"}, {205, "Reset Content"}, {206, "Partial Content"},
    {300, "Multiple Choices"}, {301, "Moved Permanently"}, {302, "Found"}, {303, "See Other"},
    {304, "Not Modified"}, {307, "Temporary Redirect"}, {308, "Permanent Redirect"},
    {400, "Bad Request"}, {401, "Unauthorized"}, {402, "Payment Required"}, {403, "Forbidden"},
    {404, "Not Found"}, {405, "Method Not Allowed"}, {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"}, {408, "Request Timeout"}, {409, "Conflict"},
    {410, "Gone"}, {411, "Length Required"}, {412, "Precondition Failed"},
    {413, "Content Too Large"}, {414, "URI Too Long"}, {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"}, {417, "Expectation Failed"}, {421, "Misdirected Request"},
    {422, "Unprocessable Content"}, {423, "Locked"}, {425, "Too Early"}, {426, "Upgrade Required"},
    {428, "Precondition Required"}, {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"}, {499, "Client Closed Request"},
    {500, "Internal Server Error"}, {501, "Not Implemented"}, {502, "Bad Gateway"},
    {503, "Service Unavailable"}, {504, "Gateway Timeout"}, {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};
/* clang-format on */

bool http_cookie_next(struct http_cookies *c, struct str *name, struct str *value)
{
    const struct http_header *h;
    struct str pair = {0};

    while (pair.n == 0) {
        if (c->left.n == 0) {
            h = http_find(c->req->headers, c->req->header_count, "cookie", &c->at);
            if (!h)
                return false;
            c->left = h->value;
        }
        pair = str_trim(str_cut(c->left, ';', &c->left));
    }
    if (str_index(pair, '=') < 0) {
        *name = STR("");
        *value = pair;
        return true;
    }
    *name = str_cut(pair, '=', value);
    return true;
}

const char *http_status_text(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(status_texts); i++)
        if (status_texts[i].status == status)
            return status_texts[i].text;
    return "Unknown";
}

bool http_query_next(struct str *query, struct str *name, struct str *value)
{
    struct str pair;

    do {
        if (query->n == 0)
            return false;
        pair = str_cut(*query, '&', query);
    } while (pair.n == 0);
    *name = str_cut(pair, '=', value);
    return true;
}

/* A percent-decoded copy in the arena; refuses a NUL. */
static int decode(struct str raw, bool plus, struct arena *a, struct str *ret)
{
    AUTO(buf_done) struct buf b = {0};
    int r = dec_percent(&b, raw, plus);

    if (r < 0 || str_index(buf_str(&b), '\0') >= 0)
        return -EINVAL;
    *ret = arena_str(a, buf_str(&b));
    return 0;
}

int http_query_get(struct str query, const char *name, struct arena *a, struct str *ret)
{
    struct str key, value, plain;

    while (http_query_next(&query, &key, &value)) {
        if (!str_eq_c(key, name)) {
            if (str_index(key, '%') < 0 && str_index(key, '+') < 0)
                continue;
            if (decode(key, true, a, &plain) < 0)
                return -EINVAL;
            if (!str_eq_c(plain, name))
                continue;
        }
        return decode(value, true, a, ret) < 0 ? -EINVAL : 1;
    }
    return 0;
}

int http_path_segment(struct str raw, struct arena *a, struct str *ret)
{
    struct str s;

    if (str_index(raw, '/') >= 0 || decode(raw, false, a, &s) < 0)
        return -EINVAL;
    *ret = s;
    return 0;
}

/* "." and "..", also with %2e. */
static bool is_dots(struct str s)
{
    size_t dots = 0;

    while (s.n > 0) {
        size_t used = 1;

        if (s.n >= 3 && s.p[0] == '%' && s.p[1] == '2' && (s.p[2] | 0x20) == 'e')
            used = 3;
        else if (s.p[0] != '.')
            return false;
        s = str_skip(s, used);
        dots++;
    }
    return dots == 1 || dots == 2;
}

bool http_path_is_normal(struct str path)
{
    if (path.n == 0 || path.p[0] != '/')
        return false;
    for (size_t i = 0; i < path.n; i++)
        if ((unsigned char)path.p[i] < 0x20 || path.p[i] == 0x7f)
            return false;
    path = str_skip(path, 1);
    while (path.n > 0) {
        struct str segment = str_cut(path, '/', &path);

        if (segment.n == 0 || is_dots(segment))
            return false;
    }
    return true;
}
