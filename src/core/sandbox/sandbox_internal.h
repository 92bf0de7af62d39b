/* sandbox_internal: shared by the files of core/sandbox/sandbox.h and core/exec/exec.h.  Thread:
 * the loop's. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sm.h"
#include "base/sorted.h"
#include "core/exec/exec.h"
#include "core/exec/exec_log.h"
#include "core/identity/owner.h"
#include "core/network/authority.h"
#include "core/network/egress.h"
#include "core/network/secret.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/traits.h"
#include "core/sandbox/volume.h"
#include "core/space.h"
#include "link/guest.h"
#include "link/timers.h"
#include "proto/json.h"

struct driver_slot {
    const struct driver_ops *ops;
    struct driver *driver; /* NULL: not possible on this host, and why */
    struct err why;
    bool listed; /* it has listed its live sandboxes */
    /* whether it works: trial.c */
    enum { TRIAL_NONE, TRIAL_RUNS, TRIAL_OVER } trial;
    char trial_id[ID_SIZE];
    struct err trial_err;
    struct list trial_waits;
    struct sandboxes *all;
    struct timer again;
    struct pool *pool; /* NULL without a driver */
};

#define NETWORK_NONE "{\"mode\":\"none\"}" /* the policy that allows nothing, in JSON */

struct sandboxes {
    int refs; /* held by the owner and each sandbox */
    uv_loop_t *loop;
    struct store *store;
    struct timers *timers;
    struct images *images;             /* or NULL: the host image only */
    struct volumes *volumes;           /* or NULL: none */
    struct secrets *secrets;           /* or NULL: none */
    const struct authority *authority; /* or NULL: no interception */
    struct space *space;
    sandbox_relay relay; /* or NULL */
    void *relay_arg;
    struct egress *egress;
    const char *const *internal; /* "HOST=NETWORK", for its policies */
    size_t internal_count;
    const char *session_dialect;       /* as in struct sandboxes_config */
    const struct sandbox_asker *asker; /* NULL: questions are refused */
    void *asker_arg;
    char *state, *bindir, *installation;
    int64_t sandboxes_max, execs_max, output_bytes, relay_output_bytes;
    bool wide; /* what SANDBOX_CALLS_USUAL means */
    struct ceilings ceilings;
    struct driver_slot drivers[DRIVERS_MAX];
    size_t driver_count;
    struct map by_id, by_name; /* to struct sandbox; by_name: the first, then its same_name */
    struct aliases *aliases;
    struct sandbox **sorted; /* by id */
    size_t count, size;
    char *block;        /* buffer for readers */
    struct list unsafe; /* execs whose output only init keeps */
    struct timer spill;
    struct map shares;        /* owner to struct output_share */
    struct list spares, told; /* callbacks due in the next turn */
    bool closed, keep_strays;
    int64_t moment_us; /* the last moment assigned */
};

struct sandbox_layer {
    char id[ID_SIZE];
};

/* An image's defaults for commands. */
struct sandbox_defaults {
    char *json; /* as stored in the row; NULL: none */
    struct pair *env;
    size_t env_count, env_bytes;
    struct str *argv; /* entrypoint and command */
    size_t argc;
    char *cwd, *user; /* "": none; NULL likewise */
};

/* What is under way: one step at a time, each begins at rest (sandbox_state.c). */
enum sandbox_step {
    STEP_NONE,
    STEP_CREATE,
    STEP_START,
    STEP_PAUSE,
    STEP_RESUME,
    STEP_STOP,
    STEP_DESTROY,
    STEP_COUNT
};
/* What STEP_CREATE and STEP_START wait for: all of these, in any order (sandbox_make.c). */
enum sandbox_made { MADE_SAVED = 1, MADE_READY = 2, MADE_WIRED = 4 };
/* The connection to its init. */
enum sandbox_link {
    LINK_DOWN,
    LINK_CONNECTING, /* the driver was asked */
    LINK_OPEN,       /* there is a guest, which has not said hello */
    LINK_READY,
    LINK_COUNT
};
/* Its policy, towards holt-egress. */
enum sandbox_wiring { WIRING_NONE, WIRING_TELLS, WIRING_AGAIN /* and then the new one */ };
/* At start-up, until its driver has said what lives. */
enum sandbox_origin { ORIGIN_SETTLED, ORIGIN_ROW, ORIGIN_ROW_ALIVE };

