#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

int mnt_clone(int dir, bool recursive)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;
    long fd = syscall(SYS_open_tree, dir, "", flags | (recursive ? AT_RECURSIVE : 0U));

    return fd < 0 ? -errno : (int)fd;
}

int mnt_attach(int tree, const char *path)
{
    return syscall(SYS_move_mount, tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno
                                                                                          : 0;
}

int mnt_set(const char *path, uint64_t attributes)
{
    struct mount_attr a = {.attr_set = attributes};

    return syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &a, sizeof a) < 0 ? -errno : 0;
}
