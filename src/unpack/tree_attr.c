/* tree_attr: owners, modes, times and extended attributes of entries. */
#include "unpack/tree_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#define XATTR_BYTES_MAX (64 * 1024)

mode_t tree_mode(struct tree *t)
{
    mode_t mode = t->en->mode & 07777;

    if (t->o.keep_setuid || (mode & (S_ISUID | S_ISGID)) == 0)
        return mode;
    t->counts.setuid_cut++;
    return mode & ~(mode_t)(S_ISUID | S_ISGID);
}

void tree_times(const struct tar_entry *en, struct timespec to[2])
{
    to[0] = to[1] = (struct timespec){.tv_sec = en->mtime_s, .tv_nsec = en->mtime_ns};
}

/* An id outside the map (a single-id map, or one beyond 65535) cannot be set: EINVAL; EPERM without
 * privilege over it.  The entry then belongs to the writer, and is counted. */
static int owner_result(struct tree *t, int r, struct err *e)
{
    if (r == 0)
        return 0;
    if (errno != EINVAL && errno != EPERM)
        return tree_failed(t, e, "set the owner of");
    t->counts.owners_left++;
    return 0;
}

static bool id_fits(uint64_t id)
{
    return id < UINT32_MAX;
}

/* "user.overlay." controls overlayfs (redirects to other directories, for one); other namespaces
 * are for privileged programs. */
static bool xattr_is_safe(struct str name, struct str value)
{
    return str_starts(name, STR("user.")) && !str_starts(name, STR("user.overlay.")) &&
           value.n <= XATTR_BYTES_MAX;
}

static int set_xattrs(struct tree *t, int fd, struct err *e)
{
    for (size_t i = 0; i < t->en->xattr_count; i++) {
        const struct tar_xattr *x = &t->en->xattrs[i];
        char name[256];

        (void)snprintf(name, sizeof name, STR_FMT, STR_ARG(x->name));
        if (xattr_is_safe(x->name, x->value) && fsetxattr(fd, name, x->value.p, x->value.n, 0) == 0)
            continue;
        if (xattr_is_safe(x->name, x->value) && errno != ENOTSUP && errno != ENOSPC &&
            errno != E2BIG && errno != EPERM)
            return tree_failed(t, e, "set an attribute of");
        t->counts.xattrs_left++;
    }
    return 0;
}

int tree_attributes(struct tree *t, int fd, struct err *e)
{
    const struct tar_entry *en = t->en;
    int r = -1;

    errno = EINVAL;
    if (id_fits(en->uid) && id_fits(en->gid))
        r = fchown(fd, (uid_t)en->uid, (gid_t)en->gid);
    if (owner_result(t, r, e) < 0 || set_xattrs(t, fd, e) < 0)
        return -1;
    return 0;
}

int tree_link_attributes(struct tree *t, const struct place *at, struct err *e)
{
    const struct tar_entry *en = t->en;
    struct timespec times[2];
    int r = -1;

    errno = EINVAL;
    if (id_fits(en->uid) && id_fits(en->gid))
        r = fchownat(at->dir, at->name, (uid_t)en->uid, (gid_t)en->gid, AT_SYMLINK_NOFOLLOW);
    if (owner_result(t, r, e) < 0)
        return -1;
    tree_times(en, times);
    (void)utimensat(at->dir, at->name, times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

int tree_make_opaque(struct tree *t, int dir, struct err *e)
{
    if (fsetxattr(dir, "user.overlay.opaque", "y", 1, 0) < 0)
        return tree_failed(t, e, "hide what is below");
    return 0;
}