struct sandbox {
    int refs; /* held by the registry, each live exec, each call in progress */
    struct sandboxes *all;
    struct driver *driver; /* NULL: its runtime is not available */
    struct sm sm;
    char id[ID_SIZE];
    char *asked_image; /* the alias that named its image; NULL or "": none */
    char *name, *runtime, *image, *tenant, *owner, *network, *failure, *dialect, *note, *agent;
    struct sandbox *same_name; /* the next of the same name: another owner's */
    struct sandbox_traits traits;
    uint32_t enforced;
    bool orphan;
    bool require_limits; /* at its creation only */
    bool warm;           /* it had been made ahead */
    bool networked;      /* it was started with a network: holt-egress is to know it */
    bool trusts;         /* it was started with holt's certificate authority */
    enum sandbox_wiring wiring;
    int updates;  /* being saved */
    bool in_list; /* of the registry */
    enum sandbox_origin origin;
    int64_t created_ms, started_ms, ended_ms, last_activity_ms;
    int64_t oom_ms; /* time of the last OOM kill in it; 0: never */
    struct pair *labels, *env;
    size_t label_count, env_count;
    struct sandbox_mount *mounts;
    size_t mount_count;
    struct sandbox_secret *secrets;
    size_t secret_count;
    struct sandbox_layer *layers; /* of its image, lowest first; held until it is destroyed */
    size_t layer_count;
    struct sandbox_defaults defaults; /* of its image */

    struct list execs; /* by id, including ended ones */
    size_t exec_count, execs_live;
    size_t execs_standing; /* of the live ones: its own commands, which do not count as activity */
    int64_t erased_us;     /* the last moment of commands that are no longer kept */
    bool has_logs;         /* it may have a directory of log files */
    struct list journals;
    struct exec_log *notes; /* NULL: not opened yet */

    /* the step under way, and who waits for its end */
    struct sm step; /* enum sandbox_step */
    uint32_t made;  /* enum sandbox_made; a run's MADE_SAVED may come after its step */
    enum { KILLED_NONE, KILLED_WORK, KILLED_ALL } killed; /* of STEP_STOP: how far it is */
    bool destroying; /* asked for: begins when the step under way ends */
    int64_t grace_ms;
    struct err *undo; /* why STEP_MAKE failed */
    struct list waits, destroy_waits, update_waits;
    char actor[64]; /* who requested it */
    struct timer timer;
    struct timer confirm; /* of a run */

    /* the connection */
    struct guest *guest;
    struct sm link; /* enum sandbox_link */
    bool known_epoch;
    uint8_t epoch[16];
    int tries;
    struct timer retry;

    /* the store */
    const struct tx_hook *tx_hook; /* written with the first save; NULL: none */
    void *tx_hook_arg;
    struct list owed; /* events written with the next save */
    bool unsaved;     /* the last save failed: retry */
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
};

enum exec_row {
    ROW_QUEUED, /* init may hear of the command before its row is committed */
    ROW_FIRST,  /* only afterwards: a repeated request must find the row */
    ROW_SAVED,
    ROW_GOING, /* it is being erased: init never heard of the command */
};

