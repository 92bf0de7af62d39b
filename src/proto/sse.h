/* sse: writes and reads events of a text/event-stream (HTML standard §9.2), without I/O. */
#pragma once

#include "base/buf.h"

/* Omits the line of an empty id or event.  data may hold line breaks of any kind.  Line breaks and
 * NULs in id and event are removed: they would forge other lines. */
void sse_write(struct buf *to, struct str id, struct str event, struct str data);
void sse_write_comment(struct buf *to, struct str text);

struct sse_event {
    struct str id;    /* the last one seen, of this or an earlier event */
    struct str event; /* "message" if the server names none */
    struct str data;  /* lines joined by '\n' */
};

struct sse_reader { /* zero-initialised, then set limit */
    size_t limit;   /* most bytes of one event, and of one line */
    struct buf line, data, event, id;
    int64_t retry_ms; /* requested by the server; 0: not */
    bool any_data, after_cr, started, handed_out;
};

void sse_reader_done(struct sse_reader *r);
/* Consumes bytes of *in.  1: *ret is set (valid until the next call); 0: more is needed; -EMSGSIZE:
 * over the limit. */
int sse_reader_next(struct sse_reader *r, struct str *in, struct sse_event *ret) CHECKED;
