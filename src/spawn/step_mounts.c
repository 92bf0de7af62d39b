/* step_mounts: declared mounts: holt-spawn detaches them, the child attaches them. */

/* The child attaches them once it has its root, where no path can lead out any more. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "spawn/guards.h"
#include "spawn/inside.h"
#include "spawn/mnt.h"
#include "spawn/own.h"
#include "spawn/shared.h"
#include "spawn/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TMPFS_DEFAULT (64ULL << 20)

/* TOP/ID/fs: of a volume, or of a layer being filled.  An empty one made by holtd gets the stored
 * ids. */
static int open_volume(const char *top, const char *id)
{
    AUTO(fd_close) int dir = -1;
    char path[SPAWN_ID_MAX + 16];
    struct stat st;
    bool made;

    (void)snprintf(path, sizeof path, "%s/%s", top, id);
    if ((mkdirat(host.state, top, 0700) < 0 && errno != EEXIST) ||
        (mkdirat(host.state, path, 0700) < 0 && errno != EEXIST))
        return -errno;
    (void)snprintf(path, sizeof path, "%s/%s/fs", top, id);
    made = mkdirat(host.state, path, 0755) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    dir = openat(host.state, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return -errno;
    /* Whatever our umask: other users inside pass through it, and holtd reads archives there. */
    if (made && fchmod(dir, 0755) < 0)
        return -errno;
    if (st.st_uid == geteuid() && st.st_uid != idmap_stored() &&
        fchown(dir, idmap_stored(), idmap_stored()) < 0)
        return -errno;
    return TAKE_FD(dir);
}

/* Below one of the directories that the operator named, symbolic links included. */
static int open_host(struct str path, bool readonly)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};

    for (size_t i = 0; i < host.allowed_n; i++) {
        const struct host_allowed *a = &host.allowed[i];
        struct str top = str_of(a->path), rest;
        char below[SPAWN_PATH_MAX + 2];
        int fd;

        if (!str_starts(path, top) || (readonly ? false : !a->writable))
            continue;
        rest = str_skip(path, top.n);
        if (rest.n > 0 && rest.p[0] != '/')
            continue;
        (void)snprintf(below, sizeof below, "." STR_FMT, STR_ARG(rest));
        fd = (int)syscall(SYS_openat2, a->fd, below, &how, sizeof how);
        return fd >= 0 ? fd : errno == EXDEV ? -EACCES : -errno; /* EXDEV: it leads out */
    }
    return -EACCES;
}

/* The owner of a host directory becomes root inside; but a sandbox that writes as the host's root
 * could leave set-user-id programs there, so in that case no id is mapped. */
static int map_host(struct sandbox *s, int tree, const struct stat *st, bool readonly)
{
    return st->st_uid == 0 && !readonly ? 0 : idmap_tree(&s->ids, tree, st->st_uid, st->st_gid);
}

static int open_source(struct sandbox *s, const struct spawn_mount_row *row, struct err *e)
{
    char id[SPAWN_ID_MAX + 1];
    int fd;

    if (row->kind == SPAWN_MOUNT_HOST) {
        fd = open_host(row->source, row->readonly);
        if (fd == -EACCES) {
            (void)err_set(e, ERR_FORBIDDEN, 0, "host path '" STR_FMT "' is not allowed%s",
                          STR_ARG(row->source), row->readonly ? "" : " for writing");
            return err_hint(
                e, "an operator can allow directories with holt-spawn's --allow and --allow-write");
        }
    } else if (row->kind == SPAWN_MOUNT_BASE) {
        int base = str_eq_c(row->source, "host") ? host.base_host : host.base_points;

        fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fd = fd < 0 ? -errno : fd;
    } else {
        if (!spawn_id_is_safe(row->source))
            return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not a volume's id",
                           STR_ARG(row->source));
        (void)snprintf(id, sizeof id, STR_FMT, STR_ARG(row->source));
        if (row->kind == SPAWN_MOUNT_SHARED)
            return shared_open(id, row->size ? row->size : TMPFS_DEFAULT, &s->shared, e);
        if (row->kind == SPAWN_MOUNT_UPPER)
            fd = snapshot_open_upper(sandbox_find(row->source));
        else
            fd = open_volume(row->kind == SPAWN_MOUNT_LAYER ? "layers" : "volumes", id);
    }
    if (fd < 0)
        return err_set(e, err_code_from_errno(-fd), -fd, "open '" STR_FMT "'",
                       STR_ARG(row->source));
    return fd;
}

/* The base is everybody's, and an upper another sandbox's. */
static bool is_readonly(const struct spawn_mount_row *row)
{
    return row->readonly || row->kind == SPAWN_MOUNT_BASE || row->kind == SPAWN_MOUNT_UPPER;
}

static int detach(struct sandbox *s, const struct spawn_mount_row *row, struct err *e)
{
    struct mount_attr a = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                       (is_readonly(row) ? (unsigned)MOUNT_ATTR_RDONLY : 0)};
    AUTO(fd_close) int dir = open_source(s, row, e);
    AUTO(fd_close) int tree = -1;
    struct stat st;
    int r;

    if (dir < 0)
        return -1;
    tree = mnt_clone(dir, row->kind == SPAWN_MOUNT_HOST);
    r = tree < 0 ? tree : fstat(dir, &st) < 0 ? -errno : 0;
    if (r == 0)
        r = row->kind == SPAWN_MOUNT_HOST ? map_host(s, tree, &st, row->readonly)
                                          : idmap_tree(&s->ids, tree, st.st_uid, st.st_gid);
    if (r == 0)
        r = mnt_set_fd(tree, &a, true);
    if (r < 0)
        return err_set(e, ERR_UNSUPPORTED, -r, "detach '" STR_FMT "'", STR_ARG(row->source));
    return TAKE_FD(tree);
}

