/* h2: the head of an HTTP/2 request: gathered field by field, bounded, checked, made an http_req.
 * nghttp2 has checked what RFC 9113 §8 says of each field (order and number of pseudo fields, case,
 * connection-specific fields, content-length); here is what it leaves open.
 * Ownership: one h2_head serves a connection, head after head; zero-initialised is empty. */
#pragma once

#include "base/buf.h"
#include "proto/http.h"

#define H2_FIELD_COST 32 /* what RFC 9113 §6.5.2 adds to each field's length */

struct h2_field;

struct h2_head {
    struct buf bytes; /* names and values, one behind the other */
    struct h2_field *fields;
    size_t count, size;
    int64_t cost; /* as SETTINGS_MAX_HEADER_LIST_SIZE counts, refused fields included */
};

void h2_head_done(struct h2_head *h);
void h2_head_clear(struct h2_head *h); /* keeps the memory, unless it grew large */
/* -ENOSPC: over a limit; the field is counted and dropped, and the head answered with 431. */
int h2_head_add(struct h2_head *h, struct str name, struct str value, int64_t max_cost,
                int64_t max_count) CHECKED;
/* Copies into the arena.  ended: no body follows.  An extended CONNECT (RFC 8441) becomes the GET
 * that the same handshake is in HTTP/1.1, with its ":protocol" among the fields, so that one route
 * serves both.  0, or -EPROTO: not a request, reset the stream; -EINVAL: answer 400;
 * -EOPNOTSUPP: CONNECT, answer 501. */
int h2_head_request(const struct h2_head *h, struct arena *a, bool ended, struct http_req *ret)
    CHECKED;
/* All fields that are no pseudo fields: trailers, or what there is of a head that was too large. */
struct http_header *h2_head_fields(const struct h2_head *h, struct arena *a, size_t *ret_count);
/* Fields that HTTP/2 forbids (RFC 9113 §8.2.2): a reply leaves them out. */
bool h2_is_hop_field(struct str name);
