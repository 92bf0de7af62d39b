/* sandbox: one sandbox as holt-spawn sees it, and the steps that make it.
 * The order of the steps matters: docs/runtime.md.  Steps that do not need the request come first,
 * so that they can be done ahead (spare.h); the claim brings the request (claim.h).  A step applied
 * in holt-spawn may have an undo; what is done in the child ends with its namespaces. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/loop.h"
#include "spawn/host.h"
#include "spawn/idmap.h"
#include "spawn/parked.h"
#include "spawn/shared.h"
#include "spawn/tree.h"

enum setup_phase {
    SETUP_AHEAD,       /* holt-spawn: does not need the request */
    SETUP_CLAIM,       /* holt-spawn, with the request */
    SETUP_CHILD_AHEAD, /* the child, which becomes init; while holt-spawn claims */
    SETUP_BUILD,       /* with the request: the child, or the builder of a spare */
    SETUP_ENTER,       /* the same; in a spare once the create may be replied */
    SETUP_INIT,        /* the child; in a spare it does not wait for the claim */
};

struct sandbox;
struct setup_step {
    const char *name;
    enum setup_phase phase;
    int (*apply)(struct sandbox *s, struct err *e);
    /* NULL: nothing outlives the child.  Accepts a half-applied step; 0, or -EBUSY: call again
     * later. */
    int (*undo)(struct sandbox *s);
    enum setup_for {
        SETUP_FOR_ALL,
        SETUP_FOR_NATIVE,
        SETUP_FOR_OCI,
    } whose; /* whoever makes the last part of it: we, or a container runtime */
};
extern const struct setup_step setup_steps[];
extern const size_t setup_step_count;

#define SETUP_PROGRAMS_MAX 16
enum spare_state {
    SPARE_NONE,    /* made for a request */
    SPARE_MAKING,  /* made ahead, without an owner: not listed, not found by id */
    SPARE_READY,   /* the same, and a create may take it */
    SPARE_CLAIMED, /* a create has it; its builder is working */
    SPARE_BROKEN,  /* it ended too early: its create starts again */
};

/* v1 groups, which a process cannot be cloned into: see parked.c. */
struct cgroup_v1 {
    bool made;
    struct parked *by; /* until the child is cloned: the parked process that does it */
    bool entered;      /* nothing is left to attach */
};

struct program {      /* of the host, for sandboxes without an image */
    const char *name; /* below / */
    int tree;         /* a detached mount */
};

struct sandbox {
    struct list node;
    char id[SPAWN_ID_MAX + 1], hostname[64];
    char group[SPAWN_ID_MAX + 1];        /* its v2 cgroup: its id, or its name as a spare */
    char installation[SPAWN_ID_MAX + 1]; /* its owner: no other sees it; "": unknown */
    enum spare_state spare;
    const struct oci_runtime *oci; /* a container runtime makes it; NULL: we do */
    uint32_t flags;
    struct idmap ids;
    uint64_t memory_bytes, disk_bytes;
    uint32_t cpu_millis, pids, nofile;
    uint32_t enforced;
    bool confirmed;
    bool unlimited; /* one of its own mounts has no limit although one was requested */
    const struct spawn_create *ask; /* while it is made, and in the child; else NULL */
    struct buf packet;              /* the request, until it is made */

    int dir;                       /* sb/ID */
    int listener;                  /* init's socket; closed here once init has it */
    int net[SPAWN_LISTENER_COUNT]; /* for holt-egress, until requested; or -1 */
    int upper;                     /* a detached mount of the writable layer on disk, or -1 */
    int disk;                      /* its root, to measure its use, or -1 */
    int *layers;                   /* detached mounts, lowest first; the first is the base */
    size_t layer_n;
    int *mounts; /* detached mounts, as in ask->mounts; -1: made by the child */
    size_t mount_n;
    uint32_t own; /* a bit per mount that may have an image of its own (own.c) */
    shared_set shared;
    int dev_tree;  /* a detached mount of the shared /dev */
    int init_tree; /* of holt-init, where a container runtime makes it; or -1 */
    int trust;     /* a detached mount of the bundle of authorities, or -1 */
    int cg2;       /* ID in the v2 tree, or -1: init is in it */
    int cg2_work;  /* work in it, of the commands */
    int cg2_undo;  /* the progress of its removal, or -1 */
    struct program programs[SETUP_PROGRAMS_MAX]; /* in the child */
    size_t program_n;
    int root;            /* in the child: the root being built */
    int go[2];           /* the child waits on go[0]: for a byte, then for the claim */
    int report[2];       /* the child's error on report[1]; closed by exec */
    int more[2];         /* init waits on more[0] for its last arguments */
    pid_t pid;           /* 0: not cloned, or ended */
    uint64_t started;    /* its start time, in the kernel's units */
    bool adopted;        /* not our child: we see its end, not its status */
    struct watch ended;  /* the pidfd */
    struct watch told;   /* report[0] */
    struct watch built;  /* go[1], of a spare: its builder's report */
    size_t steps_done;   /* in holt-spawn: steps that undo must go through */
    struct tree_job job; /* removes or measures its files */
    uint32_t stats_tag;  /* waits for the measurement; 0: none */
    struct cgroup_v1 v1;
    struct watch oom; /* reports OOM kills */
    int oom_file;     /* v1: the file of the eventfd */
    uint64_t oom_kills;

