#include "spawn/disk.h"

#include "base/fd.h"
#include "spawn/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IMAGE "disk.img"
#define BLOCK 4096
#define JOURNAL_FROM (32ULL << 20) /* smaller ones have no room for one */
#define IMAGE_MIN (1ULL << 20)
#define IMAGE_MAX (1ULL << 40)
#define TEMPLATES 8
#define LOOP_TRIES 16

/* ---- empty ones, by size: memory files, whose holes cost nothing ---- */

static struct template
{
    uint64_t bytes; /* 0: unused */
    int fd;
    unsigned last; /* use */
}
templates[TEMPLATES];

static const char *mke2fs_program(void)
{
    static const char *const places[] = {"/usr/sbin/mke2fs", "/sbin/mke2fs"};

    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

/* The one child that is waited for: once per size, some 10 ms.  Tables are left as holes; the
 * kernel reads them as empty (lazy_itable_init), and noinit_itable keeps it from filling them. */
static int run_mke2fs(int fd, uint64_t bytes)
{
    const char *program = mke2fs_program();
    const char *const argv[] = {"mke2fs",
                                "-q",
                                "-F",
                                "-t",
                                "ext4",
                                "-b",
                                "4096",
                                "-i",
                                "16384",
                                "-m",
                                "0",
                                "-O",
                                bytes < JOURNAL_FROM ? "^resize_inode,^has_journal"
                                                     : "^resize_inode",
                                "-E",
                                "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
                                "/proc/self/fd/3",
                                NULL};
    const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    posix_spawn_file_actions_t actions;
    int r, status;
    pid_t pid;

    if (!program)
        return -EOPNOTSUPP;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, fd, 3);
    for (int i = 0; i < 3; i++)
        (void)posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
    /* its parameters are not const for old programs' sake */
    r = posix_spawn(&pid, program, &actions, NULL, (char *const *)(uintptr_t)argv,
                    (char *const *)(uintptr_t)env);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r != 0)
        return -r;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -EOPNOTSUPP;
}

static int make_template(struct template *t, uint64_t bytes)
{
    AUTO(fd_close) int fd = memfd_create("holt-disk", MFD_CLOEXEC);
    AUTO(fd_close) int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10); /* 3 is the child's */
    int r;

    if (high < 0 || ftruncate(high, (off_t)bytes) < 0)
        return -errno;
    r = run_mke2fs(high, bytes);
    if (r < 0)
        return r;
    if (t->bytes)
        fd_close(t->fd);
    *t = (struct template){.bytes = bytes, .fd = TAKE_FD(high)};
    return 0;
}

static int template_of(uint64_t bytes)
{
    static unsigned uses;
    struct template *oldest = &templates[0];

    for (size_t i = 0; i < TEMPLATES; i++) {
        struct template *t = &templates[i];

        if (t->bytes == bytes) {
            t->last = ++uses;
            return t->fd;
        }
        if (t->bytes == 0 || (oldest->bytes != 0 && t->last < oldest->last))
            oldest = t;
    }
    int r = make_template(oldest, bytes);

    oldest->last = r < 0 ? oldest->last : ++uses;
    return r < 0 ? r : oldest->fd;
}

/* ---- the image ---- */

static int copy_part(int from, int to, off_t at, off_t end)
{
    char block[65536];

    while (at < end) {
        ssize_t n = pread(from, block, size_min(sizeof block, (size_t)(end - at)), at);

        if (n <= 0 || pwrite(to, block, (size_t)n, at) != n)
            return n == 0 ? -EIO : errno ? -errno : -EIO;
        at += n;
    }
    return 0;
}

static int copy_data(int from, int to)
{
    off_t end = 0, at;

    while ((at = lseek(from, end, SEEK_DATA)) >= 0) {
        int r;

        end = lseek(from, at, SEEK_HOLE);
        r = end < 0 ? -errno : copy_part(from, to, at, end);
        if (r < 0)
            return r;
    }
    return errno == ENXIO ? 0 : -errno;
}

