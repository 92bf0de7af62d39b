/* sandbox: one isolated computer, from the request that makes it to its removal, and the registry
 * of all. The rules live here; drivers make, guests run.  States: creating → running ⇄ paused →
 * stopping → stopped (→ starting → running) → destroyed, or failed.  Rows are class 2; every move
 * is an event. Ownership: counted references; the registry holds one, each live exec one more.
 * Thread: the loop's. */
#pragma once

#include "base/buf.h"
#include "core/event/event.h"
#include "core/identity/identity.h"
#include "core/sandbox/alias.h"
#include "core/sandbox/ceiling.h"
#include "core/sandbox/driver.h"

struct sandboxes; /* the registry */
struct sandbox;
struct guest;
struct volume_use; /* core/sandbox/volume.h */
struct secret_use; /* core/network/secret.h */
struct sandbox_secret;
struct authority;
struct volumes;
struct space;
struct pool_config; /* core/sandbox/pool.h */
struct pool_counts;

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

struct pair {
    struct str key, value;
};

/* What is written in one transaction with a new sandbox's row: a remembered key.  The sandbox owns
 * the argument from the call of sandbox_create on. */
struct store_tx;
struct sandbox_tx_hook {
    void (*ready)(void *arg, const struct sandbox *s); /* it runs; on the loop's thread */
    int (*write)(struct store_tx *tx, void *arg, struct err *e);
    void (*free)(void *arg);
};

struct sandbox_spec {   /* valid during the call */
    struct str name;    /* unique among its owner's; empty: none */
    struct str image;   /* "host", or an image's name or id */
    struct str runtime; /* a driver's name; empty: the default */
    struct str tenant;
    struct sandbox_traits traits; /* without reach and wide: made of network and calls */
    enum sandbox_calls { SANDBOX_CALLS_USUAL, SANDBOX_CALLS_NARROW, SANDBOX_CALLS_WIDE } calls;
    bool require_limits; /* refuse what cannot be enforced */
    struct str agent;    /* the agent of the team that it is; empty: none */
    const struct pair *labels, *env;
    size_t label_count, env_count;
    const struct sandbox_mount *mounts;
    size_t mount_count;
    const struct volume_use *volumes;
    size_t volume_count;
    const struct secret_use *secrets;
    size_t secret_count;
    struct str network; /* a policy (proto/policy.h) as JSON, or a mode's name; empty: none */
    bool house_network; /* it is the operator's choice, not the asker's: an agent may have it */
    struct str dialect; /* of who asked; empty: the native one */
    struct str note;    /* what the dialect keeps with it, in its own form */
    const struct alias_name *aliases; /* its names in dialects */
    size_t alias_count;
    bool image_command; /* of a one-shot: its command is the image's, which must have one */
    const struct sandbox_tx_hook *tx_hook; /* or NULL */
    void *tx_hook_arg;
};

struct sandbox_info { /* what readers see; borrowed until the loop turns */
    const char *id;
    struct str name, image, runtime, tenant, owner, failure, agent;
    struct str asked_image; /* the name that stood for its image (setting image_aliases) */
    struct str network;     /* its policy in JSON */
    enum sandbox_state state;
    struct sandbox_traits traits;
    uint32_t enforced; /* enum limit_bit; what was asked and is not here is not enforced */
    int64_t created_ms, started_ms, ended_ms, last_activity_ms;
    const struct pair *labels;
    size_t label_count;
    const struct sandbox_mount *mounts;
    size_t mount_count;
    const struct sandbox_secret *secrets;
    size_t secret_count;
    int64_t execs_live;
    bool reconnecting; /* running, but nobody can be asked just now */
    bool orphan;       /* it was alive and no row knew it: a person decides */
    bool destroying;   /* it will be gone, whatever its state */
    bool warm;         /* in this life of holtd it was taken from the pool */
    struct str dialect, note;
    const struct alias *aliases; /* the first; NULL: none */
};

