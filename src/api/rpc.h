/* rpc: private to src/api: the methods of protobuf services, called by gRPC, gRPC-Web, or Connect's
 * unary form (a plain POST of JSON or protobuf).
 * A method is a route: Host, Origin, credentials and permission are checked before it in the same
 * way, and its calls are counted under its name.  request_fail replies in the caller's protocol.
 * Thread: the loop's. */
#pragma once

#include "api/request.h"
#include "proto/pb.h"

struct rpc_method {
    const char *name; /* for metrics and audit rows: "dialect.exec" */
    enum perm perm;
    bool creates; /* as in struct route; its replies are remade */
    bool large;   /* messages up to grpc_message_max; else ROUTE_BODY */
    const struct pb_method *pb;
    /* Called with each message.  in is valid until the request ends, or, for a streaming client,
     * until it returns.  Replies now, or waits by request_wait. */
    void (*run)(struct request *r, const void *in);
    /* Of a streaming client, before its first message; NULL: nothing to do. */
    void (*begin)(struct request *r);
};

struct rpc; /* in struct request while a call is served */

CHECKED int rpc_add_routes(struct api *a, const struct rpc_method *m, size_t count, struct err *e);
/* For a request of grpc_is_call: finds its method and begins, or replies that there is none. */
void rpc_grpc(struct request *r);

void rpc_reply(struct request *r, const void *answer); /* the only reply, and the end */
/* One of several replies.  1: wait for drained.  Does nothing once the call has ended. */
CHECKED int rpc_send(struct request *r, const void *answer);
void rpc_on_drained(struct request *r, void (*drained)(void *arg), void *arg);
/* Of a streaming client: its messages wait until off. */
void rpc_hold(struct request *r, bool on);
void rpc_end(struct request *r);
void rpc_done(struct request *r);                      /* the request is over: frees the call */
void rpc_fail(struct request *r, const struct err *e); /* request_fail for calls */
/* Ends a call with a status that no err_code has (UNKNOWN, for example). */
void rpc_fail_as(struct request *r, int grpc_status, const struct err *e);
