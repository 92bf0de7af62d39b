/* pool: the number and kind of sandboxes a runtime keeps ready.  A fixed number, or as many as were
 * created in the last minute, between two bounds; more when that grows, fewer when it falls.  The
 * runtime makes them in the background, takes one for a create that it fits, replaces those that
 * break; each is used once.  Their kind: none in particular if the claim brings everything
 * (native), else the kind requested most; creates of another kind start cold.  Ownership: the
 * registry's, one per runtime.  Thread: the loop's. */
#pragma once

#include "core/sandbox/driver.h"

struct pool_config { /* all 0: none */
    int64_t size;    /* fixed */
    bool autosize;   /* instead: by the creates of the last minute */
    int64_t min, max;
};

struct pool_counts {
    int64_t desired, ready;         /* now */
    int64_t claims, misses, broken; /* since start-up; broken: as reported by the runtime */
};

struct pool;
/* is_default: it gets creates that name no runtime; another runtime has spares only while it is
 * used. */
struct pool *pool_new(const struct pool_config *c, struct driver *d, bool is_default);
void pool_configure(struct pool *p, const struct pool_config *c); /* from the next tick on */
struct pool *pool_free(struct pool *p); /* after the driver's close; takes NULL, returns NULL */
/* A create has succeeded. */
void pool_created(struct pool *p, const struct driver_kind *kind, bool warm, int64_t now_ms);
void pool_seed(struct pool *p, int64_t then_ms); /* a create of an earlier holtd */
int64_t pool_desired(const struct pool *p, int64_t now_ms);
void pool_reserve(struct pool *p, int64_t n);   /* so many besides */
void pool_tick(struct pool *p, int64_t now_ms); /* once a second: updates the runtime */
void pool_count(const struct pool *p, struct pool_counts *to); /* adds */
