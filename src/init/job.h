/* job: file work that may take long or wait (archives, trees, watches), in a child of init, so that
 * the loop never waits for a disk and what it needs of memory goes with it.  Its bytes pass through
 * pipes under the channel's flow control.  A command inside may kill a job (the operation fails
 * then) but not read or trace it: it is as undumpable as init. */
#pragma once

#include "wire/guest.h"

#include <sys/stat.h>
#include <sys/types.h>

#define JOBS_MAX 32 /* at once */

enum job_streams { JOB_TAKES = 1, JOB_GIVES = 2 }; /* stream 0; stream 1 */

/* Runs in the child, blocking: reads `in`, writes `out` (-1 if it has none).  0, with *ret of the
 * object if it has one to tell of, or -1 with *e set. */
typedef int job_fn(const struct guest_file_call *c, int in, int out, struct stat *ret,
                   struct err *e);

/* 0: the channel is open and will be answered. */
CHECKED int job_start(const struct guest_msg *m, job_fn *run, unsigned streams, struct err *e);
void job_reaped(pid_t pid, int status); /* harmless for the pid of something else */
bool job_is(pid_t pid);
void job_wake_all(void); /* SIGCONT */

/* For jobs: all of it, blocking; the reader's going away ends the process. */
void job_write(int out, const void *p, size_t n);
