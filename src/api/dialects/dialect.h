/* dialect: the wire format of another system, plugged into the API: one row, one folder.
 * A dialect decodes a request, calls the functions of core that native handlers call, and writes
 * replies and errors in its own form; the rules are core's.  No file outside its folders names it
 * (tools/check-dialects); every member but the name may be left out.
 * Ownership: rows are constant; the state is the dialect's.  Thread: the loop's. */
#pragma once

#include "api/rpc.h"

struct dialect {
    const char *name; /* of its folder, its routes ("NAME.create") and its aliases of sandboxes */
    bool
        names_sessions; /* credentials for the egress proxy say these aliases; of one row at most */

    /* What it serves.  Its routes come before native ones: one with a guard may share their path */
    const struct route *routes;
    size_t route_count;
    int (*add_routes)(struct router *r, struct err *e); /* more, from a table of its own form */
    const struct rpc_method *rpcs;
    size_t rpc_count;
    const struct str *descriptors; /* of the contract of rpcs, for reflection */

    /* Errors without a handler: an unknown path or method, a request refused before its route. */
    const char *const *roots; /* the first segments of the paths that it owns, then NULL */
    void (*fail)(struct request *r, int status, const struct err *e); /* NULL: as natively */
    void (*write_error)(struct buf *to, const struct err *e); /* for broken requests; NULL: … */
    int options_status;                                       /* of OPTIONS; 0: 204 */

    /* Requests that it takes whatever their path, by a header; `instead` is their route. */
    bool (*takes)(const struct xchg *x);
    struct route instead;

    /* It gets all requests from inside a sandbox that arrive on this role of listener. */
    enum listener_role inside_role; /* LISTEN_API: none */
    struct route inside;            /* its handler is called without any check before it */

    const char *const
        *listen; /* addresses for --seed-ports, NULL at the end; a busy one is skipped */

    /* Its state and its life.  probe comes before anything is opened: can it work on this host? */
    int (*probe)(const struct config *c, struct err *e);
    void *(*start)(struct api *a);
    void (*tick)(struct api *a, void *state);        /* once a second */
    void (*end_streams)(struct api *a, void *state); /* the daemon is ending */
    void (*free)(void *state);
    /* Its own series of /metrics, as text; members of /metrics as JSON. */
    void (*print_metrics)(const struct api *a, struct buf *to);
    void (*write_metrics)(const struct api *a, const void *state, struct jw *w);
};

extern const struct dialect *const dialect_table[]; /* table.c; NULL at the end */

/* dialect.c: over all rows.  states: as dialects_start made them, NULL before. */
const struct dialect *dialect_of_path(struct str path); /* NULL: none owns it */
const struct dialect *dialect_of_role(enum listener_role role);
/* NULL: none; api_handle then looks for a route by the path. */
const struct dialect *dialect_that_takes(const struct xchg *x);
CHECKED int dialects_add_routes(struct api *a, struct err *e);
CHECKED int dialects_probe(const struct config *c, struct err *e);
void dialects_start(struct api *a);
void dialects_tick(struct api *a);
void dialects_end_streams(struct api *a);
void dialects_free(struct api *a);
void dialects_print_metrics(const struct api *a, struct buf *to);
void dialects_write_metrics(const struct api *a, struct jw *w);
/* The result of start. */
void *dialect_state(const struct api *a, const struct dialect *d);
/* Its route `inside`, with an index of its own: for metrics and audit rows. */
const struct route *dialect_inside(const struct api *a, const struct dialect *d);
/* Its route `instead`, likewise. */
const struct route *dialect_instead(const struct api *a, const struct dialect *d);
bool dialects_want_address(const char *address);
const char *dialects_session_name(void); /* of the row with names_sessions; NULL: none */
