/* sse_read: an event stream (text/event-stream, HTML standard section 9.2) taken apart, without
 * I/O. Splitting the input anywhere changes nothing of the outcome.  Bounded: an event over
 * SSE_EVENT_MAX is an error. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define SSE_EVENT_MAX (4 * 1024 * 1024)

struct sse_read { /* zero-initialised is at the start of a stream */
    struct buf line, data;
    char id[64];    /* of the newest event that had one */
    char event[64]; /* of the one being read */
    bool has_data;
    bool cr; /* the last byte was CR: an LF right behind it belongs to it */
    /* Non-zero ends the reading. */
    int (*each)(void *arg, const char *id, const char *event, struct str data);
    void *arg;
};

/* 0: all was taken; 1: ended by the callback; -1: *e. */
CHECKED int sse_read_feed(struct sse_read *s, struct str bytes, struct err *e);
void sse_read_done(struct sse_read *s);
static inline UNUSED void sse_read_done_p(struct sse_read *s)
{
    sse_read_done(s);
}
