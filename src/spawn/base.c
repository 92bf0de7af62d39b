/* base: makes the lowest layer of every root. */

/* Made once, kept in base/ of the state directory, shared by all.  `host`: generated /etc, /var and
 * so on, and links as on the host; `points`: only the mount points, below the layers of an
 * image. */
#include "spawn/base.h"

#include "base/fd.h"
#include "spawn/host.h"
#include "spawn/idmap.h"
#include "spawn/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* clang-format off */
static const struct {
    const char *name;
    mode_t mode;
    bool always; /* also below images */
} dirs[] = {
    {"usr",                   0755, false},
    {"etc",                   0755, false},
    {"etc/ssl",               0755, false},
    {"var",                   0755, false},
    {"var/tmp",              01777, false},
    {"var/lib",               0755, false},
    {"var/log",               0755, false},
    {"var/cache",             0755, false},
    {"opt",                   0755, false},
    {"home",                  0755, false},
    {"root",                  0700, true},
    {"tmp",                  01777, true},
    {"run",                   0755, true},
    {"proc",                  0555, true},
    {"dev",                   0755, true},
    {"sys",                   0555, true},
    {"mnt",                   0755, true},
    {"workspace",             0755, true},
    {"mnt/user-data",         0755, true},
    {"mnt/user-data/uploads", 0755, true},
    {"mnt/user-data/outputs", 0755, true},
};
static const struct {
    const char *name, *content;
} files[] = {
    {"etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"},
    {"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
    {"etc/resolv.conf", ""},
};
/* clang-format on */

const char *const base_shared[] = {"/etc/alternatives", "/etc/ssl/certs", "/etc/ld.so.cache", NULL};
const char *const base_tops[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", NULL};

static int make_file(int root, const char *name, const char *content)
{
    AUTO(fd_close) int fd = openat(root, name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);

    return fd < 0 ? -errno : fd_write_all(fd, content, strlen(content));
}

static int make_dir(int root, const char *name, mode_t mode)
{
    if (mkdirat(root, name, mode) < 0 && errno != EEXIST)
        return -errno;
    return fchmodat(root, name, mode, 0) < 0 ? -errno : 0; /* the umask removed bits */
}

/* /bin, /lib and the like: links into /usr, or directories of their own, then bound. */
static int make_top(int root, const char *name)
{
    char from[32], to[128];
    ssize_t n;

    (void)snprintf(from, sizeof from, "/%s", name);
    n = readlink(from, to, sizeof to - 1);
    if (n < 0)
        return errno == EINVAL ? make_dir(root, name, 0755) : errno == ENOENT ? 0 : -errno;
    to[n] = '\0';
    return symlinkat(to, root, name) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_shared(int root, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return 0;
    return S_ISDIR(st.st_mode) ? make_dir(root, path + 1, 0755) : make_file(root, path + 1, "");
}

int base_make(int root, bool host_image)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++)
        if (host_image || dirs[i].always)
            r = make_dir(root, dirs[i].name, dirs[i].mode);
    if (!host_image)
        return r;
    for (size_t i = 0; r == 0 && base_tops[i]; i++)
        r = make_top(root, base_tops[i]);
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(files); i++)
        r = make_file(root, files[i].name, files[i].content);
    for (size_t i = 0; r == 0 && base_shared[i]; i++)
        r = make_shared(root, base_shared[i]);
    if (r == 0 && symlinkat("../usr/lib/os-release", root, "etc/os-release") < 0 && errno != EEXIST)
        r = -errno;
    return r;
}

/* A lower layer must not change while it is mounted: another content is another directory. */
static uint64_t fingerprint(void)
{
    uint64_t h = 0xcbf29ce484222325ULL; /* FNV-1a */
    AUTO(buf_done) struct buf text = {0};

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        buf_printf(&text, "%s %o %d\n", dirs[i].name, dirs[i].mode, dirs[i].always);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        buf_printf(&text, "%s %s\n", files[i].name, files[i].content);
    for (size_t i = 0; base_shared[i]; i++)
        buf_printf(&text, "%s %d\n", base_shared[i], access(base_shared[i], F_OK));
    for (size_t i = 0; base_tops[i]; i++) {
        char from[32], to[128] = "";

        (void)snprintf(from, sizeof from, "/%s", base_tops[i]);
        buf_printf(&text, "%s %zd %.127s\n", from, readlink(from, to, sizeof to - 1), to);
    }
    for (size_t i = 0; i < buf_len(&text); i++)
        h = (h ^ (uint8_t)buf_data(&text)[i]) * 0x100000001b3ULL;
    return h;
}

/* With the canonical ids as file ids; in a child, because changing ours would clear our parent
 * death signal (PR_SET_PDEATHSIG) and make us undumpable. */
static int make_as(uint32_t id, int root, bool host_image)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        (void)setfsgid(id);
        (void)setfsuid(id);
        _exit(-base_make(root, host_image));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -errno;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int build(int dir, const char *name, bool host_image)
{
    AUTO(fd_close) int root = -1;
    uint32_t id = idmap_stored();
    int r = tree_remove(dir, "new", NULL);

    if (r < 0)
        return r;
    if (mkdirat(dir, "new", 0755) < 0 || fchownat(dir, "new", id, id, 0) < 0)
        return -errno;
    root = openat(dir, "new", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (root < 0 || fchmod(root, 0755) < 0)
        return -errno;
    r = make_as(id, root, host_image);
    return r == 0 && renameat(dir, "new", dir, name) < 0 ? -errno : r;
}

static int open_or_build(int dir, bool host_image)
{
    char name[40];
    int fd, r;

    (void)snprintf(name, sizeof name, "%s-%016" PRIx64, host_image ? "host" : "points",
                   fingerprint());
    fd = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0)
        return fd;
    r = build(dir, name, host_image);
    if (r < 0)
        return r;
    fd = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? -errno : fd;
}

int host_make_base(struct err *e)
{
    AUTO(fd_close) int dir = -1;
    mode_t mask = umask(0022);
    int r = mkdirat(host.state, "base", 0700) < 0 && errno != EEXIST ? -errno : 0;

    dir = openat(host.state, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (r == 0 && dir < 0)
        r = -errno;
    if (r == 0)
        r = host.base_points = open_or_build(dir, false);
    if (r >= 0)
        r = host.base_host = open_or_build(dir, true);
    (void)umask(mask);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "make '%s/base'", host.state_path);
    host.idmapped = !host.rootless && idmap_probe(host.base_host) == 0;
    return 0;
}
