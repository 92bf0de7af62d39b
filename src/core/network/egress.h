/* egress: holtd's side of holt-egress (docs/protocol-egress.md), which enforces the sandboxes'
 * policies.  It is started with the first policy, outlives us, and is restarted when it dies: then
 * it knows no sandbox, ops->ready is called, and the owner puts all policies again.  Callbacks come
 * from the loop, never from within a call.  Thread: the loop's. */
#pragma once

#include "core/network/authority.h"
#include "core/network/listeners.h"
#include "core/store.h"
#include "wire/egress.h"
#include "wire/guest.h"

struct egress;

struct egress_ops {
    void (*ready)(void *arg); /* connected: egress_knows tells which sandboxes are known */
    void (*verdict)(void *arg, const struct egress_verdict *v);
    void (*question)(void *arg, const struct egress_question *q); /* reply with egress_reply */
};

struct egress_config {
    uv_loop_t *loop;
    const char *state, *bindir;
    const char *user;    /* the user it changes to if it starts as root; NULL or "": its default */
    const char *dns;     /* DNS servers; "": the system's */
    const char *ca_file; /* authorities it trusts besides the system's; "": none */
    /* Its TCP port, for clients with credentials signed by this key; host "" or NULL: none. */
    const char *proxy_host, *proxy_key;
    int64_t proxy_port;
    const struct authority *authority; /* for intercepting; NULL: it does not */
    const struct egress_ops *ops;
    void *arg;
};

struct egress *egress_new(const struct egress_config *c);
/* Its connections continue.  Pending callbacks get "cancelled".  Takes NULL; returns NULL. */
struct egress *egress_free(struct egress *g);
/* "http://sandbox:jwt_…@HOST:PORT": the TCP port with credentials of one sandbox, which expire when
 * it is removed, or after four hours; false: there is no TCP port. */
struct jwt_claims;
struct buf;
bool egress_proxy_url(const struct egress *g, struct jwt_claims *c, struct buf *to);
void egress_start(struct egress *g);       /* connects, or starts it; then calls ready */
bool egress_is_up(const struct egress *g); /* ready has been called */
bool egress_knows(const struct egress *g, const char *id);
struct egress_terms { /* copied */
    const char *policy;
    struct str learned, alias; /* wire/egress.h */
    /* for a sandbox that is not known, taken; NULL: for one that is, or whose init leads its
     * connections out */
    const struct egress_listeners *l;
    bool led; /* by egress_lead */
};
void egress_put(struct egress *g, const char *id, const struct egress_terms *terms, store_done done,
                void *arg);
/* All secrets of one sandbox (docs/protocol-egress.md); before or after the put that makes it
 * known. */
void egress_put_secrets(struct egress *g, const char *id, struct str list, store_done done,
                        void *arg);
/* One connection that init leads out; takes fd.  It is closed if holt-egress does not take it. */
void egress_lead(struct egress *g, const char *id, const struct guest_relay *from, int fd);
void egress_drop(struct egress *g, const char *id); /* it has no network any more */
void egress_reply(struct egress *g, uint64_t question, bool allow, const char *reason);
