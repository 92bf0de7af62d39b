/* starter: a small child that is forked before this process gives up its rights.  It starts the
 * programs and opens the files (for reading) that it was told of before the seal, and no others; it
 * ends with us.  Without one (tests, a runtime without isolation) this process does the same
 * itself. Thread: the loop's.  One per process.  Errors: -errno. */
#pragma once

#include "base/macro.h"

#include <sys/types.h>

CHECKED int starter_fork(void); /* before threads, descriptors worth keeping and a change of user */
/* Until the seal.  `name` is what starter_start says; the program's standard error goes to `log`.
 */
CHECKED int starter_define(const char *name, const char *program, char *const *argv,
                           const char *log);
CHECKED int starter_allow(const char *path);
void starter_seal(void);
uid_t starter_uid(void); /* whose programs they will be */

/* It outlives us.  *pidfd is the caller's: starter_lives. */
CHECKED int starter_start(const char *name, int *ret_pidfd);
bool starter_lives(int *pidfd); /* once it has ended: false, and *pidfd is closed and -1 */
/* A descriptor for reading; a path that was not allowed is opened with our own rights. */
CHECKED int starter_open(const char *path);
struct buf;
/* As file_read, through starter_open. */
CHECKED int starter_read(const char *path, size_t limit, struct buf *to);
