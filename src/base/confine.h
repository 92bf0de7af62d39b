/* confine: gives up rights of one of our own processes: its user, capabilities, system calls and
 * files outside its directories.  None of it can be undone.
 * Thread: the calling one; call it before starting others, which inherit it.  Errors: -errno. */
#pragma once

#include "base/filter.h"
#include "base/macro.h"

#include <sys/types.h>

/* Allows the calls of these tables, and tgkill to ourselves, which abort() uses.  Any other call
 * fails with ENOSYS, so that libraries fall back.  A call of another ABI (i386, x32) kills the
 * process. */
CHECKED int confine_calls(const struct filter_table *tables, size_t n);
/* The calls of an event loop with threads, sockets and files to read; and those for writing
 * files. */
extern const struct filter_table confine_loop, confine_files;

/* CONFINE_COPY: as write, and links, pipes and whiteouts may be made. */
enum confine_access { CONFINE_READ, CONFINE_WRITE, CONFINE_COPY };
struct confine_path {
    const char *path; /* ignored when it does not exist */
    enum confine_access access;
};
/* Landlock: makes all other files inaccessible and forbids execution.  -EOPNOTSUPP: the kernel has
 * no Landlock, or it is switched off. */
CHECKED int confine_paths(const struct confine_path *paths, size_t n);
int confine_paths_version(void); /* the kernel's Landlock ABI version; 0: none */

/* Keeps only these capabilities (bits), for good; programs executed later gain none. */
CHECKED int confine_caps(uint64_t keep);
/* Becomes another user, without groups; `keep` stays effective. */
CHECKED int confine_user(uid_t uid, gid_t gid, uint64_t keep);
/* Sets no_new_privs, clears dumpable, and forbids memory that is both writable and executable. */
CHECKED int confine_self(void);

/* Lets `uid` reach directories whose parents it may not search: replaces those parents, in a mount
 * namespace of our own, by directories that hold nothing but the path.  Needs root.  1: it was
 * needed. */
CHECKED int confine_reach(const char *const *dirs, size_t n, uid_t uid);
