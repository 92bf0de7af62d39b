/* driver: one runtime behind one table of functions; src/driver/table.c lists those of this
 * build.  Differences between runtimes are capability bits: nothing compares names.
 * No call blocks: it begins work that ends with the callback, on the loop's thread, never from
 * within the call.  A driver has no rules: it makes what it is told, and reports what
 * ended.  Everything inside a sandbox goes through the guest protocol (link/guest.h). */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "core/network/listeners.h"
#include "ops/traits.h"

#include <uv.h>

struct driver;
struct remotes; /* core/remote/remote.h */

enum driver_cap {
    DRIVER_CAN_PAUSE = 1,
    DRIVER_CAN_STOP = 2,   /* files stay after stop, and start continues with them */
    DRIVER_ISOLATES = 4,   /* otherwise commands are plain processes of holtd's user: for tests */
    DRIVER_CAN_RELAY = 8,  /* /run/holt.sock inside leads to the API, port 2024 to process_api */
    DRIVER_CAN_RAW = 16,   /* an interface, if the operator named a bridge */
    DRIVER_LEADS_OUT = 64, /* its network: init leads connections out over the guest protocol */
    DRIVER_RUNS_OCI = 32,  /* by a program of the host with an OCI runtime's command line (runc) */
    DRIVER_RUNS_TOOLS = 128,   /* holt's own tools, such as the unpacker, whatever the default is */
    DRIVER_HAS_HOSTS = 256,    /* opened once for each host of the settings: core/sandbox/host.h */
    DRIVER_CAN_SNAPSHOT = 512, /* of a stopped sandbox; with DRIVER_CAN_STOP */
    DRIVER_SNAPSHOTS_LIVE = 1024, /* and of one that runs or is paused */
    DRIVER_JOINS = 2048,          /* its sandboxes are not made: machines join; never the default */
};

enum limit_bit { /* limits that are (or are requested to be) enforced */
                 LIMIT_MEMORY = 1,
                 LIMIT_CPU = 2,
                 LIMIT_PIDS = 4,
                 LIMIT_DISK = 8,
                 LIMIT_NOFILE = 16,
                 LIMIT_KILL = 32,   /* a kill reaches every process: by cgroup, not by signals */
                 LIMIT_PAUSE = 64,  /* pausing stops everything, unnoticed by the commands */
                 LIMIT_PATHS = 128, /* path rules hold commands: set by core, not by a driver */
};

struct sandbox_mount {
    struct str kind;   /* "tmpfs", "host", "volume", "shared" (a volume in memory) */
    struct str source; /* a volume's id, or a host path the operator allowed */
    struct str target; /* absolute, inside */
    bool readonly;
    int64_t size_bytes; /* of a tmpfs; of an own one on disk, 0: like its other files */
};

struct driver_spec { /* what to make; valid during the call */
    const char *id;
    const char *hostname;
    struct str *layers; /* ids, lowest first; none: the host's own /usr ("host" image) */
    size_t layer_count;
    bool on_host; /* with layers: they lie on the host image */
    struct sandbox_traits traits;
    bool restart;  /* use the upper of an earlier run */
    struct str ca; /* PEM of the authority it trusts; empty: none */
    const struct sandbox_mount *mounts;
    size_t mount_count;
};

struct driver_made {
    uint32_t pid;      /* of init, as the host sees it */
    uint32_t enforced; /* enum limit_bit: those requested */
    bool warm;         /* it was made ahead */
};

/* the fixed properties of a sandbox made ahead, if the runtime cannot change them later */
struct driver_kind {
    struct str *layers;
    size_t layer_count;
    struct sandbox_limits limits;
};
struct driver_want {
    uint32_t size; /* how many to keep */
    struct driver_kind kind;
};
struct driver_pooled {
    int64_t ready;
    int64_t broken; /* number that ended unused, so far */
};

struct driver_stats {
    int64_t memory_bytes, memory_peak_bytes, cpu_us, pids, oom_kills, disk_bytes;
    int64_t net_rx_bytes, net_tx_bytes;
};