struct sandboxes_config {
    uv_loop_t *loop;
    struct store *store;
    struct events *events;
    const struct driver_ops *const
        *drivers; /* NULL-terminated; the first that opens is the default */
    const char *state, *bindir, *node;
    const char *installation;           /* whose sandboxes these are; NULL: node */
    bool keep_strays;                   /* output logs without a row are another database's */
    const struct driver_allows *allows; /* NULL: nothing */
    const char *egress_user;            /* whom holt-egress becomes where it begins as root */
    const char *egress_dns; /* whom holt-egress asks for names; NULL or "": the system's */
    const char *const *egress_internal; /* "HOST=NETWORK": outlives the registry */
    size_t egress_internal_count;
    const char *egress_ca_file; /* authorities it trusts besides the system's; NULL or "": none */
    const char *proxy_host, *signing_key; /* of holt-egress's TCP form: core/network/egress.h */
    int64_t proxy_port;
    const struct authority *authority; /* which sandboxes trust; NULL: nothing is intercepted */
    struct space *space;            /* asked before files are added; NULL: nothing is kept free */
    const struct pool_config *pool; /* NULL: nothing is made ahead */
    /* 0: 4,096; 256 (per sandbox, ended ones included: the oldest go); 64 MiB */
    int64_t sandboxes_max, execs_max, output_bytes, relay_output_bytes;
    bool wide; /* what SANDBOX_CALLS_USUAL means */
};

/* Opens the drivers and reads the rows (blocking: at start-up only); then, as the loop turns,
 * adopts what lives, reconnects, and cleans what a crash left. */
CHECKED int sandboxes_open(const struct sandboxes_config *c, struct sandboxes **ret, struct err *e);
bool sandboxes_settled(const struct sandboxes *l); /* every driver was asked what lives */
/* Lets go of everything without ending it; who still waits is told: cancelled.  Before store_close,
 * on which callbacks may still come; references may outlive it.  Takes NULL; returns NULL. */
struct sandboxes *sandboxes_close(struct sandboxes *l);
/* Whose images sandboxes may name (NULL: none but the host's); the layers of those that live are
 * held from here on.  Right after sandboxes_open; images outlive the registry. */
struct images;
void sandboxes_set_images(struct sandboxes *l, struct images *images);
/* Who is asked when a policy says so; the answer is sandboxes_answer.  NULL: nobody, and no. */
struct egress_question;
struct sandbox_asker {
    void (*ready)(void *arg); /* numbers of questions are void; those still open come again */
    void (*question)(void *arg, const struct egress_question *q);
    /* What was answered for longer about this sandbox, as struct egress_set's learned. */
    void (*learned)(void *arg, const struct sandbox *s, struct buf *to);
};
void sandboxes_set_asker(struct sandboxes *l, const struct sandbox_asker *ops, void *arg);
void sandboxes_answer(struct sandboxes *l, uint64_t question, bool allow, const char *reason);
/* What was learned has changed: of one sandbox; empty: of all of a tenant. */
void sandboxes_learned(struct sandboxes *l, struct str sandbox, struct str tenant);
/* What volumes_open gave; NULL: none. */
struct volumes *sandboxes_volumes(struct sandboxes *l);
/* Who serves connections from inside sandboxes that were made with a relay or process_api (NULL:
 * nobody does): as guest_ops.relay, told which sandbox asks for which.  Its requests are that
 * sandbox's: principal_inside. */
struct guest_pipe;
typedef int (*sandbox_relay)(void *arg, const char *id, bool process_api, struct guest_pipe *p,
                             struct err *e);
void sandboxes_set_relay(struct sandboxes *l, sandbox_relay serve, void *arg);
/* Once a second: TTLs, idle TTLs, deadlines whose report is late. */
void sandboxes_tick(struct sandboxes *l);

typedef void (*sandbox_cb)(void *arg, struct sandbox *s, const struct err *e);
void sandbox_create(struct sandboxes *l, const struct sandbox_spec *spec,
                    const struct principal *by, sandbox_cb done, void *arg); /* done when it runs */