struct exec {
    int refs;         /* held by its sandbox's list, and each call, reader and wait */
    struct list link; /* in sandbox->execs; the list holds a reference */
    struct sandbox *sandbox;
    struct sm sm;
    char id[ID_SIZE];
    struct str *argv; /* one allocation with its texts */
    size_t argc;
    char *cwd, *user, *failure;
    char *name;     /* of a session; NULL or "": it is none */
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
    struct list unsafe; /* in sandboxes->unsafe */
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

static inline bool step_is(const struct sandbox *s, enum sandbox_step step)
{
    return s->step.state == (int)step;
}

static inline bool sandbox_is_making(const struct sandbox *s)
{
    return step_is(s, STEP_CREATE) || step_is(s, STEP_START);
}

static inline bool sandbox_is_linked(const struct sandbox *s) /* its init answers */
{
    return s->link.state == LINK_READY;
}

/* --- sandbox_state.c: its state machines, and what must hold when one moves --- */
void sandbox_init_states(struct sandbox *s);
extern const struct sm_state sandbox_states[];
void sandbox_verify(const struct sandbox *s); /* aborts: a fault of ours */

/* --- sandbox.c: the registry --- */
bool sandbox_is_busy(const struct sandbox *s);
struct sandbox *sandbox_new(struct sandboxes *all, const char *id);
void sandbox_add(struct sandboxes *all, struct sandbox *s); /* takes the reference */
void sandbox_drop(struct sandbox *s);                       /* removes it from the registry */
void sandbox_drop_and_tell(struct sandbox *s); /* and calls back those waiting for its end */
struct sandboxes *sandboxes_unref(struct sandboxes *all);
/* of its runtime; NULL: that is not available */
struct pool *sandbox_pool(const struct sandbox *s);
struct sandbox_wait {
    struct list link;
    sandbox_cb done;
    void *arg;
};
void wait_add(struct list *to, sandbox_cb done, void *arg);
void wait_tell(struct list *waits, struct sandbox *s, const struct err *e);
/* Blocking: at start-up only.  A runtime whose trial fails is closed, with the reason. */
void driver_slot_try(struct driver_slot *slot);
/* Calls back in the next turn: for results known within the call. */
void sandbox_tell(struct sandboxes *all, struct sandbox *s, sandbox_cb done, void *arg,
                  const struct err *e);
struct pair *pairs_copy(const struct pair *p, size_t n); /* one allocation; NULL for none */
struct str *texts_copy(const struct str *t, size_t n);
struct sandbox_mount *mounts_copy(const struct sandbox_mount *m, size_t n);
void text_set(char **to, struct str s);

/* --- sandbox_name.c: names and aliases --- */
struct owned sandbox_owned(const struct sandbox *s);
/* Whether self (NULL: a new one) of this owner could have this name. */
CHECKED int sandbox_name_check(struct sandboxes *all, const struct sandbox *self, struct str owner,
                               struct str name, struct err *e);
CHECKED int sandbox_alias_check(struct sandboxes *all, struct str owner, struct alias_name n,
                                struct err *e);
void sandbox_named(struct sandbox *s);   /* s->name can be looked up from here on */
void sandbox_unnamed(struct sandbox *s); /* nor any alias */
void sandbox_rename(struct sandbox *s, struct str name);

/* --- sandbox_spec.c: what it was made as, in JSON: for its row and its events --- */
void sandbox_put_spec(struct jw *w, const struct sandbox *s);    /* members that anybody may see */
void sandbox_spec_text(const struct sandbox *s, struct buf *to); /* for the row: env too */
CHECKED int sandbox_get_spec(struct sandbox *s, struct str text, struct err *e);

/* --- sandbox_row.c: rows and events --- */
void sandbox_moved(struct sm *m, int from); /* the hook of its life */
void sandbox_owe(struct sandbox *s, const char *type);
typedef void (*sandbox_saved)(struct sandbox *s, const struct err *e);
void sandbox_save(struct sandbox *s,
                  sandbox_saved done); /* row and pending events; done may be NULL */
void sandbox_erase(struct sandbox *s, sandbox_saved done); /* deletes its rows, adds the events */
CHECKED int sandboxes_load(struct sandboxes *all, struct err *e);
void sandbox_note(struct sandboxes *all, const char *type, const char *id, const char *why);
void sandbox_note_data(struct sandboxes *all, const char *type, const char *id, struct str data);

/* --- sandbox_make.c: the step of create and start --- */
void sandbox_make(struct sandbox *s, bool restart);
void sandbox_made_ready(struct sandbox *s);                      /* the guest is connected */
void sandbox_made_wired(struct sandbox *s, const struct err *e); /* holt-egress knows it */
void sandbox_undo(struct sandbox *s, const struct err *why);

/* --- sandbox_life.c: the other steps --- */
void sandbox_step_end(struct sandbox *s, const struct err *e);
/* The sandbox was changed: calls back when that is stored. */
void sandbox_changed(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg);
void sandbox_lose_execs(struct sandbox *s, const char *why);
void sandbox_init_ended(struct sandbox *s, const char *why);
void sandbox_paused_outside(struct sandbox *s, bool on); /* not by holtd; ignored during a step */
void sandbox_destroy_now(struct sandbox *s);
void sandbox_exec_over(struct sandbox *s); /* one of its execs has ended, and that is stored */
void sandbox_updated(struct sandbox *s, const struct err *e); /* stored, or sent to holt-egress */

/* --- sandbox_link.c: the connection --- */
void link_open(struct sandbox *s);
void link_close(struct sandbox *s);
void link_forget(struct sandbox *s, const struct guest_exec_row *row); /* init may forget it */

/* --- sandbox_net.c: its network policy --- */
/* A policy in canonical form; *ret_wants: it allows something. */
struct sandbox_net { /* a policy that was checked */
    struct buf policy;
    enum sandbox_reach reach;
};
CHECKED int sandbox_net_read(struct str text, bool intercept, struct sandbox_net *ret,
                             struct err *e);
static inline UNUSED void sandbox_net_done_p(struct sandbox_net *n)
{
    buf_done(&n->policy);
}
/* For a sandbox of this driver, requested by a caller with permission. */
CHECKED int sandbox_net_check(const struct sandboxes *all, const struct driver *d, struct str text,
                              const struct principal *by, struct sandbox_net *ret, struct err *e);
void sandbox_net_take(struct sandbox *s, const struct sandbox_net *n);
CHECKED int sandbox_net_change(struct sandbox *s, struct str text, const struct principal *by,
                               struct err *e);
void sandbox_wire(
    struct sandbox *s); /* sends its policy to holt-egress, and its listeners if needed */
/* Of sandbox_out.c: a connection that init leads out, as guest_ops.relay. */
CHECKED int sandbox_lead_out(struct sandbox *s, struct guest_pipe *p,
                             const struct guest_relay *from, struct err *e);
void sandbox_unwire(struct sandbox *s);
void sandboxes_open_egress(struct sandboxes *all, const struct sandboxes_config *c);
extern const struct pair sandbox_net_env[]; /* for every command in one with a network */
extern const size_t sandbox_net_env_count;
extern const struct pair sandbox_trust_env[]; /* and in one that trusts our authority */
extern const size_t sandbox_trust_env_count;

/* --- sandbox_secret.c: its secrets --- */
/* *ret: heap, as many as spec has; untouched if it has none. */
CHECKED int sandbox_secrets_check(struct sandboxes *all, const struct sandbox_spec *spec,
                                  const struct principal *by, struct sandbox_secret **ret,
                                  struct err *e);
void sandbox_put_secrets(struct jw *w, const struct sandbox *s, bool placeholders);
void sandbox_get_secrets(struct sandbox *s, const json_t *list);
void sandbox_tell_secrets(struct sandbox *s, driver_done done, void *arg); /* to holt-egress */

/* --- sandbox_adopt.c --- */
void sandboxes_adopt(struct sandboxes *all);
void logs_remove(struct sandboxes *all, const char *sandbox, void (*done)(void *arg), void *arg);

/* --- exec.c, exec_channel.c, exec_row.c, exec_read.c --- */
extern const struct sm_state exec_states[];
struct exec *exec_new(struct sandbox *s, const char *id);
void exec_add(struct exec *x); /* to its sandbox's list, by id */
bool exec_is_live(const struct exec *x);
/* The time, but later than any before: events are ordered, also after a restart. */
int64_t sandboxes_moment(struct sandboxes *all);
/* a moment assigned by an earlier holtd */
void sandboxes_moment_was(struct sandboxes *all, int64_t us);
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
void execs_tell_all(struct sandboxes *all);
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
CHECKED int exec_load_rows(struct store_tx *tx, struct sandboxes *all, struct err *e);

/* --- journal.c --- */
void notes_close(struct sandbox *s);
void journals_wake(struct sandbox *s);
void journals_end(struct sandbox *s, const struct err *e);

/* sandbox_image.c */
struct image_use;
CHECKED int sandbox_choose_image(struct sandboxes *all, const struct principal *by,
                                 const struct sandbox_spec *spec, struct image_use *ret,
                                 struct err *e);
void sandbox_set_image(struct sandbox *s, struct str asked, const struct image_use *u);
struct str *sandbox_layer_ids(const struct sandbox *s); /* heap; NULL: none */
void sandbox_release_layers(struct sandbox *s);
void sandbox_put_layers(struct jw *w, const struct sandbox *s);
void sandbox_get_layers(struct sandbox *s, const json_t *list);
void sandbox_put_defaults(struct jw *w, const struct sandbox *s);
void sandbox_get_defaults(struct sandbox *s, const json_t *defaults);
void sandbox_defaults_done(struct sandbox_defaults *d);
