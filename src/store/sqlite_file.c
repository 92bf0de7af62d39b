/* sqlite_file: the database file and its lock. */
#include "store/sqlite.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The pid that the lock's holder wrote: "1234", or "". */
static void read_owner(int fd, char *to, size_t size)
{
    ssize_t n = pread(fd, to, size - 1, 0);

    to[n > 0 ? n : 0] = '\0';
    to[strspn(to, "0123456789")] = '\0';
}

/* An open-file-description lock (fcntl(2)): it ends with this process, however that ends, and is
 * not lost when a library closes another descriptor of the same file. */
static int take_lock(const char *path, int *ret, struct err *e)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    AUTO(mem_free) char *name = xasprintf("%s.lock", path);
    AUTO(fd_close) int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    char owner[16];

    if (fd < 0) {
        err_set(e, ERR_UNAVAILABLE, errno, "open lock file '%s'", name);
        return err_hint(e, "check that its folder exists and that holtd may write there");
    }
    if (fcntl(fd, F_OFD_SETLK, &l) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return err_set(e, ERR_UNAVAILABLE, errno, "lock '%s'", name);
        read_owner(fd, owner, sizeof owner);
        err_set(e, ERR_CONFLICT, 0, "database '%s' is in use by another holtd (pid %s)", path,
                owner[0] ? owner : "unknown");
        return err_hint(e, "stop that one first, or give this one another --state or --db");
    }
    (void)snprintf(owner, sizeof owner, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, owner, strlen(owner), 0) < 0)
        log_warn("cannot write the pid into the lock file", LOG_C("file", name));
    *ret = TAKE_FD(fd);
    return 0;
}

/* SQLite would create the file with the umask; hashes of tokens must not be readable by others. */
static int make_file(const char *path, struct err *e)
{
    AUTO(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0)
        return 0;
    err_set(e, ERR_UNAVAILABLE, errno, "open database '%s'", path);
    return err_hint(e, "holtd must be able to read and write the file and its folder");
}

int sqlite_claim(const struct store_config *c, struct engine_db **ret, struct err *e)
{
    const char *path = c->url + strlen("sqlite:");
    struct sqlite_db *db;
    int lock = -1;

    /* Its memory statistics cost a global lock per allocation; harmless if called too late. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (*path == '\0')
        return err_set(e, ERR_INVALID, 0, "'%s' has no file name; write sqlite:/path/holt.db",
                       c->url);
    if (take_lock(path, &lock, e) < 0)
        return -1;
    if (make_file(path, e) < 0) {
        fd_close(lock);
        return -1;
    }
    db = xzalloc(sizeof *db);
    db->base.engine = &engine_sqlite;
    db->path = xstrdup(path);
    db->vfs = sqlite_vfs_over(c->vfs);
    db->lock_fd = lock;
    *ret = &db->base;
    return 0;
}

void sqlite_release(struct engine_db *d)
{
    struct sqlite_db *db = CONTAINER_OF(d, struct sqlite_db, base);

    fd_close(db->lock_fd);
    free(db->path);
    free(db);
}

int sqlite_note_file(struct sqlite_db *db, struct err *e)
{
    struct stat st;

    if (stat(db->path, &st) < 0)
        return err_set(e, ERR_UNAVAILABLE, errno, "look at database '%s'", db->path);
    db->dev = st.st_dev;
    db->ino = st.st_ino;
    return 0;
}

int sqlite_check(struct engine_conn *c, struct err *e)
{
    struct sqlite_db *db = CONTAINER_OF(c->db, struct sqlite_db, base);
    struct stat st;

    if (stat(db->path, &st) == 0 && st.st_dev == db->dev && st.st_ino == db->ino)
        return 0;
    err_set(e, ERR_UNAVAILABLE, 0, "the file of database '%s' was removed or replaced", db->path);
    return err_hint(e, "put the file back, or stop holtd, restore a backup and start again");
}
