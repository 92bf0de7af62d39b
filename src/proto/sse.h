/* sse: events of a text/event-stream (HTML standard §9.2), written and read, without I/O. */
#pragma once

#include "base/buf.h"

/* id and event may be empty: then that line is left out.  data may hold line breaks of any kind.
 * Line breaks and NULs in id and event are left out: they would forge other lines. */
void sse_write(struct buf *to, struct str id, struct str event, struct str data);
void sse_write_comment(struct buf *to, struct str text);

struct sse_event {
    struct str id;    /* the last one seen, of this or an earlier event */
    struct str event; /* "message" when the server names none */
    struct str data;  /* lines joined by '\n' */
};

struct sse_reader { /* zero-initialised, then set limit */
    size_t limit;   /* most bytes of one event, and of one line */
    struct buf line, data, event, id;
    int64_t retry_ms; /* the server's wish; 0: none */
    bool any_data, after_cr, started, handed_out;
};

void sse_reader_done(struct sse_reader *r);
/* Takes bytes from *in.  1: *ret is set (valid until the next call); 0: more is needed;
 * -EMSGSIZE: over the limit. */
int sse_reader_next(struct sse_reader *r, struct str *in, struct sse_event *ret) CHECKED;
