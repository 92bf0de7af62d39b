/* stream: private to this dialect: a sandbox's journal as events, and its many readers.
 * One channel per sandbox that is being read encodes each event once and keeps the last of them; a
 * reader that is behind those, or asks for older ones, reads the journal by itself until it has
 * caught up.  Ownership: a channel is its readers'. */
#pragma once

#include "api/dialects/sbx/sbx.h"
#include "core/exec/journal.h"

struct sbx_event {
    int64_t seq;
    char exec[64]; /* its exec_id: ours, or what a sidecar sent */
    bool is_exit;
    bool gap;
    struct buf json;  /* empty: it is none */
    struct buf frame; /* the same as a WebSocket's, for many readers */
};

struct sbx_encoder {
    char sandbox[ALIAS_MAX + 1]; /* as the events call it */
    struct map cuts;             /* of exec_id to struct cut */
    size_t count;
};
void sbx_encoder_done(struct sbx_encoder *n);
void sbx_encode(struct sbx_encoder *n, const struct journal_entry *j, struct sbx_event *to);
