/* within: files that must be inside certain directories once every link is followed.
 * It enforces a client's contract, not a security boundary: a command in the sandbox reaches all
 * files anyway. */
#pragma once

#include "init/path.h"

/* roots: absolute directories, separated by ':'. */
CHECKED int within_check(int fd, struct str roots, struct str path, struct err *e);
/* Opening it failed for the reason in *e; replaces that by "outside" if that is the case.  Returns
 * -1. */
int within_failed(struct str path, struct str roots, struct err *e);
/* A regular file, created if it is missing (parents too, if requested), but only inside. */
struct within_write {
    struct str path, roots;
    int flags; /* in addition to O_WRONLY */
    mode_t mode;
    bool parents, truncate;
};
CHECKED int within_open_write(const struct within_write *w, struct err *e);
