/* tar: the changed files as an archive, for the init of a sandbox. */
#include "wire/tar.h"

#include "base/mem.h"
#include "compare/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK 65536
#define LINKS_MAX 262144

static bool kind_of(mode_t mode, enum tar_kind *ret)
{
    *ret = S_ISREG(mode)    ? TAR_FILE
           : S_ISDIR(mode)  ? TAR_DIR
           : S_ISLNK(mode)  ? TAR_SYMLINK
           : S_ISFIFO(mode) ? TAR_FIFO
                            : TAR_CHAR;
    return *ret != TAR_CHAR; /* sockets and devices have no content to give */
}

static void add_xattrs(int fd, struct tar_entry *t, struct buf *values)
{
    static char names[65536], value[65536];
    ssize_t n = flistxattr(fd, names, sizeof names), size;
    size_t ends[TAR_XATTR_MAX][2], at = 0;

    for (const char *name = names; n > 0 && name < names + n && t->xattr_count < TAR_XATTR_MAX;
         name += strlen(name) + 1) {
        size = file_keeps_xattr(str_of(name)) ? fgetxattr(fd, name, value, sizeof value) : -1;
        if (size < 0)
            continue;
        buf_add_c(values, name);
        ends[t->xattr_count][0] = buf_len(values);
        buf_add(values, value, (size_t)size);
        ends[t->xattr_count++][1] = buf_len(values);
    }
    for (size_t i = 0; i < t->xattr_count; at = ends[i++][1]) {
        t->xattrs[i].name = str_make(buf_data(values) + at, ends[i][0] - at);
        t->xattrs[i].value = str_make(buf_data(values) + ends[i][0], ends[i][1] - ends[i][0]);
    }
}

/* Exactly as many bytes as its head says, whatever has happened to the file. */
static int put_content(struct job *j, int fd, uint64_t size, struct err *e)
{
    static char block[BLOCK];
    uint64_t left = size;

    while (left > 0) {
        size_t want = (size_t)(left < BLOCK ? left : BLOCK);
        ssize_t got = file_read_block(fd, block, want);

        if (got < 0)
            return err_set(e, ERR_INTERNAL, errno, "read a file");
        if ((size_t)got < want)
            memset(block + got, 0, want - (size_t)got);
        buf_add(&j->out, block, want);
        left -= want;
        if (buf_len(&j->out) >= BLOCK && job_flush(j, e) < 0)
            return -1;
    }
    tar_write_pad(&j->out, size);
    return 0;
}

/* The path in the archive of another name of the same file; NULL: there is none. */
static const char *other_name(struct job *j, const struct stat *st)
{
    char key[64];
    const char *first;

    if (!S_ISREG(st->st_mode) || st->st_nlink < 2)
        return NULL;
    (void)snprintf(key, sizeof key, "%llx:%llx", (unsigned long long)st->st_dev,
                   (unsigned long long)st->st_ino);
    first = map_get(&j->in_tar, str_of(key));
    if (!first && j->in_tar.count < LINKS_MAX)
        (void)map_set(&j->in_tar, str_of(key), str_dup(job_path(j)));
    return first;
}

int tar_put(struct job *j, const char *name, const struct node *n, struct err *e)
{
    static struct tar_entry t;
    static char target[4096];
    AUTO(buf_done) struct buf values = {0};
    AUTO(fd_close) int fd = -1;
    const char *first = other_name(j, &n->st);
    ssize_t size;

    t = (struct tar_entry){.name = job_path(j),
                           .mode = n->st.st_mode & 07777,
                           .uid = n->st.st_uid,
                           .gid = n->st.st_gid,
                           .mtime_s = n->st.st_mtim.tv_sec,
                           .mtime_ns = (uint32_t)n->st.st_mtim.tv_nsec};
    if (!kind_of(n->st.st_mode, &t.kind))
        return 0;
    if (t.kind == TAR_SYMLINK) {
        size = readlinkat(n->at, name, target, sizeof target);
        t.link = str_make(target, size < 0 ? 0 : (size_t)size);
    } else if (first) {
        t.kind = TAR_HARDLINK;
        t.link = str_of(first);
    } else if (t.kind != TAR_FIFO) {
        fd = openat(n->at, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
                        (t.kind == TAR_DIR ? O_DIRECTORY : 0));
        if (fd < 0)
            return err_set(e, ERR_CONFLICT, errno, "'%.80s' is not as it was", name);
        add_xattrs(fd, &t, &values);
    }
    t.size = t.kind == TAR_FILE ? (uint64_t)n->st.st_size : 0;
    if (tar_write_head(&j->out, &t, e) < 0)
        return -1;
    return t.kind == TAR_FILE ? put_content(j, fd, t.size, e) : 0;
}

int tar_whiteout(struct job *j, const char *name, struct err *e)
{
    AUTO(buf_done) struct buf path = {0};
    struct str all = job_path(j);
    size_t n = strlen(name);
    struct tar_entry t = {.kind = TAR_FILE, .mode = 0600};

    buf_add(&path, all.p, all.n - n);
    buf_add_c(&path, ".wh.");
    buf_add(&path, name, n);
    t.name = buf_str(&path);
    return tar_write_head(&j->out, &t, e);
}

int tar_finish(struct job *j, struct err *e)
{
    tar_write_end(&j->out);
    return job_flush(j, e);
}
