/* gates: private to src/api: holds the gates (core/approval/gate.h) in memory and applies them to
 * requests.  An operation that a gate matches needs a grant, which is used up before its handler
 * runs; without one it is refused, and the refused action is kept for a while, so that its caller
 * can ask for exactly that.  Routes of dialects have no grants: where a gate covers an operation,
 * they are refused whatever has the same permission.
 * Thread: the loop's. */
#pragma once

#include "api/request.h"

struct gates;
/* Reads the gates.  Blocking: at start-up only. */
CHECKED int gates_open(struct api *a, struct err *e);
void gates_close(struct api *a); /* before events_close or after it */
void gates_tick(struct api *a);

/* Calls run now, or once a grant was used; or refuses the request. */
void gates_pass(struct request *r, void (*run)(struct request *r));
/* For routes of dialects.  ERR_FORBIDDEN: a gate covers what has this permission. */
CHECKED int gates_check_dialect(const struct request *r, enum perm p, struct err *e);

struct refused_action { /* for its caller's question; borrowed until the loop turns */
    struct str operation, arguments, hash, sandbox;
    int64_t people;
};
/* false: there is none of this caller's with this id, or it was long ago. */
bool gates_refused(const struct request *r, struct str id, struct refused_action *ret);
