/* api: the native operations with their authentication and metrics.
 * api_handle is the server's handler.  The order of checks for each request: Host, Origin, path,
 * credentials, permission, input, handler.
 * Ownership: the caller's parts outlive the api; call api_free after the server has stopped and the
 * store has closed.  Thread: the loop's. */
#pragma once

#include "base/buf.h"
#include "conf/conf.h"
#include "core/event/event.h"
#include "core/identity/identity.h"
#include "core/image/image.h"
#include "core/sandbox/sandbox.h"
#include "net/server.h"

struct api_config {
    const struct config *conf; /* read at each use */
    struct store *store;
    struct events *events;
    struct identity *identity;
    struct revoked *revoked;
    struct sandboxes *sandboxes;
    struct asks *asks;
    struct images *images;
    struct volumes *volumes;
    struct access *access;
    struct templates *templates;
    struct builds *builds;
    struct loadouts *loadouts;
    struct claims *claims;
    struct playbooks *playbooks;
    struct targets *targets;
    struct rollouts *rollouts;
    struct plans *plans;
    struct policies *policies;
    struct tasks *tasks;
    struct schedules *schedules;
    struct remotes *remotes; /* agents on machines that are not ours */
    struct remote_secrets *remote_secrets;
    struct share *share;
    struct snapshots *snapshots;
    struct changes *changes;
    struct blobs *blobs;
    struct secrets *secrets;
    const struct authority *authority; /* NULL: no interception */
    struct space *space;               /* asked before uploads; NULL: nothing is kept free */
    const char *version;
};

struct api;
/* Prints every route as a line of JSON: `holtd --print-routes`, for tests that walk over all. */
struct buf;
CHECKED int api_print_routes(struct buf *to, struct err *e);
CHECKED int api_new(const struct api_config *c, struct api **ret, struct err *e);
struct api *api_free(struct api *a); /* takes NULL; returns NULL */
/* Formats an error that no handler writes, in the form of the dialect that owns the path. */
void api_write_error(struct buf *to, struct str path, const struct err *e);
void api_handle(struct xchg *x, void *api);
/* Sets the server whose handler this is: for its addresses and counts. */
void api_set_server(struct api *a, struct server *s);
/* About once a second: ends streams whose token is revoked or expired. */
void api_tick(struct api *a);
/* The daemon is shutting down: ends the streams that would never end by themselves. */
void api_end_streams(struct api *a);
