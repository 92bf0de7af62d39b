/* sandbox: one isolated computer, from the request that makes it to its removal, and the registry
 * of all.  The rules are here; drivers make, guests run.  States: creating → running ⇄ paused →
 * stopping → stopped (→ starting → running) → destroyed, or failed.  Rows are class 2; every move
 * is an event.  Ownership: counted references; the registry holds one, each live exec one
 * more.  Thread: the loop's. */
#pragma once

#include "base/buf.h"
#include "core/event/event.h"
#include "core/identity/identity.h"
#include "core/sandbox/alias.h"
#include "core/sandbox/ceiling.h"
#include "core/sandbox/driver.h"
#include "core/texts.h"

struct sandboxes; /* the registry */
struct sandbox;
struct guest;
struct volume_use; /* core/sandbox/volume.h */
struct secret_use; /* core/network/secret.h */
struct sandbox_secret;
struct authority;
struct volumes;
struct space;
struct policies; /* core/policy/policy.h */
struct policy_force;
struct pool_config; /* core/sandbox/pool.h */
struct pool_counts;
struct commands_ops; /* core/sandbox/commands.h */
struct crash_rules;  /* core/sandbox/crash.h */
struct sandbox_crashes;

enum sandbox_state {
    SANDBOX_CREATING,
    SANDBOX_RUNNING,
    SANDBOX_PAUSED,
    SANDBOX_STOPPING,
    SANDBOX_STOPPED,
    SANDBOX_STARTING,
    SANDBOX_FAILED,
    SANDBOX_DESTROYED,
    SANDBOX_STATE_COUNT
};

struct sandbox_spec {   /* valid during the call */
    struct str name;    /* unique among its owner's; empty: none */
    struct str image;   /* "host", or an image's name or id */
    struct str runtime; /* a driver's name; empty: the default */
    struct str host;    /* of a runtime with hosts; empty: one is chosen */
    struct str tenant;
    struct sandbox_traits traits; /* without reach and wide: made of network and calls */
    enum sandbox_calls { SANDBOX_CALLS_USUAL, SANDBOX_CALLS_NARROW, SANDBOX_CALLS_WIDE } calls;
    bool require_limits; /* refuse limits that cannot be enforced */
    struct str agent;    /* the agent of the team it acts as; empty: none */
    struct str policy;   /* its own, by name or id; empty: none */
    bool require_paths;  /* refuse path rules that do not hold commands too */
    const struct pair *labels, *env;
    size_t label_count, env_count;
    const struct sandbox_mount *mounts;
    size_t mount_count;
    const struct volume_use *volumes;
    size_t volume_count;
    const struct secret_use *secrets;
    size_t secret_count;
    struct str network; /* a policy (proto/policy.h) as JSON, or a mode's name; empty: none */
    bool house_network; /* the operator's choice, not the caller's: allowed for agents too */
    struct str dialect; /* of the caller; empty: the native one */
    struct str note;    /* stored for the dialect, in its own form */
    const struct alias_name *aliases; /* its names in dialects */
    size_t alias_count;
    bool image_command; /* for a one-shot: it runs the image's command, which must exist */
    const struct tx_hook *tx_hook; /* or NULL; sandbox_create frees its argument */
    void *tx_hook_arg;
};

struct sandbox_info { /* its public state; borrowed until the loop turns */
    const char *id;
    struct str name, image, runtime, host, tenant, owner, failure, agent;
    struct str policy;      /* the name of its own; empty: none */
    bool path_rules;        /* a policy in force has some */
    struct str asked_image; /* the alias that named its image (setting image_aliases) */
    struct str network;     /* its policy in JSON */
    enum sandbox_state state;
    struct sandbox_traits traits;
    uint32_t enforced; /* enum limit_bit; requested ones that are missing here are not enforced */
    int64_t created_ms, started_ms, ended_ms, last_activity_ms;
    const struct pair *labels;
    size_t label_count;
    const struct sandbox_mount *mounts;
    size_t mount_count;
    const struct sandbox_secret *secrets;
    size_t secret_count;
    struct str snapshot;    /* the one its files began as, or were last; empty: none */
    struct str forked_from; /* the one it was made from; empty: none */
    int64_t execs_live;
    bool reconnecting; /* running, but its init cannot be reached just now */
    bool orphan;       /* it was running without a row: a person decides */
    bool destroying;   /* it is being destroyed, whatever its state */
    bool warm;         /* taken from the pool by this holtd */
    struct str dialect, note;
    const struct alias *aliases; /* the first; NULL: none */
};

