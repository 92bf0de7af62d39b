/* mnt: wrappers of the new mount system calls. */
#include "spawn/mnt.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
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
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS; /* also for /proc/self/fd */

    return syscall(SYS_move_mount, tree, "", AT_FDCWD, path, flags) < 0 ? -errno : 0;
}

int mnt_attach_fd(int tree, int at)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;

    return syscall(SYS_move_mount, tree, "", at, "", flags) < 0 ? -errno : 0;
}

int mnt_set(const char *path, uint64_t attributes)
{
    struct mount_attr a = {.attr_set = attributes};

    return syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &a, sizeof a) < 0 ? -errno : 0;
}

int mnt_set_fd(int tree, struct mount_attr *a, bool recursive)
{
    unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0U);

    return syscall(SYS_mount_setattr, tree, "", flags, a, sizeof *a) < 0 ? -errno : 0;
}

int mnt_tmpfs(uint64_t size, const char *mode)
{
    AUTO(fd_close) int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    char text[32];
    long fd;

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)size);
    if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", text, 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", mode, 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "nr_inodes", "200000", 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    return fd < 0 ? -errno : (int)fd;
}
