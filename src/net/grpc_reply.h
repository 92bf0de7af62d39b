/* grpc_reply: private to src/net: the three forms of a gRPC reply.
 * Plain gRPC: status in HTTP/2 trailers, or in the head of a reply without messages.  gRPC-Web:
 * status in a last frame of the body; the text form encodes all of it in base64. */
#pragma once

#include "base/err.h"
#include "net/xchg.h"

enum grpc_form { GRPC_FORM_NONE, GRPC_FORM_PLAIN, GRPC_FORM_WEB, GRPC_FORM_WEB_TEXT };

#define GRPC_FIELDS_MAX 16 /* for metadata and trailers of one reply, each */

struct grpc_reply {
    struct xchg *x;
    bool web, text;
    bool head_sent;
    int status; /* grpc-status of a failure; 0: from the error's code */
    struct http_header head[GRPC_FIELDS_MAX + 5]; /* room for our own */
    size_t head_count;
    struct http_header trailers[GRPC_FIELDS_MAX + 2];
    size_t trailer_count;
};

enum grpc_form grpc_form(const struct xchg *x); /* by its content-type */
void grpc_reply_init(struct grpc_reply *r, struct xchg *x);
void grpc_reply_metadata(struct grpc_reply *r, const char *name, struct str value);
void grpc_reply_trailer(struct grpc_reply *r, const char *name, struct str value);
int grpc_reply_send(struct grpc_reply *r, struct str message) CHECKED;
/* e->code ERR_NONE: OK.  Make no further call: this may free the call. */
void grpc_reply_end(struct grpc_reply *r, const struct err *e);
