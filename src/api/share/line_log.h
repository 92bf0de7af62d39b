/* line_log: private to src/api: an output as server-sent events: what is there, then what comes,
 * then the end.  'stdout' is a line, 'event' a line that is a JSON object; 'completed' (the exit
 * status) or 'error' (why there is none) ends it.  Ids are offsets.
 * Ownership: in the exchange's arena, as is the object.  Thread: the loop's. */
#pragma once

#include "api/request.h"

struct line_source {
    /* Bytes from an offset on, at most max; 0: none yet; < 0: *e. */
    int64_t (*read)(void *object, int64_t offset, size_t max, struct buf *to, struct err *e);
    /* Whether no more will come; then how it ended (-1: without an exit status). */
    bool (*is_over)(void *object, int *ret_code, struct str *ret_why);
    void (*stop)(void *object); /* the last call; may come twice */
};

struct line_log;
struct line_log *line_log_new(struct request *r, const struct line_source *source, void *object);
/* Takes the exchange over.  Last-Event-ID is stronger than offset. */
void line_log_start(struct line_log *s, struct request *r, int64_t offset, bool follow);
void line_log_poke(struct line_log *s); /* there may be more; until stop */
