/* exec_internal: shared by the files of core/exec/exec.h.  A sandbox is seen through
 * core/sandbox/commands.h.  Thread: the loop's. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sm.h"
#include "core/exec/exec.h"
#include "core/exec/exec_log.h"
#include "core/sandbox/commands.h"
#include "core/space.h"
#include "core/store.h"
#include "link/guest.h"
#include "link/timers.h"
#include "proto/trace.h"

/* All commands of a registry. */
struct execs {
    struct sandboxes *sandboxes;
    uv_loop_t *loop;
    struct store *store;
    struct timers *timers; /* NULL: closed */
    struct space *space;
    char *dir; /* of the logs */
    int64_t execs_max, output_bytes, relay_output_bytes;
    int64_t output_keep_ms;                   /* of ended commands; 0: as long as their sandbox */
    int64_t command_time_ms, session_time_ms; /* of requests that say nothing; 0: none */
    char *block;                              /* buffer for readers */
    struct list unsafe;                       /* execs whose output only init keeps */
    struct timer spill;
    struct map shares; /* owner to struct output_share */
    struct list told;  /* callbacks due in the next turn */
    int64_t moment_us; /* the last moment assigned */
};

/* The commands of one sandbox. */
struct exec_set {
    struct sandbox_commands counts; /* what the sandbox sees */
    struct execs *all;
    struct sandbox *sandbox; /* not a reference: it owns the set */
    struct list list;        /* by id, including ended ones */
    size_t count;
    int64_t erased_us; /* the last moment of commands that are no longer kept */
    bool has_logs;     /* there may be a directory of log files */
    struct list journals;
    struct exec_log *notes; /* NULL: not opened yet */
};

enum exec_flag { /* of a row */
                 EXEC_PTY = 1,
                 EXEC_TIMED_OUT = 2,
                 EXEC_CANCELLED = 4,
                 EXEC_OOM = 8,
                 EXEC_BLOCKS = 16, /* block_when_full */
                 EXEC_STDIN = 32,
                 EXEC_ROW_OUTPUT = 64,  /* the output is in the row */
                 EXEC_FOR_READER = 128, /* EXEC_BLOCKS ends without a reader */
                 EXEC_STANDING = 256,   /* the sandbox's own: not activity */
                 EXEC_OF_SHARE = 512,   /* its output counts towards its owner's share */
                 EXEC_SENT = 1024,      /* init was asked to start it when the row was written */
};

enum exec_row {
    ROW_QUEUED, /* init may hear of the command before its row is committed */
    ROW_FIRST,  /* only afterwards: a repeated request must find the row */
    ROW_SAVED,
    ROW_GOING, /* it is being erased: init never heard of the command */
};

struct exec {
    int refs;         /* held by its sandbox's list, and each call, reader and wait */
    struct list link; /* in set->list; the list holds a reference */
    struct exec_set *set;
    struct sandbox *sandbox;
    struct sm sm;
    char id[ID_SIZE];
    struct str *argv; /* one allocation with its texts */
    size_t argc;
    char *cwd, *user, *failure;
    char *name;                                     /* of a session; NULL or "": it is none */
    char trace[TRACE_TEXT], trace_parent[SPAN_HEX]; /* "": none; not over a restart */
    char epoch[33]; /* of the init that answered when the row was made, in hex; "": none had */
    int rows, cols; /* of its terminal at the start; now: of its log */
    uint32_t flags; /* enum exec_flag */
    int exit_code, signal;
    uint32_t pid;
    int64_t created_us, ended_us; /* moments */
    int64_t started_ms, duration_ms, timeout_ms;
    int64_t user_us, system_us, max_rss_kib;

    /* until it runs */
    struct guest_exec_start *start; /* NULL: init has it */
    struct arena start_mem;
    exec_cb started; /* waits for the start; NULL: called */
    void *started_arg;
    enum exec_row row;
    bool quiet_start; /* no client waits for its start: its row may wait for the end's */
    const struct tx_hook *tx_hook; /* written with its row; NULL: none, or written */
    void *tx_hook_arg;
    struct timer begin; /* how long a start may wait for a connection */

    struct guest_exec *ch; /* NULL: detached, or ended */
    struct err gone;       /* why it was detached */
    struct timer check;    /* checks whether only this channel was closed */
    struct timer deadline;
    int kills; /* escalation of its kill: KILL to it, the driver's kill of work, of all */

    /* stdin: bytes from in_at on that init has not acknowledged */
    struct buf in;
    uint64_t in_at, in_sent;
    bool in_eof, in_eof_sent, in_known;
    void (*room)(void *arg);
    void *room_arg;

