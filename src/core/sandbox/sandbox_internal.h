/* sandbox_internal: shared by the files of core/sandbox.  Thread: the loop's. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sm.h"
#include "base/sorted.h"
#include "core/identity/owner.h"
#include "core/network/authority.h"
#include "core/network/egress.h"
#include "core/network/secret.h"
#include "core/policy/policy.h"
#include "core/sandbox/commands.h"
#include "core/sandbox/crash.h"
#include "core/sandbox/host.h"
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
    bool silent; /* it was asked to, in vain: told once */
    /* whether it works: trial.c */
    enum { TRIAL_NONE, TRIAL_RUNS, TRIAL_OVER } trial;
    char trial_id[ID_SIZE];
    struct err trial_err;
    struct list trial_waits;
    struct sandboxes *all;
    struct timer again;
    struct pool *pool; /* NULL without a driver */
    struct host *host; /* of a runtime with hosts; else NULL */
};

#define NETWORK_NONE "{\"mode\":\"none\"}" /* the policy that allows nothing, in JSON */

struct sandboxes {
    int refs; /* held by the owner and each sandbox */
    uv_loop_t *loop;
    struct store *store;
    struct timers *timers;
    struct images *images;             /* or NULL: the host image only */
    const struct sandbox_bases *bases; /* snapshots, by name; or NULL */
    void *bases_arg;
    struct volumes *volumes;           /* or NULL: none */
    struct secrets *secrets;           /* or NULL: none */
    struct policies *policies;         /* or NULL: none */
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
    int64_t sandboxes_max;
    bool wide; /* what SANDBOX_CALLS_USUAL means */
    struct ceilings ceilings;
    struct crash_rules crash_rules;
    struct driver_slot drivers[SLOTS_MAX]; /* one for each runtime, or for each of its hosts */
    size_t driver_count;
    struct map by_id, by_name; /* to struct sandbox; by_name: the first, then its same_name */
    struct aliases *aliases;
    struct sandbox **sorted; /* by id */
    size_t count, size;
    const struct commands_ops *commands;
    struct execs *execs;
    struct list spares; /* callbacks due in the next turn */
    bool closed, keep_strays;
};

struct sandbox_layer {
    char id[ID_SIZE];
};

/* What is under way: one step at a time, each begins at rest (sandbox_state.c). */
enum sandbox_step {
    STEP_NONE,
    STEP_CREATE,
    STEP_START,
    STEP_PAUSE,
    STEP_RESUME,
    STEP_STOP,
    STEP_SNAPSHOT, /* its files are copied, or replaced */
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
/* Its place in the registry.  A destroy that was asked for begins when the step under way ends, and
 * is never taken back: a failed one is tried again. */
enum sandbox_presence {
    PRESENCE_NEW,
    PRESENCE_LISTED,
    PRESENCE_LEAVING, /* listed, and to be destroyed */
    PRESENCE_GONE,
    PRESENCE_COUNT
};
/* How it was started: whether holt-egress is to know it, and whether it has holt's authority. */
enum sandbox_wire { WIRE_NONE, WIRE_PLAIN, WIRE_TRUSTS };
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
    char *host;                /* on which it was made; "": its runtime has none */
    struct sandbox *same_name; /* the next of the same name: another owner's */
    struct sandbox_traits traits;
    uint32_t enforced;
    bool orphan;
    bool require_limits, require_paths; /* at its creation only */
    struct policy *policy;              /* its own, held; NULL: none */
    bool policy_lost;                   /* its row names one that does not exist */
    char *policy_agent;                 /* whose policies are in force; NULL or "": none */
    bool by_agent;                      /* an agent made it */
    bool ruled;                         /* its init was sent path rules, now or earlier */
    bool warm;                          /* it had been made ahead */
    enum sandbox_wire wire;
    enum sandbox_wiring wiring;
    int updates;        /* being saved */
    struct sm presence; /* enum sandbox_presence */
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
    bool on_host;   /* the layers lie on the host image */
    char *snapshot; /* what its files began as, or were last: its id; NULL or "": none */
    char *forked;   /* the one it was made from */
    struct sandbox_defaults defaults; /* of its image */

    struct sandbox_crashes crashes;
    struct sandbox_commands *commands;

