/* resolver: resolves names by c-ares on the loop: no thread waits.
 * Queries the system's servers (re-read when their file changes), or configured ones.  Each call
 * makes one lookup; the caller connects to the returned addresses and does not resolve again.
 * Ownership: resolver_new/free; a free ends lookups without a callback.  A lookup's callback comes
 * exactly once, maybe from inside resolver_ask, and never after lookup_cancel.
 * Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "proto/ip.h"

#include <uv.h>

#define RESOLVER_ADDRESSES 16 /* most addresses returned */
/* Concurrent lookups, of two queries each; more fail.  c-ares walks all of them at each call, and
 * searches for a free query id (of 65,536) for as long as there is none. */
#define RESOLVER_PENDING_MAX 4096
/* Concurrent lookups of one client: an eighth of what is left.  A single client gets 455; many
 * greedy ones get equal shares, and there is always room for a modest one. */
#define RESOLVER_SHARE 8

struct resolver;
struct lookup;

/* servers: "127.0.0.1:5353,…", or NULL: the system's, and the hosts file. */
CHECKED int resolver_new(uv_loop_t *loop, const char *servers, struct resolver **ret,
                         struct err *e);
struct resolver *resolver_free(struct resolver *r); /* takes NULL; returns NULL */

/* n > 0, or *e has the reason: ERR_NOT_FOUND, no such name; ERR_UNAVAILABLE, no server answered;
 * ERR_LIMIT, too many lookups at the moment. */
typedef void (*lookup_cb)(void *arg, const struct ip *addresses, size_t n, const struct err *e);
/* who: the client whose share it counts against; NULL: none.  Returns NULL if the callback was
 * already called. */
struct lookup *resolver_ask(struct resolver *r, const char *who, const char *name, lookup_cb done,
                            void *arg);
void lookup_cancel(struct lookup *l); /* takes NULL; it counts until the servers' timeout */
