/* source: standard input in parts.  Descriptors that epoll cannot watch (a file, /dev/null) are
 * always ready.
 * Life: source_init, source_close, and the loop runs once more before the memory is freed. */
#pragma once

#include "base/str.h"

#include <uv.h>

#define SOURCE_PART (64 * 1024)

struct source {
    uv_poll_t poll;
    uv_idle_t idle; /* instead of poll */
    int fd;
    bool made, polls, on;
    bool ended;
    /* An empty part is the end, and the last call.  bytes.p[-1] may be overwritten, for a frame's
     * kind. */
    void (*part)(struct source *s, struct str bytes);
    void *arg;
    char room[1 + SOURCE_PART];
};

CHECKED int source_init(struct source *s, uv_loop_t *loop, int fd); /* -errno */
void source_read(struct source *s, bool on);                        /* off at first */
void source_close(struct source *s);
