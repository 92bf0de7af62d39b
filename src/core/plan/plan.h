/* plan: an agent's list of steps, and how far it has come.  Its owner decides who sees it
 * (core/identity/owner.h).  The first advance begins step 0, each later one completes a step and
 * begins the next, the last completes the plan; a failed step without an active one fails it.
 * Rows are class 2; every change is an event.
 * Ownership: the registry's; a plan is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "core/identity/named.h"
#include "proto/json.h"

#define PLANS_MAX 100 /* of one owner */
#define PLAN_STEPS_MAX 50
#define PLAN_TEXT_MAX 4096

struct plans;
struct plan;

enum plan_status { PLAN_PENDING, PLAN_IN_PROGRESS, PLAN_COMPLETED, PLAN_FAILED, PLAN_ABORTED };
enum plan_step_status { STEP_PENDING, STEP_ACTIVE, STEP_COMPLETED, STEP_FAILED, STEP_SKIPPED };
extern const char *const plan_statuses[], *const plan_step_statuses[]; /* NULL after the last */

/* Reads the rows (blocking: at start-up only). */
CHECKED int plans_open(struct store *store, struct plans **ret, struct err *e);
struct plans *plans_free(struct plans *l); /* after store_close; takes NULL; returns NULL */

struct plan_spec { /* valid during the call */
    struct str name, description;
    const struct str *steps;
    size_t step_count;
};
struct plan_change { /* of one step */
    int64_t step;
    enum plan_step_status status;
    struct str result, error; /* empty: unchanged */
};
/* All: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int plan_create(struct plans *l, const struct plan_spec *spec, const struct named_call *c,
                        struct err *e);
CHECKED int plan_update(struct plan *p, const struct plan_change *ch, const struct named_call *c,
                        struct err *e);
CHECKED int plan_advance(struct plan *p, struct str result, const struct named_call *c,
                         struct err *e);
CHECKED int plan_abort(struct plan *p, struct str reason, const struct named_call *c,
                       struct err *e);
CHECKED int plan_remove(struct plan *p, const struct named_call *c, struct err *e);

struct plan *plan_of(struct named *n); /* NULL of NULL */
struct plan *plan_find(struct plans *l, const struct principal *by, enum owner_use use,
                       struct str id, struct err *e);
struct plan *plan_next(struct plans *l, const struct principal *by, struct str after);
const char *plan_id(const struct plan *p);
enum plan_status plan_status(const struct plan *p);
int64_t plan_current(const struct plan *p); /* -1: it has not begun */
/* {"id", "name", "description", "steps": [{"index", "description", "status", "result", "error",
 * "started_at", "completed_at"}], "status", "current_step", "created_at", "updated_at",
 * "completed_at"}; empty members are left out. */
void plan_write(struct jw *w, const struct plan *p);
