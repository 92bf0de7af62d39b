/* http: the common part of HTTP/1.1 and HTTP/2: request heads, header lists, status texts, URLs.
 * Views point into the parser's memory (the exchange's arena); names are lower case. */
#pragma once

#include "base/arena.h"

enum http_version { HTTP_1_0 = 10, HTTP_1_1 = 11, HTTP_2 = 20 };

struct http_header {
    struct str name; /* lower case */
    struct str value;
};

#define HTTP_LENGTH_UNKNOWN (-1) /* chunked, or an HTTP/2 stream without content-length */

struct http_req {
    enum http_version version;
    struct str method;
    struct str target;    /* as sent: "/a%20b?x=1" */
    struct str path;      /* as sent, without the query */
    struct str query;     /* without the '?'; p is NULL when there is none */
    struct str scheme;    /* "http" or "https" */
    struct str authority; /* Host or :authority */
    struct http_header *headers;
    size_t header_count;
    int64_t content_length; /* 0 without a body, or HTTP_LENGTH_UNKNOWN */
};

/* An authority: "name", "1.2.3.4" or "[v6]", each with an optional ":port"; "" is valid too.  Only
 * a port may follow the bracket, and the text inside it must be an address. */
bool http_authority_is_valid(struct str s);
/* The name of a repeated field that may occur only once, because two readers could pick different
 * ones (Origin, Authorization, ...); NULL: none. */
const char *http_repeated(const struct http_req *r);

/* The only field of that name; NULL when absent.  http_find starts after *at (initially 0). */
const struct http_header *http_get(const struct http_header *h, size_t count, const char *name);
const struct http_header *http_find(const struct http_header *h, size_t count, const char *name,
                                    size_t *at);
struct str http_req_header(const struct http_req *r, const char *name); /* p is NULL: absent */
/* Whether token (lower case) is in a comma-separated header value.  Ignores parameters after
 * ';'. */
bool http_has_token(struct str value, const char *token);
/* Whether a field is for the next hop only (RFC 9110 section 7.6.1), by its name or because
 * Connection lists it. */
bool http_is_hop(const struct http_header *all, size_t count, struct str name);
const char *http_status_text(int status);

/* Iterates over the cookies of a request (RFC 6265 section 5.4): false at the end.  HTTP/2 clients
 * may send one field per cookie (RFC 9113 section 8.2.3).  A cookie without '=' has an empty
 * name. */
struct http_cookies {
    const struct http_req *req;
    size_t at;       /* the next field */
    struct str left; /* the rest of this field */
};
bool http_cookie_next(struct http_cookies *c, struct str *name, struct str *value);

/* One decoded value of a query or form; NUL-terminated copies in the arena.
 * 1: found, 0: absent, -EINVAL: bad escapes or a NUL. */
int http_query_get(struct str query, const char *name, struct arena *a, struct str *ret) CHECKED;
/* Iterates over "a=1&b=2": false at the end.  Undecoded. */
bool http_query_next(struct str *query, struct str *name, struct str *value);
/* Decodes one path segment; refuses an escaped NUL.  An escaped '/' is allowed: OWNER/NAME. */
int http_path_segment(struct str raw, struct arena *a, struct str *ret) CHECKED;
/* Whether the path is in normal form: starts with '/', no "." or ".." segment (escaped or not), no
 * "//", no control characters. */
bool http_path_is_normal(struct str path);
