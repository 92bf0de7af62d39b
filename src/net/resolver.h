/* resolver: names to addresses by c-ares on the loop: no thread waits.
 * Asks the system's servers (re-read when their file changes), or those it was told.  Each name is
 * asked for once per call; whoever calls dials what it was given and asks no second time.
 * Ownership: resolver_new/free; a free ends what is under way without a call.  A look-up's callback
 * comes exactly once, maybe from inside resolver_ask, and never after lookup_cancel.
 * Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "proto/ip.h"

#include <uv.h>

#define RESOLVER_ADDRESSES 16 /* most that are told */
/* Look-ups at once, of two queries each; more fail.  c-ares goes through all of them at each call,
 * and searches for a free one of 65,536 ids for as long as there is none. */
#define RESOLVER_PENDING_MAX 4096
/* Of one asker at once: an eighth of what is left.  One alone has 455; of many that want all, each
 * has as much, and there is always room for who asks little. */
#define RESOLVER_SHARE 8

struct resolver;
struct lookup;

/* servers: "127.0.0.1:5353,…", or NULL: the system's, and the hosts file. */
CHECKED int resolver_new(uv_loop_t *loop, const char *servers, struct resolver **ret,
                         struct err *e);
struct resolver *resolver_free(struct resolver *r); /* takes NULL; returns NULL */

/* n > 0, or *e says why: ERR_NOT_FOUND, there is no such name; ERR_UNAVAILABLE, nobody could say;
 * ERR_LIMIT, too many are asked for just now. */
typedef void (*lookup_cb)(void *arg, const struct ip *addresses, size_t n, const struct err *e);
/* who: whose share it is of; NULL: nobody's.  NULL: the callback has been called. */
struct lookup *resolver_ask(struct resolver *r, const char *who, const char *name, lookup_cb done,
                            void *arg);
void lookup_cancel(struct lookup *l); /* takes NULL; it counts until the servers' time is over */
