/* pack: reads local files and directories as a tar stream. */
#include "cli/pack.h"

#include "base/fd.h"
#include "base/mem.h"
#include "wire/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART (256 * 1024)

struct pack {
    FTS *walk;
    char *top;
    size_t root_len; /* length of the path given to fts */
    int file;
    int64_t left, size; /* of the file */
    char *path;         /* … for messages */
    int64_t bytes, left_out;
};

struct pack *pack_free(struct pack *p)
{
    if (!p)
        return NULL;
    if (p->walk)
        (void)fts_close(p->walk);
    fd_close(p->file);
    mem_free(p->top);
    mem_free(p->path);
    mem_free(p);
    return NULL;
}

int pack_new(const char *path, const char *top, struct pack **ret, struct err *e)
{
    AUTO(pack_free) struct pack *p = xzalloc(sizeof *p);
    AUTO(mem_free) char *root = xstrdup(path);
    char *roots[] = {root, NULL};
    size_t n = strlen(root);
    struct stat st;

    p->file = -1;
    while (n > 1 && root[n - 1] == '/')
        root[--n] = '\0';
    if (lstat(root, &st) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "read '%.150s'", path);
    if (!top && !S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, ENOTDIR, "read what is in '%.150s'", path);
    p->root_len = n;
    p->top = top ? xstrdup(top) : NULL;
    p->walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!p->walk)
        return err_set(e, ERR_INTERNAL, errno, "read '%.150s'", path);
    *ret = TAKE(p);
    return 0;
}

/* NULL: the directory itself, which has no name in the archive. */
static char *name_of(const struct pack *p, const char *path, bool dir)
{
    const char *rest = path + p->root_len;

    while (*rest == '/')
        rest++;
    if (!p->top)
        return *rest ? xasprintf("%s%s", rest, dir ? "/" : "") : NULL;
    return xasprintf("%s%s%s%s", p->top, *rest ? "/" : "", rest, dir ? "/" : "");
}

static int add_file(struct pack *p, const FTSENT *f, struct tar_entry *t, struct buf *to,
                    struct err *e)
{
    struct stat st;

    p->file = open(f->fts_accpath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (p->file < 0 || fstat(p->file, &st) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "read '%.150s'", f->fts_path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFLICT, 0, "'%.150s' was replaced while it was copied",
                       f->fts_path);
    p->left = p->size = st.st_size;
    t->size = (uint64_t)st.st_size;
    mem_free(p->path);
    p->path = xstrdup(f->fts_path);
    return tar_write_head(to, t, e);
}

static int add_symlink(const FTSENT *f, struct tar_entry *t, struct buf *to, struct err *e)
{
    char link[TAR_NAME_MAX + 1];
    ssize_t n = readlink(f->fts_accpath, link, sizeof link);

    if (n < 0 || n > TAR_NAME_MAX)
        return err_set(e, ERR_INTERNAL, n < 0 ? errno : ENAMETOOLONG, "read the link '%.150s'",
                       f->fts_path);
    t->link = str_make(link, (size_t)n);
    return tar_write_head(to, t, e);
}

static int add_entry(struct pack *p, const FTSENT *f, struct buf *to, struct err *e)
{
    AUTO(mem_free) char *name = name_of(p, f->fts_path, f->fts_info == FTS_D);
    struct tar_entry t = {.name = str_of(name)};

    if (f->fts_info == FTS_DP || !name)
        return 0;
    if (f->fts_info == FTS_DNR || f->fts_info == FTS_ERR || f->fts_info == FTS_NS)
        return err_set(e, err_code_from_errno(f->fts_errno), f->fts_errno, "read '%.150s'",
                       f->fts_path);
    if (t.name.n > TAR_NAME_MAX)
        return err_set(e, ERR_INVALID, ENAMETOOLONG, "pack '%.150s'", f->fts_path);
    t.mode = f->fts_statp->st_mode & 07777;
    t.mtime_s = f->fts_statp->st_mtim.tv_sec;
    switch (f->fts_info) {
    case FTS_D:
        t.kind = TAR_DIR;
        return tar_write_head(to, &t, e);
    case FTS_F:
        return add_file(p, f, &t, to, e);
    case FTS_SL:
    case FTS_SLNONE:
        t.kind = TAR_SYMLINK;
        return add_symlink(f, &t, to, e);
    default:
        p->left_out++;
        return 0;
    }
}

static int add_bytes(struct pack *p, struct buf *to, struct err *e)
{
    size_t want = p->left < PART ? (size_t)p->left : PART;
    ssize_t n = 0;
    char *room;

    if (want > 0) {
        if (buf_reserve(to, want, &room) < 0)
            abort(); /* the buffer has no limit: it cannot fail */
        do
            n = read(p->file, room, want);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
            return err_set(e, n < 0 ? err_code_from_errno(errno) : ERR_CONFLICT, n < 0 ? errno : 0,
                           "'%.150s' %s", p->path,
                           n < 0 ? "cannot be read" : "became shorter while it was read");
        buf_added(to, (size_t)n);
    }
    p->left -= n;
    p->bytes += n;
    if (p->left > 0)
        return 1;
    tar_write_pad(to, (uint64_t)p->size);
    fd_close(p->file);
    p->file = -1;
    return 1;
}

int pack_next(struct pack *p, struct buf *to, struct err *e)
{
    FTSENT *f;

    if (p->file >= 0)
        return add_bytes(p, to, e);
    errno = 0;
    f = fts_read(p->walk);
    if (!f && errno != 0)
        return err_set(e, ERR_INTERNAL, errno, "read a directory");
    if (!f) {
        tar_write_end(to);
        return 0;
    }
    return add_entry(p, f, to, e) < 0 ? -1 : 1;
}

int64_t pack_bytes(const struct pack *p)
{
    return p->bytes;
}

int64_t pack_left_out(const struct pack *p)
{
    return p->left_out;
}
