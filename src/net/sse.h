/* sse: the server side of an event stream (text/event-stream) with keepalive comments.
 * Made from an exchange, which it takes over; ops->closed is the last call.  Thread: the loop's. */
#pragma once

#include "net/xchg.h"

struct sse;

struct sse_ops {
    void (*drained)(struct sse *s);
    void (*closed)(struct sse *s);
};

/* Replies 200 and begins; sends a comment line after each keepalive_ms without other output.  When
 * a client reads nothing for write_ms, the stream ends with a comment after the last whole event;
 * the connection is cut only if the client does not read that either (docs/events.md). */
struct sse *sse_start(struct xchg *x, int64_t keepalive_ms, const struct sse_ops *ops, void *arg);
void *sse_arg(const struct sse *s);
/* id and event may be empty; data may hold line breaks.  1: wait for drained. */
int sse_send(struct sse *s, struct str id, struct str event, struct str data) CHECKED;
int sse_send_text(struct sse *s, struct str text) CHECKED; /* events written by proto/sse.h */
void sse_end(struct sse *s);
/* The Last-Event-ID of a reconnecting client; p is NULL: none. */
struct str sse_last_id(const struct xchg *x);
