/* sandbox: one sandbox as holt-spawn sees it, and the steps that make it.
 * The order of the steps is the design: docs/runtime.md.  What needs nothing of the request is done
 * first, so that it can be done ahead (shell.h); the claim brings the request (claim.h).  A step
 * applied in spawn may have an undo; what is done in the child dies with its namespaces. */
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
    SETUP_AHEAD,       /* holt-spawn: nothing of the request is needed */
    SETUP_CLAIM,       /* holt-spawn, with the request */
    SETUP_CHILD_AHEAD, /* the child, which becomes init; beside holt-spawn's claim */
    SETUP_BUILD,       /* with the request: the child, or in a shell its builder */
    SETUP_ENTER,       /* the same; in a shell once the create may be answered */
    SETUP_INIT,        /* the child; in a shell it does not wait for the claim */
};

struct sandbox;
struct setup_step {
    const char *name;
    enum setup_phase phase;
    int (*apply)(struct sandbox *s, struct err *e);
    /* NULL: nothing outlives the child.  Takes a half-applied step; 0, or -EBUSY: call again later.
     */
    int (*undo)(struct sandbox *s);
};
extern const struct setup_step setup_steps[];
extern const size_t setup_step_count;

#define SETUP_PROGRAMS_MAX 16
enum shell_state {
    SHELL_NONE,    /* made for a request */
    SHELL_MAKING,  /* made ahead, and nobody's: not listed, no id finds it */
    SHELL_READY,   /* the same, and a create may take it */
    SHELL_CLAIMED, /* a create has it; its builder works */
    SHELL_BROKEN,  /* it ended too early: the create that had it is begun anew */
};

/* v1 groups, which a process cannot be born in: see parked.c. */
struct cgroup_v1 {
    bool made;
    struct parked *by; /* until the child is born: the parked process that bears it */
    bool entered;      /* nothing is left to attach */
};

struct program {      /* of the host, for sandboxes without an image */
    const char *name; /* below / */
    int tree;         /* a detached mount */
};

struct sandbox {
    struct list node;
    char id[SPAWN_ID_MAX + 1], hostname[64];
    char group[SPAWN_ID_MAX + 1];        /* its v2 cgroup: its id, or the shell's that it was */
    char installation[SPAWN_ID_MAX + 1]; /* whose it is: no other sees it; "": nobody knows */
    enum shell_state shell;
    uint32_t flags;
    struct idmap ids;
    uint64_t memory_bytes, disk_bytes;
    uint32_t cpu_millis, pids, nofile;
    uint32_t enforced;
    bool confirmed;
    bool unlimited;                 /* a mount of its own has no limit though one was asked for */
    const struct spawn_create *ask; /* while it is made, and in the child; else NULL */
    struct buf packet;              /* the request, until it is made */

    int dir;                       /* sb/ID */
    int listener;                  /* init's socket; closed here once init has it */
    int net[SPAWN_LISTENER_COUNT]; /* for holt-egress, until they are asked for; or -1 */
    int upper;                     /* a detached mount of the writable layer on disk, or -1 */
    int disk;                      /* its root, to see how full it is, or -1 */
    int *layers;                   /* detached mounts, lowest first; the first is the base */
    size_t layer_n;
    int *mounts; /* detached mounts, as in ask->mounts; -1: the child makes it */
    size_t mount_n;
    uint32_t own; /* a bit for each mount that may have an image of its own (own.c) */
    shared_set shared;
    int dev_tree; /* a detached mount of the shared /dev */
    int trust;    /* a detached mount of the bundle of authorities, or -1 */
    int cg2;      /* ID in the v2 tree, or -1: init is in it */
    int cg2_work; /* work in it, of the commands */
    int cg2_undo; /* how far its removal has come, or -1 */
    struct program programs[SETUP_PROGRAMS_MAX]; /* in the child */
    size_t program_n;
    int root;            /* in the child: the root that it builds */
    int go[2];           /* the child waits on go[0]: for a byte, then for the claim */
    int report[2];       /* the child's error on report[1]; closed by exec */
    int more[2];         /* init waits on more[0] for its last arguments */
    pid_t pid;           /* 0: not cloned, or gone */
    uint64_t started;    /* its start time, as the kernel counts */
    bool adopted;        /* not our child: its end is seen, its status is not */
    struct watch ended;  /* the pidfd */
    struct watch told;   /* report[0] */
    struct watch built;  /* go[1], of a shell: what its builder says */
    size_t steps_done;   /* in spawn: what undo must go through */
    struct tree_job job; /* removes or measures its files */
    uint32_t stats_tag;  /* waits for the measure; 0: nobody */
    struct cgroup_v1 v1;
    struct watch oom; /* tells when the kernel killed for want of memory */
    int oom_file;     /* v1: what the eventfd is about */
    uint64_t oom_kills;

