/* sink: standard output or error as something that never blocks the loop and is not made
 * non-blocking for others: a pipe or terminal is opened anew for that, a socket is asked per call,
 * a regular file never blocks for long.
 * What a slow reader has not taken is kept; the owner stops its source while sink_is_full.
 * Life: sink_init, sink_close, and the loop runs once more before the memory goes. */
#pragma once

#include "base/buf.h"

#include <uv.h>

struct sink {
    uv_loop_t *loop;
    uv_poll_t poll;
    bool polls;                   /* poll is set up */
    int fd;                       /* what is written to */
    bool own;                     /* fd was opened here */
    bool socket;                  /* send() is asked not to wait */
    bool ask;                     /* could not be opened anew: poll() before each small write */
    int error;                    /* errno of the write that failed; then everything is dropped */
    struct buf wait;              /* not written yet */
    void (*turn)(struct sink *s); /* all was written after all, or an error came */
    void *arg;
};

void sink_init(struct sink *s, uv_loop_t *loop, int fd);
void sink_write(struct sink *s, struct str bytes);
void sink_drop(struct sink *s);          /* what waits, and all that comes */
bool sink_is_full(const struct sink *s); /* something waits for the reader */
void sink_close(struct sink *s);
