/* host: facts about the host and objects made at holt-spawn's start; read-only afterwards, except
 * for the pool of network namespaces.  One per process. */
#pragma once

#include "base/err.h"
#include "spawn/calls.h"
#include "wire/spawn.h"

#include <linux/filter.h>
#include <sys/types.h>

#define HOST_NETNS_MAX 64
#define HOST_ALLOWED_MAX 32
#define HOST_IDS 65536 /* ids of one sandbox, if ranges can be mapped */

enum host_cg1 { CG1_MEMORY, CG1_PIDS, CG1_CPU, CG1_COUNT };

struct host {
    const char *state_path;
    int state, boxes, spares;   /* directories: the state; sb/ in it; shells/, for spares */
    int init;                   /* sealed memfd with holt-init */
    int base_host, base_points; /* the lowest layers: see base.c */
    int dev;                    /* the shared /dev, mounted in our mount namespace */
    int cg2;                    /* our v2 cgroup, or -1 */
    int cg1[CG1_COUNT];         /* our v1 cgroups, or -1 */
    uid_t served;               /* who may connect: holtd's user */
    gid_t served_group;
    bool rootless, many_ids;
    bool idmapped;        /* stored ids are mapped into each sandbox's own range */
    bool memory_idmapped; /* also in a tmpfs: since Linux 6.3 */
    bool memory_overlay;  /* a tmpfs can be an overlay's upper */
    struct host_allowed {
        const char *path;
        int fd;
        bool writable;
    } allowed[HOST_ALLOWED_MAX]; /* host directories that may be mounted */
    size_t allowed_n;
    uint32_t features;     /* enum spawn_feature */
    bool nesting;          /* sandboxes may use it */
    uint32_t default_pids; /* for a sandbox without a limit; 0: none */
    bool wide_allowed;     /* and all of the kernel's calls: SPAWN_WIDE */
    bool wide_spares;      /* spares are made wide */
    struct sock_fprog filters[CALLS_KIND_COUNT]
                             [2]; /* for init and everything it starts; [1]: with nesting */
    struct str command_line;      /* our own, written over in children that stay */
    struct host_oci *oci;         /* shared with children: see oci.c */
    int command_filter;           /* a sealed memfd with the second filter, for commands only */
    int home_net;                 /* the network namespace that we were started in */
    struct host_bridge {
        char name[16]; /* "": none */
        uint32_t base; /* of its network; the first address is the bridge's */
        uint8_t bits;
    } bridge; /* for sandboxes with a raw network */
    int netns[HOST_NETNS_MAX];
    uint32_t netns_n, netns_want;
};
extern struct host host;

CHECKED int host_init(const char *state, const char *init_program, struct err *e);
/* Each makes one part; in files of their own. */
CHECKED int host_open_cgroups(struct err *e);
void host_close_cgroups(void); /* removes empty ones: sandboxes outlive us */
/* The cgroup delegated to an ordinary user: its own, if it may divide it; or -1.  controller: NULL
 * means v2. */
int delegated_open(const char *mount, const char *controller);
CHECKED int host_make_base(struct err *e);
CHECKED int host_make_dev(struct err *e);
/* Container runtimes: where their programs are; a detached mount of holt-init for one of them. */
CHECKED int host_find_runtimes(struct err *e);
CHECKED int host_check_runtime(struct str name, struct err *e);
const char *host_runtime_program(const struct oci_runtime *o);
CHECKED int host_init_tree(const struct oci_runtime *o, struct err *e);
mode_t host_box_mode(void); /* of sb/ and sb/ID */
/* Makes a socket accessible to holtd's user only. */
CHECKED int host_hand_over(int dir, const char *name); /* 0, or -1 with errno set */
/* Before host_init, which opens it. */
CHECKED int host_allow(const char *path, bool writable, struct err *e);
CHECKED int host_syscalls(const char *value, struct err *e); /* narrow, either or wide */
CHECKED int host_bridge(const char *value, struct err *e);   /* BRIDGE,ADDRESS/BITS */
/* Without root: enters a user namespace in which we are root. */
CHECKED int host_become_root(struct err *e);
CHECKED int host_compile_filter(struct err *e);
/* Makes one more network namespace if the pool needs one; false: it is full. */
bool netns_fill_one(void);
CHECKED int netns_enter(struct err *e); /* enters a fresh one */