    struct exec_log log;
    struct list unsafe; /* in execs->unsafe */
    int64_t unsafe_since_ms;
    struct output_share *share; /* the share its output counts towards; NULL: none */
    struct list share_link;
    int64_t counted; /* bytes of its log included in share->bytes */
    bool cut;        /* to the share's limit, and that was reported */
    bool loading;    /* being loaded from its row */
    bool log_cold;   /* not yet read by this holtd */
    struct list readers, waits;
    struct timer tell;     /* readers have new output, or waits the end */
    bool listed;           /* in the hello being read */
    bool ended_saved;      /* its end is committed */
    bool unsaved;          /* that save failed: retry */
    bool no_room;          /* its output cannot be written: its end waits for that */
    int64_t idle_since_ms; /* since when it has no reader, or has ended */
};

/* --- exec_set.c: the commands of a sandbox, and of all; their log files --- */
struct exec_set *exec_set_of(const struct sandbox *s);
bool execs_are_closed(const struct execs *all);
/* The time, but later than any before: events are ordered, also after a restart. */
void exec_metrics_add(void);
int64_t execs_moment(struct execs *all);
void execs_moment_was(struct execs *all, int64_t us); /* a moment assigned by an earlier holtd */

/* --- exec_link.c: a connection to init --- */
void exec_set_linked(struct exec_set *set, const struct guest_hello_init *h, bool other);
/* Init may forget a command whose end is stored, or that has no row. */
void exec_set_forget(struct exec_set *set, const struct guest_exec_row *row);

/* --- exec.c, exec_channel.c, exec_row.c, exec_read.c, exec_start.c --- */
extern const struct sm_state exec_states[];
struct exec *exec_new(struct sandbox *s, const char *id);
void exec_add(struct exec *x); /* to its sandbox's list, by id */
bool exec_is_live(const struct exec *x);
CHECKED int exec_warm(struct exec *x, struct err *e);
void exec_link(struct exec *x,
               const struct guest_exec_row *row); /* the guest is connected; NULL: unknown */
void exec_lose(struct exec *x, const char *why);
void exec_end(struct exec *x, enum exec_state to); /* settles the log, saves, calls back */
void exec_kill(struct exec *x, uint32_t flag);     /* everything it started; flag: timed out, … */
void exec_arm(struct exec *x);                     /* its deadline */
void exec_tick(struct exec *x);
void exec_begin(struct exec *x, const char *actor);
void exec_detach(struct exec *x); /* the command continues */
void exec_fail(struct exec *x, const struct err *e);
void exec_tell_started(struct exec *x, const struct err *e);
void exec_started_if_all(struct exec *x);
bool exec_waits_for_row(const struct exec *x);
void exec_send_start(struct exec *x);
void exec_attach_again(struct timer *t);
void exec_log_read_on(struct exec *x); /* readers moved: a log that waits for them may continue */
void exec_let_go(struct exec *x);      /* it stops waiting for readers */
void waits_end(struct exec *x, const struct err *e);
void exec_forget(struct exec *x); /* removes it from its sandbox's list */
void exec_save(struct exec *x, const char *event, const char *actor,
               void (*done)(struct exec *x, const struct err *e));
void exec_erase(struct exec *x);
void exec_unmake(struct exec *x);       /* it never ran: erases its row and the request's key */
CHECKED int exec_spill(struct exec *x); /* writes what only init keeps to the file; -1: it waits */
/* Whether its log can be read now; otherwise it is being fetched, and its readers and journals will
 * be woken. */
bool exec_is_there(struct exec *x);
void exec_wake(struct exec *x); /* wakes its readers and waits, in the next turn */
void readers_end(struct exec *x, const struct err *e);
void readers_offer(struct exec *x, const struct log_cut *fresh); /* just appended to the log */
CHECKED int execs_load(struct execs *all, struct store_tx *tx, struct err *e);
CHECKED int execs_erase(struct store_tx *tx, const char *sandbox, struct err *e);
void execs_tell_all(struct execs *all); /* the callbacks that are due */

/* --- journal.c --- */
void notes_close(struct exec_set *set);
void journals_wake(struct exec_set *set);
void journals_end(struct exec_set *set, const struct err *e);

/* --- exec_prune.c --- */
void exec_set_retain(struct exec_set *set);

/* --- exec_policy.c --- */
/* Refuses it, or sets the limits that its request leaves out. */
CHECKED int exec_apply_policies(const struct sandbox *s, struct exec_spec *spec,
                                const struct principal *by, struct err *e);
