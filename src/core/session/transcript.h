/* transcript: the text of a terminal's output, line by line, without its sequences: what a search
 * looks at.  Bytes are hostile; a line is cut at TRANSCRIPT_LINE bytes.
 * Ownership: transcript_done.  Thread: any one at a time. */
#pragma once

#include "base/buf.h"
#include "proto/vt.h"

#define TRANSCRIPT_LINE 4096

struct transcript { /* zero-initialised, with line and arg */
    struct vt vt;
    struct buf text;
    /* A line has ended: by a line feed, or because the cursor went elsewhere. */
    void (*line)(void *arg, struct str text);
    void *arg;
};

void transcript_feed(struct transcript *t, struct str bytes);
void transcript_end(struct transcript *t); /* the last line */
void transcript_done(struct transcript *t);
