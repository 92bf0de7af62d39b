/* file: file operations of holtd: read, write, list, stat, rename and so on. */
#include "init/file.h"

#include "base/fd.h"
#include "base/mem.h"
#include "init/archive.h"
#include "init/conn.h"
#include "init/notify.h"
#include "init/path.h"
#include "init/rules.h"
#include "init/within.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEP (32 * 1024)

struct file {
    struct channel ch;
    uint8_t op;
    int fd;
    DIR *dir;
    uint64_t at, left; /* in the file */
    struct flow_out out;
    struct flow_in in;
    struct buf pending; /* records of a listing */
    bool ended;
};

static void fill_done(const struct stat *st, struct guest_file_done *d)
{
    *d = (struct guest_file_done){
        .kind = (uint8_t)((st->st_mode & S_IFMT) >> 12), /* as IFTODT */
        .mode = st->st_mode & 07777,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .size = (uint64_t)st->st_size,
        .mtime_ms = st->st_mtim.tv_sec < 0 ? 0
                                           : (uint64_t)st->st_mtim.tv_sec * 1000 +
                                                 (uint64_t)st->st_mtim.tv_nsec / 1000000,
    };
}

void file_send_done(uint32_t number, const struct stat *st, const char *link)
{
    struct guest_msg m = {.type = GUEST_FILE_DONE, .channel = number};

    if (st)
        fill_done(st, &m.u.done);
    m.u.done.link = str_of(link);
    (void)conn_send(&m);
}

static void send_failure(uint32_t number, const struct err *e)
{
    struct guest_msg m = {.type = GUEST_RESET, .channel = number};

    m.u.reset.err = *e;
    (void)conn_send(&m);
}

/* ---- streams ---- */

static void file_gone(struct channel *ch)
{
    struct file *f = CONTAINER_OF(ch, struct file, ch);

    if (f->dir)
        (void)closedir(f->dir);
    fd_close(f->fd);
    buf_done(&f->pending);
    mem_free(f);
}

static void file_end(struct file *f)
{
    struct stat st;

    file_send_done(f->ch.number, fstat(f->dir ? dirfd(f->dir) : f->fd, &st) == 0 ? &st : NULL, "");
    channel_close(&f->ch, NULL);
}

static bool read_fill(struct file *f)
{
    static char chunk[STEP];
    size_t want = size_min(size_min(flow_room(&f->out), sizeof chunk), (size_t)f->left);
    ssize_t n = 0;
    struct err e;

    if (want == 0 && f->left > 0)
        return false;
    if (want > 0)
        n = pread(f->fd, chunk, want, (off_t)f->at);
    if (n < 0) {
        (void)path_failed("read", STR("the file"), errno, &e);
        channel_close(&f->ch, &e);
        return true;
    }
    if (n == 0)
        f->left = 0;
    n = (ssize_t)conn_data(&f->ch, GUEST_OUT, f->out.sent, str_make(chunk, (size_t)n),
                           f->left == 0);
    flow_sent(&f->out, (size_t)n);
    f->at += (uint64_t)n;
    if (f->left == 0)
        file_end(f);
    else
        f->left -= (uint64_t)n;
    return true;
}

