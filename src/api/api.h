/* api: what holtd answers: the native operations, their authentication, their metrics.
 * api_handle is the server's handler.  The order for each request: Host, Origin, path, credentials,
 * permission, input, handler.
 * Ownership: the caller's parts outlive the api; api_free comes after the server has stopped and
 * the store has closed.  Thread: the loop's. */
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
    struct blobs *blobs;
    struct secrets *secrets;
    const struct authority *authority; /* NULL: nothing is intercepted */
    struct space *space;               /* asked before uploads; NULL: nothing is kept free */
    const char *version;
};

struct api;
/* Every route as a line of JSON: what `holtd --print-routes` says, for tests that walk over all. */
struct buf;
CHECKED int api_print_routes(struct buf *to, struct err *e);
CHECKED int api_new(const struct api_config *c, struct api **ret, struct err *e);
struct api *api_free(struct api *a); /* takes NULL; returns NULL */
/* An error that no handler writes, in the form of whoever owns the path. */
void api_write_error(struct buf *to, struct str path, const struct err *e);
void api_handle(struct xchg *x, void *api);
/* The server whose handler this is: for its addresses and counts. */
void api_set_server(struct api *a, struct server *s);
/* Once a second or so: ends streams whose token is revoked or expired. */
void api_tick(struct api *a);
/* The daemon is ending: streams that would never end by themselves end now. */
void api_end_streams(struct api *a);
