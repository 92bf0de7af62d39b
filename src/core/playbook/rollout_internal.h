/* rollout_internal: shared by the files of core/playbook/rollout.h.  A rollout has one step under
 * way at a time (`busy`): a write of its row, or the work of a state.  Every callback of a step
 * begins with rollout_stops.  Thread: the loop's. */
#pragma once

#include "base/arena.h"
#include "base/sm.h"
#include "core/columns.h"
#include "core/event/event.h"
#include "core/exec/tool.h"
#include "core/playbook/rollout.h"

struct ansible;

struct rollouts {
    struct named_list list;
    struct rollouts_config c;
    struct subscription *sub;
    rollout_door door;
    void *door_arg;
    int logs;      /* the directory */
    size_t checks; /* of targets, under way */
    bool stuck, resumed, closed;
};

/* Where and how to log in. */
struct machine {
    char *address, *login, *host_key, *principals;
    char sandbox[ID_SIZE]; /* empty: an address */
    int64_t port;
    bool become;
};

struct rollout {
    struct named named; /* first */
    struct sm sm;
    int shown; /* the state that is on disk: what clients see */
    char *agent, *person, *playbook_name, *target_name, *text, *unchecked;
    char *note, *error, *decided_by;
    int role; /* of its owner: enum role */
    char playbook[ID_SIZE], target[ID_SIZE], approval[ID_SIZE], snapshot[ID_SIZE];
    struct machine at;
    bool check;
    int check_exit, exit_code;
    int64_t people, changed_ms, ended_ms;

    bool busy, looking, look_again, cancel;
    char *reason;  /* of the cancel */
    named_cb told; /* the caller of a cancel or rollback; or NULL */
    void *told_arg;
    struct ansible *run;
    struct list watches;
};

/* --- rollout.c --- */
bool rollout_stops(struct rollout *ro); /* ends it if it is cancelled; true: leave the step */
void rollout_go(struct rollout *ro, enum rollout_state to);
void rollout_state_set(struct rollout *ro, enum rollout_state to);
void rollout_step(struct rollout *ro);
void rollout_tell(struct rollout *ro); /* its watchers */
bool rollout_needs_people(const struct rollout *ro);
void rollout_fail(struct rollout *ro, const struct err *e);
void rollout_failed(struct rollout *ro, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* --- rollout_row.c --- */
extern const struct named_kind rollout_kind;
void rollout_event_data(const struct rollout *ro, struct buf *to);
void rollout_put_event(struct store_tx *tx, const char *id, enum rollout_state s, const char *actor,
                       struct str data);
/* Writes the row and an event; then is called when it is on disk.  also: more work in the same
 * transaction, or NULL. */
typedef void (*rollout_then)(struct rollout *ro);
struct rollout_also {
    int (*work)(struct store_tx *tx, void *arg, struct err *e);
    void (*free)(void *arg);
    void *arg;
};
void rollout_save(struct rollout *ro, const char *actor, rollout_then then,
                  const struct rollout_also *also);

/* --- rollout_run.c --- */
void rollout_check_begin(struct rollout *ro);
void rollout_run_begin(struct rollout *ro);  /* after the snapshot */
void rollout_run_resume(struct rollout *ro); /* a command of an earlier holtd */
void rollout_run_stop(struct rollout *ro);
void rollout_run_leave(struct rollout *ro); /* holtd stops */

/* --- rollout_ask.c --- */
void rollout_ask(struct rollout *ro);
void rollout_look(struct rollout *ro); /* whether it was answered */
int rollout_on_event(void *arg, const struct event *ev);
void rollout_unask(struct rollout *ro, struct rollout_also *ret); /* takes the question back */

/* --- rollout_back.c --- */
void rollout_apply_begin(struct rollout *ro); /* the snapshot, then the run */
void rollout_back_begin(struct rollout *ro);

/* --- rollout_log.c --- */
CHECKED int rollout_logs_open(struct rollouts *l, struct err *e);
void rollout_log_begin(struct rollout *ro, enum rollout_phase phase); /* empties it */
void rollout_log_add(struct rollout *ro, enum rollout_phase phase, int64_t offset,
                     struct str bytes);
void rollout_log_remove(const struct rollout *ro);

/* --- ansible.c: one run in a throw-away sandbox, for any machine --- */

struct ansible_spec { /* valid during the call; texts of machine and playbook stay until done */
    const char *name; /* of its sandbox */
    const struct machine *at;
    struct str playbook; /* YAML; empty: only a ping */
    bool check;
    int64_t time_ms;
    const struct tx_hook *tx_hook;
    void *tx_hook_arg;                                           /* ansible_start frees it */
    void (*output)(void *arg, int64_t offset, struct str bytes); /* or NULL */
    void (*done)(void *arg, const struct tool_result *r, const struct err *e);
    void *arg;
};
/* NULL: *e has the reason; done is not called. */
struct ansible *ansible_start(struct rollouts *l, const struct ansible_spec *s, struct err *e);
struct ansible *ansible_resume(struct rollouts *l, const struct ansible_spec *s); /* NULL: gone */
void ansible_cancel(struct ansible *a);
void ansible_leave(struct ansible *a); /* it goes on, if it runs already */
void ansible_words(bool check, struct buf *to);