    enum spawn_state state;
    bool dying;      /* a destroy or a failed create is in progress */
    bool keep;       /* and its files stay */
    bool undo_waits; /* an undo was busy: retry */
    int64_t undo_since_ms, undo_next_ms;
    struct err failure;   /* the error for the create's reply */
    uint32_t create_tag;  /* 0: replied */
    uint32_t destroy_tag; /* 0: none waits */
    int status;           /* init's wait status */
};
/* For initializers: no descriptor is open. */
#define SANDBOX_NO_FDS                                                                             \
    .dir = -1, .listener = -1, .net = {-1, -1, -1, -1}, .upper = -1, .disk = -1, .dev_tree = -1,   \
    .init_tree = -1, .trust = -1, .cg2 = -1, .cg2_work = -1, .cg2_undo = -1, .root = -1,           \
    .go = {-1, -1}, .report = {-1, -1}, .more = {-1, -1}, .ids.userns = -1, .ended.fd = -1,        \
    .told.fd = -1, .built.fd = -1, .job.told.fd = -1, .oom.fd = -1, .oom_file = -1

/* Runs the steps of holt-spawn up to the claim; events do the rest. */
void sandbox_create(const struct spawn_create *c, uint32_t tag);
/* NULL: it failed.  The result is reported by spare_ready or spare_gone. */
struct sandbox *sandbox_make_spare(const char *name);
bool sandbox_any_alive(void); /* including ending ones; excluding stopped ones and spares */
bool sandbox_any_spare(void); /* including ending ones */
void sandbox_rename(struct sandbox *s, struct str id); /* of a spare that a create has claimed */
/* --- create_queue.c, and what it asks of sandbox.c --- */
/* A create without a fitting spare waits until between the turns of the loop, one per turn: creates
 * with a spare, and all replies, go first. */
bool sandbox_cold_waits(void);
void sandbox_cold_next(void);
void sandbox_cancel(struct str id); /* one that still waits */
void create_queue_forget(void);     /* the client has disconnected: drops all that wait */
CHECKED int sandbox_check_create(const struct spawn_create *c, struct err *e);
/* The request as bytes, for a create that waits or may be repeated. */
CHECKED int sandbox_keep_packet(struct buf *to, const struct spawn_create *c, struct err *e);
void sandbox_create_now(const struct spawn_create *c, uint32_t tag);

/* The host image, perhaps with layers of snapshots on it. */
static inline bool sandbox_on_host(const struct spawn_create *c)
{
    return c->layers.count == 0 || (c->flags & SPAWN_ON_HOST);
}
/* The properties of a create: in holt-spawn, and in the child that receives them. */
void sandbox_take_request(struct sandbox *s, const struct spawn_create *c);
void sandbox_destroy(struct sandbox *s, uint32_t tag, bool keep);
void sandbox_stats(struct sandbox *s, uint32_t tag); /* replies, at once or after measuring */
/* Those in s->net, opened again if they were given away. */
CHECKED int sandbox_listeners(struct sandbox *s, struct spawn_listeners *ret, struct err *e);
struct sandbox *sandbox_new(const struct spawn_create *c, uint32_t tag);
/* One of the last holt-spawn's; pidfd: of its init, or -1: it has ended. */
void sandbox_adopted(struct sandbox *s, int pidfd);
struct sandbox *sandbox_find(struct str id); /* excluding spares */
struct sandbox *sandbox_of_group(const char *group);
struct sandbox *sandbox_after(struct str id); /* the one with the next greater id, or NULL */
/* The time until a busy undo is to be retried, or -1. */
int sandbox_retry(void);
void sandbox_forget_tags(void); /* the client has disconnected */
int setup_apply(const struct setup_step *step, struct sandbox *s, struct err *e);
/* All steps of a phase.  steps_done counts those of holt-spawn, including one that failed. */
CHECKED int setup_run(struct sandbox *s, enum setup_phase phase, struct err *e);
NORETURN void setup_child(struct sandbox *s); /* the child's side */

