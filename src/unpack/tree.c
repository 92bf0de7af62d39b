/* tree: writes the entries of an archive below a directory. */
#include "unpack/tree.h"

#include "base/mem.h"
#include "unpack/tree_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define WHITEOUT STR(".wh.")
#define OPAQUE ".wh..wh..opq"

static void place_done_p(struct place *p)
{
    fd_close(p->dir);
}

struct tree *tree_new(int root, const struct tree_options *o)
{
    struct tree *t = xzalloc(sizeof *t);

    t->root = root;
    t->o = *o;
    t->file = -1;
    return t;
}

struct tree *tree_free(struct tree *t)
{
    if (!t)
        return NULL;
    for (size_t i = 0; i < t->late_count; i++)
        mem_free(t->late[i].path);
    mem_free(t->late);
    fd_close(t->file);
    mem_free(t);
    return NULL;
}

const struct tree_counts *tree_counts(const struct tree *t)
{
    return &t->counts;
}

/* --- whiteouts --- */

static bool is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

/* A device 0/0 is overlayfs's whiteout in every mode and kernel; it is the only one that may be
 * made without privilege (Linux 5.8).  An entry of the same layer with that name stays. */
static int make_whiteout(struct tree *t, int dir, const char *name, struct err *e)
{
    struct stat st;

    if (mknodat(dir, name, S_IFCHR, makedev(0, 0)) == 0)
        return 0;
    if (errno != EEXIST)
        return tree_failed(t, e, "make a whiteout for");
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return tree_failed(t, e, "look at");
    if (S_ISDIR(st.st_mode)) {
        AUTO(fd_close)
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? tree_failed(t, e, "open") : tree_make_opaque(t, fd, e);
    }
    return 0;
}

