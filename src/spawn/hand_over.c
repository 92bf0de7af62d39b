/* hand_over: gives holtd's part of a state directory from root to holtd's user. */
#include "spawn/hand_over.h"

#include "base/account.h"
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8 /* more than any directory of holtd has */

struct target {
    uid_t from; /* root, or the id that a holtd of root drops to without a user holt */
    uid_t uid;
    gid_t gid;
};

/* holt-spawn's own; and 'fs', the files of a layer, which belong to ids stored for sandboxes. */
static bool is_kept(const char *name, int depth)
{
    static const char *const ours[] = {"sb",      "shells",     "base",       "dev",
                                       "volumes", "spawn.lock", "spawn.sock", "spawn.log"};

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return true;
    for (size_t i = 0; depth == 0 && i < ARRAY_LEN(ours); i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return depth > 0 && strcmp(name, "fs") == 0;
}

static int hand_over_in(int dir, int depth, const struct target *to);

/* Follows no links, and gives away only files of its former user, who may have made names for files
 * of others. */
static int hand_over_entry(int dir, const char *name, int depth, const struct target *to)
{
    AUTO(fd_close) int below = -1;
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (st.st_uid != to->from && st.st_uid != ACCOUNT_EGRESS)
        return 0;
    if (S_ISDIR(st.st_mode)) {
        below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
            return -errno;
        return hand_over_in(below, depth + 1, to);
    }
    return fchownat(dir, name, to->uid, to->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int hand_over_in(int dir, int depth, const struct target *to)
{
    int copy = depth > DEPTH_MAX ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *entry;
    int r = d ? 0 : depth > DEPTH_MAX ? -ELOOP : -errno;

    while (r == 0 && (entry = readdir(d)))
        if (!is_kept(entry->d_name, depth))
            r = hand_over_entry(dir, entry->d_name, depth, to);
    if (d)
        (void)closedir(d);
    else
        fd_close(copy);
    /* Last: while it is root's, the next start repeats everything. */
    return r == 0 && fchownat(dir, "", to->uid, to->gid, AT_EMPTY_PATH) < 0 ? -errno : r;
}

static int check_unused(int state, const char *path, struct err *e)
{
    AUTO(fd_close) int fd = openat(state, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    (void)err_set(e, ERR_CONFLICT, 0, "a holtd that root has started serves '%s'", path);
    return err_hint(e, "stop it (Ctrl-C, or as root: holt down), then start the service again");
}

int hand_over_state(int state, const char *path, uid_t to, gid_t group, struct err *e)
{
    struct target target = {.uid = to, .gid = group};
    struct stat st;
    int r;

    if (fstat(state, &st) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "look at '%s'", path);
    if ((st.st_uid != 0 && st.st_uid != ACCOUNT_HOLT) || to == 0 || st.st_uid == to)
        return 0;
    target.from = st.st_uid;
    if (check_unused(state, path, e) < 0)
        return -1;
    r = hand_over_in(state, 0, &target);
    return r < 0 ? err_set(e, err_code_from_errno(-r), -r, "hand '%s' over to user %u", path, to)
                 : 0;
}