/* The steps, one file per kernel feature. */
int step_directory(struct sandbox *s, struct err *e);
int undo_directory(struct sandbox *s);
int step_socket(struct sandbox *s, struct err *e);
int undo_socket(struct sandbox *s);
int step_network(struct sandbox *s, struct err *e);
int network_enter(const struct sandbox *s, struct err *e); /* of a sandbox with an init */
int undo_network(struct sandbox *s);
int step_interface(struct sandbox *s, struct err *e);
int undo_interface(struct sandbox *s);
void interface_gateway(char to[16]); /* for raw networks */
int step_resolver(struct sandbox *s, struct err *e);
int step_hub(struct sandbox *s, struct err *e);
int step_bundle(struct sandbox *s, struct err *e);
int undo_bundle(struct sandbox *s);
int step_trust(struct sandbox *s, struct err *e);
bool ids_must_be_stored(const struct spawn_create *c); /* it cannot have a range of its own */
int step_ids(struct sandbox *s, struct err *e);
int undo_ids(struct sandbox *s);
int step_layers(struct sandbox *s, struct err *e);
int undo_layers(struct sandbox *s);
int step_volumes(struct sandbox *s, struct err *e);
int undo_volumes(struct sandbox *s);
void sandbox_close_mounts(struct sandbox *s);
int step_name(struct sandbox *s, struct err *e);
int step_disk(struct sandbox *s, struct err *e);
int undo_disk(struct sandbox *s);
int step_cgroup(struct sandbox *s, struct err *e);
int undo_cgroup(struct sandbox *s);
int step_limits(struct sandbox *s, struct err *e);
/* whether one made without limits can get them */
bool cgroup_can_limit(const struct spawn_create *c);
int step_clone(struct sandbox *s, struct err *e);
int undo_clone(struct sandbox *s);
int step_cgroup_v1(struct sandbox *s, struct err *e);
int step_id_map(struct sandbox *s, struct err *e);
int step_oom_score(struct sandbox *s, struct err *e);
int step_record(struct sandbox *s, struct err *e);
int undo_record(struct sandbox *s);
int step_alone(struct sandbox *s, struct err *e);
int step_wait(struct sandbox *s, struct err *e);
int step_stage(struct sandbox *s, struct err *e);
int step_programs(struct sandbox *s, struct err *e);
int step_hostname(struct sandbox *s, struct err *e);
int step_root(struct sandbox *s, struct err *e);
int step_host_image(struct sandbox *s, struct err *e);
int step_dev(struct sandbox *s, struct err *e);
int step_proc(struct sandbox *s, struct err *e);
int step_view(struct sandbox *s, struct err *e);
int step_pivot(struct sandbox *s, struct err *e);
int step_mounts(struct sandbox *s, struct err *e);
int step_readonly(struct sandbox *s, struct err *e);
int step_processes(struct sandbox *s, struct err *e);
int step_core(struct sandbox *s, struct err *e);
bool rlimit_holds_pids(const struct sandbox *s);
int step_capabilities(struct sandbox *s, struct err *e);
int step_descriptors(struct sandbox *s, struct err *e);
int step_seccomp(struct sandbox *s, struct err *e);
/* Where a container runtime does the rest (oci.c): what it and its container see. */
int step_oci_view(struct sandbox *s, struct err *e);
int step_oci_init(struct sandbox *s, struct err *e);
int step_oci_spec(struct sandbox *s, struct err *e);
NORETURN void keeper_run(struct sandbox *s); /* the child, instead of becoming init */
NORETURN void setup_fail(struct sandbox *s, const struct err *e); /* the child's last word */

CHECKED int view_limit_namespaces(const struct sandbox *s, const char *proc); /* -errno */
void view_masked_paths(struct buf *json);   /* elements of a list */
void rights_capabilities(struct buf *json); /* the same: what init has */

CHECKED int record_adopt_all(struct err *e); /* at start */
CHECKED int record_spare(struct sandbox *s); /* so that the next holt-spawn finds it */
CHECKED int record_confirm(struct sandbox *s);
CHECKED int record_stopped(struct sandbox *s);
int cgroup_kill(struct sandbox *s, bool only_work);
int cgroup_freeze(struct sandbox *s, bool on);
bool cgroup_can_freeze(const struct sandbox *s);
bool cgroup_is_frozen(const struct sandbox *s); /* all of its commands stand still */
void cgroup_stats(struct sandbox *s, struct spawn_stats *to);
void proc_stats(pid_t init, struct spawn_stats *to); /* adds memory, processor time and threads */

uint64_t cgroup_oom_kills(const struct sandbox *s);
void oom_watch(struct sandbox *s);
void oom_look(struct sandbox *s); /* reports what the kernel has counted, before the loop would */
void oom_unwatch(struct sandbox *s);

#define SETUP_STAGE "/tmp" /* where the child builds its root: in its own mount namespace only */
#define SETUP_ROOT SETUP_STAGE "/root"
#define SETUP_LISTEN_FD                                                                            \
    3 /* inherited by init: socket, the commands' filter, their cgroup, a pipe */
#define SETUP_FILTER_FD 4
#define SETUP_WORK_FD 5
#define SETUP_MORE_FD 6
#define SETUP_GUARD_FD 7 /* in a container: the long filter, which init installs itself */
#define SETUP_BUNDLE SETUP_STAGE "/bundle" /* of a container: its description, log, state */
