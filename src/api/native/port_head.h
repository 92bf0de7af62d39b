/* port_head: private to src/api: the heads of proxied messages, from ours to the server's inside
 * and back: hop-by-hop fields end here (RFC 9110 section 7.6.1), credentials do not go in, and what
 * speaks for the whole origin does not come out (design §4, Origins).  Pure. */
#pragma once

#include "base/buf.h"
#include "proto/http.h"
#include "proto/http1.h"

struct port_request {
    const struct http_req *req;
    struct str path;   /* for the server inside, without its first slash */
    struct str prefix; /* of our own path: what the server inside does not see */
    int port;
    bool upgrade;
    bool preview; /* in an origin of its own: else below the API's, with prefix */
};

/* The bytes of an HTTP/1.1 head.  *ret_chunked: the body follows in chunks. */
void port_write_head(const struct port_request *q, struct buf *to, bool *ret_chunked);

#define PORT_HEADERS_MAX 130 /* what the response's limit lets pass, and ours */
/* Fields for our reply into h, which has PORT_HEADERS_MAX; returns how many. */
size_t port_reply_headers(const struct port_request *q, const struct http1_response *res,
                          struct arena *a, struct http_header *h);
