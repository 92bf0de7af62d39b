/* starter: a small child forked before this process gives up its rights.  It starts the programs
 * and opens the files (for reading) that were named before the seal, and no others; it ends with
 * us.  Without one (tests, a runtime without isolation) this process does the same itself. Thread:
 * the loop's.  One per process.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

CHECKED int starter_fork(void); /* call it before starting threads, opening descriptors worth
                                   keeping, or changing the user */
/* Allowed until the seal.  starter_start takes this `name`; the program's standard error goes to
 * `log`. */
CHECKED int starter_define(const char *name, const char *program, char *const *argv,
                           const char *log);
CHECKED int starter_allow(const char *path);
void starter_seal(void);
uid_t starter_uid(void); /* the user its programs run as */

/* The program outlives us.  The caller owns *pidfd: see starter_lives. */
CHECKED int starter_start(const char *name, int *ret_pidfd);
bool starter_lives(int *pidfd); /* false once it has ended: *pidfd is then closed and -1 */
/* Opens for reading.  A path that was not allowed is opened with our own rights. */
CHECKED int starter_open(const char *path);
struct buf;
/* As file_read, through starter_open. */
CHECKED int starter_read(const char *path, size_t limit, struct buf *to);
