/* stream: private to this dialect: a sandbox's journal as events, and its readers.
 * One channel per sandbox with readers encodes each event once and keeps the last ones; a reader
 * that is behind those, or requests older ones, reads the journal itself until it has caught
 * up.  Ownership: a channel belongs to its readers. */
#pragma once

#include "api/dialects/sbx/sbx.h"
#include "core/exec/journal.h"

struct sbx_event {
    int64_t seq;
    char exec[64]; /* its exec_id: ours, or one sent by a sidecar */
    bool is_exit;
    bool gap;
    struct buf json;  /* empty: not an event */
    struct buf frame; /* the same as a WebSocket frame, for many readers */
};

struct sbx_encoder {
    char sandbox[ALIAS_MAX + 1]; /* its name in the events */
    struct map cuts;             /* of exec_id to struct cut */
    size_t count;
};
void sbx_encoder_done(struct sbx_encoder *n);
void sbx_encode(struct sbx_encoder *n, const struct journal_entry *j, struct sbx_event *to);
