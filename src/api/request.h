/* request: private to src/api: one request on its way through the api, and how handlers reply.
 * A request lives in its exchange's arena until the exchange is closed.  A handler that waits for
 * the store puts a struct waiter into its own heap memory, which records that the client has
 * disconnected. */
#pragma once

#include "api/api.h"
#include "api/auth.h"
#include "api/router.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "base/metric.h"
#include "proto/json.h"

struct dial_tls;
struct idem;
struct health;
struct lives;
struct previews;
struct prompts;
struct rpc;
struct dialect_slot;
struct approval_waits;
struct gates;
struct webhooks;

struct route_stats { /* of one route, by class of status; made on first use */
    struct metric *count[6];
    struct metric *seconds;
};

struct api {
    struct api_config c;
    struct auth auth;
    struct server *server;
    struct router *router;
    struct route_stats *stats;     /* by route->index */
    struct buf scratch;            /* for a reply that is written and sent at once */
    struct told *told;             /* event_stream.c: the newest events, as sent */
    struct list streams;           /* struct event_stream */
    struct list lives;             /* struct revocable_stream */
    struct list creating;          /* struct create_join */
    struct dialect_slot *dialects; /* of each row of dialect_table: its state */
    struct consoles *consoles;     /* the clients attached to each command */
    struct lives *screens;         /* of watched terminals */
    struct prompts *prompts;       /* of sessions that wait for a person; NULL: no sandboxes */
    struct health *health;
    struct previews *previews;
    struct oidc *oidc;             /* api/native/oidc.h */
    struct ssh_doors *ssh;         /* api/share/ssh_door.h */
    struct route preview_route;    /* of the preview listener: for metrics and audit */
    struct dial_tls *registry_tls; /* authorities trusted for registries */
    struct map running_keys;       /* idempotency keys whose first request has no reply yet */
    struct buf openapi;            /* printed for the first request */
    bool team_watching;            /* the last team_tick is still running */
    int64_t team_since_ms;         /* since when the team's agents can be heard */
    int64_t team_tick_ms;          /* of the last one */
    struct webhooks *webhooks;     /* api/team/webhooks.h */
    struct gates *gates;           /* api/team/gates.h */
    struct approval_waits *approval_waits; /* approval_wait.c; NULL: none yet */
    struct tracer *tracer;                 /* api/share/tracer.h; NULL: no traces */
    struct meter *meter;                   /* api/share/meter.h; NULL: not used yet */
    struct map team_heard;                 /* by agent: time of its last action, in ms */
    int64_t started_ms;                    /* wall clock */
    int64_t started_mono_ms;
};

struct waiter {
    struct request *r;              /* NULL: the client disconnected */
    void (*gone)(struct waiter *w); /* called when that happens; may be NULL */
};

struct request {
    struct api *api;
    struct xchg *x;
    const struct route *route;
    struct op_params params;
    const struct op *op; /* NULL: not a native operation */
    void *in;            /* op's input struct; for a call: its one message */
    json_t *body;
    struct principal who; /* who.token is valid only until the handler returns */
    enum auth_how how;
    struct waiter *waiter;
    struct rpc *rpc; /* a call of a protobuf service */
    void (*collected)(struct request *r, struct str body);
    struct idem *idem; /* with an Idempotency-Key; a waiting handler takes it */
    int64_t started_ns;
    struct span *span; /* NULL: not traced */
    int status;        /* of the reply; 0: none yet */
    bool audited;
};

struct op_handler {
    const struct op *op;
    void (*run)(struct request *r);
    bool remakes; /* as in struct route */
};
extern const struct op_handler op_handlers[]; /* handlers.c; one row per operation */
extern const size_t op_handler_count;

/* An empty buffer for the reply; valid until the next request_json. */
struct jw request_json(struct request *r);
/* Sends the output of request_json's writer; status 0 is the operation's. */
void request_send_json(struct request *r, int status);
void request_send(struct request *r, int status, const char *content_type, struct str body);
void request_send_empty(struct request *r);
void request_fail(struct request *r, const struct err *e);
/* As request_fail for 401, 403 and 429, with an audit row. */
void request_refuse(struct request *r, const struct err *e);
/* Refuses with the result of auth_authenticate or auth_throttle, with Retry-After. */
void request_refuse_for(struct request *r, int64_t retry_ms, const struct err *e);
/* Whether the caller has this permission: by its role, and as an agent of the team that is not
 * revoked.  The one place that decides this, for every interface. */
CHECKED int request_authorise(const struct request *r, enum perm p, struct err *e);
bool request_may(const struct request *r, enum perm p);
/* The calling agent of the team, or the agent whose sandbox calls; empty: a person, or none. */
struct str request_agent(const struct request *r);
/* The owning agent: an agent owns what it made for itself, also without naming itself. */
struct str api_agent_of(const struct api *a, const struct sandbox *s);
struct auth_view request_view(const struct request *r);
/* Counts the request now, with a status: for replies that become streams. */
void request_count(struct request *r, int status);

/* After Host, Origin and routing: authenticates, authorises, then calls the route's handler. */
void request_admit(struct request *r);
/* Collects the body, then continues if the caller still has permission. */
void request_collect(struct request *r, void (*collected)(struct request *r, struct str body));
size_t request_body_max(const struct request *r); /* limit of its route, within the setting */
/* The token, or its agent, may have been revoked while the body arrived. */
CHECKED int request_still_may(struct request *r, struct err *e);
/* The client has disconnected: notifies waiting handlers. */
void request_gone(struct request *r);
/* A handler that takes the exchange over by xchg_handle calls this from its closed callback. */
void request_end(struct request *r, bool done);

void request_wait(struct request *r, struct waiter *w);
struct request *waiter_end(struct waiter *w); /* NULL: the client has disconnected */
/* For operations without a result: request_ended is the callback, with this as its arg. */
struct waiter *request_wait_end(struct request *r);
void request_ended(void *arg, const struct err *e); /* an empty reply, or the error */

/* The router leaves "{name...}" encoded, since it may hold slashes: returns the decoded text. */
CHECKED int request_decode(const struct request *r, struct str raw, struct str *ret, struct err *e);

/* Adds an audit row for a read of content: caller, operation, object (may be NULL). */
void request_audit(struct request *r, const char *type, const char *object, int status);
/* Whether Accept prefers this media type to JSON. */
bool accept_prefers(const struct xchg *x, const char *media_type);
