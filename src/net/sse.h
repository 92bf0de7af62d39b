/* sse: the server's end of an event stream (text/event-stream) with keep-alive comments.
 * Made from an exchange, which it takes over; ops->closed is the last call.  Thread: the loop's. */
#pragma once

#include "net/xchg.h"

struct sse;

struct sse_ops {
    void (*drained)(struct sse *s);
    void (*closed)(struct sse *s);
};

/* A reader that takes nothing for write_ms is told so by a comment behind the last whole event, and
 * the stream ends; it is cut only when it does not take that either (docs/events.md).
 * Replies 200 and begins; a comment line goes out every keepalive_ms without other output. */
struct sse *sse_start(struct xchg *x, int64_t keepalive_ms, const struct sse_ops *ops, void *arg);
void *sse_arg(const struct sse *s);
/* id and event may be empty; data may hold line breaks.  1: wait for drained. */
int sse_send(struct sse *s, struct str id, struct str event, struct str data) CHECKED;
int sse_send_text(struct sse *s, struct str text) CHECKED; /* events that proto/sse.h wrote */
void sse_end(struct sse *s);
/* The Last-Event-ID of a reconnecting client; p is NULL: none. */
struct str sse_last_id(const struct xchg *x);
