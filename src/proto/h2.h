/* h2: the head of an HTTP/2 request: gathered field by field, bounded, checked, turned into an
 * http_req.
 * nghttp2 has checked what RFC 9113 §8 demands of each field (order and number of pseudo fields,
 * case, connection-specific fields, content-length); this code checks the rest.
 * Ownership: one h2_head serves a connection, head after head; zero-initialised is empty. */
#pragma once

#include "base/buf.h"
#include "proto/http.h"

#define H2_FIELD_COST 32 /* RFC 9113 §6.5.2 adds this to each field's length */

struct h2_field;

struct h2_head {
    struct buf bytes; /* names and values, one after the other */
    struct h2_field *fields;
    size_t count, size;
    int64_t cost; /* as SETTINGS_MAX_HEADER_LIST_SIZE counts, refused fields included */
};

void h2_head_done(struct h2_head *h);
void h2_head_clear(struct h2_head *h); /* keeps the memory, unless it grew large */
/* -ENOSPC: over a limit; the field is counted and dropped, and the caller replies 431. */
int h2_head_add(struct h2_head *h, struct str name, struct str value, int64_t max_cost,
                int64_t max_count) CHECKED;
/* Copies into the arena.  ended: no body follows.  An extended CONNECT (RFC 8441) becomes the GET
 * of the same handshake in HTTP/1.1, with ":protocol" among the fields, so that one route serves
 * both.  0, or -EPROTO: not a request, reset the stream; -EINVAL: reply 400; -EOPNOTSUPP: CONNECT,
 * reply 501. */
int h2_head_request(const struct h2_head *h, struct arena *a, bool ended, struct http_req *ret)
    CHECKED;
/* All regular fields: trailers, or the part of an oversized head that was kept. */
struct http_header *h2_head_fields(const struct h2_head *h, struct arena *a, size_t *ret_count);
/* Fields that HTTP/2 forbids (RFC 9113 §8.2.2): a reply omits them. */
bool h2_is_hop_field(struct str name);
