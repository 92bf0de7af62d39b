/* task_internal: shared by the files of core/task/task.h.  A task has one step under way at a time:
 * a move of its state, or the work of a state.  Every callback of a step begins with task_stops:
 * a cancelled task ends there.  Thread: the loop's. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/sm.h"
#include "core/columns.h"
#include "core/exec/exec.h"
#include "core/exec/tool.h"
#include "core/loadout/loadout.h"
#include "core/task/manifest.h"
#include "core/task/share.h"
#include "core/task/task.h"

struct collecting;

struct tasks {
    struct tasks_config c;
    struct tasks_limits limits;
    struct task_cards cards;
    struct task **sorted; /* by id */
    size_t count, size;
    bool resumed, closed, scheduling;
    int64_t swept_ms;
};

struct task {
    struct tasks *all;
    struct sm sm;
    int shown; /* the state that is on disk: what clients see */
    char id[TASK_ID_SIZE];
    char key[ID_SIZE]; /* names its sandbox and its volume */
    char *name, *manifest, *message, *error, *parent, *card, *retry_of, *user, *counts;
    char owner[64], tenant[PRINCIPAL_TENANT], agent[PRINCIPAL_AGENT];
    int role; /* of its owner: enum role */
    char sandbox[ID_SIZE], exec[ID_SIZE];
    bool borrowed, has_volume;
    int exit_code;
    int64_t priority, attempt, created_ms, started_ms, changed_ms, ended_ms, cpu_us;

    struct arena a; /* of the manifest */
    struct manifest m;
    struct progress progress;
    struct list watches;
    int log_fd; /* -1: not open */

    bool making; /* its first row is not written yet */
    bool cancel; /* it is to end as cancelled */
    bool busy;   /* a step is under way that calls back */
    bool cleaning;
    bool timed_out; /* by lifecycle.timeout */
    char *reason;   /* of the cancel */
    task_cb cancelled;
    void *cancelled_arg;
    /* of the step */
    struct tool *tool;
    struct sandbox *s;
    struct exec *x;
    struct exec_wait *wait;
    struct build_wait *build; /* of the image of its loadout */
    bool outfitted;           /* m.image is that image */
    void (*outfit_then)(struct task *t);
    struct exec_reader *reader;
    struct collecting *collecting;
    bool reader_over, exec_over;
};

/* --- task_row.c --- */
extern struct columns task_columns;
CHECKED int task_load(struct tasks *l, struct store_tx *tx, struct err *e);
struct principal task_principal(const struct task *t);
CHECKED int task_read_manifest(struct task *t, const json_t *from, bool strict, struct err *e);
/* Writes the row with an event; then is called when it is on disk. */
typedef void (*task_then)(struct task *t);
void task_save(struct task *t, const char *event, const char *actor, task_then then);
void task_event_data(const struct task *t, struct buf *to);
void task_put_event(struct store_tx *tx, const char *id, const char *type, const char *actor,
                    struct str data);

/* --- task.c --- */
/* Moves on and begins the work of the new state.  message: for people. */
void task_go(struct task *t, enum task_state to, const char *message);
void task_step(struct task *t);  /* the work of its present state */
bool task_stops(struct task *t); /* ends it if it is cancelled; true: leave the step */
/* It failed for this reason. */
void task_fail(struct task *t, const struct err *e);
void task_failed(struct task *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The state that its end means: by its error. */
void task_finish(struct task *t);
void task_state_set(struct task *t, enum task_state to, const char *message);
void task_tell(struct task *t); /* its watchers */
struct task *task_free(struct task *t);

/* --- the work of each state --- */
void stage_begin(struct task *t); /* task_stage.c */
void place_begin(struct task *t); /* task_place.c */
void outfit_stop(struct task *t);
void outfit_begin(struct task *t, task_then then); /* task_outfit.c: then, once it has its image */
struct sandbox *place_found(struct task *t);       /* with a reference; NULL: it has none */
struct sandbox *place_made(struct task *t); /* made for it, also by an earlier holtd; or NULL */
struct sandbox *place_clone_left(struct task *t); /* by a killed holtd; or NULL */
void agent_begin(struct task *t);                 /* task_run.c */
void agent_follow(struct task *t);
void task_stop(struct task *t);     /* ends what is under way, for a cancel */
void task_let_go(struct task *t);   /* holtd stops: lets everything go */
void collect_begin(struct task *t); /* task_collect.c */
void collect_stop(struct task *t);
void clean_begin(struct task *t); /* task_clean.c: after its end */
/* --- task_log.c --- */
void task_log_add(struct task *t, int64_t offset, struct str bytes);
void task_log_close(struct task *t);

/* A command in its sandbox that prepares or collects; its output is in r.  An exit status other
 * than 0 is in r, not in e. */
struct task_script {
    const char *text; /* for /bin/sh */
    struct str cwd;
    const struct pair *env;
    size_t env_count;
    int64_t time_ms;
    void (*done)(struct task *t, int exit_code, struct str output, const struct err *e);
};
void task_script_run(struct task *t, const struct task_script *s); /* task_script.c */
