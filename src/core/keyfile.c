/* keyfile: reads and writes key files that only their owner may read. */
#include "core/keyfile.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int keyfile_read(const char *path, size_t limit, struct buf *to, struct err *e)
{
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    int r;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s'", path);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return err_set(e, ERR_FORBIDDEN, 0, "'%s' is not a plain file of user %u", path, geteuid());
    if (st.st_mode & (S_IRWXG | S_IRWXO)) {
        (void)err_set(e, ERR_FORBIDDEN, 0, "'%s' has mode %04o: other users can read this key",
                      path, st.st_mode & 07777U);
        return err_hint(
            e, "run chmod 600 %s; if others could read it, replace the secrets it protects", path);
    }
    r = fd_read_all(fd, limit, to);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "read '%s'", path) : 1;
}

int keyfile_write(const char *path, struct str content, struct err *e)
{
    int r = file_replace(path, 0600, content);

    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "write '%s'", path) : 0;
}
