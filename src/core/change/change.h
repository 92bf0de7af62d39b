/* change: what differs between two states of files: snapshots, images, live sandboxes.
 *
 *   change_diff ─▶ holt-compare in a throw-away sandbox that has the layers of both, read-only;
 *                  of a live sandbox also its writable layer as it is: nothing is copied or stopped
 *              ─▶ its records, one by one: events.change ─▶ events.done
 *
 * holtd opens no file of a sandbox, and keeps one record at a time: memory does not grow with the
 * number of changes.  Nothing is executed or followed inside: packages, services and users are read
 * from their databases.  Records are in the order of paths (files), then by kind.
 * Ownership: a running diff is freed after done, or by cancel.  Thread: the loop's. */
#pragma once

#include "core/snapshot/snapshot.h"
#include "wire/change.h"

struct changes; /* the registry of running diffs */
struct conf_list;
struct exec;

struct changes_config {
    struct store *store;
    struct sandboxes *sandboxes;
    struct snapshots *snapshots;
    struct images *images;
    const char *program;            /* the path of holt-compare */
    const struct conf_list *ignore; /* volatile trees, "/tmp", read at each use */
    const int64_t *jobs_max;        /* at once, of everybody */
};
/* Reads the rows of merges (blocking: at start-up only). */
CHECKED int changes_open(const struct changes_config *c, struct changes **ret, struct err *e);
struct changes *changes_free(struct changes *l); /* cancels what runs; takes NULL; returns NULL */
/* Once a second: after a crash, ends what the last holtd had begun. */
void changes_tick(struct changes *l);

struct change_spec { /* valid during the call */
    /* What to compare: a sandbox, a snapshot (id or SANDBOX@NAME; a plain name: one of `of`), an
     * image.  from empty: what `to` was made of, without its own files.  to empty: `of`. */
    struct str from, to;
    struct sandbox *of;         /* or NULL */
    const struct str *paths;    /* only these and what is below; none: all */
    size_t path_count;          /* absolute, as inside */
    bool no_text;               /* no unified diffs, no hashes: names and attributes */
    bool all;                   /* volatile trees too */
    bool no_commands;           /* not those that ran in between */
    size_t text_max;            /* of one unified diff; 0: 256 KiB */
    size_t content_max;         /* with the content of new files up to this; 0: none */
    int64_t time_ms;            /* 0: ten minutes */
    const struct principal *by; /* must be allowed to see both */
};

struct change_counts {
    int64_t files_added, files_changed, files_removed, others;
};

void change_count(struct change_counts *n, const struct change *c);

struct change_events {
    /* Borrowed during the call.  Returns 1 to pause until change_resume. */
    int (*change)(void *arg, const struct change *c);
    /* The last call, once; from inside change_resume at most. */
    void (*done)(void *arg, const struct change_counts *n, const struct err *e);
    void (*cancelled)(void *arg); /* instead of done, from inside change_cancel; NULL: not used */
    void *arg;
};

struct change_diff; /* one that runs */
/* NULL: *e has the reason, and nothing is called. */
struct change_diff *change_diff(struct changes *l, const struct change_spec *s,
                                const struct change_events *ev, struct err *e);
void change_resume(struct change_diff *d); /* not from within a callback */
void change_cancel(struct change_diff *d); /* no call after it */

/* --- the same, collected: for playbooks, exports and tests --- */

struct change_list {        /* records and all they point at; see change_list_done */
    const struct change *v; /* files by path, then the others by kind and name */
    size_t count;
    struct change_counts counts;
    struct buf bytes, index; /* private */
};
void change_list_done(struct change_list *l);
typedef void (*change_list_cb)(void *arg, struct change_list *l, const struct err *e);
/* ERR_TOO_LARGE if the records are over bytes_max.  done may take the list's content: it empties
 * what it leaves.  The returned handle is for change_cancel. */
struct change_diff *change_collect(struct changes *l, const struct change_spec *s, size_t bytes_max,
                                   change_list_cb done, void *arg, struct err *e);

/* --- the same as an archive: the files of `to`, and ".wh.NAME" for what is gone --- */

struct change_tar;
struct change_tar_events {
    int (*bytes)(void *arg, struct str bytes);    /* returns 1 to pause until change_tar_resume */
    void (*done)(void *arg, const struct err *e); /* the last call */
    void *arg;
};
/* NULL: *e has the reason.  Of the spec: what is compared, paths, all, time_ms, by. */
struct change_tar *change_tar(struct changes *l, const struct change_spec *s,
                              const struct change_tar_events *ev, struct err *e);
void change_tar_resume(struct change_tar *t);
void change_tar_cancel(struct change_tar *t); /* no call after it */
