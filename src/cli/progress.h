/* progress: the progress of a transfer, on one line of a terminal's standard error; nothing if that
 * is not a terminal. */
#pragma once

#include "base/macro.h"

struct progress {
    const char *what;
    int64_t total; /* 0: unknown */
    int64_t start_ms, shown_ms;
    bool on;
};

void progress_begin(struct progress *p, const char *what, int64_t total);
void progress_show(struct progress *p, int64_t done);
void progress_end(struct progress *p); /* clears the line */
