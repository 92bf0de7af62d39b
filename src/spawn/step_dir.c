/* What a sandbox has on disk: sb/ID with init's socket, and the writable layer. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/idmap.h"
#include "spawn/mnt.h"
#include "spawn/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int step_directory(struct sandbox *s, struct err *e)
{
    if (!(s->flags & SPAWN_RESTART) && mkdirat(host.boxes, s->id, host_box_mode()) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make its directory");
    s->dir = openat(host.boxes, s->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return s->dir < 0 ? err_set(e, ERR_INTERNAL, errno, "open its directory") : 0;
}

int undo_directory(struct sandbox *s)
{
    fd_close(s->dir);
    s->dir = -1;
    if (s->keep)
        return 0;
    return unlinkat(host.boxes, s->id, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* In the sandbox's own network namespace: /proc/net/unix lists a socket where it was made, and
 * spawn still stands in that of the last sandbox.  Bound by way of /proc/self/fd: the state
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

int step_ids(struct sandbox *s, struct err *e)
{
    idmap_take(&s->ids);
    if (s->ids.slot == 0)
        return err_set(e, ERR_LIMIT, 0, "no free range of user ids");
    return 0;
}

int undo_ids(struct sandbox *s)
{
    idmap_give(&s->ids);
    return 0;
}

/* fs/upper and fs/work, which the child makes: it is root in the stored ids, as mounted here. */
int step_disk(struct sandbox *s, struct err *e)
{
    uint32_t root = idmap_stored();
    AUTO(fd_close) int fs = -1;
    int r;

    if (!(s->flags & SPAWN_UPPER_DISK))
        return 0;
    if (mkdirat(s->dir, "fs", 0755) < 0 && !(errno == EEXIST && (s->flags & SPAWN_RESTART)))
        return err_set(e, err_code_from_errno(errno), errno, "make the writable layer");
    fs = openat(s->dir, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fs < 0 || fchown(fs, root, root) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "own the writable layer");
    s->upper = mnt_clone(fs, false);
    r = s->upper < 0 ? s->upper : idmap_tree(&s->ids, s->upper, root, root);
    return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "detach the writable layer") : 0;
}

int undo_disk(struct sandbox *s)
{
    int r;

    fd_close(s->upper);
    s->upper = -1;
    if (s->dir < 0 || !(s->flags & SPAWN_UPPER_DISK))
        return 0;
    if (s->keep)
        return s->job.pid != 0 ? -EBUSY : 0; /* a measure is under way */
    r = tree_remove_by_job(&s->job, s->dir, "fs");
    return r == -EAGAIN ? -EBUSY : r;
}
