/* port_head: private to src/api: the heads of proxied messages, to the server inside and back:
 * hop-by-hop fields are removed (RFC 9110 section 7.6.1), credentials are not passed in, and fields
 * that affect the whole origin are not passed out.  Pure. */
#pragma once

#include "base/buf.h"
#include "proto/http.h"
#include "proto/http1.h"

struct port_request {
    const struct http_req *req;
    struct str path;   /* for the server inside, without its first slash */
    struct str prefix; /* our own path before it, hidden from the server inside */
    struct str trace;  /* traceparent of our own span, instead of the client's; empty: as it came */
    int port;
    bool upgrade;
    bool preview; /* in an origin of its own; otherwise below the API's, with prefix */
};

/* Writes an HTTP/1.1 head.  *ret_chunked: the body follows in chunks. */
void port_write_head(const struct port_request *q, struct buf *to, bool *ret_chunked);

#define PORT_HEADERS_MAX 130 /* the limit of a response's fields, plus ours */
/* Writes the fields of our reply into h, which has PORT_HEADERS_MAX; returns their number. */
size_t port_reply_headers(const struct port_request *q, const struct http1_response *res,
                          struct arena *a, struct http_header *h);
