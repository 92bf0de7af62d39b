/* daemon: private to src/daemon: the parts of holtd, and the steps that open them.
 * Thread: the loop's, or before there is one. */
#pragma once

#include "api/api.h"
#include "core/identity/tenant.h"
#include "core/network/authority.h"
#include "core/sandbox/pool.h"
#include "daemon/daemon.h"
#include "driver/table.h"

#include <limits.h>
#include <signal.h>
#include <uv.h>

enum { SIG_TERM, SIG_INT, SIG_HUP, SIG_KINDS };

struct daemon {
    uv_loop_t loop;
    bool loop_is_up;
    struct config *conf;
    const struct conf_sources *from;
    struct server_limits limits;
    char *token_file;
    int lock;
    struct store *store;
    struct events *events;
    struct identity *identity;
    struct revoked *revoked;
    struct sandboxes *sandboxes;
    struct asks *asks;
    struct unpacker *unpacker;
    struct images *images;
    struct volumes *volumes;
    struct access *access;
    struct templates *templates;
    struct builds *builds;
    struct loadouts *loadouts;
    struct claims *claims;
    struct plans *plans;
    struct playbooks *playbooks;
    struct targets *targets;
    struct rollouts *rollouts;
    struct policies *policies;
    struct share *share;
    struct tasks *tasks;
    struct schedules *schedules;
    struct remotes *remotes;
    struct remote_secrets *remote_secrets;
    char *share_global; /* mounted read-only by sandboxes of tasks */
    struct snapshots *snapshots;
    struct changes *changes;
    struct blobs *blobs;
    struct secrets *secrets;
    struct authority authority;
    struct space *space;
    bool tries;    /* the default is the first runtime of which a trial says that it works */
    bool isolated; /* of the default runtime: archives are unpacked inside a sandbox */
    const struct driver_ops *drivers[DRIVERS_MAX + 1]; /* NULL at the end */
    char installation[ID_SIZE], node[HOST_NAME_MAX + 1];
    bool foreign; /* the database does not belong to the state directory */
    char *bindir, *compare;
    struct api *api;
    struct server *server;
    uv_signal_t signals[SIG_KINDS];
    uv_timer_t timer;
    bool handles_are_up;
    int64_t ticks;
    bool stopping;
};

/* apply.c: settings that are handed to other parts, at the start and after SIGHUP */
void daemon_apply_settings(struct daemon *d);
void daemon_apply_counts(struct daemon *d);
void daemon_apply_ceilings(struct daemon *d);
void daemon_log_warnings(const struct config *c);
struct pool_config daemon_pool_config(const struct config *c);
void daemon_reload(struct daemon *d);

/* listen.c */
CHECKED int daemon_listen(struct daemon *d, struct err *e);

/* open.c: in the order of these calls */
CHECKED int daemon_open_store(struct daemon *d, struct err *e);
CHECKED int daemon_open_share(struct daemon *d, struct err *e);
CHECKED int daemon_open_remotes(struct daemon *d, struct err *e);
CHECKED int daemon_open_sandboxes(struct daemon *d, struct err *e);
CHECKED int daemon_open_asks(struct daemon *d, struct err *e);
CHECKED int daemon_open_images(struct daemon *d, struct err *e);
CHECKED int daemon_open_rollouts(struct daemon *d, struct err *e);
CHECKED int daemon_open_tasks(struct daemon *d, struct err *e);
CHECKED int daemon_open_secrets(struct daemon *d, struct err *e);
void daemon_open_builds(struct daemon *d);
CHECKED int daemon_open_server(struct daemon *d, struct err *e);