static int whiteout(struct tree *t, const struct place *at, struct err *e)
{
    const char *name = at->name + 4;

    if (t->en->kind != TAR_FILE || t->en->size > 0)
        return tree_refuse(t, e, "is a whiteout with content");
    t->counts.whiteouts++;
    if (strcmp(at->name, OPAQUE) == 0) {
        AUTO(fd_close) int dir = openat(at->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return dir < 0 ? tree_failed(t, e, "open") : tree_make_opaque(t, dir, e);
    }
    if (str_starts(str_of(name), WHITEOUT)) /* AUFS's own bookkeeping */
        return 0;
    if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return tree_refuse(t, e, "is a whiteout without a name");
    return make_whiteout(t, at->dir, name, e);
}

/* A whiteout is a file: an entry below one is invalid. */
static int check_whiteout_parents(const struct tree *t, struct err *e)
{
    const char *slash = strrchr(t->path, '/');
    struct str rest = str_make(t->path, slash ? (size_t)(slash - t->path) : 0);

    while (rest.n > 0)
        if (str_starts(str_cut(rest, '/', &rest), WHITEOUT))
            return tree_refuse(t, e, "is below a whiteout");
    return 0;
}

/* --- one function per kind of entry --- */

/* Makes room for an entry that is not a directory.  1: there was a whiteout. */
static int make_room(struct tree *t, const struct place *at, struct err *e)
{
    struct stat st;

    if (fstatat(at->dir, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : tree_failed(t, e, "look at");
    if (S_ISDIR(st.st_mode)) {
        if (unlinkat(at->dir, at->name, AT_REMOVEDIR) == 0)
            return 0;
        return tree_refuse(t, e, "would replace a directory that is not empty");
    }
    if (unlinkat(at->dir, at->name, 0) < 0)
        return tree_failed(t, e, "replace");
    return is_whiteout(&st);
}

static void defer(struct tree *t)
{
    struct timespec times[2];

    if (t->late_count == t->late_size) {
        t->late_size = t->late_size ? t->late_size * 2 : 64;
        t->late = xrealloc(t->late, t->late_size * sizeof t->late[0]);
    }
    tree_times(t->en, times);
    t->late[t->late_count++] =
        (struct late){.path = xstrdup(t->path), .mode = tree_mode(t), .mtime = times[1]};
}

static int make_dir(struct tree *t, const struct place *at, struct err *e)
{
    AUTO(fd_close) int fd = -1;
    struct stat st;
    int was_whiteout = 0;

    if (fstatat(at->dir, at->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode)) {
        was_whiteout = make_room(t, at, e);
        if (was_whiteout < 0)
            return -1;
    }
    if (mkdirat(at->dir, at->name, 0700) < 0 && errno != EEXIST)
        return tree_failed(t, e, "make");
    fd = openat(at->dir, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return tree_failed(t, e, "open");
    if (was_whiteout && tree_make_opaque(t, fd, e) < 0)
        return -1;
    if (tree_attributes(t, fd, e) < 0)
        return -1;
    /* The final mode is set at the end: an unwritable directory would stop the entries inside
     * it. */
    if (fchmod(fd, (t->en->mode & 01777) | 0700) < 0)
        return tree_failed(t, e, "set the mode of");
    defer(t);
    return 0;
}

static int make_file(struct tree *t, const struct place *at, struct err *e)
{
    if (make_room(t, at, e) < 0)
        return -1;
    t->file = openat(at->dir, at->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return t->file < 0 ? tree_failed(t, e, "make") : 0;
}

static int make_symlink(struct tree *t, const struct place *at, struct err *e)
{
    char target[TAR_NAME_MAX + 1];

    if (t->en->link.n == 0)
        return tree_refuse(t, e, "is a link without a target");
    if (make_room(t, at, e) < 0)
        return -1;
    (void)snprintf(target, sizeof target, STR_FMT, STR_ARG(t->en->link));
    if (symlinkat(target, at->dir, at->name) < 0)
        return tree_failed(t, e, "make");
    return tree_link_attributes(t, at, e);
}

static int make_hardlink(struct tree *t, const struct place *at, struct err *e)
{
    __attribute__((cleanup(place_done_p))) struct place to = {.dir = -1};
    char target[TAR_NAME_MAX + 1];
    struct stat st, old;
    struct err why = {0};

    if (tree_clean_name(t->en->link, target, &why) < 0)
        return tree_refuse(t, e, "is a link whose target %s", why.msg);
    if (!target[0])
        return tree_refuse(t, e, "is a hard link to the root");
    if (tree_place(t, target, false, &to, e) < 0)
        return -1;
    if (fstatat(to.dir, to.name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
        return tree_refuse(t, e, "is a hard link to something that is not a file of this layer");
    if (fstatat(at->dir, at->name, &old, AT_SYMLINK_NOFOLLOW) == 0 && old.st_ino == st.st_ino &&
        old.st_dev == st.st_dev)
        return 0; /* a link to itself: rename(2) and tar treat it as done */
    if (make_room(t, at, e) < 0)
        return -1;
    return linkat(to.dir, to.name, at->dir, at->name, 0) < 0 ? tree_failed(t, e, "link") : 0;
}

static int make_fifo(struct tree *t, const struct place *at, struct err *e)
{
    if (make_room(t, at, e) < 0)
        return -1;
    if (mkfifoat(at->dir, at->name, 0600) < 0 || fchmodat(at->dir, at->name, tree_mode(t), 0) < 0)
        return tree_failed(t, e, "make");
    return tree_link_attributes(t, at, e);
}

/* Every sandbox has a /dev of its own, so device nodes in a root tree's /dev can be left out;
 * anywhere else a node is an attack. */
static int leave_node(struct tree *t, struct err *e)
{
    if (!str_starts(str_of(t->path), STR("dev/")))
        return tree_refuse(t, e, "is a device node");
    t->counts.nodes_left++;
    return 0;
}

static int make_entry(struct tree *t, const struct place *at, struct err *e)
{
    switch (t->en->kind) {
    case TAR_DIR:
        return make_dir(t, at, e);
    case TAR_FILE:
        return make_file(t, at, e);
    case TAR_SYMLINK:
        return make_symlink(t, at, e);
    case TAR_HARDLINK:
        return make_hardlink(t, at, e);
    case TAR_FIFO:
        return make_fifo(t, at, e);
    case TAR_CHAR:
    case TAR_BLOCKDEV:
        break;
    }
    return leave_node(t, e);
}

static int root_entry(struct tree *t, struct err *e)
{
    if (t->en->kind != TAR_DIR)
        return tree_refuse(t, e, "would replace the root");
    if (tree_attributes(t, t->root, e) < 0)
        return -1;
    defer(t);
    return 0;
}

int tree_entry(struct tree *t, const struct tar_entry *en, struct err *e)
{
    __attribute__((cleanup(place_done_p))) struct place at = {.dir = -1};
    struct err why = {0};

    t->en = en;
    (void)snprintf(t->path, sizeof t->path, STR_FMT, STR_ARG(en->name));
    if (++t->counts.entries > t->o.files_max)
        return err_set(e, ERR_TOO_LARGE, 0, "the archive has more than %llu entries",
                       (unsigned long long)t->o.files_max);
    if (tree_clean_name(en->name, t->path, &why) < 0) {
        (void)snprintf(t->path, sizeof t->path, STR_FMT, STR_ARG(en->name));
        return tree_refuse(t, e, "%s", why.msg);
    }
    if (!t->path[0])
        return root_entry(t, e);
    if (t->o.whiteouts && check_whiteout_parents(t, e) < 0)
        return -1;
    if (tree_place(t, t->path, true, &at, e) < 0)
        return -1;
    if (t->o.whiteouts && str_starts(str_of(at.name), WHITEOUT))
        return whiteout(t, &at, e);
    return make_entry(t, &at, e);
}

int tree_data(struct tree *t, struct str data, struct err *e)
{
    int r;

    t->counts.bytes += data.n;
    r = fd_write_all(t->file, data.p, data.n);
    if (r == 0)
        return 0;
    errno = -r;
    return tree_failed(t, e, "write");
}

int tree_entry_end(struct tree *t, struct err *e)
{
    AUTO(fd_close) int fd = TAKE_FD(t->file);
    struct timespec times[2];

    if (fd < 0)
        return 0;
    if (tree_attributes(t, fd, e) < 0)
        return -1;
    tree_times(t->en, times);
    if (fchmod(fd, tree_mode(t)) < 0 || futimens(fd, times) < 0)
        return tree_failed(t, e, "set the mode of");
    return 0;
}

int tree_end(struct tree *t, struct err *e)
{
    for (size_t i = 0; i < t->late_count; i++) { /* in order: the last entry of a name wins */
        const struct late *l = &t->late[i];
        AUTO(fd_close) int fd = tree_open_dir(t, l->path);
        const struct timespec times[2] = {l->mtime, l->mtime};

        if (fd < 0) /* a later entry replaced it */
            continue;
        if (fchmod(fd, l->mode) < 0 || futimens(fd, times) < 0)
            return err_set(e, ERR_INTERNAL, errno, "set the mode of '%.64s'", l->path);
    }
    return 0;
}
