/* remote: agents on machines that holt did not make: a program there (holt-agent, or any client of
 * the same contract) keeps a link to holtd.  Each is a sandbox of the runtime `remote`: towards
 * core a remote answers the guest protocol like an init (remote_bridge.c), so commands, sessions,
 * screens and tasks are those of every sandbox; towards its link it speaks through
 * struct remote_ops.  What a machine says is as hostile as what an init says.
 * A remote outlives its link: its commands are kept for REMOTE_GONE_MS after the link was lost.
 * Ownership: the registry's.  Thread: the loop's.  Errors: 0, or -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

#include <uv.h>

struct remotes;
struct remote;

#define REMOTE_ID_MAX 63 /* of an agent: the name of its sandbox */
#define REMOTE_COMMANDS_MAX 512
#define REMOTE_KEEP_MAX (1 << 20) /* bytes of one stream that wait for core */
#define REMOTE_TEXT_MAX 255

struct remote_command { /* valid during the call */
    struct str id;
    const struct str *argv;
    size_t argc;
    const struct str *env; /* "NAME=value" */
    size_t env_count;
    struct str cwd, user; /* empty: the agent's own */
    bool pty;
    uint16_t rows, cols;
};

/* The link to the agent.  Those that return int: 1 means that it has more than enough to send:
 * call remote_drained when that is over. */
struct remote_ops {
    int (*start)(void *arg, const struct remote_command *c);
    int (*input)(void *arg, struct str command, struct str bytes, bool eof);
    int (*resize)(void *arg, struct str command, uint16_t rows, uint16_t cols);
    int (*signal)(void *arg, struct str command, int signal);
    /* Core has stored the output up to here; ended: and the end. */
    int (*stored)(void *arg, struct str command, uint64_t out, uint64_t err, bool ended);
    void (*hold)(void *arg, bool on); /* read nothing more from it, until off */
    /* The last call: close the link.  shutdown: ask the agent to end first. */
    void (*close)(void *arg, const struct err *why, bool shutdown);
};

struct remote_numbers {
    double cpu_percent, load[3];
    int64_t memory_used, memory_total, disk_used, disk_total, uptime_s;
    bool known; /* a report with all of them has come */
};
enum remote_state { REMOTE_READY, REMOTE_STALE, REMOTE_DISCONNECTED };

struct remote_info {          /* borrowed until the loop turns */
    const char *id, *sandbox; /* "": not yet a sandbox */
    enum remote_state state;
    bool provisioning; /* as it says itself */
    struct str hostname, address, profile, loadout, instance, os, kernel, setup, progress;
    int64_t cpus, memory_bytes, disk_bytes;
    int64_t connected_ms, heartbeat_ms;
    struct remote_numbers numbers;
};

/* What happens to a link, as an event of its sandbox: remote_event_write with a store. */
typedef void (*remote_noted)(void *arg, const char *type, const char *sandbox, struct str data);
void remote_event_write(void *store, const char *type, const char *sandbox, struct str data);

/* note: or NULL.  heartbeat_ms: after this long without a sign of life a link is cut. */
struct remotes *remotes_new(uv_loop_t *loop, remote_noted note, void *arg, int64_t heartbeat_ms);
struct remotes *remotes_free(struct remotes *all); /* takes NULL; returns NULL */
/* Called when an agent's sandbox was destroyed by request: its secret ends too. */
void remotes_on_forget(struct remotes *all, void (*forgot)(void *arg, const char *id), void *arg);
void remote_gone(struct remote *r); /* it is removed because it has been away: not by request */
void remotes_set_heartbeat(struct remotes *all, int64_t heartbeat_ms);
int64_t remotes_heartbeat(const struct remotes *all);
void remotes_tick(struct remotes *all); /* once a second: cuts silent links */
struct remote *remotes_find(const struct remotes *all, struct str id);
struct remote *remotes_of_sandbox(const struct remotes *all, struct str sandbox);
/* In no particular order; start with *at = 0; false at the end. */
bool remotes_next(const struct remotes *all, size_t *at, struct remote **ret);
size_t remotes_count(const struct remotes *all);
void remote_info(const struct remote *r, struct remote_info *ret);
/* Longer than this without a link, and it is removed. */
int64_t remotes_gone_ms(const struct remotes *all);

/* --- the link's side --- */

bool remote_id_is_valid(struct str id);
/* An authenticated agent has registered; an older link of it is closed.  NULL: too many. */
struct remote *remote_join(struct remotes *all, struct str id, const struct remote_ops *ops,
                           void *arg, bool keeps_output, struct err *e);
/* What it is; texts are copied and cut. */
void remote_describe(struct remote *r, const struct remote_info *i);
void remote_beat(struct remote *r, bool provisioning, struct str setup, struct str progress);
void remote_measured(struct remote *r, const struct remote_numbers *n);
/* The commands that the agent has and core knows: only now core is linked to it. */
void remote_reported(struct remote *r, const struct str *ids, size_t n);
bool remote_has(const struct remote *r, struct str command);
/* offset: of the first byte, or -1 if the agent does not count.  -1: it broke the contract. */
CHECKED int remote_output(struct remote *r, struct str command, bool err, int64_t offset,
                          struct str bytes, struct err *e);
struct remote_result {
    int exit_code;
    struct str failure; /* it could not run */
    int64_t duration_ms;
};
void remote_result(struct remote *r, struct str command, const struct remote_result *result);
void remote_drained(struct remote *r);
void remote_cut(struct remote *r, const struct err *why); /* its link, if it has one */
void remote_left(struct remote *r, void *arg); /* the link with this argument is closed */

/* --- the driver's side --- */

/* The sandbox about to be made is this agent's: allows its create. */
void remote_expect(struct remote *r, bool on);
CHECKED int remote_bind(struct remotes *all, struct str id, const char *sandbox, bool again,
                        struct err *e);
void remote_known(struct remotes *all, struct str id, const char *sandbox); /* at start-up */
CHECKED int remote_connect(struct remotes *all, struct str sandbox, int *ret_fd, struct err *e);
void remote_kill(struct remotes *all, struct str sandbox); /* all its commands */
enum remote_release { REMOTE_STOPPED, REMOTE_UNDONE, REMOTE_DESTROYED };
/* The sandbox was stopped, could not be made, or was destroyed: the agent is asked to end. */
void remote_release(struct remotes *all, struct str sandbox, enum remote_release how);
