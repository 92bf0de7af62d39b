/* step_trust: the authority that a sandbox with a network trusts besides its image's own. */

/* holt-egress uses it to intercept connections (docs/egress.md).  The host image shows one shared
 * bundle; in another image the child writes the bundle anew, so that the image's own tools can keep
 * replacing it.  Root inside could do everything that the child does here. */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/inside.h"
#include "spawn/mnt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUNDLE_MAX (4U << 20)
#define TRUST "trust-"
#define BUNDLE_DIR "/etc/ssl/certs"

static bool wants(const struct sandbox *s)
{
    return (s->flags & SPAWN_NETWORK) && s->ask->ca.n > 0;
}

/* ---- in holt-spawn: the bundle of the host image ---- */

static uint64_t add_hash(uint64_t h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3ULL; /* FNV-1a */
    return h;
}

/* Another content is another file: a mounted one does not change. */
static uint64_t fingerprint(const struct stat *st, struct str ca)
{
    const int64_t parts[] = {(int64_t)st->st_dev, (int64_t)st->st_ino, st->st_size,
                             st->st_mtim.tv_sec, st->st_mtim.tv_nsec};

    return add_hash(add_hash(0xcbf29ce484222325ULL, parts, sizeof parts), ca.p, ca.n);
}

/* Bundles of other authorities, or of what the host trusted before.  Sandboxes that show one keep
 * it. */
static void drop_old(int base, const char *name)
{
    int fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (strncmp(entry->d_name, TRUST, strlen(TRUST)) == 0 && strcmp(entry->d_name, name) != 0)
            (void)unlinkat(base, entry->d_name, 0);
    if (d)
        (void)closedir(d);
    else
        fd_close(fd);
}

static int make_bundle(int base, const char *name, int from, struct str ca)
{
    AUTO(buf_done) struct buf old = {0};
    int r = fd_read_all(from, BUNDLE_MAX, &old);

    (void)unlinkat(base, "new-trust", 0);
    if (r == 0 && buf_len(&old) > 0 && buf_data(&old)[buf_len(&old) - 1] != '\n')
        buf_add_char(&old, '\n');
    if (r == 0)
        r = inside_write_new(base, "new-trust", buf_str(&old), ca);
    if (r == 0 && renameat(base, "new-trust", base, name) < 0)
        r = -errno;
    if (r == 0)
        drop_old(base, name);
    return r;
}