struct driver_capacity { /* what a host has, and what of it is free; 0: not known */
    int64_t memory_bytes, memory_free_bytes, disk_bytes, disk_free_bytes, cpus;
    int64_t running;              /* machines, everybody's */
    const char *accel;            /* "kvm", "tcg"; NULL: not known */
    char name[128], version[128]; /* as it calls itself; of its programs */
};

struct driver_volume {
    const char *id;
    bool memory; /* a tmpfs that its sandboxes share */
};

/* A sandbox's own files as a layer, below layers/ of the state directory. */
struct driver_snapshot {
    const char *id;
    const char *layer; /* its directory exists */
    enum driver_snapshot_how {
        DRIVER_COPY, /* its commands stand still meanwhile, as short as possible */
        DRIVER_MOVE, /* of a stopped one, which has none of its own afterwards; repeatable */
        DRIVER_HASH, /* of a layer that was moved: only its digest; id may be unknown */
    } how;
    int64_t bytes_max; /* of a copy; 0: any */
};
struct driver_snapped {
    int64_t entries, bytes, frozen_us;
    char digest[65]; /* of the files, in hex; "": not read */
};

struct driver_found { /* a live sandbox of this installation, at start-up */
    char id[ID_SIZE];
    bool running, confirmed;
};

#define DRIVER_POOL_MAX 256

typedef void (*driver_done)(void *arg, const struct err *e);
typedef void (*driver_made_cb)(void *arg, const struct driver_made *m, const struct err *e);
typedef void (*driver_stats_cb)(void *arg, const struct driver_stats *s, const struct err *e);
typedef void (*driver_fd_cb)(void *arg, int fd, const struct err *e); /* the callee owns fd */
typedef void (*driver_bytes_cb)(void *arg, int64_t bytes, const struct err *e);
typedef void (*driver_listeners_cb)(void *arg, const struct egress_listeners *l,
                                    const struct err *e);
typedef void (*driver_capacity_cb)(void *arg, const struct driver_capacity *c, const struct err *e);
typedef void (*driver_pooled_cb)(void *arg, const struct driver_pooled *p, const struct err *e);
typedef void (*driver_snapped_cb)(void *arg, const struct driver_snapped *s, const struct err *e);
typedef void (*driver_list_cb)(void *arg, const struct driver_found *f, size_t n,
                               const struct err *e);

struct driver_events { /* called by the driver at any time, on the loop's thread */
    void (*init_ended)(void *arg, const char *id, int wait_status, bool known);
    void (*oom)(void *arg, const char *id);
    /* Somebody paused or resumed it behind holtd's back; also after a pause that was asked for. */
    void (*paused)(void *arg, const char *id, bool on);
    /* Somebody started one that was off: it waits for a create with restart. */
    void (*started)(void *arg, const char *id);
    /* The driver's helper process (holt-spawn) was lost and is back, or cannot be restarted:
     * sandboxes continue. */
    void (*health)(void *arg, const struct err *e);
    void *arg;
};

struct driver_host { /* one place where virtual machines are made */
    const char *name;
    const char *uri;                      /* of the hypervisor's manager */
    const char *pool_dir;                 /* on its host, for disks */
    const char *network;                  /* of machines with a raw network */
    const char *ssh_config;               /* of ssh(1), instead of the user's; "": the user's */
    int64_t memory_bytes, cpus, machines; /* the most to use; 0: all that it has */
};
struct driver_machines {
    const struct driver_host *hosts;
    size_t host_count;
    const char *accel; /* "auto", "kvm", "tcg" */
};

struct driver_allows {      /* by the operator; borrowed */
    char *const *host_dirs; /* sandboxes may mount directories below these; with ":ro": read-only */
    size_t host_dir_count;
    bool nesting;
    const char *syscalls;  /* "narrow", "either" or "wide": wide if most ask for it */
    int64_t pids;          /* for a sandbox without a limit of its own; 0: none */
    const char *bridge;    /* "NAME,ADDRESS/BITS" for raw networks; NULL: none */
    char *const *runtimes; /* further ones, as oci_add takes them (wire/oci.h) */
    size_t runtime_count;
    struct driver_machines machines;
};

