/* notify: watches files and directories with inotify. */
#include "init/notify.h"

#include "base/fd.h"
#include "base/mem.h"
#include "init/path.h"
#include "init/rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#define WATCHES_MAX 8192 /* directories; the kernel counts them per user */
#define NAMES_MAX (2 * 1024 * 1024)
#define QUEUE (64 * 1024)
#define MASK                                                                                       \
    (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |                 \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

struct place { /* a watched directory */
    int wd;
    char *path; /* below the root, "" or "a/b"; NULL: no longer watched */
};

struct notify {
    int fd, out;
    int top; /* the directory where the watch begins */
    int top_wd, above_wd;
    bool recursive;
    const char *only; /* watching one file: its name in top; all else is ignored */
    struct str asked; /* the path from the request */
    struct place *at; /* in order of wd: inotify(7) never reuses a number */
    size_t n, size;
    size_t bytes; /* of all paths */
    bool full;    /* reported */
    struct buf records;
    char last[PATH_MAX]; /* the path of the last "changed" record, in this read */
};

/* ---- reporting ---- */

/* A path below the top: its directories are real ones, only its last name may be a link. */
static bool is_denied(const struct notify *t, const char *path)
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];
    AUTO(fd_close) int fd = -1;
    struct err e;

    if (!rules_any() || !*path)
        return false;
    (void)snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    fd = path_beneath(t->top, dir, O_PATH | O_DIRECTORY);
    return fd >= 0 && rules_check_entry(fd, slash ? slash + 1 : path, RULES_READ, &e) < 0;
}

static void tell(struct notify *t, enum guest_watch_what what, const char *path)
{
    uint8_t record[GUEST_RECORD_MAX];
    struct wire_out o = {.p = record, .size = sizeof record};
    struct guest_watch_event event = {.what = (uint8_t)what};
    char text[GUEST_PATH_MAX + 1];
    bool slash = *path && !str_ends(t->asked, STR("/"));
    struct err e;
    int n = snprintf(text, sizeof text, STR_FMT "%s%s", STR_ARG(t->asked), slash ? "/" : "", path);

    if (n < 0 || (size_t)n >= sizeof text)
        event = (struct guest_watch_event){GUEST_WATCH_MISSED, t->asked};
    else
        event.path = str_make(text, (size_t)n);
    if (guest_record_put(&guest_watch_event_layout, &event, &o, &e) == 0)
        buf_add(&t->records, record, o.n);
}

static void flush(struct notify *t)
{
    job_write(t->out, buf_data(&t->records), buf_len(&t->records));
    buf_clear(&t->records);
    t->last[0] = '\0';
}

/* ---- watched directories ---- */

static struct place *find(struct notify *t, int wd)
{
    size_t low = 0, high = t->n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (t->at[mid].wd < wd)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->n && t->at[low].wd == wd ? &t->at[low] : NULL;
}

static void forget(struct notify *t, struct place *p)
{
    if (!p->path)
        return;
    t->bytes -= strlen(p->path);
    mem_free(p->path);
    p->path = NULL;
}

static void compact(struct notify *t)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->n; i++)
        if (t->at[i].path)
            t->at[kept++] = t->at[i];
    t->n = kept;
}

/* A directory was moved away: its watches would keep reporting under the old name. */
static void forget_below(struct notify *t, const char *path)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < t->n; i++) {
        struct place *p = &t->at[i];

        if (!p->path || strncmp(p->path, path, n) != 0 || (p->path[n] != '/' && p->path[n] != '\0'))
            continue;
        (void)inotify_rm_watch(t->fd, p->wd);
        forget(t, p);
    }
}

static void too_many(struct notify *t, const char *path)
{
    if (!t->full)
        tell(t, GUEST_WATCH_MISSED, path);
    t->full = true;
}

