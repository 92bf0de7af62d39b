/* share: the agentshare: files that people and agents exchange, below one directory of the host.
 *
 *   global/          tools, prompts, settings: read-only in sandboxes, at /mnt/global
 *   inbox/AGENT/     what is given to an agent or a task
 *   outbox/TASK/     what a task has made
 *   tasks/TASK/      its manifest, its log, links to its inbox and outbox
 *   archived/        what retention has taken away
 *
 * Every path of a client is followed component by component, never over a link and never upwards,
 * so that it stays below its area.  File work is done where it is called: pieces are small.
 * Thread: the loop's.  Errors: -1 with *e set; errors name the path as the client wrote it. */
#pragma once

#include "base/err.h"
#include "base/fd.h"

#include <sys/stat.h>

struct share;

enum share_area { SHARE_GLOBAL, SHARE_INBOX, SHARE_OUTBOX, SHARE_TASKS, SHARE_ARCHIVED };
const char *share_area_name(enum share_area a);

/* Makes the directories.  root is the caller's. */
CHECKED int share_open(const char *root, struct share **ret, struct err *e);
struct share *share_free(struct share *s); /* takes NULL; returns NULL */
const char *share_root(const struct share *s);

/* The directory AREA/NAME (name empty: the area's own), made if needed; the caller owns it. */
CHECKED int share_dir(const struct share *s, enum share_area area, struct str name, bool make,
                      struct err *e);
/* A file below dir: flags as open(2), O_CREAT makes its parents too.  ERR_INVALID: the path is
 * absolute, has "..", or leads over a link. */
CHECKED int share_file(int dir, struct str path, int flags, mode_t mode, struct err *e);
/* Writes a whole file, so that a reader sees the old or the new one. */
CHECKED int share_put(int dir, struct str path, struct str content, mode_t mode, struct err *e);
/* Moves a complete file of this directory to its path. */
CHECKED int share_rename(int dir, const char *from, struct str to, struct err *e);

/* The entries of a directory below dir (path empty: itself), in order of name. */
struct share_entry {
    const char *name;
    struct stat st;
};
typedef void (*share_each)(void *arg, const struct share_entry *entry);
CHECKED int share_list(int dir, struct str path, share_each each, void *arg, struct err *e);
/* Removes AREA/NAME with all below it; none there is no error. */
CHECKED int share_remove(const struct share *s, enum share_area area, struct str name,
                         struct err *e);
/* Moves AREA/NAME to archived/AREA-NAME. */
CHECKED int share_archive(const struct share *s, enum share_area area, struct str name,
                          struct err *e);
