/* grpc: the server's end of a gRPC call (over HTTP/2) or gRPC-Web call (over either version).
 * Methods are a table; a call's ops->closed is the last call and comes exactly once.
 * A deadline (grpc-timeout) ends the call with DEADLINE_EXCEEDED and tells the method by cancelled.
 * Thread: the loop's. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "net/xchg.h"

struct grpc_call;

struct grpc_ops {
    void (*message)(struct grpc_call *c, struct str message); /* consumed by grpc_consume */
    void (*half_closed)(struct grpc_call *c);                 /* the client sends no more */
    void (*drained)(struct grpc_call *c);
    void (*cancelled)(
        struct grpc_call *c); /* deadline, reset, disconnect, broken framing; do not reply */
    void (*closed)(struct grpc_call *c);
};

struct grpc_method {
    const char *path; /* "/grpc.health.v1.Health/Check" */
    /* Must set the ops by grpc_handle before returning. */
    void (*start)(struct grpc_call *c, void *arg);
};

/* Is x a gRPC or gRPC-Web request (content-type)?  Then grpc_start takes it whatever happens. */
bool grpc_is_call(const struct xchg *x);
/* The method of that path; NULL: none of these. */
const struct grpc_method *grpc_find(const struct grpc_method *methods, size_t count,
                                    struct str path);
/* No method answers UNIMPLEMENTED. */
void grpc_start(struct xchg *x, const struct grpc_method *method, void *arg);
/* Ends a call that may not begin (authentication, limits): trailers-only reply. */
void grpc_refuse(struct xchg *x, const struct err *e);

/* Largest message, within the setting.  GRPC_SMALL at first: whoever calls is not known yet. */
#define GRPC_SMALL ((size_t)64 * 1024)
void grpc_limit_message(struct grpc_call *c, size_t max);
void grpc_handle(struct grpc_call *c, const struct grpc_ops *ops, void *arg);
void *grpc_arg(const struct grpc_call *c);
struct xchg *grpc_xchg(const struct grpc_call *c); /* metadata is in its request's headers */
/* The bytes of a binary metadata field ("…-bin").  1: there, 0: absent, -EINVAL: not base64. */
int grpc_get_bin(const struct grpc_call *c, const char *name, struct buf *to) CHECKED;
void grpc_consume(struct grpc_call *c); /* the last message is done with */
void grpc_metadata(struct grpc_call *c, const char *name,
                   struct str value); /* before the first send */
void grpc_trailer(struct grpc_call *c, const char *name, struct str value);
int grpc_send(struct grpc_call *c, struct str message) CHECKED; /* 1: wait for drained */
/* grpc_fail then says this status: for a contract that wants one no err_code has. */
void grpc_set_status(struct grpc_call *c, int status);
void grpc_finish(struct grpc_call *c); /* OK */
void grpc_fail(struct grpc_call *c,
               const struct err *e); /* err_table's code, message percent-encoded */
