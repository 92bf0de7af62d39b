/* within: files that must lie in certain directories once every link is followed.
 * It keeps a client's contract, not a border: whoever runs in the sandbox reaches all of it anyway.
 */
#pragma once

#include "init/path.h"

/* roots: absolute directories, separated by ':'. */
CHECKED int within_check(int fd, struct str roots, struct str path, struct err *e);
/* Opening it failed for a reason in *e; that it lies outside is a better one.  Returns -1. */
int within_failed(struct str path, struct str roots, struct err *e);
/* A regular file, made if it is missing (parents too, if so asked), but only within. */
struct within_write {
    struct str path, roots;
    int flags; /* beside O_WRONLY */
    mode_t mode;
    bool parents, truncate;
};
CHECKED int within_open_write(const struct within_write *w, struct err *e);
