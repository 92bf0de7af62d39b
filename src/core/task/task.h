/* task: work from a manifest to its artifacts: queue, clone, sandbox, agent, result.
 *
 *   pending → staging → provisioning → ready → running → completing → completed
 *
 * or failed, failed_preserved (its sandbox is kept), cancelled.  Each move is a row, synced before
 * the next step begins, and an event ("task_run.staging", …).  A step can be done again, so that a
 * task goes on after holtd was killed in any state; its command runs once.  The agent's command is
 * a session named "task", so that people can watch it and answer it.
 * Ownership: the registry's; a task is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "base/list.h"
#include "core/identity/identity.h"
#include "core/sandbox/sandbox.h"
#include "core/task/progress.h"

struct tasks;
struct task;
struct share;
struct volumes;

enum task_state {
    TASK_PENDING,
    TASK_STAGING,
    TASK_PROVISIONING,
    TASK_READY,
    TASK_RUNNING,
    TASK_COMPLETING,
    TASK_COMPLETED,
    TASK_FAILED,
    TASK_FAILED_PRESERVED,
    TASK_CANCELLED,
    TASK_STATE_COUNT
};
const char *task_state_name(enum task_state s);
bool task_state_parse(struct str s, enum task_state *ret);
bool task_state_is_end(enum task_state s);

#define TASK_ID_SIZE 65
#define TASK_SESSION "task" /* the name of its terminal */
/* A sandbox with this label takes tasks while no command runs in it. */
#define TASK_LABEL "holt.tasks"
#define TASK_LABEL_ACCEPT "accept"

struct tasks_limits { /* the settings of these names; 0: no limit */
    int64_t tasks_running, tasks_per_user, tasks_max, tasks_keep_ms;
};

/* A board's card that a task works on: moves it, on behalf of the task's owner. */
struct task_cards {
    /* by: the task's owner, whose rights on the board are asked */
    void (*move)(void *arg, const struct principal *by, const char *card, enum task_state s,
                 const char *note);
    void *arg;
};

struct tasks_config {
    uv_loop_t *loop;
    struct store *store;
    struct sandboxes *sandboxes;
    struct volumes *volumes;
    struct share *share;
    struct space *space; /* asked before files are added; NULL: nothing is kept free */
    struct loadouts *loadouts;
};
/* Reads the rows (blocking: at start-up only); tasks go on as the loop turns. */
CHECKED int tasks_open(const struct tasks_config *c, struct tasks **ret, struct err *e);
void tasks_set_limits(struct tasks *l, const struct tasks_limits *limits);
void tasks_set_cards(struct tasks *l, const struct task_cards *c);
/* Those of an owner, of a tenant, or of all (who: any) that have not ended. */
int64_t tasks_used(const struct tasks *l, enum ceiling_scope scope, const char *who);
void tasks_tick(struct tasks *l); /* once a second */
/* Lets everything go without ending it.  Before sandboxes_close. */
void tasks_close(struct tasks *l);
struct tasks *tasks_free(struct tasks *l); /* after store_close; takes NULL; returns NULL */

struct task_spec { /* valid during the call */
    const json_t *manifest;
    bool strict;         /* as manifest_read's */
    struct str retry_of; /* or empty */
    int64_t attempt;
    const struct tx_hook *tx_hook; /* or NULL */
    void *tx_hook_arg;             /* task_submit frees it */
};
typedef void (*task_cb)(void *arg, struct task *t, const struct err *e);
struct task_call {
    const struct principal *by;
    task_cb done;
    void *arg;
};
/* -1 with *e, and done is not called; or 0, and it is called once the task is on disk. */
CHECKED int task_submit(struct tasks *l, const struct task_spec *spec, const struct task_call *c,
                        struct err *e);
/* Called once it is cancelled.  ERR_CONFLICT: it has ended already. */
CHECKED int task_cancel(struct task *t, struct str reason, const struct task_call *c,
                        struct err *e);
/* Submits the same manifest again, as another task. */
CHECKED int task_retry(struct task *t, const struct task_call *c, struct err *e);

/* One that this caller may see (change: end).  NULL: *e has the reason. */
struct task *task_find(struct tasks *l, const struct principal *by, bool change, struct str id,
                       struct err *e);
struct task *task_next(struct tasks *l, const struct principal *by, struct str after);
size_t tasks_count(const struct tasks *l, enum task_state s); /* in this state */
/* Tasks that ended since holtd started. */
enum task_outcome { TASK_SUCCESS, TASK_FAILURE, TASK_TIMEOUT, TASK_STOPPED, TASK_OUTCOMES };
int64_t task_outcomes(enum task_outcome o);

struct task_info { /* borrowed until the loop turns */
    const char *id;
    struct str name, owner, tenant, message, error, parent, card, retry_of, user;
    struct str manifest; /* JSON */
    struct str sandbox;  /* the id of its sandbox; empty: none now */
    struct str exec;     /* of its command; empty: not yet */
    enum task_state state;
    int exit_code; /* -1: none */
    int64_t priority, attempt, created_ms, started_ms, changed_ms, ended_ms;
    int64_t cpu_us; /* of its command */
    bool borrowed;  /* its sandbox was there before, and stays */
    bool asked_for; /* … and the manifest named it */
    const struct pair *labels;
    size_t label_count;
    const struct progress *progress;
    const struct str *warnings;
    size_t warning_count;
};
void task_info(const struct task *t, struct task_info *ret);

/* --- its log: the output of its command, kept after its end --- */

struct task_watch { /* the caller's memory, until task_unwatch */
    struct list link;
    void (*changed)(struct task_watch *w); /* there is more, or its state is another */
};
void task_watch(struct task *t, struct task_watch *w);
void task_unwatch(struct task_watch *w); /* harmless if not watching */
/* Bytes from an offset on, at most max; 0: none yet. */
CHECKED int64_t task_log_read(const struct task *t, int64_t offset, size_t max, struct buf *to,
                              struct err *e);

/* --- artifacts: what it left in its outbox --- */

struct task_artifact {
    struct str path; /* below the outbox */
    int64_t size;
    char sha256[65];
    int64_t created_ms;
};
/* Calls each in order of path, then done. */
typedef void (*task_artifact_each)(void *arg, const struct task_artifact *a);
void task_artifacts(struct task *t, task_artifact_each each, store_done done, void *arg);
/* The file; the caller owns it. */
CHECKED int task_artifact_open(const struct task *t, struct str path, struct err *e);
