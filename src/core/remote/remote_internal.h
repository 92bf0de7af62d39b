/* remote_internal: shared by the files of core/remote.  Thread: the loop's. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "core/remote/remote.h"
#include "wire/flow.h"

struct remotes {
    uv_loop_t *loop;
    remote_noted note;
    void *note_arg;
    void (*forgot)(void *arg, const char *id);
    void *forgot_arg;
    int64_t heartbeat_ms;
    struct map by_id, by_sandbox; /* to struct remote */
};

struct remote_stream { /* stdout or stderr of a command: [from, end) is kept */
    struct buf kept;
    uint64_t from, end;
    uint64_t told; /* as stored, to the agent */
    bool unknown;  /* where it stands: after a restart of holtd, until core attaches */
    struct flow_out flow;
};

struct remote_cmd {
    struct list node;
    char id[GUEST_EXEC_ID_MAX + 1];
    uint32_t channel; /* 0: core is not attached */
    struct remote_stream out[2];
    struct flow_in in;
    bool ended, exit_sent;
    uint64_t signals; /* that core has sent: bit n - 1 */
    struct guest_exec_exit exit;
};

struct remote_conv { /* one conversation with core, which holds the other end of a socket pair */
    struct remote *r;
    int fd;
    uv_poll_t poll;
    int events;
    struct guest_reader in;
    struct buf out;
    bool greeted, closed;
};

struct remote {
    struct remotes *all;
    char id[REMOTE_ID_MAX + 1];
    char sandbox[ID_SIZE];
    bool expected;
    bool gone;                    /* see remote_gone */
    const struct remote_ops *ops; /* NULL: there is no link */
    void *arg;
    bool keeps_output;
    bool reported;  /* core may be linked to it */
    bool congested; /* the link has enough to send */
    bool held;      /* nothing more is read from it */
    struct remote_conv *conv;
    struct list commands; /* struct remote_cmd */
    size_t command_count;
    /* what it says of itself */
    bool provisioning, ready_told;
    char hostname[REMOTE_TEXT_MAX + 1], address[REMOTE_TEXT_MAX + 1], profile[REMOTE_TEXT_MAX + 1];
    char loadout[REMOTE_TEXT_MAX + 1], instance[REMOTE_TEXT_MAX + 1], os[REMOTE_TEXT_MAX + 1];
    char kernel[REMOTE_TEXT_MAX + 1], setup[REMOTE_TEXT_MAX + 1], progress[4096];
    int64_t cpus, memory_bytes, disk_bytes;
    int64_t connected_ms, heartbeat_ms; /* by the wall clock */
    int64_t beat_mono_ms;               /* the last sign of life */
    struct remote_numbers numbers;
};

/* --- remote_bridge.c --- */
void remote_conv_open(struct remote *r, int fd); /* owns fd */
void remote_conv_close(struct remote *r);
void remote_conv_wake(struct remote *r); /* there is something for core, or it may be read again */
struct remote_cmd *remote_cmd_find(const struct remote *r, struct str id);
struct remote_cmd *remote_cmd_new(struct remote *r, struct str id);
void remote_cmd_free(struct remote *r, struct remote_cmd *c);
void remote_signal(struct remote *r, struct remote_cmd *c, int signal); /* 1 to 64 */
