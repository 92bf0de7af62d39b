/* binding: secret values, their placeholders, and the requests that get them.  Values are wiped
 * when freed.  No I/O.  Ownership: bindings_parse makes, bindings_free frees.  Errors: -1 with *e
 * set; the text never contains a value. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "proto/http.h"
#include "proto/match.h"

#define BINDINGS_MAX 64
#define BINDINGS_RETIRED_MAX 64
#define BINDING_VALUE_MAX 4096
#define BINDING_VALUE_MIN 4 /* a shorter value cannot be recognised in other text */

struct bindings;
struct scrub;

/* [{"placeholder", "value", "hosts", "methods", "path", "in", "plain"}, …], docs/protocol-egress.md
 */
CHECKED int bindings_parse(struct str json, struct bindings **ret, struct err *e);
struct bindings *bindings_free(struct bindings *b); /* takes NULL; returns NULL */
DEFINE_AUTO(struct bindings *, bindings_free)

/* Keeps the values of `before` that b no longer has, so that they are still scrubbed from replies;
 * they are never filled in.  before may be NULL; its owner keeps it. */
void bindings_retire(struct bindings *b, const struct bindings *before);

struct binding_query {
    const struct host *host;
    bool tls;                /* without TLS, only bindings with "plain" are filled in */
    struct str method, path; /* of the request to fill in */
};
/* Whether any binding is for this host, so that its value may come back in a reply.  b may be
 * NULL. */
bool bindings_know(const struct bindings *b, const struct binding_query *q);
/* Everything that must be scrubbed from this host's replies, retired values included. */
void bindings_scrub(const struct bindings *b, const struct binding_query *q, struct scrub *to);
/* Fills in the values whose bindings match this request; leaves other placeholders
 * unchanged.  True: a value was filled in. */
bool bindings_fill_query(const struct bindings *b, const struct binding_query *q, struct str in,
                         struct buf *to);
bool bindings_fill_header(const struct bindings *b, const struct binding_query *q,
                          const struct http_header *h, struct buf *to);