static bool is_made_inside(const struct spawn_mount_row *row)
{
    return row->kind == SPAWN_MOUNT_TMPFS || row->kind == SPAWN_MOUNT_OWN;
}

/* -1 in *ret: the child makes it, without a limit. */
static int mount_limited(struct sandbox *s, const struct spawn_mount_row *row, int *ret,
                         struct err *e)
{
    int tree = own_mount(s, s->mount_n, row->size);

    *ret = -1;
    if (tree >= 0) {
        s->enforced |= s->disk_bytes ? 0 : (uint32_t)SPAWN_CAN_DISK;
        *ret = tree;
        return 0;
    }
    if (tree != -EOPNOTSUPP && ((s->flags & SPAWN_RESTART) || tree == -ENOSPC || tree == -EBUSY))
        return err_set(e, err_code_from_errno(-tree), -tree, "mount '" STR_FMT "'",
                       STR_ARG(row->target));
    if (tree != -EOPNOTSUPP)
        log_warn("the limit of a mount is not enforced: its image could not be created",
                 LOG_C("sandbox", s->id), LOG_C("error", strerror(-tree)));
    s->unlimited = true;
    return 0;
}

static int refuse_target(const char *path, struct err *e)
{
    (void)err_set(e, ERR_INVALID, 0, "'%s' cannot be the target of a mount", path);
    return err_hint(e, "it must not be / or a path in /proc, /sys or /dev, or a file of holt; "
                       "symbolic links are followed");
}

int step_volumes(struct sandbox *s, struct err *e)
{
    struct wire_rows rows = s->ask->mounts;
    struct spawn_mount_row row;
    char path[SPAWN_PATH_MAX + 1];

    if (rows.count == 0)
        return 0;
    s->mounts = xzalloc(rows.count * sizeof *s->mounts);
    while (wire_rows_next(&spawn_mount_row_layout, &rows, &row)) {
        int tree = -1;

        if (row.target.p[0] != '/')
            return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not an absolute path",
                           STR_ARG(row.target));
        if (inside_is_closed(row.target) && !guard_left_out("targets")) {
            (void)snprintf(path, sizeof path, STR_FMT, STR_ARG(row.target));
            return refuse_target(path, e);
        }
        if (!is_made_inside(&row)) {
            tree = detach(s, &row, e);
            if (tree < 0)
                return -1;
        } else if (row.kind == SPAWN_MOUNT_OWN && row.size > 0 &&
                   mount_limited(s, &row, &tree, e) < 0) {
            return -1;
        }
        s->mounts[s->mount_n++] = tree;
    }
    if (s->unlimited)
        s->enforced &= ~(uint32_t)SPAWN_CAN_DISK;
    return 0;
}

/* Once the child has its own. */
void sandbox_close_mounts(struct sandbox *s)
{
    for (size_t i = 0; i < s->mount_n; i++)
        fd_close(s->mounts[i]);
    mem_free(s->mounts);
    s->mounts = NULL;
    s->mount_n = 0;
}

int undo_volumes(struct sandbox *s)
{
    sandbox_close_mounts(s);
    shared_close(&s->shared);
    return own_end(s);
}

/* ---- in the child, below its own root ---- */

static int tmpfs_of(const struct spawn_mount_row *row)
{
    struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY};
    AUTO(fd_close) int tree = mnt_tmpfs(row->size ? row->size : TMPFS_DEFAULT, "1777");
    int r = tree < 0 ? tree : row->readonly ? mnt_set_fd(tree, &a, false) : 0;

    return r < 0 ? r : TAKE_FD(tree);
}

/* A mount of its own stays writable when the root becomes read-only (step_readonly). */
static int own_of(int root, const char *path)
{
    struct mount_attr a = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    AUTO(fd_close) int at = inside_make(root, path, false);
    AUTO(fd_close) int tree = at < 0 ? at : mnt_clone(at, false);
    int r = tree < 0 ? tree : mnt_set_fd(tree, &a, false);

    return r < 0 ? r : TAKE_FD(tree);
}

int step_mounts(struct sandbox *s, struct err *e)
{
    struct wire_rows rows = s->ask->mounts;
    struct spawn_mount_row row;
    char path[SPAWN_PATH_MAX + 1];

    for (size_t i = 0; wire_rows_next(&spawn_mount_row_layout, &rows, &row); i++) {
        AUTO(fd_close) int made = -1;
        int r;

        (void)snprintf(path, sizeof path, STR_FMT, STR_ARG(row.target));
        if (s->mounts[i] < 0)
            made = row.kind == SPAWN_MOUNT_OWN ? own_of(s->root, path) : tmpfs_of(&row);
        r = s->mounts[i] < 0 ? made : s->mounts[i];
        r = r < 0 ? r : inside_attach(s->root, r, path);
        fd_close(s->mounts[i]); /* no access to trees of others while paths are followed */
        s->mounts[i] = -1;
        if (r == -EPERM)
            return refuse_target(path, e);
        if (r < 0)
            return err_set(e, err_code_from_errno(-r), -r, "mount '%s'", path);
    }
    return 0;
}