#define DRIVERS_MAX 16
#define SLOTS_MAX (DRIVERS_MAX + 32)

struct sandboxes_config {
    uv_loop_t *loop;
    struct store *store;
    struct events *events;
    const struct commands_ops *commands; /* exec_commands of core/exec/exec.h */
    const struct driver_ops *const
        *drivers;     /* NULL-terminated; the first that opens is the default */
    bool try_drivers; /* the first of which a trial says that it works is */
    const char *state, *bindir, *node;
    const char *installation; /* the owner of these sandboxes; NULL: node */
    bool keep_strays;         /* keep output logs without a row: they belong to another database */
    const struct driver_allows *allows; /* NULL: nothing */
    const char *egress_user;            /* the user holt-egress changes to if it starts as root */
    const char *egress_dns;             /* DNS servers of holt-egress; NULL or "": the system's */
    const char *const *egress_internal; /* "HOST=NETWORK": outlives the registry */
    size_t egress_internal_count;
    const char *egress_ca_file; /* authorities it trusts besides the system's; NULL or "": none */
    const char *proxy_host, *signing_key; /* of holt-egress's TCP port: core/network/egress.h */
    const char *session_dialect;          /* whose aliases its credentials may say; NULL: none */
    int64_t proxy_port;
    const struct authority *authority; /* trusted by sandboxes; NULL: no interception */
    struct policies *policies;         /* outlive the registry; NULL: none */
    struct remotes *remotes;           /* outlive it; NULL: no machine may join */
    struct space *space;            /* asked before files are added; NULL: nothing is kept free */
    const struct pool_config *pool; /* NULL: none are made ahead */
    /* 0: 4,096; 256 (per sandbox, ended ones included: the oldest are dropped); 64 MiB */
    int64_t sandboxes_max, execs_max, output_bytes, relay_output_bytes;
    int64_t output_keep_ms;                   /* of ended commands; 0: as long as their sandbox */
    int64_t command_time_ms, session_time_ms; /* without one in the request; 0: none */
    bool wide;                                /* what SANDBOX_CALLS_USUAL means */
};

/* Opens the drivers and reads the rows (blocking: at start-up only); then, as the loop turns,
 * adopts live sandboxes, reconnects, and cleans up after a crash. */
CHECKED int sandboxes_open(const struct sandboxes_config *c, struct sandboxes **ret, struct err *e);
bool sandboxes_settled(const struct sandboxes *l); /* every driver has listed its live sandboxes */
/* Releases everything without ending it; pending callbacks get "cancelled".  Call it before
 * store_close, which may still make callbacks; references may outlive it.  Takes NULL; returns
 * NULL. */
struct sandboxes *sandboxes_close(struct sandboxes *l);
/* The images that sandboxes may use (NULL: only the host's); from here on the layers of live ones
 * are held.  Right after sandboxes_open; images outlive the registry. */
struct images;
void sandboxes_set_images(struct sandboxes *l, struct images *images);
/* What a sandbox may be made from besides images: snapshots.  use: 1 if the name is none of these;
 * otherwise as images_use. */
