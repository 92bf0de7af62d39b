/* spawn: the protocol between holtd and holt-spawn (docs/protocol-spawn.md), on a SOCK_SEQPACKET
 * Unix socket: one message per packet, descriptors beside it (SCM_RIGHTS).  A request carries a
 * tag, which its one reply repeats; replies come in any order; events have tag 0.  holt-spawn is
 * privileged: it treats every packet as hostile, and names (ids, layers, paths) as data, never as
 * host paths to open.  No I/O, no allocation.  Errors: 0, or -1 with *e set. */
#pragma once

#include "wire/oci.h"
#include "wire/packet.h"

#define SPAWN_VERSION 2
#define SPAWN_PACKET_MAX PACKET_MAX
#define SPAWN_ID_MAX 31
#define SPAWN_LAYER_MAX 64 /* a layer's name: a SHA-256 in hex */
#define SPAWN_LAYERS_MAX 60
#define SPAWN_MOUNTS_MAX 32
#define SPAWN_STORED_ID                                                                            \
    1000000U /* host uid of root's stored files: above login users and subuid ranges */
#define SPAWN_PATH_MAX 1023
#define SPAWN_LIST_MAX 256 /* rows of one list reply */
#define SPAWN_RELAY_PATH "/run/holt.sock"
#define SPAWN_INIT_PATH "/.holt-init" /* inside a container: its program, read-only */
#define SPAWN_CA_MAX 8192
/* Inside a sandbox with an authority: its certificate alone; the image's trusted ones and it. */
#define SPAWN_CA_PATH "/etc/ssl/holt-ca.pem"
#define SPAWN_BUNDLE_PATH "/etc/ssl/certs/ca-certificates.crt"
#define SPAWN_PROCESS_PORT "2024"
/* An address of its own, so that a sandbox's servers keep all ports of 127.0.0.1. */
#define SPAWN_HUB_NAME "hub"
#define SPAWN_HUB_ADDRESS "127.0.0.80"
#define SPAWN_HUB_PORT "8080"

enum spawn_side { SPAWN_HOST = PACKET_HOST, SPAWN_SPAWN = PACKET_HELPER };

enum spawn_type {
    SPAWN_HELLO = 1,
    SPAWN_WELCOME = 2,
    SPAWN_CREATE = 3,
    SPAWN_CREATED = 4, /* with a pidfd of init; the reply to create and adopt */
    SPAWN_ADOPT = 5,
    SPAWN_CONFIRM = 6, /* holtd has committed the row: from now on, destroy it only on request */
    SPAWN_KILL = 7,
    SPAWN_DESTROY = 8, /* the reply comes when nothing is left (with keep: nothing but the files) */
    SPAWN_PAUSE = 9,
    SPAWN_STATS_GET = 10,
    SPAWN_STATS = 11,
    SPAWN_LIST = 12,
    SPAWN_LISTED = 13,
    SPAWN_POOL = 14, /* how much to keep ready; the reply is pooled */
    SPAWN_DONE = 15, /* the plain reply: success, or the error of any request */
    SPAWN_EVENT = 16,
    SPAWN_DISCARD = 17, /* a volume or a layer: the reply comes when it is removed */
    SPAWN_MEASURE = 18, /* the size of a volume */
    SPAWN_MEASURED = 19,
    SPAWN_LISTEN = 20,    /* the reply is listeners */
    SPAWN_LISTENERS = 21, /* with the listening sockets in a sandbox's network, for holt-egress */
    SPAWN_POOLED = 22,
    SPAWN_OOMS = 23,     /* the reply comes after all OOM kills so far have been reported */
    SPAWN_SNAPSHOT = 24, /* the writable layer of a sandbox becomes a layer */
    SPAWN_SNAPSHOTTED = 25,
    SPAWN_TYPE_END
};

struct spawn_hello {
    uint16_t version_min, version_max;
    struct str installation; /* lists only sandboxes of this installation */
};

enum spawn_feature { /* limits that spawn can enforce on this host; bits */
                     SPAWN_CAN_MEMORY = 1,
                     SPAWN_CAN_CPU = 2,
                     SPAWN_CAN_PIDS = 4,
                     SPAWN_CAN_DISK = 8, /* for a memory upper; on disk: see created */
                     SPAWN_CAN_FREEZE = 16,
                     SPAWN_CAN_KILL_TREE = 32, /* cgroup.kill */
                     SPAWN_CAN_USERS = 64,     /* more than one user id is mapped */
                     SPAWN_CAN_NOFILE = 128,
                     SPAWN_CAN_ALL = 255
};
struct spawn_welcome {
    uint16_t version; /* 0: none of the versions offered */
    uint8_t rootless;
    uint32_t features;
    uint8_t epoch[16]; /* one per run of holt-spawn */
};

