/* job: file work that may take long or block (archives, trees, watches), in a child of init, so
 * that the loop never waits for a disk and the job's memory is freed with it.  Its bytes pass
 * through pipes under the channel's flow control.  A command may kill a job (then the operation
 * fails) but not read or trace it: like init, it is not dumpable. */
#pragma once

#include "wire/guest.h"

#include <sys/stat.h>
#include <sys/types.h>

#define JOBS_MAX 32 /* concurrent */

enum job_streams { JOB_TAKES = 1, JOB_GIVES = 2 }; /* stream 0; stream 1 */

/* Runs in the child, blocking: reads `in`, writes `out` (-1 if it has none).  Returns 0, with *ret
 * set if it has an object to report, or -1 with *e set. */
typedef int job_fn(const struct guest_file_call *c, int in, int out, struct stat *ret,
                   struct err *e);

/* 0: the channel is open and the job will reply. */
CHECKED int job_start(const struct guest_msg *m, job_fn *run, unsigned streams, struct err *e);
void job_reaped(pid_t pid, int status); /* ignores pids of other processes */
bool job_is(pid_t pid);
void job_wake_all(void); /* SIGCONT */

/* For jobs: writes all of it, blocking; if the reader is gone, the process ends. */
void job_write(int out, const void *p, size_t n);
