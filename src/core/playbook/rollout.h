/* rollout: one playbook applied to one target.
 *
 *   pending → checking → waiting → approved → applying → succeeded | failed
 *
 * or rejected, cancelled.  checking: `ansible-playbook --check --diff`; skipped where a check could
 * do more than look.  waiting: a question to people (core/approval) with the playbook and the
 * output of the check; only another person's yes goes on.  Each move is a row, synced before the
 * next step begins, and an event ("rollout.waiting", …); the command runs once, whatever crashes.
 * ansible-playbook runs in a throw-away sandbox (core/exec/tool.h) that reaches the target's sshd
 * alone and holds a certificate of minutes for it.  A sandbox of ours gets a snapshot before.
 * Playbook and target are copied: what was approved is what runs.
 * Ownership: the registry's; a rollout is borrowed until the loop turns.  Thread: the loop's. */
#pragma once

#include "base/list.h"
#include "core/identity/named.h"

#include <uv.h>

struct access;
struct events;
struct playbook;
struct playbooks;
struct rollout;
struct rollouts;
struct sandbox;
struct sandboxes;
struct snapshots;
struct target;
struct targets;

enum rollout_state {
    ROLLOUT_PENDING,
    ROLLOUT_CHECKING,
    ROLLOUT_WAITING,
    ROLLOUT_APPROVED,
    ROLLOUT_APPLYING,
    ROLLOUT_SUCCEEDED,
    ROLLOUT_FAILED,
    ROLLOUT_REJECTED,
    ROLLOUT_CANCELLED,
    ROLLOUT_ROLLING_BACK,
    ROLLOUT_ROLLED_BACK,
    ROLLOUT_STATE_COUNT
};
const char *rollout_state_name(enum rollout_state s);
bool rollout_state_parse(struct str s, enum rollout_state *ret);
bool rollout_state_is_end(enum rollout_state s);

struct rollouts_config {
    struct store *store;
    struct events *events;
    struct sandboxes *sandboxes;
    struct snapshots *snapshots;
    struct access *access;
    struct targets *targets;
    const char *state;            /* directory */
    const int64_t *questions_max; /* the setting, read at each use */
};
/* Reads the rows (blocking: at start-up only); they go on as the loop turns. */
CHECKED int rollouts_open(const struct rollouts_config *c, struct rollouts **ret, struct err *e);
/* The loopback port on which a sandbox's sshd answers; < 0: *e has the reason. */
typedef int (*rollout_door)(void *arg, struct sandbox *s, struct err *e);
void rollouts_set_door(struct rollouts *l, rollout_door door, void *arg);
void rollouts_tick(struct rollouts *l); /* once a second */
/* Lets everything go without ending it.  Before sandboxes_close. */
void rollouts_close(struct rollouts *l);
struct rollouts *rollouts_free(struct rollouts *l); /* after store_close; takes, returns NULL */

struct rollout *rollout_of(struct named *n); /* NULL of NULL */

struct rollout_spec { /* valid during the call */
    struct playbook *playbook;
    /* By id or name; otherwise a sandbox of the caller's own that is no target: there is nothing to
     * approve there. */
    struct str to;
    struct str person; /* the person its caller's token belongs to; empty: nobody by name */
    struct str note;   /* for those who approve */
    bool check;        /* only that */
};
/* All: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int rollout_create(struct rollouts *l, const struct rollout_spec *spec,
                           const struct named_call *c, struct err *e);
CHECKED int rollout_cancel(struct rollout *ro, struct str reason, const struct named_call *c,
                           struct err *e);
/* Restores the snapshot that was taken before.  People only; done comes when it has begun. */
CHECKED int rollout_rollback(struct rollout *ro, const struct named_call *c, struct err *e);

struct rollout *rollout_find(struct rollouts *l, const struct principal *by, enum owner_use use,
                             struct str ref, struct err *e);
struct rollout *rollout_next(struct rollouts *l, const struct principal *by, struct str after);
struct rollout_info { /* borrowed until the loop turns */
    const char *id;
    struct str owner, tenant, playbook, playbook_name, target, target_name, sandbox;
    struct str text;      /* the playbook as it runs */
    struct str unchecked; /* why no check was run; empty: one was, or will be */
    struct str note, error, approval, decided_by, snapshot;
    enum rollout_state state;
    bool check;
    int check_exit, exit_code; /* -1: none */
    int64_t people, created_ms, changed_ms, ended_ms;
};
void rollout_info(const struct rollout *ro, struct rollout_info *ret);

/* --- its output: of the check, and of the run --- */

enum rollout_phase { ROLLOUT_CHECK, ROLLOUT_RUN, ROLLOUT_PHASES };
struct rollout_watch { /* the caller's memory, until rollout_unwatch */
    struct list link;
    void (*changed)(struct rollout_watch *w); /* there is more, or its state is another */
};
void rollout_watch(struct rollout *ro, struct rollout_watch *w);
void rollout_unwatch(struct rollout_watch *w); /* harmless if not watching */
/* Bytes from an offset on, at most max; 0: none yet. */
CHECKED int64_t rollout_output(const struct rollout *ro, enum rollout_phase phase, int64_t offset,
                               size_t max, struct buf *to, struct err *e);
/* The check of a target shows what is in its files: before a person has approved the playbook, it
 * is for people. */
CHECKED int rollout_may_read(const struct rollout *ro, const struct principal *by,
                             enum rollout_phase phase, struct err *e);
/* There will be no more. */
bool rollout_output_is_over(const struct rollout *ro, enum rollout_phase phase);
void rollout_command(const struct rollout *ro, enum rollout_phase phase, struct buf *to);

/* --- can a target be reached? --- */

struct target_answer {
    bool reached;
    int exit_code;
    struct str output;
};
typedef void (*target_check_cb)(void *arg, const struct target_answer *r, const struct err *e);
/* Logs in there by a rollout's way and runs `ansible -m ping`, which changes nothing. */
CHECKED int target_check(struct rollouts *l, const struct target *t, target_check_cb done,
                         void *arg, struct err *e);
