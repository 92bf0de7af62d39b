/* event: the log of all changes: one global sequence, hash-chained, kept, replayable.
 * hash(n) = SHA-256(hash(n-1) | canonical bytes of event n), see docs/events.md.
 * Subscribers are notified on the loop's thread after the commit, in order of seq, without gaps;
 * one that falls behind reads from the store. */
#pragma once

#include "core/store.h"

#define EVENT_NAME_MAX 512  /* bytes of type, object and actor; longer ones are cut */
#define EVENT_PAGE_MAX 1000 /* rows of one events_read */

struct event_spec {     /* input of a writer; copied by tx_event */
    const char *type;   /* "token.created" */
    const char *object; /* "token/tk_…" */
    const char *actor;  /* "token/tk_…", "system", "anonymous" */
    struct str data; /* a JSON object: the full new values; never environment values or secrets */
    bool audit;      /* a read or a refusal, not a change */
    bool apart;      /* audit: only folded with rows of the same data */
    int64_t count;   /* the number of events it stands for; 0 is 1 */
    int64_t fold_ms; /* audit: fold similar rows for this long, if longer than the default */
};

struct event {
    int64_t seq;
    int64_t time_ms;
    struct str type, object, actor, data;
    bool audit;
    int64_t count; /* of folded audit rows; else 1 */
    unsigned char prev[32], hash[32];
};

struct event_filter {  /* empty members match all */
    struct str type;   /* exact, or "token.*" */
    struct str object; /* exact, or a kind: "token/" */
    struct str actor;
    int64_t since_seq; /* only later ones */
    int64_t since_ms;  /* only at or after; 0: any */
    bool audit_too;    /* audit rows as well as changes */
    bool audit_only;   /* audit rows and no changes */
    int64_t limit;     /* rows of a page: 0 is 100, at most EVENT_PAGE_MAX */
};

bool event_matches(const struct event_filter *f, const struct event *ev);

struct events; /* the log as seen by the loop */
CHECKED int events_open(struct store *s, struct events **ret, struct err *e);
/* Writes the audit rows that are still being counted.  Call it before store_close, which may still
 * make callbacks.  Takes NULL; returns NULL. */
struct events *events_close(struct events *l);
int64_t events_head(const struct events *l, unsigned char ret_hash[32]); /* seq of the newest */

/* Reads one page from the store; calls each on the loop's thread for every event, in order, then
 * done.  A page of large events may be shorter than its limit: only an empty one is the end. */
typedef void (*event_each)(void *arg, const struct event *ev);
void events_read(struct events *l, const struct event_filter *f, event_each each, store_done done,
                 void *arg);

/* A live view: replays the events after f->since_seq, then follows.  each returns 1 to pause after
 * taking ev (a slow client); subscription_resume, not from within each, continues after it; nothing
 * is lost or repeated.  failed: the store could not be read; the subscription is then paused.  A
 * subscription must be ended, also after events_close. */
struct subscription;
typedef int (*event_live)(void *arg, const struct event *ev);
struct subscription *events_subscribe(struct events *l, const struct event_filter *f,
                                      event_live each,
                                      void (*failed)(void *arg, const struct err *e), void *arg);
void subscription_resume(struct subscription *s);
void subscription_end(struct subscription *s); /* no call after it; takes NULL */
/* The seq up to which it has everything: each event was given to it, or did not match. */
int64_t subscription_at(const struct subscription *s);

/* Adds an audit row (class 2).  Floods are folded: rows of the same type, object and actor within
 * the fold window become one row with a count. */
void events_audit(struct events *l, const struct event_spec *ev);
void events_set_fold(struct events *l, int64_t window_ms);

struct audit_result {
    int64_t first_seq, last_seq, checked;
    unsigned char head[32];
    int64_t broken_seq; /* 0: the chain is intact */
    char broken_why[160];
    bool head_found; /* whether the requested head is in the chain */
    int64_t head_seq;
};
typedef void (*audit_done)(void *arg, const struct audit_result *r, const struct err *e);
/* head: 32 bytes kept elsewhere, or NULL. */
void events_verify(struct events *l, const unsigned char *head, audit_done done, void *arg);

/* Deletes events that are too old or too many, and leaves an anchor so that the chain still
 * verifies. */
void events_retain(struct events *l, int64_t keep_ms, int64_t keep_count, store_done done,
                   void *arg);
/* How many events, and bytes of them, are older than keep_ms. */
struct events_weight {
    int64_t count, bytes;
};
typedef void (*events_weighed)(void *arg, const struct events_weight *w, const struct err *e);
void events_weigh(struct events *l, int64_t keep_ms, events_weighed done, void *arg);
