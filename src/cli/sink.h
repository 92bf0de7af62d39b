/* sink: standard output or error, written without blocking the loop and without making the shared
 * descriptor non-blocking for others: a pipe or terminal is opened anew for that, send() on a
 * socket is told not to wait, a regular file never blocks for long.
 * Bytes that a slow reader has not read are kept; the owner stops its source while sink_is_full.
 * Life: sink_init, sink_close, and the loop runs once more before the memory is freed. */
#pragma once

#include "base/buf.h"

#include <uv.h>

struct sink {
    uv_loop_t *loop;
    uv_poll_t poll;
    bool polls;                   /* poll is set up */
    int fd;                       /* the descriptor written to */
    bool own;                     /* fd was opened here */
    bool socket;                  /* a socket: use send() with MSG_DONTWAIT */
    bool ask;                     /* could not be opened anew: poll() before each small write */
    int error;                    /* errno of the failed write; after that all output is dropped */
    struct buf wait;              /* not written yet */
    void (*turn)(struct sink *s); /* all pending bytes were written, or an error occurred */
    void *arg;
};

void sink_init(struct sink *s, uv_loop_t *loop, int fd);
void sink_write(struct sink *s, struct str bytes);
void sink_drop(struct sink *s);          /* drops pending and future output */
bool sink_is_full(const struct sink *s); /* bytes are waiting for the reader */
void sink_close(struct sink *s);
