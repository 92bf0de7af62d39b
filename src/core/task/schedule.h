/* schedule: manifests that are submitted at the times of a crontab.  While its last task has not
 * ended a schedule waits, so that slow tasks do not pile up; times that passed while holtd was down
 * are made up for once.  One whose owner's token is revoked submits nothing.  Rows are class 1.
 * Ownership: the registry's; a schedule is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "core/task/task.h"

struct schedules;
struct schedule;

CHECKED int schedules_open(struct store *store, struct identity *identity, struct tasks *tasks,
                           struct schedules **ret, struct err *e);
struct schedules *schedules_free(struct schedules *l); /* takes NULL; returns NULL */
void schedules_tick(struct schedules *l);              /* once a second */

struct schedule_spec { /* valid during the call */
    struct str name, cron;
    const json_t *manifest;
};
struct schedule_info {
    const char *id;
    struct str name, cron, owner, manifest, last_task;
    int64_t next_ms, created_ms; /* next_ms 0: never */
};
typedef void (*schedule_cb)(void *arg, struct schedule *s, const struct err *e);
struct schedule_call {
    const struct principal *by;
    schedule_cb done;
    void *arg;
};
CHECKED int schedule_create(struct schedules *l, const struct schedule_spec *spec,
                            const struct schedule_call *c, struct err *e);
CHECKED int schedule_remove(struct schedule *s, const struct schedule_call *c, struct err *e);
struct schedule *schedule_find(struct schedules *l, const struct principal *by, struct str id,
                               struct err *e);
struct schedule *schedule_next(struct schedules *l, const struct principal *by, struct str after);
void schedule_info(const struct schedule *s, struct schedule_info *ret);
