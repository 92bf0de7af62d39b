/* disk: writable layers with a limit: ext4 images on loop devices. */
#include "spawn/disk.h"

#include "base/fd.h"
#include "base/loop.h"
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
#define JOURNAL_FROM (32ULL << 20) /* smaller ones have no room for a journal */
#define IMAGE_MIN (1ULL << 20)
#define IMAGE_MAX (1ULL << 40)
#define TEMPLATES DISK_SIZES_MAX
#define LOOP_TRIES 16

/* ---- empty images, by size: memory files, whose holes cost nothing ---- */

static struct template
{
    uint64_t bytes; /* 0: unused */
    int fd;
    unsigned last; /* time of use */
}
templates[TEMPLATES];
static unsigned uses;

static const char *mke2fs_program(void)
{
    static const char *const places[] = {"/usr/sbin/mke2fs", "/sbin/mke2fs"};

    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
    return NULL;
}

/* Once per size: about 10 ms, seconds for the largest.  Tables are left as holes; the kernel reads
 * them as empty (lazy_itable_init), and noinit_itable keeps it from filling them. */
static int start_mke2fs(int fd, uint64_t bytes, pid_t *ret)
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
    int r;

    if (!program)
        return -EOPNOTSUPP;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, fd, 3);
    for (int i = 0; i < 3; i++)
        (void)posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
    /* its parameters are not const for historical reasons */
    r = posix_spawn(ret, program, &actions, NULL, (char *const *)(uintptr_t)argv,
                    (char *const *)(uintptr_t)env);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -r;
}

static struct template *find(uint64_t bytes)
{
    for (size_t i = 0; i < TEMPLATES; i++)
        if (templates[i].bytes == bytes)
            return &templates[i];
    return NULL;
}

/* fd: the file, or the error, which is remembered instead of trying again for each create. */
static void keep_template(uint64_t bytes, int fd)
{
    struct template *t = &templates[0];

    for (size_t i = 1; i < TEMPLATES; i++)
        if (templates[i].last < t->last)
            t = &templates[i];
    if (t->bytes != 0)
        fd_close(t->fd);
    *t = (struct template){.bytes = bytes, .fd = fd, .last = ++uses};
}

/* The image being made: by a child, asynchronously. */
static struct {
    struct watch ended;
    pid_t pid; /* 0: none */
    uint64_t bytes;
    int fd;
    void (*done)(void);
} making = {.ended.fd = -1, .fd = -1};

static void on_made(struct watch *w, uint32_t events)
{
    int status = -1, fd = making.fd;

    (void)events;
    if (waitpid(making.pid, &status, WNOHANG) == 0)
        return;
    loop_remove(w);
    making.pid = 0;
    making.fd = -1;
    if (status != 0) {
        fd_close(fd);
        fd = -EOPNOTSUPP;
    }
    keep_template(making.bytes, fd);
    making.done();
}

static int begin_template(uint64_t bytes)
{
    AUTO(fd_close) int fd = memfd_create("holt-disk", MFD_CLOEXEC);
    AUTO(fd_close) int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 10); /* 3 is the child's */
    int r, pidfd;

    if (high < 0 || ftruncate(high, (off_t)bytes) < 0)
        return -errno;
    r = start_mke2fs(high, bytes, &making.pid);
    if (r < 0)
        return r;
    pidfd = (int)syscall(SYS_pidfd_open, making.pid, 0);
    making.bytes = bytes;
    making.fd = TAKE_FD(high);
    loop_add(&making.ended, pidfd, on_made);
    loop_want(&making.ended, EPOLLIN);
    return 0;
}

static uint64_t image_bytes(uint64_t bytes)
{
    return bytes - bytes % BLOCK;
}

static bool can_make(uint64_t bytes)
{
    return !host.rootless && bytes >= IMAGE_MIN && bytes <= IMAGE_MAX &&
           access("/dev/loop-control", R_OK | W_OK) == 0;
}

bool disk_is_ready(uint64_t bytes)
{
    struct template *t = find(image_bytes(bytes));

    if (t)
        t->last = ++uses; /* a create that waits for several keeps the finished ones */
    return t || !can_make(image_bytes(bytes));
}

void disk_prepare(uint64_t bytes, void (*done)(void))
{
    int r;

    making.done = done;
    if (making.pid != 0)
        return; /* its end calls done, and missing ones are requested again */
    r = begin_template(image_bytes(bytes));
    if (r == 0)
        return;
    keep_template(image_bytes(bytes), r);
    done();
}

bool disk_has_room(uint64_t bytes)
{
    struct statfs fs;

    return !can_make(image_bytes(bytes)) || fstatfs(host.boxes, &fs) < 0 ||
           bytes <= (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
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
    const struct template *t;
    int r;

    bytes = image_bytes(bytes);
    t = can_make(bytes) ? find(bytes) : NULL;
    if (!t || t->fd < 0)
        return t ? t->fd : -EOPNOTSUPP;
    image = openat(dir, IMAGE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (image < 0)
        return -errno;
    r = ftruncate(image, (off_t)bytes) < 0 ? -errno : copy_data(t->fd, image);
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
    for (int i = 0; i < LOOP_TRIES && fd == -EBUSY; i++) /* another process may take it first */
        fd = try_loop(control, image, path, size);
    return fd;
}

/* Whether this device holds the file. */
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

/* The device that has the image; 0: none has. */
static int find_loop(int dir, char *path, size_t size)
{
    struct stat st;
    const struct dirent *entry;
    bool busy = false;
    DIR *d;

    if (fstatat(dir, IMAGE, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    d = opendir("/sys/block");
    while (!busy && d && (entry = readdir(d))) {
        busy = strncmp(entry->d_name, "loop", 4) == 0 && holds(entry->d_name, &st);
        if (busy)
            (void)snprintf(path, size, "/dev/%.16s", entry->d_name);
    }
    if (d)
        (void)closedir(d);
    return busy;
}

int disk_is_busy(int dir)
{
    char path[32];

    return find_loop(dir, path, sizeof path);
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

/* Two loop devices on one image would overwrite each other. */
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

/* Another mount of a device that is mounted shares its superblock. */
int disk_mount_again(int dir)
{
    char path[32];
    int r = find_loop(dir, path, sizeof path);

    return r < 0 ? r : r > 0 ? mount_ext4(path) : disk_mount(dir);
}

uint64_t disk_used(int dir, int root)
{
    struct statfs fs;
    struct stat st;

    if (root >= 0 && fstatfs(root, &fs) == 0)
        return (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    return fstatat(dir, IMAGE, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
}
