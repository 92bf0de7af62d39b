/* grpc: message frames, timeouts and message texts of gRPC and gRPC-Web, without I/O.
 * Wire: the "gRPC over HTTP2" and "gRPC Web" protocol documents.  Thread: any. */
#pragma once

#include "base/buf.h"

#define GRPC_HEAD 5
#define GRPC_FLAG_COMPRESSED 0x01
#define GRPC_FLAG_TRAILER 0x80 /* gRPC-Web, sent by servers only */

struct grpc_reader {
    size_t limit;       /* most bytes of one message */
    bool trailers;      /* at a client: trailer frames are allowed */
    bool compressed;    /* compressed messages are allowed, and handed out compressed */
    struct buf message; /* the message so far */
    unsigned char head[GRPC_HEAD];
    size_t head_have;
    size_t left;
    bool complete; /* the message was handed out */
};

struct grpc_frame {
    bool trailer, compressed;
    struct str data; /* valid until the next call */
};

void grpc_reader_done(struct grpc_reader *r);
/* Consumes bytes of *in.  1: *ret is set; 0: all was consumed and more is needed.
 * -EMSGSIZE: over the limit; -EOPNOTSUPP: compressed; -EPROTO: reserved flags. */
int grpc_reader_next(struct grpc_reader *r, struct str *in, struct grpc_frame *ret) CHECKED;
bool grpc_reader_is_between(const struct grpc_reader *r); /* true between two frames */
void grpc_frame_head(unsigned char to[GRPC_HEAD], unsigned flag, size_t n);

/* "250m": at most eight digits and a unit (H M S m u n); rounded up to milliseconds.  -EINVAL. */
int grpc_timeout_parse(struct str s, int64_t *ret_ms) CHECKED;
/* grpc-message: percent-encodes '%' and everything but printable ASCII. */
void grpc_text_encode(struct buf *to, struct str s);
