/* grpc: the server side of a gRPC call (over HTTP/2) or gRPC-Web call (over either version).
 * Methods are a table; ops->closed is a call's last callback and comes exactly once.  When its
 * deadline (grpc-timeout) passes, the call ends with DEADLINE_EXCEEDED and the method is notified
 * by cancelled.
 * Thread: the loop's. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "net/xchg.h"

struct grpc_call;

struct grpc_ops {
    /* call grpc_consume when done with it */
    void (*message)(struct grpc_call *c, struct str message);
    void (*half_closed)(struct grpc_call *c); /* the client has stopped sending */
    void (*drained)(struct grpc_call *c);
    void (*cancelled)(
        struct grpc_call *c); /* deadline, reset, disconnect, broken framing; do not reply */
    void (*closed)(struct grpc_call *c);
};

struct grpc_method {
    const char *path; /* "/grpc.health.v1.Health/Check" */
    /* Must set the ops with grpc_handle before it returns. */
    void (*start)(struct grpc_call *c, void *arg);
};

/* Whether x is a gRPC or gRPC-Web request (content-type).  Then pass it to grpc_start in any
 * case. */
bool grpc_is_call(const struct xchg *x);
/* The method of that path; NULL: none. */
const struct grpc_method *grpc_find(const struct grpc_method *methods, size_t count,
                                    struct str path);
/* Without a method it replies UNIMPLEMENTED. */
void grpc_start(struct xchg *x, const struct grpc_method *method, void *arg);
/* Ends a call that may not begin (authentication, limits) with a trailers-only reply. */
void grpc_refuse(struct xchg *x, const struct err *e);

/* Sets the largest message, within the setting.  Initially GRPC_SMALL: the caller is not
 * authenticated yet. */
#define GRPC_SMALL ((size_t)64 * 1024)
void grpc_limit_message(struct grpc_call *c, size_t max);
void grpc_handle(struct grpc_call *c, const struct grpc_ops *ops, void *arg);
void *grpc_arg(const struct grpc_call *c);
struct xchg *grpc_xchg(const struct grpc_call *c); /* its headers are the call's metadata */
/* The bytes of a binary metadata field ("…-bin").  1: present, 0: absent, -EINVAL: not base64. */
int grpc_get_bin(const struct grpc_call *c, const char *name, struct buf *to) CHECKED;
void grpc_consume(struct grpc_call *c); /* finished with the last message */
void grpc_metadata(struct grpc_call *c, const char *name,
                   struct str value); /* before the first send */
void grpc_trailer(struct grpc_call *c, const char *name, struct str value);
int grpc_send(struct grpc_call *c, struct str message) CHECKED; /* 1: wait for drained */
/* grpc_fail then sends this status: for contracts with a status that no err_code has. */
void grpc_set_status(struct grpc_call *c, int status);
void grpc_finish(struct grpc_call *c); /* ends the call with OK */
void grpc_fail(struct grpc_call *c,
               const struct err *e); /* the code of err_table; the message percent-encoded */
