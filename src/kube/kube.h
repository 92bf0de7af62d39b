/* kube: a client of a cluster's API server: one connection's worth of settings, many calls.
 * A call is one request with a JSON body and a JSON reply.  It waits for its turn (a client-side
 * rate limit), is repeated with back-off and jitter where that is safe (429 and 503 always; a lost
 * connection only if the method may be repeated), and once with a fresh token after a 401.
 * Ownership: kube_new/free; kube_free cancels what is under way: `done` then comes with
 * ERR_CANCELLED before it returns.  Thread: the loop's.  Errors: -1 with *e set, or in `done`. */
#pragma once

#include "kube/config.h"
#include "net/client.h"
#include "proto/json.h"

#define KUBE_REPLY_MAX (16 << 20)
#define KUBE_CALLS_MAX 4096

struct kube;
struct kube_call;

struct kube_limits {     /* 0: the default */
    int64_t per_second;  /* requests, on average: 50 */
    int64_t burst;       /* … and at once: 100 */
    int64_t retry_ms;    /* first back-off: 200; doubled each time up to 30 times of it */
    int64_t deadline_ms; /* of a call with its repetitions: 30,000 */
};

CHECKED int kube_new(uv_loop_t *loop, const struct kube_config *c, const struct kube_limits *l,
                     struct kube **ret, struct err *e);
struct kube *kube_free(struct kube *k); /* takes NULL; returns NULL */
DEFINE_AUTO(struct kube *, kube_free)
const char *kube_space(const struct kube *k); /* the namespace of the context */

enum kube_body { KUBE_JSON, KUBE_MERGE_PATCH, KUBE_APPLY }; /* content types */

struct kube_request {
    const char *method;
    const char *target; /* "/api/v1/namespaces/x/pods?limit=1" */
    struct str body;
    enum kube_body kind;
    bool once; /* no repetition after an answer or a lost connection */
};
/* reply: NULL on failure; borrowed.  status: of HTTP, 0: none came. */
typedef void (*kube_done)(void *arg, int status, const json_t *reply, const struct err *e);
/* NULL: too many calls are open, *e says so and done is not called. */
struct kube_call *kube_call(struct kube *k, const struct kube_request *r, kube_done done, void *arg,
                            struct err *e);
void kube_call_cancel(struct kube_call *c); /* done is not called */

/* DELETE with a precondition: only the object with this uid ("": any).  grace_s < 0: its own. */
struct kube_call *kube_delete(struct kube *k, const char *target, const char *uid, int64_t grace_s,
                              kube_done done, void *arg, struct err *e);
/* Server-side apply as `manager`; force takes fields over from others. */
struct kube_call *kube_apply(struct kube *k, const char *target, struct str object,
                             const char *manager, bool force, kube_done done, void *arg,
                             struct err *e);

/* ---- for watch and exec ---- */

#define KUBE_HEADERS_MAX 6
struct kube_auth { /* filled by kube_authorise; valid until the next call of it */
    struct http_header v[KUBE_HEADERS_MAX];
    size_t n;
};
uv_loop_t *kube_loop(const struct kube *k);
struct timers *kube_timers(struct kube *k);
const struct client_url *kube_url(const struct kube *k);
struct dial_tls *kube_tls(const struct kube *k);
const struct kube_limits *kube_limits_of(const struct kube *k);
void kube_authorise(struct kube *k, struct kube_auth *to);
void kube_token_refused(struct kube *k); /* after a 401: read it again */
/* The n-th back-off, with jitter: between half of it and all of it. */
int64_t kube_backoff_ms(const struct kube *k, int n);