int disk_make(int dir, uint64_t bytes)
{
    AUTO(fd_close) int image = -1;
    int template, r;

    bytes -= bytes % BLOCK;
    if (host.rootless || bytes < IMAGE_MIN || bytes > IMAGE_MAX ||
        access("/dev/loop-control", R_OK | W_OK) < 0)
        return -EOPNOTSUPP;
    template = template_of(bytes);
    if (template <0)
        return template;
    image = openat(dir, IMAGE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (image < 0)
        return -errno;
    r = ftruncate(image, (off_t)bytes) < 0 ? -errno : copy_data(template, image);
    if (r < 0)
        (void)unlinkat(dir, IMAGE, 0);
    return r;
}

bool disk_is_there(int dir)
{
    return faccessat(dir, IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int disk_remove(int dir)
{
    return unlinkat(dir, IMAGE, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* ---- loop devices ---- */

static int try_loop(int control, int image, char *path, size_t size)
{
    struct loop_config c = {
        .fd = (uint32_t)image,
        .block_size = BLOCK,
        .info.lo_flags = LO_FLAGS_AUTOCLEAR,
    };
    int n = ioctl(control, LOOP_CTL_GET_FREE);
    AUTO(fd_close) int fd = -1;

    if (n < 0)
        return -errno;
    (void)snprintf(path, size, "/dev/loop%d", n);
    fd = open(path, O_RDWR | O_CLOEXEC);
    return fd < 0 || ioctl(fd, LOOP_CONFIGURE, &c) < 0 ? -errno : TAKE_FD(fd);
}

static int open_loop(int image, char *path, size_t size)
{
    AUTO(fd_close) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int fd = -EBUSY;

    if (control < 0)
        return -errno;
    for (int i = 0; i < LOOP_TRIES && fd == -EBUSY; i++) /* another may take it first */
        fd = try_loop(control, image, path, size);
    return fd;
}

/* Does this one hold the file? */
static bool holds(const char *name, const struct stat *st)
{
    char path[64];
    struct loop_info64 info;
    AUTO(fd_close) int fd = -1;

    (void)snprintf(path, sizeof path, "/dev/%.32s", name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_device == st->st_dev &&
           info.lo_inode == st->st_ino;
}

int disk_is_busy(int dir)
{
    struct stat st;
    const struct dirent *entry;
    bool busy = false;
    DIR *d;

    if (fstatat(dir, IMAGE, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    d = opendir("/sys/block");
    while (!busy && d && (entry = readdir(d)))
        busy = strncmp(entry->d_name, "loop", 4) == 0 && holds(entry->d_name, &st);
    if (d)
        (void)closedir(d);
    return busy;
}

/* ---- the mount ---- */

static int mount_ext4(const char *device)
{
    AUTO(fd_close) int fs = (int)syscall(SYS_fsopen, "ext4", FSOPEN_CLOEXEC);
    long fd;

    if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "noinit_itable", NULL, 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "discard", NULL, 0) < 0 ||
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    return fd < 0 ? -errno : (int)fd;
}

/* Two loop devices on one image would write over each other. */
int disk_mount(int dir)
{
    AUTO(fd_close) int image = openat(dir, IMAGE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    AUTO(fd_close) int loop = -1;
    char path[32];
    int busy;

    if (image < 0)
        return -errno;
    busy = disk_is_busy(dir);
    if (busy != 0)
        return busy < 0 ? busy : -EBUSY;
    loop = open_loop(image, path, sizeof path);
    return loop < 0 ? loop : mount_ext4(path);
}

uint64_t disk_used(int dir, int root)
{
    struct statfs fs;
    struct stat st;

    if (root >= 0 && fstatfs(root, &fs) == 0)
        return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    return fstatat(dir, IMAGE, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}