/* A file with the host's authorities and ca; -ENOENT: the host has no bundle. */
static int open_bundle(struct str ca)
{
    AUTO(fd_close) int from = open(SPAWN_BUNDLE_PATH, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    AUTO(fd_close) int base = openat(host.state, "base", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat st;
    char name[40];
    int fd, r;

    if (from < 0 || base < 0 || fstat(from, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -ENOENT;
    (void)snprintf(name, sizeof name, TRUST "%016" PRIx64, fingerprint(&st, ca));
    fd = openat(base, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    r = make_bundle(base, name, from, ca);
    if (r < 0)
        return r;
    fd = openat(base, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int step_bundle(struct sandbox *s, struct err *e)
{
    struct mount_attr readonly = {.attr_set =
                                      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    AUTO(fd_close) int file = -1;
    int r;

    if (!wants(s) || !sandbox_on_host(s->ask))
        return 0;
    file = open_bundle(s->ask->ca);
    if (file == -ENOENT)
        return 0;
    r = file < 0 ? file : mnt_clone(file, false);
    if (r >= 0) {
        s->trust = r;
        r = mnt_set_fd(s->trust, &readonly, false);
    }
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "make the bundle of authorities") : 0;
}

int undo_bundle(struct sandbox *s)
{
    fd_close(s->trust);
    s->trust = -1;
    return 0;
}

/* ---- in the builder: every path is in the root (inside.h) ---- */

static void make_dirs(int root, const char *const *dirs)
{
    for (; *dirs; dirs++) {
        AUTO(fd_close) int fd = inside_make(root, *dirs, false);

        (void)fd; /* a failure shows when the file is made */
    }
}

/* An image's file, through its own links, but not on a mount. */
static int open_bundle_of(int root, const char *path)
{
    AUTO(fd_close) int fd = inside_open_plain(root, path, O_RDONLY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;
    return TAKE_FD(fd);
}

/* 1: it exists, and now holds ca; 0: it does not exist. */
static int add_to_bundle(int root, const char *path, struct str ca)
{
    AUTO(fd_close) int fd = open_bundle_of(root, path);
    AUTO(buf_done) struct buf old = {0};
    char real[PATH_MAX];
    int r;

    if (fd < 0)
        return 0;
    r = inside_path_of(root, fd, real, sizeof real);
    if (r == 0)
        r = fd_read_all(fd, BUNDLE_MAX, &old);
    if (r < 0)
        return r;
    if (str_find(buf_str(&old), ca))
        return 1;
    if (buf_len(&old) > 0 && buf_data(&old)[buf_len(&old) - 1] != '\n')
        buf_add_char(&old, '\n');
    r = inside_replace(root, real, buf_str(&old), ca);
    return r < 0 ? r : 1;
}

/* Tools look for this name, but the image has its bundle under another. */
static int link_bundle(int root, const char *found)
{
    AUTO(fd_close) int there = inside_open(root, SPAWN_BUNDLE_PATH, O_PATH);
    AUTO(fd_close) int dir = inside_open(root, BUNDLE_DIR, O_PATH | O_DIRECTORY);

    if (there >= 0 || dir < 0)
        return there >= 0 ? 0 : dir;
    return symlinkat(found, dir, &SPAWN_BUNDLE_PATH[sizeof BUNDLE_DIR]) < 0 ? -errno : 0;
}

static int trust_in_image(int root, struct str ca)
{
    static const char *const bundles[] = {SPAWN_BUNDLE_PATH, "/etc/pki/tls/certs/ca-bundle.crt",
                                          "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem"};
    static const char *const dirs[] = {BUNDLE_DIR, "/usr/local/share/ca-certificates", NULL};
    const char *found = NULL;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < ARRAY_LEN(bundles); i++) {
        r = add_to_bundle(root, bundles[i], ca);
        if (r > 0 && !found)
            found = bundles[i];
    }
    if (r < 0)
        return r;
    make_dirs(root, dirs);
    /* Where update-ca-certificates(8) and update-ca-trust(8) look when they rebuild bundles. */
    (void)!inside_replace(root, "/usr/local/share/ca-certificates/holt.crt", ca, STR(""));
    (void)!inside_replace(root, "/etc/pki/ca-trust/source/anchors/holt.pem", ca, STR(""));
    return found ? link_bundle(root, found) : inside_replace(root, SPAWN_BUNDLE_PATH, ca, STR(""));
}

static int trust_in_host_image(struct sandbox *s)
{
    static const char *const dirs[] = {BUNDLE_DIR, NULL};

    if (s->trust >= 0)
        return inside_attach(s->root, s->trust, SPAWN_BUNDLE_PATH);
    make_dirs(s->root, dirs); /* the host's, if it has one, is read-only: then it stays */
    (void)!inside_replace(s->root, SPAWN_BUNDLE_PATH, s->ask->ca, STR(""));
    return 0;
}

int step_trust(struct sandbox *s, struct err *e)
{
    static const char *const dirs[] = {"/etc/ssl", NULL};
    int r;

    if (!wants(s))
        return 0;
    make_dirs(s->root, dirs);
    r = inside_replace(s->root, SPAWN_CA_PATH, s->ask->ca, STR(""));
    if (r == 0)
        r = sandbox_on_host(s->ask) ? trust_in_host_image(s) : trust_in_image(s->root, s->ask->ca);
    (void)undo_bundle(s);
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "let it trust the authority") : 0;
}
