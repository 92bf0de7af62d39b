/* step_root: the root: an overlay of the base, the layers of an image and a writable layer. */

/* Mounted in the sandbox's user namespace; for the host image also /usr, read-only. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/base.h"
#include "spawn/guards.h"
#include "spawn/inside.h"
#include "spawn/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TMPFS_DEFAULT (512ULL << 20)

/* Where the root is built, in this mount namespace only; it also holds a memory upper. */
int step_stage(struct sandbox *s, struct err *e)
{
    static const char *const made[] = {"root", "dev", "proc"};
    char options[80];

    (void)s;
    (void)umask(0022); /* with holtd's own, `/` would be for root only */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "cut off the host's mounts");
    (void)snprintf(options, sizeof options, "mode=755,size=%llu,nr_inodes=200000", TMPFS_DEFAULT);
    if (guard_left_out("disk"))
        options[sizeof "mode=755" - 1] = '\0';
    if (mount("holt", SETUP_STAGE, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return err_set(e, ERR_INTERNAL, errno, "mount the writable layer");
    if (chdir(SETUP_STAGE) < 0)
        return err_set(e, ERR_INTERNAL, errno, "go to the root's place");
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        if (mkdir(made[i], 0755) < 0)
            return err_set(e, ERR_INTERNAL, errno, "make the root's place");
    return 0;
}

static int limit_stage(const struct sandbox *s, struct err *e)
{
    char options[32];

    if (s->upper >= 0 || s->disk_bytes == 0 || guard_left_out("disk"))
        return 0;
    (void)snprintf(options, sizeof options, "size=%llu", (unsigned long long)s->disk_bytes);
    if (mount(NULL, SETUP_STAGE, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, options) < 0)
        return err_set(e, ERR_INTERNAL, errno, "limit the writable layer");
    return 0;
}

/* Two equal layers are one tree, which overlayfs refuses to list twice.  The lower one shows
 * nothing: all its names are in the upper one too. */
static bool is_again_above(const struct sandbox *s, size_t k)
{
    struct stat mine, other;

    if (fstat(s->layers[k], &mine) < 0)
        return false;
    for (size_t i = k + 1; i < s->layer_n; i++)
        if (fstat(s->layers[i], &other) == 0 && mine.st_dev == other.st_dev &&
            mine.st_ino == other.st_ino)
            return true;
    return false;
}

/* Names are short and relative: 60 layers must fit into one page of options. */
static int attach_layers(const struct sandbox *s, struct buf *names, struct err *e)
{
    for (size_t i = 0; i < s->layer_n; i++) {
        size_t k = s->layer_n - 1 - i; /* overlayfs lists the topmost first */
        char name[16];
        int r;

        if (is_again_above(s, k))
            continue;
        (void)snprintf(name, sizeof name, "%zu", k);
        r = mkdir(name, 0700) < 0 ? -errno : mnt_attach(s->layers[k], name);
        if (r < 0)
            return err_set(e, ERR_UNSUPPORTED, -r, "attach layer %zu", k);
        buf_printf(names, "%s%s", i ? ":" : "", name);
    }
    return 0;
}

/* The upper directory is the root's own inode: `/` shows its mode. */
static int make_upper(const struct sandbox *s, struct err *e)
{
    static const char *const parts[] = {"w/upper", "w/work"};
    int r = mkdir("w", 0755) < 0 ? -errno : s->upper < 0 ? 0 : mnt_attach(s->upper, "w");

    for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++)
        if (mkdir(parts[i], 0755) < 0 && errno != EEXIST)
            r = -errno;
    if (r == -ENOSPC || r == -EDQUOT) {
        (void)err_set(e, ERR_FULL, -r, "attach the writable layer");
        return err_hint(e, "make room on the disk of the state directory");
    }
    return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "attach the writable layer") : 0;
}

/* userxattr: the only marks that may be set inside a user namespace.  volatile: this upper is never
 * mounted again, so it needs no sync. */
