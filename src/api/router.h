/* router: finds the route of a method and path.  A trie of segments with hashed literals: the cost
 * of a lookup depends on the path's length, not on the number of routes.
 *
 * A path consists of literals, "{name}" for one segment, and "{name...}" for the rest (last, may be
 * empty).  A literal beats a parameter, a parameter beats the rest.  Method "*" is any
 * method.  Several routes may share method and path: the first whose guard accepts the request is
 * taken.
 * Ownership: the router copies the route; the texts it points at must live as long as it does. */
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
    enum perm perm;                      /* the permission required */
    void (*handler)(struct request *r);  /* called if the caller has it */
    bool (*guard)(const struct xchg *x); /* checks a header or the listener; NULL: always */
    /* Formats a failure in a dialect's form; NULL: ours. */
    void (*fail)(struct request *r, int status, const struct err *e);
    bool creates;     /* honours an Idempotency-Key (api/idempotency.h) */
    bool remakes;     /* its reply is made anew from the object, not stored */
    int64_t body_max; /* limit of a collected body; 0: ROUTE_BODY, or less for public routes */
    const void *data; /* the handler's */
    size_t index;     /* set by router_add: 0, 1, 2 … */
};

#define ROUTE_BODY (1024 * 1024)
#define ROUTE_BODY_OPEN (4 * 1024)   /* no permission required */
#define ROUTE_BODY_WHOLE (1LL << 62) /* as much as the setting body_max allows */
#define ROUTER_DEPTH_MAX 24          /* segments of one path */

struct router *router_new(void);
struct router *router_free(struct router *r); /* takes NULL; returns NULL */
DEFINE_AUTO(struct router *, router_free)
size_t router_count(const struct router *r);
/* An index for a route without a path: what a listener leads to. */
size_t router_reserve(struct router *r);
/* Each route once, in the order they were added. */
void router_each(const struct router *r, void (*each)(void *arg, const struct route *route),
                 void *arg);
/* Fails on a malformed path, and on two routes of which one could never be reached. */
CHECKED int router_add(struct router *r, const struct route *route, struct err *e);

enum router_result { ROUTER_FOUND, ROUTER_NO_PATH, ROUTER_NO_METHOD, ROUTER_BAD_PATH };

struct router_match {
    const struct route *route;
    struct op_params params; /* decoded, in arena memory */
    struct str allow;        /* ROUTER_NO_METHOD: "GET, HEAD, OPTIONS" */
};

/* x is for the guards only.  HEAD uses GET's route if it has none of its own. */
CHECKED enum router_result router_find(const struct router *r, struct str method, struct str path,
                                       const struct xchg *x, struct arena *a,
                                       struct router_match *ret);