struct image_use;
struct sandbox_bases {
    int (*use)(void *arg, const struct principal *by, struct str ref, struct image_use *ret,
               struct err *e);
};
void sandboxes_set_bases(struct sandboxes *l, const struct sandbox_bases *ops, void *arg);
/* Receives the questions of policies; reply with sandboxes_answer.  NULL: all are refused. */
struct egress_question;
struct sandbox_asker {
    void (*ready)(void *arg); /* earlier question numbers are void; open questions are repeated */
    void (*question)(void *arg, const struct egress_question *q);
    /* The lasting answers for this sandbox, in the form of struct egress_set's learned. */
    void (*learned)(void *arg, const struct sandbox *s, struct buf *to);
};
void sandboxes_set_asker(struct sandboxes *l, const struct sandbox_asker *ops, void *arg);
void sandboxes_answer(struct sandboxes *l, uint64_t question, bool allow, const char *reason);
/* Lasting answers have changed: for one sandbox; empty: for all of a tenant. */
void sandboxes_learned(struct sandboxes *l, struct str sandbox, struct str tenant);
/* The secrets that sandboxes may use.  Right after sandboxes_open; they outlive the registry. */
struct secrets;
void sandboxes_set_secrets(struct sandboxes *l, struct secrets *secrets);
/* The result of volumes_open; NULL: none. */
struct volumes *sandboxes_volumes(struct sandboxes *l);
/* Serves connections from inside sandboxes with a relay or process_api (NULL: none): like
 * guest_ops.relay, with the sandbox and the service.  Its requests act as that sandbox:
 * principal_inside. */
struct guest_pipe;
typedef int (*sandbox_relay)(void *arg, const char *id, bool process_api, struct guest_pipe *p,
                             struct err *e);
void sandboxes_set_relay(struct sandboxes *l, sandbox_relay serve, void *arg);
/* Once a second: TTLs, idle TTLs, late reports of deadlines. */
void sandboxes_tick(struct sandboxes *l);

typedef void (*sandbox_cb)(void *arg, struct sandbox *s, const struct err *e);
void sandbox_create(struct sandboxes *l, const struct sandbox_spec *spec,
                    const struct principal *by, sandbox_cb done, void *arg); /* done when it runs */
size_t sandboxes_count(const struct sandboxes *l);
size_t sandboxes_running(const struct sandboxes *l);
void sandboxes_pool(const struct sandboxes *l, struct pool_counts *ret); /* of all runtimes */
void sandboxes_set_pool(struct sandboxes *l, const struct pool_config *c);
void sandboxes_set_crashes(struct sandboxes *l, const struct crash_rules *r);
void sandboxes_set_ceilings(struct sandboxes *l, const struct ceilings *c); /* for new requests */
/* What an owner, a tenant or all (who: any) use now; not of tasks. */
void sandboxes_used(const struct sandboxes *l, enum ceiling_scope scope, const char *who,
                    int64_t ret[CEILING_SUMS]);
/* How many a runtime is to keep ready besides its pool's own number. */
void sandboxes_reserve(struct sandboxes *l, struct str runtime, int64_t n);
bool sandboxes_makes_ahead(const struct sandboxes *l, struct str runtime); /* empty: the default */
/* Whether a runtime works on this host: it makes a sandbox and removes it, once; the answer is
 * kept.  done gets no sandbox. */
void sandboxes_try(struct sandboxes *l, struct str runtime, sandbox_cb done, void *arg);
/* The runtimes that work on this host, the default first; NULL after the last. */
const struct driver_ops *sandboxes_driver(const struct sandboxes *l, size_t n);
/* Finds a sandbox that this caller may use (core/identity/owner.h): by id, name, OWNER/NAME, or any
 * dialect's alias.  NULL: none (ERR_NOT_FOUND), another owner's (ERR_FORBIDDEN, by id only), or
 * several of others (ERR_CONFLICT). */
struct sandbox *sandbox_find(struct sandboxes *l, const struct principal *by, struct str ref,
                             struct err *e);
/* For a dialect's own requests: its own aliases win over names of others. */
struct sandbox *sandbox_find_as(struct sandboxes *l, const struct principal *by, struct str dialect,
                                struct str ref, struct err *e);