static void list_more(struct file *f)
{
    struct dirent *d;

    while (buf_len(&f->pending) < STEP && (d = readdir(f->dir))) {
        uint8_t record[GUEST_RECORD_MAX];
        struct wire_out o = {.p = record, .size = sizeof record};
        struct guest_file_done entry;
        struct stat st;
        struct err e;
        char link[PATH_MAX];
        ssize_t n = 0;

        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
            rules_check_entry(dirfd(f->dir), d->d_name, RULES_READ, &e) < 0 ||
            fstatat(dirfd(f->dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* denied, or removed meanwhile */
        fill_done(&st, &entry);
        entry.name = str_of(d->d_name);
        if (S_ISLNK(st.st_mode))
            n = readlinkat(dirfd(f->dir), d->d_name, link, sizeof link - 1);
        entry.link = str_make(link, n > 0 ? (size_t)n : 0);
        if (guest_record_put(&guest_file_done_layout, &entry, &o, &e) == 0)
            buf_add(&f->pending, record, o.n);
    }
}

static bool list_fill(struct file *f)
{
    struct str bytes;
    size_t n;
    bool last;

    list_more(f);
    last = buf_len(&f->pending) < STEP; /* the directory has no more entries */
    bytes = buf_str(&f->pending);
    bytes.n = size_min(bytes.n, flow_room(&f->out));
    if (bytes.n == 0 && !last)
        return false;
    last = last && bytes.n == buf_len(&f->pending);
    n = conn_data(&f->ch, GUEST_OUT, f->out.sent, bytes, last);
    flow_sent(&f->out, n);
    buf_take(&f->pending, n);
    if (last && buf_len(&f->pending) == 0)
        file_end(f);
    return true;
}

static bool file_fill(struct channel *ch)
{
    struct file *f = CONTAINER_OF(ch, struct file, ch);

    return f->op == GUEST_FILE_READ ? read_fill(f) : f->op == GUEST_FILE_LIST && list_fill(f);
}

static int write_data(struct file *f, const struct guest_msg *m, struct err *e)
{
    struct guest_msg ack = {.type = GUEST_ACK, .channel = f->ch.number, .stream = GUEST_IN};
    struct str fresh;
    int r;

    if (flow_on_data(&f->in, &m->u.data, &fresh, e) < 0)
        return -1;
    r = fd_write_all(f->fd, fresh.p, fresh.n);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "write");
    if (flow_ack(&f->in, f->in.got, false, &ack.u.ack))
        (void)conn_send(&ack);
    return 0;
}

static void file_on_msg(struct channel *ch, const struct guest_msg *m)
{
    struct file *f = CONTAINER_OF(ch, struct file, ch);
    struct err e = {0};
    int r = 0;

    if (m->type == GUEST_ACK)
        r = flow_on_ack(&f->out, &m->u.ack, &e);
    else if (m->type == GUEST_DATA && f->op == GUEST_FILE_WRITE)
        r = write_data(f, m, &e);
    if (r < 0)
        channel_close(ch, &e);
    else if (m->type == GUEST_DATA && (m->flags & GUEST_EOF))
        file_end(f);
}

static const struct channel_ops file_channel = {file_on_msg, file_fill, file_gone};

static void stream_open(const struct guest_msg *m, int fd, DIR *dir)
{
    struct file *f = xzalloc(sizeof *f);

    *f = (struct file){
        .op = m->u.file.op, .fd = fd, .dir = dir, .at = m->u.file.offset, .left = m->u.file.length};
    flow_out_init(&f->out, 0, GUEST_WINDOW_UP);
    flow_in_init(&f->in, 0, GUEST_WINDOW_DOWN);
    channel_open(&f->ch, m->channel, &file_channel);
}

/* ---- operations: 1 means that a job or stream replies later, 0 that file_done is due ---- */

static int op_read(const struct guest_msg *m, struct err *e)
{
    const struct guest_file_call *c = &m->u.file;
    int nofollow = c->flags & GUEST_FILE_NOFOLLOW ? O_NOFOLLOW : 0;
    AUTO(fd_close) int fd = path_open_regular(c->path, O_RDONLY | nofollow, 0, false, e);

    if (fd < 0)
        return c->flags & GUEST_FILE_WITHIN ? within_failed(c->path, c->to, e) : -1;
    if ((c->flags & GUEST_FILE_WITHIN) && within_check(fd, c->to, c->path, e) < 0)
        return -1;
    stream_open(m, TAKE_FD(fd), NULL);
    return 1;
}

static int make_parents(struct str path, struct err *e)
{
    while (path.n > 0 && path.p[path.n - 1] != '/')
        path.n--;
    return path.n > 1 ? path_make_all(str_make(path.p, path.n - 1), 0755, e) : 0;
}

static int open_write(const struct guest_file_call *c, struct err *e)
{
    bool truncate = !(c->flags & GUEST_FILE_APPEND) && c->offset == 0;
    mode_t mode = c->mode ? c->mode : 0644;
    int flags = 0;

    flags |= c->flags & GUEST_FILE_APPEND ? O_APPEND : 0;
    flags |= c->flags & GUEST_FILE_EXCLUSIVE ? O_EXCL : 0;
    flags |= c->flags & GUEST_FILE_NOFOLLOW ? O_NOFOLLOW : 0;
    if (c->flags & GUEST_FILE_WITHIN)
        return within_open_write(&(struct within_write){.path = c->path,
                                                        .roots = c->to,
                                                        .flags = flags & ~O_EXCL,
                                                        .mode = mode,
                                                        .parents = c->flags & GUEST_FILE_PARENTS,
                                                        .truncate = truncate},
                                 e);
    if ((c->flags & GUEST_FILE_PARENTS) && make_parents(c->path, e) < 0)
        return -1;
    return path_open_regular(c->path, O_WRONLY | O_CREAT | flags, mode, truncate, e);
}

/* chown(2): EINVAL is an id that this sandbox's user namespace does not map. */
static int owner_failed(struct str path, int sys, struct err *e)
{
    if (sys != EINVAL)
        return path_failed("change the owner of", path, sys, e);
    return err_set(e, ERR_UNSUPPORTED, 0,
                   "field 'uid' or 'gid': this sandbox does not have that id");
}

static bool names_owner(const struct guest_file_call *c)
{
    return c->uid != GUEST_NO_ID || c->gid != GUEST_NO_ID;
}

/* Tried on an unlinked file first: a refused owner must neither create nor truncate the real
 * file.  Other errors are left to the real file: the test file is the host's, where we have no
 * rights. */
static int check_owner(const struct guest_file_call *c, struct err *e)
{
    AUTO(fd_close) int fd = names_owner(c) ? memfd_create("owner", MFD_CLOEXEC) : -1;

    return fd >= 0 && fchown(fd, c->uid, c->gid) < 0 && errno == EINVAL
               ? owner_failed(c->path, EINVAL, e)
               : 0;
}

static int op_write(const struct guest_msg *m, struct err *e)
{
    const struct guest_file_call *c = &m->u.file;
    AUTO(fd_close) int fd = check_owner(c, e) < 0 ? -1 : open_write(c, e);

    if (fd < 0)
        return -1;
    if (c->offset > 0 && lseek(fd, (off_t)c->offset, SEEK_SET) < 0)
        return path_failed("seek in", c->path, errno, e);
    if (names_owner(c) && fchown(fd, c->uid, c->gid) < 0)
        return owner_failed(c->path, errno, e);
    stream_open(m, TAKE_FD(fd), NULL);
    return 1;
}

static int op_stat(const struct guest_msg *m, struct err *e)
{
    const struct guest_file_call *c = &m->u.file;
    int nofollow = c->flags & GUEST_FILE_NOFOLLOW ? O_NOFOLLOW : 0;
    AUTO(fd_close) int fd = path_open(c->path, O_PATH | nofollow, 0, e);
    char link[PATH_MAX];
    struct stat st;
    ssize_t n = 0;

    if (fd < 0)
        return rules_failed(c->path, RULES_READ, e);
    if (rules_check_fd(fd, RULES_READ, e) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return path_failed("stat", c->path, errno, e);
    if (S_ISLNK(st.st_mode))
        n = readlinkat(fd, "", link, sizeof link - 1);
    link[n > 0 ? n : 0] = '\0';
    file_send_done(m->channel, &st, link);
    return 1;
}

static int op_list(const struct guest_msg *m, struct err *e)
{
    AUTO(fd_close) int fd = path_open(m->u.file.path, O_RDONLY | O_DIRECTORY, 0, e);
    DIR *dir;

    if (fd < 0)
        return -1;
    dir = fdopendir(fd);
    if (!dir)
        return path_failed("list", m->u.file.path, errno, e);
    fd = -1; /* dir owns it now */
    stream_open(m, -1, dir);
    return 1;
}

static int op_mkdir(const struct guest_msg *m, struct err *e)
{
    const struct guest_file_call *c = &m->u.file;
    mode_t mode = c->mode ? c->mode : 0755;
    AUTO(fd_close) int dir = -1, fd = -1;
    char name[256];

    if (check_owner(c, e) < 0)
        return -1;
    if ((c->flags & GUEST_FILE_PARENTS) && make_parents(c->path, e) < 0)
        return -1;
    dir = path_parent(c->path, name, e);
    if (dir < 0 || rules_check_entry(dir, name, RULES_WRITE, e) < 0)
        return -1;
    if (mkdirat(dir, name, mode) < 0) {
        int sys = errno;

        if (sys == EEXIST && (c->flags & GUEST_FILE_PARENTS)) /* fine if it is a directory */
            return path_make_all(c->path, mode, e);
        return path_failed("make directory", c->path, sys, e);
    }
    if (!names_owner(c))
        return 0;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 || fchown(fd, c->uid, c->gid) < 0 ? owner_failed(c->path, errno, e) : 0;
}

static int job_started(int r)
{
    return r < 0 ? -1 : 1;
}

/* A tree may be large: runs in a job. */
static int remove_all(const struct guest_file_call *c, int in, int out, struct stat *ret,
                      struct err *e)
{
    char name[256];
    AUTO(fd_close) int dir = path_parent(c->path, name, e);

    (void)in;
    (void)out;
    (void)ret;
    return dir < 0 || rules_check_tree(dir, name, RULES_WRITE, e) < 0
               ? -1
               : path_remove_all(dir, name, e);
}

static int op_remove(const struct guest_msg *m, struct err *e)
{
    const struct guest_file_call *c = &m->u.file;
    char name[256];
    AUTO(fd_close) int dir = path_parent(c->path, name, e);

    if (dir < 0 || rules_check_tree(dir, name, RULES_WRITE, e) < 0)
        return -1;
    if ((c->flags & GUEST_FILE_RECURSIVE) && unlinkat(dir, name, 0) < 0)
        return job_started(job_start(m, remove_all, 0, e));
    if (c->flags & GUEST_FILE_RECURSIVE)
        return 0;
    if (unlinkat(dir, name, 0) < 0 && (errno != EISDIR || unlinkat(dir, name, AT_REMOVEDIR) < 0))
        return path_failed("remove", c->path, errno, e);
    return 0;
}

static int op_rename(const struct guest_msg *m, struct err *e)
{
    const struct guest_file_call *c = &m->u.file;
    char from[256], to[256];
    AUTO(fd_close) int from_dir = path_parent(c->path, from, e);
    AUTO(fd_close) int to_dir = from_dir < 0 ? -1 : path_parent(c->to, to, e);
    unsigned flags = c->flags & GUEST_FILE_EXCLUSIVE ? 1U /* RENAME_NOREPLACE */ : 0;

    if (to_dir < 0 || rules_check_tree(from_dir, from, RULES_ALL, e) < 0 ||
        rules_check_tree(to_dir, to, RULES_ALL, e) < 0)
        return -1;
    return syscall(SYS_renameat2, from_dir, from, to_dir, to, flags) < 0
               ? path_failed("rename", c->path, errno, e)
               : 0;
}

static int op_chmod(const struct guest_msg *m, struct err *e)
{
    const struct guest_file_call *c = &m->u.file;
    int nofollow = c->flags & GUEST_FILE_NOFOLLOW ? O_NOFOLLOW : 0;
    AUTO(fd_close) int fd = path_open(c->path, O_RDONLY | nofollow, 0, e);

    if (fd < 0 || rules_check_fd(fd, RULES_WRITE, e) < 0)
        return -1;
    return fchmod(fd, c->mode) < 0 ? path_failed("change the mode of", c->path, errno, e) : 0;
}

static int op_tar_in(const struct guest_msg *m, struct err *e)
{
    return job_started(job_start(m, archive_in, JOB_TAKES, e));
}

static int op_tar_out(const struct guest_msg *m, struct err *e)
{
    return job_started(job_start(m, archive_out, JOB_GIVES, e));
}

static int op_watch(const struct guest_msg *m, struct err *e)
{
    return job_started(job_start(m, notify_run, JOB_GIVES, e));
}

void file_call(const struct guest_msg *m)
{
    static int (*const ops[GUEST_FILE_OP_COUNT])(const struct guest_msg *, struct err *) = {
        [GUEST_FILE_READ] = op_read,     [GUEST_FILE_WRITE] = op_write,
        [GUEST_FILE_STAT] = op_stat,     [GUEST_FILE_LIST] = op_list,
        [GUEST_FILE_MKDIR] = op_mkdir,   [GUEST_FILE_REMOVE] = op_remove,
        [GUEST_FILE_RENAME] = op_rename, [GUEST_FILE_CHMOD] = op_chmod,
        [GUEST_FILE_TAR_IN] = op_tar_in, [GUEST_FILE_TAR_OUT] = op_tar_out,
        [GUEST_FILE_WATCH] = op_watch,
    };
    struct err e = {0};
    int r = ops[m->u.file.op](m, &e);

    if (r < 0)
        send_failure(m->channel, &e);
    else if (r == 0)
        file_send_done(m->channel, NULL, "");
}