struct driver_config {
    const struct driver_ops *ops; /* the row that is opened: one function may serve several */
    uv_loop_t *loop;
    const char *state;        /* the state directory */
    const char *installation; /* id of this installation */
    const char *bindir;       /* directory of holt-spawn and holt-init */
    struct driver_allows allows;
    const struct driver_host *host; /* with DRIVER_HAS_HOSTS: the one to open; borrowed */
    struct remotes *remotes;        /* with DRIVER_JOINS: outlive the driver; NULL: none join */
    struct driver_events events;
};

enum driver_scope { DRIVER_WORK, DRIVER_ALL }; /* the commands; init as well */

struct driver_ops {
    const char *name; /* as in the settings and replies */
    uint32_t caps;
    int64_t memory_preset; /* of a sandbox that requests none, if it takes that whole; else 0 */
    int strength;          /* of its boundary: what `runtime: auto` tries first; 0: last */
    /* Blocking, at start-up only.  ERR_UNSUPPORTED: not possible on this host, with the remedy. */
    int (*open)(const struct driver_config *c, struct driver **ret, struct err *e);
    void (*close)(struct driver *d); /* sandboxes keep running */
    /* enum limit_bit: those it can enforce on this host */
    uint32_t (*enforces)(const struct driver *d);
    /* Ends with init listening.  A failed create leaves nothing. */
    void (*create)(struct driver *d, const struct driver_spec *s, driver_made_cb done, void *arg);
    void (*confirm)(struct driver *d, const char *id); /* its row is committed */
    void (*connect)(struct driver *d, const char *id, driver_fd_cb done, void *arg); /* to init */
    void (*kill)(struct driver *d, const char *id, enum driver_scope scope, driver_done done,
                 void *arg);
    /* Kills everything and waits; with keep the files stay, otherwise nothing is left.  Idempotent,
     * from any state. */
    void (*remove)(struct driver *d, const char *id, bool keep, driver_done done, void *arg);
    void (*pause)(struct driver *d, const char *id, bool on, driver_done done, void *arg);
    void (*stats)(struct driver *d, const char *id, driver_stats_cb done, void *arg);
    /* Done after events.oom was called for every OOM kill so far.  NULL: it limits no memory. */
    void (*ooms)(struct driver *d, const char *id, driver_done done, void *arg);
    /* For a sandbox with a network.  NULL: this runtime has no network to control. */
    void (*listen)(struct driver *d, const char *id, driver_listeners_cb done, void *arg);
    /* The number of sandboxes to make ahead, from now on and in the background; at most
     * DRIVER_POOL_MAX.  create takes one that fits; list does not show them.  NULL: it makes
     * none. */
    void (*pool)(struct driver *d, const struct driver_want *want, driver_pooled_cb done,
                 void *arg);
    void (*list)(struct driver *d, driver_list_cb done, void *arg);
    /* Takes over one that list found: from now on its events are reported. */
    void (*adopt)(struct driver *d, const char *id, driver_made_cb done, void *arg);
    /* With DRIVER_HAS_HOSTS: asks the host, which also shows whether it answers. */
    void (*capacity)(struct driver *d, driver_capacity_cb done, void *arg);
    /* Volumes are made by the first create that has one; both NULL: it has none.  remove is
     * idempotent. */
    void (*volume_remove)(struct driver *d, const struct driver_volume *v, driver_done done,
                          void *arg);
    void (*volume_measure)(struct driver *d, const struct driver_volume *v, driver_bytes_cb done,
                           void *arg);
    /* Removes a layer's directory with all that is in it, whoever owns that; idempotent.  NULL:
     * holt-unpack does it. */
    void (*layer_remove)(struct driver *d, const char *id, driver_done done, void *arg);
    /* With DRIVER_CAN_SNAPSHOT only. */
    void (*snapshot)(struct driver *d, const struct driver_snapshot *s, driver_snapped_cb done,
                     void *arg);
};

struct driver {
    const struct driver_ops *ops;
};
