/* event_internal: shared by the files of core/event/event.h.
 * Thread: the loop's, except page_read and event_from_row, which run inside works. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/metric.h"
#include "core/event/event_hash.h"

#define PAGE_BYTES (4 << 20) /* of a page; past it no further row is added */

struct events {
    int refs; /* held by the owner and by each read, subscription and audit row in progress */
    struct store *store;
    bool closed;
    int64_t head_seq;
    unsigned char head_hash[EVENT_HASH_SIZE];
    struct list subs;
    struct map folds; /* type, object, actor → struct fold */
    int64_t fold_ms;
    uv_timer_t *timer; /* expiry of the oldest fold */
};

struct events *events_ref(struct events *l);
struct events *events_unref(struct events *l);

extern struct metric events_total, events_head_seq, events_subscribers, events_audit_lost;

/* --- event_read.c --- */
struct page { /* rows that match a filter, in memory of their own */
    struct arena arena;
    struct event_filter filter;
    struct event *events;
    size_t count;
    bool more;        /* there may be further rows after the last one */
    int64_t head_seq; /* the log's head as seen by the reader */
};
void page_init(struct page *p, const struct event_filter *f); /* copies the filter */
void page_done(struct page *p);
CHECKED int page_read(struct store_tx *tx, struct page *p, struct err *e);
/* texts are valid until the next step */
void event_from_row(const struct store_rows *r, struct event *ev);
#define EVENT_COLUMNS "seq, time_ms, type, object, actor, audit, times, data, prev, hash"

/* --- event_live.c --- */
void subs_tell(struct events *l, const struct event *ev, size_t n);
void subs_end_all(struct events *l);

/* --- event_audit.c --- */
void folds_init(struct events *l);
void folds_close(struct events *l); /* writes the rows still being counted */
