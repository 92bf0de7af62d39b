/* registry: fetches documents and layers from an image registry (OCI distribution-spec 1.1, the v2
 * API).
 * Anonymous, or with a token from the registry's token server (WWW-Authenticate: Bearer).  Follows
 * a few redirects; never sends a token to another host.  Clear text is for loopback only, unless
 * the caller allows more.  Content requested by digest is verified while it arrives; the result is
 * passed to end.
 * Life: one get at a time; end is the last call of a get and never comes from inside
 * registry_get.  Thread: the loop's. */
#pragma once

#include "base/err.h"
#include "net/dial.h"
#include "proto/oci.h"

struct registry;

struct registry_config {
    uv_loop_t *loop;
    struct dial_tls *tls; /* lives longer */
    const char *fallback; /* the registry for references without one */
    bool insecure;        /* clear text to any host */
    int64_t idle_ms;      /* 0: 60 s */
};

struct registry_sink {
    void (*data)(void *arg, struct str part); /* call registry_consume when n bytes are used */
    /* digest of the received content, verified */
    void (*end)(void *arg, const char *digest, const struct err *e);
};

CHECKED int registry_open(const struct registry_config *c, const struct oci_ref *ref,
                          struct registry **ret, struct err *e);
void registry_close(struct registry *r); /* ends a get without further calls; takes NULL */
/* A manifest by tag or digest, or a blob by digest; fails past size_max bytes. */
struct registry_want {
    bool manifest;
    const char *name; /* tag or digest */
    int64_t size_max;
};
CHECKED int registry_get(struct registry *r, const struct registry_want *w,
                         const struct registry_sink *to, void *arg, struct err *e);
void registry_consume(struct registry *r, size_t n);
