/* router: from method and path to a route.  A trie of segments whose literals are hashed: a lookup
 * costs as much as its path is long, however many routes there are.
 *
 * A path is made of literals, "{name}" for one segment, and "{name...}" for the rest (last, may be
 * empty).  A literal beats a parameter, a parameter beats the rest.  Method "*" is any method.
 * Several routes may share method and path: the first whose guard lets the request pass is taken.
 * Ownership: the router copies the route; the texts it points at live as long as it does. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "ops/op.h"

struct router;
struct request;
struct xchg;

struct route {
    const char *method;
    const char *path;
    const char *name;                    /* for metrics and audit rows: "token.create" */
    enum perm perm;                      /* what the asker must hold */
    void (*handler)(struct request *r);  /* called when the asker may */
    bool (*guard)(const struct xchg *x); /* a header, a listener; NULL: always */
    /* A failure in a dialect's form; NULL: ours. */
    void (*fail)(struct request *r, int status, const struct err *e);
    int64_t
        body_max; /* of a request that is gathered; 0: ROUTE_BODY, or less where anybody may ask */
    const void *data; /* the handler's */
    size_t index;     /* set by router_add: 0, 1, 2 … */
};

#define ROUTE_BODY (1024 * 1024)
#define ROUTE_BODY_OPEN (4 * 1024)   /* anybody may send it */
#define ROUTE_BODY_WHOLE (1LL << 62) /* as much as the setting body_max lets */
#define ROUTER_DEPTH_MAX 24          /* segments of one path */

struct router *router_new(void);
struct router *router_free(struct router *r); /* takes NULL; returns NULL */
DEFINE_AUTO(struct router *, router_free)
size_t router_count(const struct router *r);
/* An index for a route without a path: what a listener leads to. */
size_t router_reserve(struct router *r);
/* Each once, in the order of adding. */
void router_each(const struct router *r, void (*each)(void *arg, const struct route *route),
                 void *arg);
/* Fails on a malformed path, and on two routes of which one could never be taken. */
CHECKED int router_add(struct router *r, const struct route *route, struct err *e);

enum router_result { ROUTER_FOUND, ROUTER_NO_PATH, ROUTER_NO_METHOD, ROUTER_BAD_PATH };

struct router_match {
    const struct route *route;
    struct op_params params; /* decoded, in arena memory */
    struct str allow;        /* ROUTER_NO_METHOD: "GET, HEAD, OPTIONS" */
};

/* x is for the guards only.  HEAD takes GET's route where it has none of its own. */
CHECKED enum router_result router_find(const struct router *r, struct str method, struct str path,
                                       const struct xchg *x, struct arena *a,
                                       struct router_match *ret);
