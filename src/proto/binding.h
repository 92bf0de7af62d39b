/* binding: which values take the place of which placeholders, in which requests.  The values are
 * wiped when they are freed.  No I/O.  Ownership: bindings_parse makes, bindings_free frees.
 * Errors: -1 with *e set, whose text has no value in it. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "proto/http.h"
#include "proto/match.h"

#define BINDINGS_MAX 64
#define BINDINGS_RETIRED_MAX 64
#define BINDING_VALUE_MAX 4096
#define BINDING_VALUE_MIN 4 /* a shorter one cannot be told from other text */

struct bindings;
struct scrub;

/* [{"placeholder", "value", "hosts", "methods", "path", "in", "plain"}, …], docs/protocol-egress.md
 */
CHECKED int bindings_parse(struct str json, struct bindings **ret, struct err *e);
struct bindings *bindings_free(struct bindings *b); /* takes NULL; returns NULL */
DEFINE_AUTO(struct bindings *, bindings_free)

/* What of the values of before is not in b is kept there, to be known when a server says it again;
 * nothing is filled in with it.  before may be NULL; it stays its owner's. */
void bindings_retire(struct bindings *b, const struct bindings *before);

struct binding_query {
    const struct host *host;
    bool tls;                /* else only what says plain is filled in */
    struct str method, path; /* of what is to be filled in */
};
/* Is any for this host, so that its value may come back from there?  b may be NULL. */
bool bindings_know(const struct bindings *b, const struct binding_query *q);
/* Everything that must not come back from this host, values of before included. */
void bindings_scrub(const struct bindings *b, const struct binding_query *q, struct scrub *to);
/* Fills values in where the bindings of this request say so; what is not for it stays as it is.
 * True: something was filled in. */
bool bindings_fill_query(const struct bindings *b, const struct binding_query *q, struct str in,
                         struct buf *to);
bool bindings_fill_header(const struct bindings *b, const struct binding_query *q,
                          const struct http_header *h, struct buf *to);
