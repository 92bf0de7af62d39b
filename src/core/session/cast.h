/* cast: output as an asciicast, version 2 (the format of asciinema): a line of JSON for the head,
 * then one per piece of output or size.  Characters that records cut in two are put together.
 * Ownership: cast_done.  Thread: any. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

struct cast {         /* zero-initialised, but for idle_us */
    int64_t idle_us;  /* pauses are cut to this; 0: they stay */
    int64_t last_us;  /* time of the last event as it was; 0: none yet */
    int64_t shown_us; /* and as it is shown: since the first one */
    struct buf held;  /* the beginning of a character */
};

struct cast_head {
    int rows, cols;
    int64_t start_ms; /* wall clock */
    struct str title;
    const struct str *argv;
    size_t argc;
};

void cast_put_head(const struct cast_head *h, struct buf *to);
void cast_put_output(struct cast *c, int64_t time_us, struct str bytes, struct buf *to);
void cast_put_size(struct cast *c, int64_t time_us, int rows, int cols, struct buf *to);
void cast_put_end(struct cast *c, struct buf *to); /* what is still held */
void cast_done(struct cast *c);
