/* journal: what happens in one sandbox, in order: beginning, output and end of each of its
 * commands, and notes that others added.  Nothing is kept for it: it is a merge of the commands'
 * rows and logs (core/exec/exec_log.h) by their moments, which are unique in the daemon and the
 * same after a restart; so a moment says where a reader is.  What a reader was told is on disk.
 * Ownership: a journal is its opener's until `end` or journal_close.  Thread: the loop's. */
#pragma once

#include "core/exec/exec.h"

struct journal;

enum journal_kind { JOURNAL_START, JOURNAL_OUTPUT, JOURNAL_END, JOURNAL_NOTE };

struct journal_entry { /* borrowed */
    int64_t us;        /* its moment: microseconds since 1970, no two the same */
    enum journal_kind kind;
    struct exec *x; /* NULL: a note */
    enum exec_which stream;
    struct str bytes; /* of output and notes */
    bool gap;         /* what stood before it, in its log or of other commands, is no longer kept */
};

struct journal_ops {
    /* Returns 1 to pause until journal_resume.  May close the journal. */
    int (*entry)(void *arg, const struct journal_entry *n);
    /* The last call: the sandbox is gone, holtd ends, or a log cannot be read. */
    void (*end)(void *arg, const struct err *e);
};

struct journal_from {
    int64_t after_us; /* entries later than this */
    size_t last;      /* … or, when not 0, the last so many */
};

/* Tells what there is and follows what comes, from the next turn on. */
struct journal *journal_open(struct sandbox *s, const struct journal_from *from,
                             const struct journal_ops *ops, void *arg);
void journal_resume(struct journal *j); /* not from within a callback */
void journal_close(struct journal *j);  /* no call after it; not after `end`.  Takes NULL. */

#define JOURNAL_NOTE_MAX 32768
#define JOURNAL_NOTES_KEEP (1LL << 20) /* bytes of notes; past it the oldest go */
/* Adds a note of 1 to JOURNAL_NOTE_MAX bytes, and keeps it on disk. */
CHECKED int journal_add(struct sandbox *s, struct str bytes, struct err *e);
