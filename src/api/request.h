/* request: private to src/api: one request on its way through the api, and how handlers answer it.
 * A request lives in its exchange's arena, until the exchange is closed: a handler that waits for
 * the store puts a struct waiter into its own heap memory, so that a peer's going away is seen. */
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
struct previews;
struct rpc;
struct dialect_slot;

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
    struct buf scratch;            /* for a reply that is written and sent in one go */
    struct told *told;             /* event_stream.c: events as they were sent, newest ones */
    struct list streams;           /* struct event_stream */
    struct list lives;             /* struct revocable_stream */
    struct list creating;          /* struct create_join */
    struct dialect_slot *dialects; /* of each row of dialect_table: its state */
    struct consoles *consoles;     /* who is attached to which command */
    struct health *health;
    struct previews *previews;
    struct route preview_route;    /* of the preview listener: for metrics and audit */
    struct dial_tls *registry_tls; /* the authorities that registries must have */
    struct map running_keys;       /* idempotency keys whose first request is not answered yet */
    struct buf openapi;            /* printed once */
    bool team_watching;            /* team_tick's last look is not over yet */
    int64_t team_since_ms;         /* from then on the team's agents can be heard */
    int64_t team_tick_ms;          /* the last */
    struct map team_heard;         /* agent: when it last did something, in ms */
    int64_t started_ms;            /* wall */
    int64_t started_mono_ms;
};

struct waiter {
    struct request *r;              /* NULL: the asker went away */
    void (*gone)(struct waiter *w); /* told when that happens; may be NULL */
};

struct request {
    struct api *api;
    struct xchg *x;
    const struct route *route;
    struct op_params params;
    const struct op *op; /* NULL: not a native operation */
    void *in;            /* op's input struct; the one message of a call */
    json_t *body;
    struct principal who; /* who.token is valid only until the handler returns */
    enum auth_how how;
    struct waiter *waiter;
    struct rpc *rpc; /* a call of a protobuf service */
    void (*collected)(struct request *r, struct str body);
    struct idem *idem; /* with an Idempotency-Key; whoever waits takes it */
    int64_t started_ns;
    int status; /* of the reply; 0: none yet */
    bool audited;
};

struct op_handler {
    const struct op *op;
    void (*run)(struct request *r);
};
extern const struct op_handler op_handlers[]; /* handlers.c; one row per operation */
extern const size_t op_handler_count;

/* A buffer for the reply, empty; valid until the next request_json. */
struct jw request_json(struct request *r);
/* Sends what request_json's writer wrote; status 0 is the operation's. */
void request_send_json(struct request *r, int status);
void request_send(struct request *r, int status, const char *content_type, struct str body);
void request_send_empty(struct request *r);
void request_fail(struct request *r, const struct err *e);
/* As request_fail for 401, 403 and 429, with an audit row. */
void request_refuse(struct request *r, const struct err *e);
/* What auth_authenticate and auth_throttle said, with Retry-After. */
void request_refuse_for(struct request *r, int64_t retry_ms, const struct err *e);
/* Whether the asker may do what needs this permission: by its role, and as an agent of the team
 * that nobody has revoked.  The one place where that is decided, for every interface. */
CHECKED int request_authorise(const struct request *r, enum perm p, struct err *e);
bool request_may(const struct request *r, enum perm p);
/* The agent of the team that asks, or whose sandbox does; empty: a person, or none. */
struct str request_agent(const struct request *r);
/* Whose it is: one that an agent made for itself without its name is its own all the same. */
struct str api_agent_of(const struct api *a, const struct sandbox *s);
struct auth_view request_view(const struct request *r);
/* Counts the request now, by a status: for replies that become streams. */
void request_count(struct request *r, int status);

/* After Host, Origin and routing: who asks, may they, then the route's handler. */
void request_admit(struct request *r);
/* Gathers the body, then goes on if the asker still may. */
void request_collect(struct request *r, void (*collected)(struct request *r, struct str body));
size_t request_body_max(const struct request *r); /* of its route, within the setting */
/* The token, or its agent, may have been revoked while the body came in. */
CHECKED int request_still_may(struct request *r, struct err *e);
/* The asker has gone: whoever waits is told. */
void request_gone(struct request *r);
/* A handler that takes the exchange over by xchg_handle calls this from its closed. */
void request_end(struct request *r, bool done);

void request_wait(struct request *r, struct waiter *w);
struct request *waiter_end(struct waiter *w); /* NULL: nobody waits any more */
/* For what tells its end and nothing else: request_ended is the callback, with this as its arg. */
struct waiter *request_wait_end(struct request *r);
void request_ended(void *arg, const struct err *e); /* an empty reply, or the error */

/* The router leaves "{name...}" as it was sent, for it may hold slashes: here is the text. */
CHECKED int request_decode(const struct request *r, struct str raw, struct str *ret, struct err *e);

/* A read of content is an audit row: who, which operation, which object (may be NULL). */
void request_audit(struct request *r, const char *type, const char *object, int status);
/* Does Accept prefer this media type to JSON? */
bool accept_prefers(const struct xchg *x, const char *media_type);
