/* confine: what one of our own processes gives up once it has what it needs: its user, its
 * capabilities, system calls and files outside its directories.  Nothing here can be taken back.
 * Thread: the calling one; call it before others exist, who inherit it.  Errors: -errno. */
#pragma once

#include "base/filter.h"
#include "base/macro.h"

#include <sys/types.h>

/* The calls of these tables stay, and tgkill to ourselves, which is what abort does.  Each other
 * answers ENOSYS, so that libraries fall back; of other call tables (i386, x32) each ends the
 * process. */
CHECKED int confine_calls(const struct filter_table *tables, size_t n);
/* The calls of an event loop with threads, sockets and files to read; and of files to write. */
extern const struct filter_table confine_loop, confine_files;

enum confine_access { CONFINE_READ, CONFINE_WRITE };
struct confine_path {
    const char *path; /* one that is not there is left out */
    enum confine_access access;
};
/* Landlock: all other files are out of reach, and nothing can be executed.  -EOPNOTSUPP: the kernel
 * has none, or it is switched off. */
CHECKED int confine_paths(const struct confine_path *paths, size_t n);
int confine_paths_version(void); /* of the kernel's Landlock; 0: none */

/* Keeps these capabilities (bits) and no others, for good; what is executed later has none more. */
CHECKED int confine_caps(uint64_t keep);
/* Another user, without groups; `keep` stays effective. */
CHECKED int confine_user(uid_t uid, gid_t gid, uint64_t keep);
/* no_new_privs, not dumpable, and no memory that is writable becomes executable. */
CHECKED int confine_self(void);

/* Lets `uid` get to directories whose parents it may not search: in a mount namespace of our own
 * those parents are empty but for the way there.  Needs root.  1: it was needed. */
CHECKED int confine_reach(const char *const *dirs, size_t n, uid_t uid);