/* For creating by a name: the caller's own sandbox of that name in this dialect; never
 * another's. */
struct sandbox *sandbox_own(struct sandboxes *l, const struct principal *by, struct alias_name n);
/* Hosts of the secret at this index that its policy does not allow: a JSON list. */
struct jw;
void sandbox_secret_unreached(const struct sandbox *s, size_t at, struct jw *w);
/* Whether this caller may use it.  For a sandbox found in an earlier turn of the loop. */
CHECKED int sandbox_check(const struct sandbox *s, const struct principal *by, struct err *e);
void sandbox_info(const struct sandbox *s, struct sandbox_info *ret);
/* The sandboxes this caller may see, in order of id, after this id (empty: the first); NULL at the
 * end. */
struct sandbox *sandbox_next(struct sandboxes *l, const struct principal *by, struct str after);
struct sandbox *sandbox_ref(struct sandbox *s);
struct sandbox *sandbox_unref(struct sandbox *s); /* takes NULL; returns NULL */
DEFINE_AUTO(struct sandbox *, sandbox_unref)

void sandbox_start(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg);
/* Of one that is stopped or failed: its files are removed, and it starts as it was created: the
 * same id, name, host and settings. */
void sandbox_reprovision(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg);
void sandbox_crashes(const struct sandbox *s, struct sandbox_crashes *ret);
/* It may be started again, and counts anew. */
void sandbox_crash_reset(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg);
/* Sends TERM to the commands, kills the rest after grace_ms; force: kills at once. */
void sandbox_stop(struct sandbox *s, int64_t grace_ms, bool force, const struct principal *by,
                  sandbox_cb done, void *arg);
void sandbox_pause(struct sandbox *s, bool on, const struct principal *by, sandbox_cb done,
                   void *arg);
void sandbox_destroy(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg);
struct sandbox_change { /* members that are not set stay unchanged */
    struct str name;
    const struct pair *labels;
    size_t label_count;
    bool set_labels;
    struct sandbox_traits traits, given; /* the members that are not 0 in given */
    struct str network;                  /* as in sandbox_spec; empty: unchanged */
    struct str policy;                   /* p NULL: unchanged; empty: none */
    struct str note;                     /* the dialect's; p NULL: unchanged */
};
void sandbox_update(struct sandbox *s, const struct sandbox_change *c, const struct principal *by,
                    sandbox_cb done, void *arg);
typedef void (*sandbox_stats_cb)(void *arg, const struct driver_stats *s, const struct err *e);
void sandbox_stats(struct sandbox *s, sandbox_stats_cb done, void *arg);

/* For files and dials: the connection to its init.  NULL: *e has the reason (not running,
 * reconnecting).  Counts as activity. */
struct guest *sandbox_guest(struct sandbox *s, struct err *e);
/* The policies that are in force in it, whoever calls. */
void sandbox_policies(const struct sandbox *s, struct policy_force *ret);
/* The paths that an agent may not read by its policies and the sandbox's (NULL: it is none), where
 * files are read from outside.  ERR_FORBIDDEN: it may read some paths only. */
CHECKED int sandbox_denied(const struct sandboxes *all, const struct sandbox *s,
                           const struct principal *by, void (*each)(void *arg, struct str path),
                           void *arg, struct err *e);
/* The version of Landlock that holds all path rules for commands; before it, not truncate(2). */
#define SANDBOX_LANDLOCK 3
/* For clients of the proxy's TCP port that act for it: a URL with credentials; hosts, joined by
 * commas, are included in them.  false: it has no network, or there is no TCP port. */
bool sandbox_proxy_url(const struct sandbox *s, struct str hosts, struct buf *to);
void sandbox_touch(struct sandbox *s); /* it is in use: restarts its idle time */
struct sandboxes *sandbox_registry(const struct sandbox *s);
