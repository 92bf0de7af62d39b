/* egress: holtd's side of holt-egress (docs/protocol-egress.md), which keeps the sandboxes'
 * policies.  It is started when the first is put, outlives us, and is started again when it dies:
 * then it knows nobody, ops->ready comes, and the owner puts everything anew. Callbacks come from
 * the loop, never from within a call.  Thread: the loop's. */
#pragma once

#include "core/network/authority.h"
#include "core/sandbox/driver.h"
#include "wire/egress.h"

struct egress;

struct egress_ops {
    void (*ready)(void *arg); /* connected: egress_knows tells who is known */
    void (*verdict)(void *arg, const struct egress_verdict *v);
    void (*question)(void *arg,
                     const struct egress_question *q); /* to be answered by egress_reply */
};

struct egress_config {
    uv_loop_t *loop;
    const char *state, *bindir;
    const char *user;    /* whom it becomes where it begins as root; NULL or "": its own preset */
    const char *dns;     /* servers to ask for names; "": the system's */
    const char *ca_file; /* of authorities it trusts besides the system's; "": none */
    /* Its TCP form, for clients with credentials that this key signed; host "" or NULL: none. */
    const char *proxy_host, *proxy_key;
    int64_t proxy_port;
    const struct authority *authority; /* by which it intercepts; NULL: it does not */
    const struct egress_ops *ops;
    void *arg;
};

struct egress *egress_new(const struct egress_config *c);
/* Its connections go on.  Who waits is told: cancelled.  Takes NULL; returns NULL. */
struct egress *egress_free(struct egress *g);
/* "http://sandbox:jwt_…@HOST:PORT": the TCP form with credentials of one sandbox, which are worth
 * nothing once that is gone, or after four hours; false: there is no such form. */
struct jwt_claims;
struct buf;
bool egress_proxy_url(const struct egress *g, struct jwt_claims *c, struct buf *to);
void egress_start(struct egress *g);       /* connects, or starts it; ready tells */
bool egress_is_up(const struct egress *g); /* ready has been told */
bool egress_knows(const struct egress *g, const char *id);
struct egress_terms { /* copied */
    const char *policy;
    struct str learned, alias;        /* wire/egress.h */
    const struct driver_listeners *l; /* of one that is not known, taken; NULL: of one that is */
};
void egress_put(struct egress *g, const char *id, const struct egress_terms *terms,
                driver_done done, void *arg);
/* All of one sandbox, as docs/protocol-egress.md says; before the put that makes it known, or
 * after. */
void egress_put_secrets(struct egress *g, const char *id, struct str list, driver_done done,
                        void *arg);
void egress_drop(struct egress *g, const char *id); /* it has no network any more */
void egress_reply(struct egress *g, uint64_t question, bool allow, const char *reason);
