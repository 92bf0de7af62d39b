/* journal: the history of one sandbox, in order: start, output and end of each of its commands, and
 * notes added by others.  Nothing is stored for it: it is a merge of the commands' rows and logs
 * (core/exec/exec_log.h) by their moments, which are unique in the daemon and the same after a
 * restart; so a moment is a reader's position.  Everything delivered to a reader is on disk.
 * Ownership: a journal is its opener's until `end` or journal_close.  Thread: the loop's. */
#pragma once

#include "core/exec/exec.h"

struct journal;

enum journal_kind { JOURNAL_START, JOURNAL_OUTPUT, JOURNAL_END, JOURNAL_NOTE };

struct journal_entry { /* borrowed */
    int64_t us;        /* its moment: microseconds since 1970, unique */
    enum journal_kind kind;
    struct exec *x; /* NULL: a note */
    enum exec_which stream;
    struct str bytes; /* of output and notes */
    bool gap;         /* entries before it, of its log or of other commands, are no longer kept */
};

struct journal_ops {
    /* Returns 1 to pause until journal_resume.  May close the journal. */
    int (*entry)(void *arg, const struct journal_entry *n);
    /* The last call: the sandbox is removed, holtd ends, or a log cannot be read. */
    void (*end)(void *arg, const struct err *e);
};

struct journal_from {
    int64_t after_us; /* entries later than this */
    size_t last;      /* … or, if not 0, the last ones */
};

/* Delivers existing entries and follows new ones, from the next turn on. */
struct journal *journal_open(struct sandbox *s, const struct journal_from *from,
                             const struct journal_ops *ops, void *arg);
void journal_resume(struct journal *j); /* not from within a callback */
void journal_close(struct journal *j);  /* no call after it; not after `end`.  Takes NULL. */

#define JOURNAL_NOTE_MAX 32768
#define JOURNAL_NOTES_KEEP (1LL << 20) /* bytes of notes; beyond it the oldest are dropped */
/* Adds a note of 1 to JOURNAL_NOTE_MAX bytes, and stores it on disk. */
CHECKED int journal_add(struct sandbox *s, struct str bytes, struct err *e);
