/* hand_over: gives holtd's part of a state directory to another user. */
#include "base/hand_over.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 16 /* more than any directory of holtd has */

/* Entries of the state directory that are holt-spawn's, holt-egress's and holt-virt's. */
static const char *const others[] = {
    "sb",         "shells",     "base",        "dev", "volumes",  "spawn.lock", "spawn.log",
    "spawn.sock", "egress.log", "egress.sock", "vm",  "virt.log", "virt.sock"};

static bool is_others(const char *name)
{
    if (strncmp(name, "virt-", 5) == 0) /* of the hosts of machines */
        return true;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return false;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* By the descriptor: the name may be another file by now. */
static int give(const struct hand_over *h, int fd, const struct stat *st)
{
    if ((st->st_uid != 0 && st->st_uid != h->from) || st->st_uid == h->to.uid ||
        (!S_ISDIR(st->st_mode) && st->st_nlink != 1))
        return 0;
    return fchownat(fd, "", h->to.uid, h->to.gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

/* is_top: of the state directory.  'fs' is a layer's files, which belong to ids stored for
 * sandboxes. */
static int give_below(const struct hand_over *h, int fd, int depth, bool is_top)
{
    int at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = at < 0 ? NULL : fdopendir(at);
    const struct dirent *entry;

    if (!d) {
        r = -errno;
        fd_close(at);
        return r;
    }
    while (r == 0 && (entry = readdir(d)))
        if (!is_dots(entry->d_name) &&
            !(is_top ? is_others(entry->d_name) : strcmp(entry->d_name, "fs") == 0))
            r = hand_over_entry(h, dirfd(d), entry->d_name, depth - 1);
    (void)closedir(d);
    return r;
}

int hand_over_entry(const struct hand_over *h, int dir, const char *name, int depth)
{
    AUTO(fd_close) int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    int r = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (S_ISDIR(st.st_mode) && depth > 0)
        r = give_below(h, fd, depth, false);
    return r < 0 ? r : give(h, fd, &st);
}

int hand_over_state(const struct hand_over *h, int state)
{
    int r = give_below(h, state, DEPTH_MAX, true);

    return r == 0 && fchownat(state, "", h->to.uid, h->to.gid, AT_EMPTY_PATH) < 0 ? -errno : r;
}