size_t sandboxes_count(const struct sandboxes *l);
void sandboxes_pool(const struct sandboxes *l, struct pool_counts *ret); /* of all runtimes */
void sandboxes_set_pool(struct sandboxes *l, const struct pool_config *c);
void sandboxes_set_ceilings(struct sandboxes *l, const struct ceilings *c); /* for what comes */
/* The runtimes that work on this host, the default first; NULL past the last. */
const struct driver_ops *sandboxes_driver(const struct sandboxes *l, size_t n);
/* What this asker means by it and may touch (core/identity/owner.h): by id, name, OWNER/NAME, or
 * any dialect's alias.  NULL: none (ERR_NOT_FOUND), another's (ERR_FORBIDDEN, by id only), or two
 * others' (ERR_CONFLICT). */
struct sandbox *sandbox_find(struct sandboxes *l, const struct principal *by, struct str ref,
                             struct err *e);
/* For a dialect's own requests: what it calls so goes before what others named so. */
struct sandbox *sandbox_find_as(struct sandboxes *l, const struct principal *by, struct str dialect,
                                struct str ref, struct err *e);
/* For who creates by a name: the asker's own that goes by it in this dialect; never another's. */
struct sandbox *sandbox_own(struct sandboxes *l, const struct principal *by, struct alias_name n);
/* Hosts of the secret at this place that its policy does not let it reach: a JSON list. */
struct jw;
void sandbox_secret_unreached(const struct sandbox *s, size_t at, struct jw *w);
/* May this asker touch it?  For what was found in an earlier turn of the loop. */
CHECKED int sandbox_check(const struct sandbox *s, const struct principal *by, struct err *e);
void sandbox_info(const struct sandbox *s, struct sandbox_info *ret);
/* Those that this asker may see, in order of id, after this id (empty: from the start); NULL at the
 * end. */
struct sandbox *sandbox_next(struct sandboxes *l, const struct principal *by, struct str after);
struct sandbox *sandbox_ref(struct sandbox *s);
struct sandbox *sandbox_unref(struct sandbox *s); /* takes NULL; returns NULL */
DEFINE_AUTO(struct sandbox *, sandbox_unref)

void sandbox_start(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg);
/* TERM to the commands, grace_ms later the rest is killed; force: at once. */
void sandbox_stop(struct sandbox *s, int64_t grace_ms, bool force, const struct principal *by,
                  sandbox_cb done, void *arg);
void sandbox_pause(struct sandbox *s, bool on, const struct principal *by, sandbox_cb done,
                   void *arg);
void sandbox_destroy(struct sandbox *s, const struct principal *by, sandbox_cb done, void *arg);
struct sandbox_change { /* members that are not set stay */
    struct str name;
    const struct pair *labels;
    size_t label_count;
    bool set_labels;
    struct sandbox_traits traits, given; /* the members that are not 0 in given */
    struct str network;                  /* as in sandbox_spec; empty: as it is */
};
void sandbox_update(struct sandbox *s, const struct sandbox_change *c, const struct principal *by,
                    sandbox_cb done, void *arg);
typedef void (*sandbox_stats_cb)(void *arg, const struct driver_stats *s, const struct err *e);
void sandbox_stats(struct sandbox *s, sandbox_stats_cb done, void *arg);

/* For files and dials: the connection to its init.  NULL: *e says why (not running, reconnecting).
 * Counts as activity. */
struct guest *sandbox_guest(struct sandbox *s, struct err *e);
/* For clients of the proxy's TCP form that act for it: a URL with credentials; hosts, joined by
 * commas, are told in them.  false: it has no network, or there is no such form. */
bool sandbox_proxy_url(const struct sandbox *s, struct str hosts, struct buf *to);
void sandbox_touch(struct sandbox *s); /* somebody uses it: its idle time begins anew */
struct sandboxes *sandbox_registry(const struct sandbox *s);