enum spawn_create_flag {
    SPAWN_ROOTFS_RO = 1,
    SPAWN_NESTING = 2,
    SPAWN_UPPER_DISK = 4, /* otherwise in memory */
    SPAWN_RESTART = 8,    /* use the files of an earlier run (destroy with keep) */
    SPAWN_RELAY = 16,     /* init listens at SPAWN_RELAY_PATH inside */
    SPAWN_NETWORK = 32,   /* connections lead to listeners; otherwise to nothing */
    SPAWN_PROCESS = 64,   /* init listens on port SPAWN_PROCESS_PORT of loopback inside */
    SPAWN_RAW = 128,      /* it has an interface on the bridge that holt-spawn was started with */
    SPAWN_HUB = 256,      /* init also listens at http://hub:8080: needs SPAWN_RELAY */
    SPAWN_WIDE = 512,     /* all system calls but the dangerous ones */
    SPAWN_ON_HOST = 1024, /* the layers lie on the host image, not on an image of their own */
    SPAWN_CREATE_FLAGS = 2047
};
enum spawn_mount_kind {
    SPAWN_MOUNT_TMPFS,  /* private to this sandbox */
    SPAWN_MOUNT_VOLUME, /* volumes/SOURCE/fs in the state directory */
    SPAWN_MOUNT_SHARED, /* a tmpfs named SOURCE, removed with the last sandbox that uses it */
    SPAWN_MOUNT_HOST,   /* a directory of the host, below one that holt-spawn was started with */
    SPAWN_MOUNT_LAYER,  /* layers/SOURCE/fs, for the sandbox that fills it */
    SPAWN_MOUNT_OWN,    /* a directory of the root, writable where the root is read-only */
    SPAWN_MOUNT_BASE,   /* the lowest layer, read-only: SOURCE is "host" or "points" */
    SPAWN_MOUNT_UPPER,  /* the writable layer of sandbox SOURCE, read-only */
    SPAWN_MOUNT_COUNT
};
struct spawn_mount_row {
    uint8_t kind;
    struct str source; /* a volume's id or a host path; "" for a tmpfs */
    struct str target; /* absolute, inside the sandbox */
    uint8_t readonly;
    uint64_t size; /* of a tmpfs; 0: 64 MiB */
};
struct spawn_create {
    struct str id, hostname;
    uint32_t flags;
    uint64_t memory_bytes, disk_bytes;
    uint32_t cpu_millis, pids, nofile;
    struct wire_rows layers; /* wire_text: layer ids, lowest first; none: the host image */
    struct wire_rows mounts; /* spawn_mount_row */
    struct str ca;           /* PEM: an authority the sandbox trusts; "": none */
    struct str runtime;      /* a row of wire/oci.h; "": native */
};
struct spawn_created {
    uint32_t pid;      /* of init, as the host sees it */
    uint32_t enforced; /* enum spawn_feature: those of the requested limits that are enforced */
    struct str socket; /* where init listens, relative to the state directory */
    uint8_t warm;      /* it was a spare made ahead */
};