static int mount_overlay(const struct sandbox *s, struct err *e)
{
    AUTO(buf_done) struct buf options = {0};

    buf_printf(&options, "lowerdir=");
    if (attach_layers(s, &options, e) < 0 || make_upper(s, e) < 0)
        return -1;
    buf_printf(&options, ",upperdir=w/upper,workdir=w/work,userxattr%s",
               s->upper < 0 ? ",volatile" : "");
    if (mount("holt", "root", "overlay", MS_NOSUID | MS_NODEV, buf_cstr(&options)) < 0) {
        (void)err_set(e, ERR_UNSUPPORTED, errno, "mount the overlay");
        return err_hint(e, "overlayfs in user namespaces needs Linux 5.11");
    }
    return 0;
}

/* If a tmpfs cannot be an upper in a user namespace (no user xattrs before Linux 6.6), the base is
 * made in it instead. */
static int make_plain(const struct sandbox *s, struct err *e)
{
    AUTO(fd_close) int root = -1;
    int r;

    assert(s->layer_n <= 1); /* sandbox.c: then an image's upper is on disk */
    if (mount("root", "root", NULL, MS_BIND, NULL) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make the root a mount");
    root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    r = root < 0 ? -errno : base_make(root, true);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "make the base") : 0;
}

int step_root(struct sandbox *s, struct err *e)
{
    bool plain = s->upper < 0 && !host.memory_overlay;

    if (limit_stage(s, e) < 0 || (plain ? make_plain(s, e) : mount_overlay(s, e)) < 0)
        return -1;
    (void)undo_layers(s); /* no access to trees of others while paths are followed */
    fd_close(s->upper);
    s->upper = -1;
    s->root = open(SETUP_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return s->root < 0 ? err_set(e, ERR_INTERNAL, errno, "open the root") : 0;
}

/* ---- the host's programs ---- */

static int detach(const char *name)
{
    AUTO(fd_close) int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct mount_attr a = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    AUTO(fd_close) int at = openat(top, name, O_PATH | O_CLOEXEC);
    AUTO(fd_close) int tree = at < 0 ? -errno : mnt_clone(at, true);
    int r = tree < 0 || guard_left_out("usr_readonly") ? tree : mnt_set_fd(tree, &a, true);

    return r < 0 ? r : TAKE_FD(tree);
}

static int add_program(struct sandbox *s, const char *name)
{
    int tree = detach(name);

    if (tree < 0)
        return tree;
    assert(s->program_n < ARRAY_LEN(s->programs));
    s->programs[s->program_n++] = (struct program){name, tree};
    return 0;
}

/* On hosts without merged /usr, /bin and the like are directories, and in the base as well. */
static bool is_top(const char *name)
{
    char path[32];
    struct stat st;

    (void)snprintf(path, sizeof path, "/%s", name);
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Always: a spare may still become the sandbox of an image. */
int step_programs(struct sandbox *s, struct err *e)
{
    int r = 0;

    if (s->ask && !sandbox_on_host(s->ask))
        return 0;
    r = add_program(s, "usr");
    for (size_t i = 0; r == 0 && base_tops[i]; i++)
        r = is_top(base_tops[i]) ? add_program(s, base_tops[i]) : 0;
    for (size_t i = 0; r == 0 && base_shared[i]; i++)
        r = access(base_shared[i], F_OK) == 0 ? add_program(s, base_shared[i] + 1) : 0;
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "detach the host's programs") : 0;
}

/* A spare may hold a file that the host has replaced since (ldconfig, an upgrade): a file without a
 * name cannot be attached, so the new one is used. */
static int attach_program(const struct sandbox *s, const struct program *p)
{
    AUTO(fd_close) int anew = -1;
    int r = inside_attach(s->root, p->tree, p->name);

    if (r == 0)
        return 0;
    anew = detach(p->name);
    if (anew == -ENOENT)
        return 0; /* the host has none any more */
    return anew < 0 ? r : inside_attach(s->root, anew, p->name);
}

/* In a spare the programs were detached in advance; an image has its own. */
int step_host_image(struct sandbox *s, struct err *e)
{
    for (size_t i = 0; i < s->program_n; i++) {
        int r = sandbox_on_host(s->ask) ? attach_program(s, &s->programs[i]) : 0;

        fd_close(s->programs[i].tree);
        if (r < 0)
            return err_set(e, ERR_INTERNAL, -r, "bind the host's programs");
    }
    s->program_n = 0;
    return 0;
}
