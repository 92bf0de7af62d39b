/* ws: WebSocket frames (RFC 6455 §5) and the handshake's key, without I/O.
 * The reader joins fragments up to a limit and keeps only received bytes: a header that announces a
 * long payload costs nothing, nor do empty fragments.  Thread: any; a reader belongs to one. */
#pragma once

#include "base/buf.h"

enum ws_op { WS_OP_MORE, WS_OP_TEXT, WS_OP_BINARY, WS_OP_CLOSE = 8, WS_OP_PING, WS_OP_PONG };

/* Close codes (RFC 6455 §7.4.1). */
#define WS_NORMAL 1000
#define WS_GOING_AWAY 1001
#define WS_PROTOCOL 1002
#define WS_UNSUPPORTED 1003
#define WS_NO_CODE 1005  /* a close frame without a code; never sent */
#define WS_VANISHED 1006 /* no close frame; never sent */
#define WS_BAD_TEXT 1007
#define WS_POLICY 1008
#define WS_TOO_BIG 1009
#define WS_INTERNAL 1011

#define WS_CONTROL_MAX 125
#define WS_HEAD_MAX 14

struct ws_reader {
    size_t limit;      /* most bytes of one message */
    bool masked;       /* whether frames must be masked: true at a server */
    struct buf joined; /* the message so far */
    enum ws_op kind;   /* … its kind; WS_OP_MORE: no message is open */
    unsigned char head[WS_HEAD_MAX];
    size_t head_have;
    bool in_payload;
    bool fin;
    enum ws_op op;
    unsigned char mask[4];
    uint64_t left, at; /* of the payload: remaining bytes, offset of the next byte */
    unsigned char control[WS_CONTROL_MAX];
    size_t control_have;
};

struct ws_event {
    enum ws_op op;   /* TEXT, BINARY: a whole message; CLOSE: data is the reason */
    int code;        /* of a CLOSE; WS_NO_CODE without one */
    struct str data; /* valid until the next call */
};

void ws_reader_done(struct ws_reader *r);
/* Consumes bytes of *in.  1: *ret is set; 0: all was consumed and more is needed; negative: close
 * the connection with the code -result. */
int ws_reader_next(struct ws_reader *r, struct str *in, struct ws_event *ret) CHECKED;

/* For forwarding frames unchanged: consumes the rest of one frame from *in, head and payload, as
 * far as it has arrived.  1: the frame ended; 0: more of it follows; negative as above. */
int ws_frame_next(struct ws_reader *r, struct str *in, struct str *ret_head, struct str *ret_data)
    CHECKED;

/* mask: four random bytes at a client, NULL at a server. */
void ws_write(struct buf *to, enum ws_op op, struct str data, const unsigned char *mask);
/* reason is cut (at a character boundary) to the size of a control frame. */
void ws_write_close(struct buf *to, int code, struct str reason, const unsigned char *mask);
bool ws_code_is_valid(int code); /* allowed in a close frame */

#define WS_ACCEPT_SIZE 29
bool ws_key_is_valid(struct str key); /* base64 of 16 bytes */
void ws_accept_key(struct str key, char to[WS_ACCEPT_SIZE]);