static void remember(struct notify *t, int wd, const char *path)
{
    struct place *p = find(t, wd);

    if (p)
        forget(t, p);
    if (!p) {
        assert(t->n == 0 || t->at[t->n - 1].wd < wd);
        if (t->n == t->size) {
            t->size = t->size ? t->size * 2 : 16;
            t->at = xrealloc(t->at, t->size * sizeof *t->at);
        }
        p = &t->at[t->n++];
        p->wd = wd;
    }
    p->path = xstrdup(path);
    t->bytes += strlen(path);
}

/* The wd, or -errno.  inotify takes no descriptor: change to the directory instead. */
static int watch_dir(struct notify *t, int dir, const char *path)
{
    int wd;

    if (t->n >= WATCHES_MAX)
        compact(t);
    if (t->n >= WATCHES_MAX || t->bytes + strlen(path) > NAMES_MAX)
        return -ENOSPC;
    if (fchdir(dir) < 0)
        return -errno;
    wd = inotify_add_watch(t->fd, ".", MASK);
    if (wd < 0)
        return -errno;
    remember(t, wd, path);
    return wd;
}

static void enter(struct notify *t, int above, const char *path, bool say, int depth);

static void look_into(struct notify *t, int fd, const char *path, bool say, int depth)
{
    DIR *d = fdopendir(fd);
    struct dirent *entry;

    if (!d) {
        fd_close(fd);
        return;
    }
    while ((entry = readdir(d))) {
        char below[PATH_MAX];
        int n;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        n = snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", entry->d_name);
        if (n < 0 || (size_t)n >= sizeof below || is_denied(t, below))
            continue;
        if (say)
            tell(t, GUEST_WATCH_MADE, below);
        if (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN)
            enter(t, dirfd(d), below, say, depth + 1);
    }
    (void)closedir(d);
}

/* Watches the directory `path`, whose last component is in `above`, and those below it.  `say`: its
 * content is new. */
static void enter(struct notify *t, int above, const char *path, bool say, int depth)
{
    const char *slash = strrchr(path, '/');
    int fd =
        openat(above, slash ? slash + 1 : path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return; /* removed, or not a directory */
    if (path_check_kernel(fd) < 0) {
        fd_close(fd);
        return;
    }
    if (depth > PATH_DEPTH_MAX || watch_dir(t, fd, path) < 0) {
        too_many(t, path);
        fd_close(fd);
        return;
    }
    look_into(t, fd, path, say, depth);
}

/* ---- events ---- */

static void enter_new(struct notify *t, const char *path)
{
    char dir[PATH_MAX];
    char *slash;
    AUTO(fd_close) int above = -1;

    (void)snprintf(dir, sizeof dir, "%s", path);
    slash = strrchr(dir, '/');
    if (slash)
        *slash = '\0';
    above = path_beneath(t->top, slash ? dir : ".", O_RDONLY | O_DIRECTORY);
    if (above >= 0)
        enter(t, above, path, true, 0);
}

static void on_named(struct notify *t, const struct inotify_event *ev, const char *path)
{
    bool dir = ev->mask & IN_ISDIR;

    if (dir && (ev->mask & (IN_MOVED_FROM | IN_DELETE)))
        forget_below(t, path);
    if (ev->mask & (IN_CREATE | IN_MOVED_TO))
        tell(t, GUEST_WATCH_MADE, path);
    else if (ev->mask & (IN_DELETE | IN_MOVED_FROM))
        tell(t, GUEST_WATCH_REMOVED, path);
    else if (strcmp(t->last, path) != 0)
        tell(t, GUEST_WATCH_CHANGED, path);
    else
        return;
    (void)snprintf(t->last, sizeof t->last, "%s", ev->mask & (IN_MODIFY | IN_ATTRIB) ? path : "");
    if (dir && t->recursive && (ev->mask & (IN_CREATE | IN_MOVED_TO)))
        enter_new(t, path);
}

static void look_again(struct notify *t)
{
    int fd = path_beneath(t->top, ".", O_RDONLY | O_DIRECTORY);

    tell(t, GUEST_WATCH_MISSED, "");
    if (fd >= 0 && t->recursive)
        look_into(t, fd, "", false, 0);
    else
        fd_close(fd);
}

/* While it is held open, its own watch does not report its removal: the parent's does. */
static bool top_is_gone(const struct notify *t, const struct inotify_event *ev)
{
    struct stat st;

    if (ev->wd == t->top_wd)
        return ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED);
    return ev->wd == t->above_wd && fstat(t->top, &st) == 0 && st.st_nlink == 0;
}