struct spawn_name { /* adopt, confirm, stats_get */
    struct str id;
};
#define SPAWN_PROXY_PORT 3128
enum spawn_listener { /* in this order, those with their bit set */
                      SPAWN_LISTENER_TCP4,
                      SPAWN_LISTENER_TCP6, /* if the host has IPv6 */
                      SPAWN_LISTENER_DNS_UDP,
                      SPAWN_LISTENER_DNS_TCP,
                      SPAWN_LISTENER_COUNT
};
struct spawn_listeners {
    uint32_t kinds; /* bits 1 << enum spawn_listener: one descriptor each */
};
struct spawn_destroy {
    struct str id;
    uint8_t keep; /* keep its files for a create with SPAWN_RESTART */
};
enum spawn_scope { SPAWN_WORK, SPAWN_ALL, SPAWN_SCOPE_COUNT };
struct spawn_kill {
    struct str id;
    uint8_t scope; /* the commands; init as well */
};
struct spawn_pause {
    struct str id;
    uint8_t on;
};
struct spawn_stats {
    uint64_t memory_bytes, memory_peak_bytes, cpu_us, pids, oom_kills, disk_bytes;
    uint64_t net_rx_bytes, net_tx_bytes; /* of the loopback interface if it has no other */
};
struct spawn_list {
    struct str after; /* the last id of the previous page, or "" */
};
enum spawn_state { SPAWN_STARTING, SPAWN_RUNNING, SPAWN_DEAD, SPAWN_STOPPED, SPAWN_STATE_COUNT };
struct spawn_list_row {
    struct str id;
    uint8_t state, confirmed;
    struct str runtime;
};
struct spawn_listed {
    uint8_t more;
    struct wire_rows sandboxes; /* spawn_list_row, ordered by id */
};
#define SPAWN_SPARES_MAX 256
#define SPAWN_SPARES_KEEP (SPAWN_SPARES_MAX + 1) /* keep the number requested before */
struct spawn_pool {
    uint32_t netns;  /* network namespaces */
    uint32_t spares; /* sandboxes made ahead, complete except for the create request */
};
struct spawn_pooled {
    uint32_t ready;  /* spares */
    uint64_t broken; /* spares that ended before they were used, since holt-spawn's start */
};
struct spawn_done {
    struct err err;
};
enum spawn_discard_what { SPAWN_DISCARD_VOLUME, SPAWN_DISCARD_LAYER, SPAWN_DISCARD_COUNT };
struct spawn_discard {
    struct str id;
    uint8_t what;
};
struct spawn_measure {
    struct str id;
    uint8_t kind; /* enum spawn_mount_kind: a volume, or a shared tmpfs */
};
struct spawn_measured {
    uint64_t bytes;
};
enum spawn_snapshot_mode {
    SPAWN_SNAPSHOT_COPY, /* frozen while it is copied if it runs; then hashed */
    SPAWN_SNAPSHOT_MOVE, /* of a stopped sandbox, which has an empty one afterwards; repeatable */
    SPAWN_SNAPSHOT_HASH, /* of a layer that was moved before; no sandbox is needed */
    SPAWN_SNAPSHOT_COUNT
};
struct spawn_snapshot {
    struct str id;
    struct str layer; /* layers/LAYER exists, and its "fs" is made */
    uint8_t mode;
    uint64_t bytes_max; /* a copy that would be larger fails; 0: any */
};
struct spawn_snapshotted {
    uint64_t entries, bytes; /* bytes: on disk */
    uint64_t frozen_us;      /* how long its commands stood still; 0: they did not run */
    struct str digest;       /* SHA-256 of the tree in hex; "": it was not read */
};
enum spawn_event_kind { SPAWN_INIT_ENDED = 1, SPAWN_OOM = 2, SPAWN_EVENT_COUNT };
struct spawn_event {
    struct str id;
    uint8_t kind;
    uint32_t status; /* wait status of init if this holt-spawn is its parent, else 0; of an OOM
                        kill: the number so far */
};

struct spawn_msg {
    enum spawn_type type;
    uint32_t tag; /* 0 for events only */
    union {
        struct spawn_hello hello;
        struct spawn_welcome welcome;
        struct spawn_create create;
        struct spawn_created created;
        struct spawn_name name;
        struct spawn_destroy destroy;
        struct spawn_kill kill;
        struct spawn_pause pause;
        struct spawn_stats stats;
        struct spawn_list list;
        struct spawn_listed listed;
        struct spawn_pool pool;
        struct spawn_pooled pooled;
        struct spawn_done done;
        struct spawn_event event;
        struct spawn_discard discard;
        struct spawn_measure measure;
        struct spawn_measured measured;
        struct spawn_listeners listeners;
        struct spawn_snapshot snapshot;
        struct spawn_snapshotted snapshotted;
    } u;
};

extern const struct packet_type spawn_types[SPAWN_TYPE_END];
extern const struct packet_protocol spawn_protocol;
extern const struct wire_layout spawn_mount_row_layout, spawn_list_row_layout;

CHECKED int spawn_encode(const struct spawn_msg *m, enum spawn_side from, struct wire_out *o,
                         struct err *e);
/* fds: the number of descriptors received with the packet.  After a failure the caller closes
 * them. */
CHECKED int spawn_decode(struct str packet, size_t fds, enum spawn_side from, struct spawn_msg *ret,
                         struct err *e);
/* The id of a sandbox or volume (at most SPAWN_ID_MAX), or of a layer (SPAWN_LAYER_MAX): letters,
 * digits, '_' and '-'.  They become file names. */
bool spawn_id_is_safe(struct str id);
bool spawn_layer_is_safe(struct str id);