    /* the step under way, and who waits for its end */
    struct sm step; /* enum sandbox_step */
    uint32_t made;  /* enum sandbox_made; a run's MADE_SAVED may come after its step */
    enum { KILLED_NONE, KILLED_WORK, KILLED_ALL } killed; /* of STEP_STOP: how far it is */
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

/* --- its commands: core/sandbox/commands.h --- */

static inline const struct commands_ops *commands_ops(const struct sandbox *s)
{
    return s->all->commands;
}

static inline bool sandbox_is_idle(const struct sandbox *s) /* no command is left in it */
{
    return s->commands->live == 0;
}

static inline void sandbox_lose_commands(struct sandbox *s, const char *why)
{
    commands_ops(s)->lose(s->commands, why);
}

static inline bool step_is(const struct sandbox *s, enum sandbox_step step)
{
    return s->step.state == (int)step;
}

static inline bool sandbox_is_making(const struct sandbox *s)
{
    return step_is(s, STEP_CREATE) || step_is(s, STEP_START);
}

static inline bool sandbox_is_networked(const struct sandbox *s)
{
    return s->wire != WIRE_NONE;
}

static inline bool sandbox_is_leaving(const struct sandbox *s) /* or gone */
{
    return s->presence.state >= PRESENCE_LEAVING;
}

static inline bool sandbox_is_linked(const struct sandbox *s) /* its init answers */
{
    return s->link.state == LINK_READY;
}

/* --- sandbox_state.c: its state machines, and what must hold when one moves --- */
void sandbox_init_states(struct sandbox *s);
extern const struct sm_state sandbox_states[];
void sandbox_leave(struct sandbox *s);        /* it is to be destroyed */
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
struct sandbox_mount *mounts_copy(const struct sandbox_mount *m, size_t n);

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
void sandbox_remake(struct sandbox *s);     /* starts it with none of its files */
void sandbox_made_ready(struct sandbox *s); /* the guest is connected */
void sandbox_made_wired(struct sandbox *s, const struct err *e); /* holt-egress knows it */
void sandbox_undo(struct sandbox *s, const struct err *why);

/* --- sandbox_life.c: the other steps --- */
void sandbox_step_end(struct sandbox *s, const struct err *e);
/* Why a step cannot begin; 0: it can. */
CHECKED int sandbox_must_be_free(const struct sandbox *s, const char *what, struct err *e);
/* The sandbox was changed: calls back when that is stored. */
void sandbox_changed(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg);
void sandbox_init_ended(struct sandbox *s, const char *why);
void sandbox_started_outside(struct sandbox *s);         /* likewise; only one that is down */
void sandbox_paused_outside(struct sandbox *s, bool on); /* not by holtd; ignored during a step */
void sandbox_destroy_now(struct sandbox *s);
void sandbox_updated(struct sandbox *s, const struct err *e); /* stored, or sent to holt-egress */

/* --- sandbox_link.c: the connection --- */
void link_open(struct sandbox *s);
void link_close(struct sandbox *s);

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

/* --- crash.c --- */
void sandbox_crashed(struct sandbox *s, const char *why);
CHECKED int sandbox_may_start(const struct sandbox *s, struct err *e); /* not in a crash loop */
void sandboxes_crash_tick(struct sandboxes *all, int64_t now);
void sandbox_put_crashes(struct jw *w, const struct sandbox *s);
void sandbox_get_crashes(struct sandbox *s, const json_t *o);

/* --- sandbox_quota.c --- */
CHECKED int sandbox_quota_create(const struct sandboxes *all, const struct principal *by,
                                 const char *tenant, const struct driver_ops *ops,
                                 const struct sandbox_limits *l, struct err *e);
CHECKED int sandbox_quota_start(const struct sandbox *s, struct err *e);

/* --- host.c --- */
struct host *host_new(const struct driver_host *conf);
struct host *host_free(struct host *h);                       /* takes NULL; returns NULL */
const char *host_name(const struct driver_slot *slot);        /* "": none */
CHECKED int hosts_load(struct sandboxes *all, struct err *e); /* which are drained */
void hosts_tick(struct sandboxes *all);
/* The slot of this runtime and host; NULL: none. */
struct driver_slot *host_slot(struct sandboxes *all, struct str runtime, struct str host);
/* For a new machine: of those it fits on, the least loaded; NULL with *e set. */
struct driver_slot *host_place(struct sandboxes *all, const struct driver_ops *ops,
                               struct str wanted, const struct sandbox_limits *limits,
                               struct err *e);

/* --- sandbox_policy.c --- */
CHECKED int sandbox_policy_choose(struct sandboxes *all, const struct sandbox_spec *spec,
                                  const struct principal *by, struct policy **ret, struct err *e);
void sandbox_policy_take(struct sandbox *s, const struct sandbox_spec *spec,
                         const struct principal *by, struct policy *own);
CHECKED int sandbox_policy_change(struct sandbox *s, struct str name, const struct principal *by,
                                  struct err *e);
CHECKED int sandbox_policy_check(const struct sandbox *s, struct err *e); /* not lost */
bool sandbox_has_path_rules(const struct sandbox *s);
void sandbox_send_rules(struct sandbox *s);                  /* with every connection and change */
CHECKED int sandbox_ruled(struct sandbox *s, struct err *e); /* its init holds them */
void sandboxes_follow_policies(struct sandboxes *all);

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