    enum spawn_state state;
    bool dying;      /* a destroy or a failed create is under way */
    bool keep;       /* and its files stay */
    bool undo_waits; /* an undo was busy: tried again */
    int64_t undo_since_ms, undo_next_ms;
    struct err failure;   /* what the create's reply says */
    uint32_t create_tag;  /* 0: answered */
    uint32_t destroy_tag; /* 0: nobody waits */
    int status;           /* init's wait status */
};
/* For initializers: it holds no descriptor yet. */
#define SANDBOX_NO_FDS                                                                             \
    .dir = -1, .listener = -1, .net = {-1, -1, -1, -1}, .upper = -1, .disk = -1, .dev_tree = -1,   \
    .trust = -1, .cg2 = -1, .cg2_work = -1, .cg2_undo = -1, .root = -1, .go = {-1, -1},            \
    .report = {-1, -1}, .more = {-1, -1}, .ids.userns = -1, .ended.fd = -1, .told.fd = -1,         \
    .built.fd = -1, .job.told.fd = -1, .oom.fd = -1, .oom_file = -1

/* Runs the steps of spawn up to the claim; the rest is events. */
void sandbox_create(const struct spawn_create *c, uint32_t tag);
/* NULL: it could not.  What becomes of it is told by shell_ready or shell_gone. */
struct sandbox *sandbox_make_shell(const char *name);
bool sandbox_any_alive(void); /* or about to be gone; not: a stopped one, a shell */
bool sandbox_any_shell(void); /* also one that is about to be gone */
void sandbox_rename(struct sandbox *s, struct str id); /* a shell's, which a create has claimed */
/* A create that no shell fits is done between the turns of the loop, one in each: those that take a
 * shell, and the answers of all, go first. */
bool sandbox_cold_waits(void);
void sandbox_cold_next(void);
void sandbox_cancel(struct str id); /* one that still waits */
/* What a create says of itself: in spawn, and in the child that is told. */
void sandbox_take_request(struct sandbox *s, const struct spawn_create *c);
void sandbox_destroy(struct sandbox *s, uint32_t tag, bool keep);
void sandbox_stats(struct sandbox *s, uint32_t tag); /* answers, at once or after a measure */
/* Those in s->net, opened again if they were given away. */
CHECKED int sandbox_listeners(struct sandbox *s, struct spawn_listeners *ret, struct err *e);
struct sandbox *sandbox_new(const struct spawn_create *c, uint32_t tag);
/* One of the last holt-spawn's; pidfd: of its init, or -1: it is dead. */
void sandbox_adopted(struct sandbox *s, int pidfd);
struct sandbox *sandbox_find(struct str id); /* no shell */
struct sandbox *sandbox_of_group(const char *group);
struct sandbox *sandbox_after(struct str id); /* the one with the next greater id, or NULL */
/* Undo that was busy: how long until it is to be called again, or -1. */
int sandbox_retry(void);
void sandbox_forget_tags(void); /* the asker is gone */
int setup_apply(const struct setup_step *step, struct sandbox *s, struct err *e);
/* All of a phase.  steps_done counts those of spawn, also one that failed. */
CHECKED int setup_run(struct sandbox *s, enum setup_phase phase, struct err *e);
NORETURN void setup_child(struct sandbox *s); /* the child's side */

/* The steps, one file per kernel feature. */
int step_directory(struct sandbox *s, struct err *e);
int undo_directory(struct sandbox *s);
int step_socket(struct sandbox *s, struct err *e);
int undo_socket(struct sandbox *s);
int step_network(struct sandbox *s, struct err *e);
int network_enter(const struct sandbox *s, struct err *e); /* of one that has its init */
int undo_network(struct sandbox *s);
int step_interface(struct sandbox *s, struct err *e);
int undo_interface(struct sandbox *s);
void interface_gateway(char to[16]); /* of raw networks */
int step_resolver(struct sandbox *s, struct err *e);
int step_hub(struct sandbox *s, struct err *e);
int step_bundle(struct sandbox *s, struct err *e);
int undo_bundle(struct sandbox *s);
int step_trust(struct sandbox *s, struct err *e);
bool ids_must_be_stored(const struct spawn_create *c); /* no range of its own */
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
bool cgroup_can_limit(const struct spawn_create *c); /* one that was made without limits */
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

CHECKED int record_adopt_all(struct err *e); /* at start */
CHECKED int record_shell(struct sandbox *s); /* so that the next holt-spawn finds it */
CHECKED int record_confirm(struct sandbox *s);
CHECKED int record_stopped(struct sandbox *s);
int cgroup_kill(struct sandbox *s, bool only_work);
int cgroup_freeze(struct sandbox *s, bool on);
void cgroup_stats(struct sandbox *s, struct spawn_stats *to);
void proc_stats(pid_t init, struct spawn_stats *to); /* adds memory, processor time and threads */

uint64_t cgroup_oom_kills(const struct sandbox *s);
void oom_watch(struct sandbox *s);
void oom_look(struct sandbox *s); /* tells what the kernel has counted, before the loop would */
void oom_unwatch(struct sandbox *s);

#define SETUP_STAGE "/tmp" /* where the child builds its root: in its own mount namespace only */
#define SETUP_ROOT SETUP_STAGE "/root"
#define SETUP_LISTEN_FD                                                                            \
    3 /* what init inherits: socket, the commands' filter, their cgroup, a pipe */
#define SETUP_FILTER_FD 4
#define SETUP_WORK_FD 5
#define SETUP_MORE_FD 6
