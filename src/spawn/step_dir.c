/* step_dir: a sandbox's files on disk: sb/ID with init's socket, and the writable layer. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "base/log.h"
#include "spawn/disk.h"
#include "spawn/idmap.h"
#include "spawn/mnt.h"
#include "spawn/spare.h"
#include "spawn/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int parent_of(const struct sandbox *s)
{
    return spare_is_name(str_of(s->id)) ? host.spares : host.boxes;
}

int step_directory(struct sandbox *s, struct err *e)
{
    int parent = parent_of(s);

    if (!(s->flags & SPAWN_RESTART) && mkdirat(parent, s->id, host_box_mode()) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make its directory");
    s->dir = openat(parent, s->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->dir < 0 || fchmod(s->dir, host_box_mode()) < 0) /* whatever our umask */
        return err_set(e, ERR_INTERNAL, errno, "open its directory");
    return 0;
}

/* Only the directory's name: a v2 cgroup cannot be renamed, and its name is invisible inside. */
int step_name(struct sandbox *s, struct err *e)
{
    char id[SPAWN_ID_MAX + 1];

    if (s->spare == SPARE_NONE)
        return 0;
    (void)snprintf(id, sizeof id, STR_FMT, STR_ARG(s->ask->id));
    if (renameat2(host.spares, s->id, host.boxes, id, RENAME_NOREPLACE) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "name its directory");
    sandbox_rename(s, s->ask->id);
    return 0;
}

int undo_directory(struct sandbox *s)
{
    fd_close(s->dir);
    s->dir = -1;
    if (s->keep)
        return 0;
    return unlinkat(parent_of(s), s->id, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* In the sandbox's own network namespace: /proc/net/unix lists a socket where it was made, and
 * holt-spawn is still in that of the last sandbox.  Bound through /proc/self/fd: the state
 * directory's path may be longer than sun_path. */
int step_socket(struct sandbox *s, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    if (netns_enter(e) < 0)
        return -1;
    (void)snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/init.sock", s->dir);
    s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        host_hand_over(s->dir, "init.sock") < 0 || listen(s->listener, 16) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make init's socket");
    return 0;
}

int undo_socket(struct sandbox *s)
{
    fd_close(s->listener);
    s->listener = -1;
    if (s->dir < 0)
        return 0;
    return unlinkat(s->dir, "init.sock", 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Sandboxes that share a memory volume which cannot be mapped must have the same ids. */
bool ids_must_be_stored(const struct spawn_create *c)
{
    struct wire_rows rows = c->mounts;
    struct spawn_mount_row row;

    if (!host.idmapped || host.memory_idmapped)
        return false;
    while (wire_rows_next(&spawn_mount_row_layout, &rows, &row))
        if (row.kind == SPAWN_MOUNT_SHARED)
            return true;
    return false;
}

int step_ids(struct sandbox *s, struct err *e)
{
    if (s->ask && ids_must_be_stored(s->ask))
        return 0;
    idmap_take(&s->ids);
    if (s->ids.slot == 0) {
        (void)err_set(e, ERR_LIMIT, 0, "no free range of user ids");
        return err_limit_fixed(e, IDMAP_SLOTS, "destroy a sandbox");
    }
    if (s->spare != SPARE_NONE)
        idmap_prepare(&s->ids);
    return 0;
}

int undo_ids(struct sandbox *s)
{
    idmap_give(&s->ids);
    return 0;
}

/* A directory: limited only by the disk. */
static int plain_disk(struct sandbox *s, struct err *e)
{
    if (mkdirat(s->dir, "fs", 0755) < 0 && !(errno == EEXIST && (s->flags & SPAWN_RESTART)))
        return err_set(e, err_code_from_errno(errno), errno, "make the writable layer");
    s->disk = openat(s->dir, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    s->upper = s->disk < 0 ? -1 : mnt_clone(s->disk, false);
    if (s->disk < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open the writable layer");
    return s->upper < 0 ? err_set(e, ERR_UNSUPPORTED, -s->upper, "detach the writable layer") : 0;
}

/* An image of the limit's size.  1: not possible on this host, and the limit is not enforced. */
static int limited_disk(struct sandbox *s, struct err *e)
{
    int r = s->flags & SPAWN_RESTART ? 0 : disk_make(s->dir, s->disk_bytes);

    s->upper = r < 0 ? r : disk_mount(s->dir);
    if (s->upper >= 0) {
        s->disk = openat(s->upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        s->enforced |= s->disk_bytes ? (uint32_t)SPAWN_CAN_DISK : 0;
        return s->disk < 0 ? err_set(e, ERR_INTERNAL, errno, "open the writable layer") : 0;
    }
    r = s->upper;
    s->upper = -1;
    if ((s->flags & SPAWN_RESTART) || r == -ENOSPC)
        return err_set(e, err_code_from_errno(-r), -r, "mount the writable layer's image");
    if (r != -EOPNOTSUPP)
        log_warn("a disk limit is not enforced: its image could not be created",
                 LOG_C("sandbox", s->id), LOG_C("error", strerror(-r)));
    r = disk_remove(s->dir);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "remove an image") : 1;
}

/* The child makes upper and work in it: it is root in the stored ids, as mounted here. */
int step_disk(struct sandbox *s, struct err *e)
{
    uint32_t root = idmap_stored();
    bool plain;
    int r = 1;

    if (!(s->flags & SPAWN_UPPER_DISK))
        return 0;
    if (s->flags & SPAWN_RESTART ? disk_is_there(s->dir) : s->disk_bytes != 0)
        r = limited_disk(s, e);
    plain = r > 0;
    if (plain)
        r = plain_disk(s, e);
    if (r < 0)
        return -1;
    if (fchown(s->disk, root, root) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "own the writable layer");
    if (plain) { /* it is measured by its files */
        fd_close(s->disk);
        s->disk = -1;
    }
    r = idmap_tree(&s->ids, s->upper, root, root);
    return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "map the writable layer") : 0;
}

/* An image is released by its last mount, a moment after the last process. */
int undo_disk(struct sandbox *s)
{
    int r;

    fd_close(s->upper);
    fd_close(s->disk);
    s->upper = s->disk = -1;
    if (s->dir < 0 || !(s->flags & SPAWN_UPPER_DISK))
        return 0;
    if (s->job.pid != 0 && s->keep)
        return -EBUSY; /* a measurement is in progress */
    r = disk_is_busy(s->dir);
    if (r != 0)
        return r < 0 ? r : -EBUSY;
    if (s->keep)
        return 0;
    r = disk_remove(s->dir);
    if (r < 0)
        return r;
    r = tree_remove_by_job(&s->job, s->dir, "fs");
    return r == -EAGAIN ? -EBUSY : r;
}