static void watch_above(struct notify *t)
{
    AUTO(fd_close) int above = openat(t->top, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat a, b;

    t->above_wd = -1;
    if (above >= 0 && fstat(above, &a) == 0 && fstat(t->top, &b) == 0 &&
        (a.st_ino != b.st_ino || a.st_dev != b.st_dev) && fchdir(above) == 0)
        t->above_wd = inotify_add_watch(t->fd, ".", IN_DELETE | IN_ONLYDIR);
}

/* False: the watched object was removed. */
static bool on_event(struct notify *t, const struct inotify_event *ev)
{
    struct place *p = find(t, ev->wd);
    char path[PATH_MAX];

    if (ev->mask & IN_Q_OVERFLOW) {
        look_again(t);
        return true;
    }
    if (top_is_gone(t, ev)) {
        tell(t, GUEST_WATCH_REMOVED, "");
        return false;
    }
    if (!p || !p->path)
        return true;
    if (ev->mask & IN_IGNORED) {
        forget(t, p);
        return true;
    }
    if (ev->len == 0 || (t->only && strcmp(ev->name, t->only) != 0))
        return true; /* about a directory itself: its parent reports it */
    if (t->only)
        path[0] = '\0';
    else
        (void)snprintf(path, sizeof path, "%s%s%s", p->path, *p->path ? "/" : "", ev->name);
    if (!is_denied(t, path))
        on_named(t, ev, path);
    return true;
}

static int read_events(struct notify *t, struct err *e)
{
    _Alignas(struct inotify_event) static char queue[QUEUE];
    bool more = true;

    while (more) {
        ssize_t n = read(t->fd, queue, sizeof queue);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set(e, ERR_INTERNAL, errno, "read what changed");
        for (char *p = queue; more && p < queue + n;) {
            const struct inotify_event *ev = (const void *)p;

            more = on_event(t, ev);
            p += sizeof *ev + ev->len;
        }
        flush(t);
    }
    return 0;
}

/* ---- start ---- */

static int open_top(struct notify *t, const struct guest_file_call *c, char *name, struct err *e)
{
    t->top = path_open(c->path, O_RDONLY | O_DIRECTORY, 0, e);
    if (t->top >= 0 || e->sys != ENOTDIR)
        return t->top < 0 ? -1 : 0;
    t->top = path_parent(c->path, name, e); /* for a file: watch its name */
    t->only = name;
    return t->top < 0 || rules_check_entry(t->top, name, RULES_READ, e) < 0 ? -1 : 0;
}

int notify_run(const struct guest_file_call *c, int in, int out, struct stat *ret, struct err *e)
{
    struct notify *t = xzalloc(sizeof *t); /* not freed: the process ends with it */
    char name[256];
    int fd;

    (void)in;
    (void)ret;
    *t = (struct notify){.fd = inotify_init1(IN_CLOEXEC), .out = out, .asked = c->path};
    if (t->fd < 0) {
        (void)err_set(e, ERR_LIMIT, errno, "watch files");
        return err_hint(e, "end another watch; the host's fs.inotify.max_user_instances counts");
    }
    if (open_top(t, c, name, e) < 0)
        return -1;
    t->recursive = !t->only && (c->flags & GUEST_FILE_RECURSIVE);
    watch_above(t);
    t->top_wd = watch_dir(t, t->top, "");
    if (t->top_wd < 0)
        return path_failed("watch", c->path, -t->top_wd, e);
    fd = t->recursive ? path_beneath(t->top, ".", O_RDONLY | O_DIRECTORY) : -1;
    if (fd >= 0)
        look_into(t, fd, "", false, 0);
    tell(t, GUEST_WATCH_BEGUN, "");
    flush(t);
    return read_events(t, e);
}
