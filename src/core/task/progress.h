/* progress: what an agent's output tells about its work: the lines of Claude Code's stream-json,
 * among any other output.  The same bytes always give the same result, so that it can be made again
 * from the log.  Pure.  Hostile input: lines and texts are bounded. */
#pragma once

#include "base/buf.h"
#include "proto/json.h"

#define PROGRESS_LINE_MAX (1 << 20) /* a longer line is not looked at */

struct progress {
    int64_t output_bytes, tool_calls, turns;
    int64_t tokens_in, tokens_out;
    double cost_usd; /* < 0: not told */
    char tool[64];   /* the one that runs now; "": none */
    bool failed;     /* its result says so */
    int64_t last_ms; /* of the last output; 0: none */
    struct buf line;
    bool skipping; /* the rest of a line that was too long */
};

void progress_init(struct progress *p);
void progress_done(struct progress *p);
void progress_feed(struct progress *p, struct str bytes, int64_t now_ms);
/* As members of an object that is open. */
void progress_write(struct jw *w, const struct progress *p);
/* Reads what progress_write wrote. */
void progress_load(struct progress *p, struct str json);
