/* rpc: private to src/api: the methods of protobuf services, whatever they are called by: gRPC,
 * gRPC-Web, or Connect's unary form (a plain POST of JSON or protobuf).
 * A method is a route: the same checks of Host, Origin, credentials and permission come before it,
 * and its calls are counted under its name.  request_fail answers in the caller's protocol.
 * Thread: the loop's. */
#pragma once

#include "api/request.h"
#include "proto/pb.h"

struct rpc_method {
    const char *name; /* for metrics and audit rows: "agentbox.exec" */
    enum perm perm;
    bool large; /* messages up to grpc_message_max; else ROUTE_BODY */
    const struct pb_method *pb;
    /* One message came; for each one of a method whose client streams.  in is valid until the
     * request ends, or until it returns where the client streams.  Answers now, or waits by
     * request_wait. */
    void (*run)(struct request *r, const void *in);
};

struct rpc; /* in struct request while a call is served */

CHECKED int rpc_add_routes(struct api *a, const struct rpc_method *m, size_t count, struct err *e);
/* A request that grpc_is_call: finds its method and begins, or says that there is none. */
void rpc_grpc(struct request *r);

void rpc_reply(struct request *r, const void *answer); /* the one answer, and the end */
/* One of several answers.  1: wait until drained is called.  Nothing once the call has ended. */
CHECKED int rpc_send(struct request *r, const void *answer);
void rpc_on_drained(struct request *r, void (*drained)(void *arg), void *arg);
void rpc_end(struct request *r);
void rpc_done(struct request *r); /* the request is over: nothing of a call remains */
void rpc_fail(struct request *r, const struct err *e); /* request_fail's, for calls */
/* Ends a call with a status that no err_code has (UNKNOWN, say). */
void rpc_fail_as(struct request *r, int grpc_status, const struct err *e);
