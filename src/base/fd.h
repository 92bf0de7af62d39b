/* fd: file descriptors as owned values.  Born CLOEXEC; closed by AUTO(fd_close).
 * Errors: -errno. */
#pragma once

#include "base/buf.h"

#include <stdint.h>
#include <sys/types.h>

void fd_close(int fd); /* takes -1; keeps errno */
DEFINE_AUTO(int, fd_close)
/* Raises our soft limit of open files to the hard one: the usual 1,024 is for select(2).  Returns
 * it. */
uint64_t fd_limit_raise(void);

/* Descriptors kept back for what must get through when there are no others: a listener whose
 * connections cannot be accepted is ready for ever, and a packet loses the descriptors it carries.
 */
#define FD_SPARES 8
struct fd_spares { /* zero-initialised: none */
    int fd[FD_SPARES];
    size_t n;
};
bool fd_spares_fill(struct fd_spares *s); /* false: not all are to be had */
void fd_spares_free(struct fd_spares *s);

int fd_write_all(int fd, const void *p, size_t n)
    CHECKED; /* goes on after EINTR and short writes */
/* Reads to the end of the file, at most limit bytes (-EFBIG past that). */
int fd_read_all(int fd, size_t limit, struct buf *to) CHECKED;
int file_read(const char *path, size_t limit, struct buf *to) CHECKED;
/* Writes path anew so that a crash leaves the old or the new content: temporary file, fsync,
 * rename, fsync of the directory. */
int file_replace(const char *path, mode_t mode, struct str content) CHECKED;
int dir_make_all(const char *path, mode_t mode) CHECKED; /* mkdir -p */
