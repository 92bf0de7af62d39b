/* fd: file descriptors as owned values.  Opened with CLOEXEC; closed by AUTO(fd_close).
 * Errors: -errno. */
#pragma once

#include "base/buf.h"

#include <stdint.h>
#include <sys/types.h>

void fd_close(int fd); /* takes -1; keeps errno */
DEFINE_AUTO(int, fd_close)
/* Raises our soft limit of open files to the hard one (the usual 1,024 is for select(2)) and
 * returns it. */
uint64_t fd_limit_raise(void);

/* Descriptors held in reserve for when the process has run out: otherwise a listener that cannot
 * accept stays ready for ever, and a received packet loses the descriptors it carries. */
#define FD_SPARES 8
struct fd_spares { /* zero-initialised: no reserve */
    int fd[FD_SPARES];
    size_t n;
};
bool fd_spares_fill(struct fd_spares *s); /* false: the reserve is not full */
void fd_spares_free(struct fd_spares *s);

int fd_write_all(int fd, const void *p, size_t n)
    CHECKED; /* retries after EINTR and short writes */
/* Reads to the end of the file, at most limit bytes (-EFBIG past that). */
int fd_read_all(int fd, size_t limit, struct buf *to) CHECKED;
int file_read(const char *path, size_t limit, struct buf *to) CHECKED;
/* Replaces a file so that a crash leaves the old or the new content: temporary file, fsync, rename,
 * fsync of the directory. */
int file_replace(const char *path, mode_t mode, struct str content) CHECKED;
int dir_make_all(const char *path, mode_t mode) CHECKED; /* mkdir -p */
