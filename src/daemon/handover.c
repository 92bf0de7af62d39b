/* handover: gives files of an earlier holtd to the user of this one, following no links. */
#include "daemon/handover.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/identity/tenant.h"
#include "daemon/helpers.h"
#include "daemon/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 16

struct handover {
    uid_t from; /* the former user of the files, besides root */
    const struct account *to;
};

/* The entries of the state directory that are holtd's, and how deep; the rest belongs to holt-spawn
 * and holt-egress, and stays root's. */
static const struct {
    const char *name;
    int depth;
} places[] = {
    {"admin-token", 0},  {"blobs", DEPTH_MAX}, {"ca.crt", 0},
    {"ca.key", 0},       {"execs", DEPTH_MAX}, {"holt.db", 0},
    {"holt.db-shm", 0},  {"holt.db-wal", 0},   {"holt.db-journal", 0},
    {"holt.db.lock", 0}, {"installation", 0},  {"layers", 2}, /* in layers/NAME/fs are images' */
    {"lock", 0},         {"secret.key", 0},    {"spool", DEPTH_MAX},
};

static int depth_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (strcmp(places[i].name, name) == 0)
            return places[i].depth;
    return -1;
}

/* A file with several names may have one elsewhere: only root could have made that here, and holtd
 * makes none. */
static bool is_ours(const struct handover *h, const struct stat *st)
{
    return (st->st_uid == 0 || st->st_uid == h->from) && st->st_uid != h->to->uid &&
           (S_ISDIR(st->st_mode) || (S_ISREG(st->st_mode) && st->st_nlink == 1) ||
            S_ISSOCK(st->st_mode));
}

static int give(const struct handover *h, int fd, const struct stat *st)
{
    if (!is_ours(h, st))
        return 0;
    /* By the descriptor: the name may be another file by now. */
    return fchownat(fd, "", h->to->uid, h->to->gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int give_entry(const struct handover *h, int dir, const char *name, int depth);

static int give_below(const struct handover *h, int fd, int depth, int (*depth_for)(const char *))
{
    int at = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = at < 0 ? NULL : fdopendir(at);
    const struct dirent *entry;

    if (!d) {
        r = -errno;
        fd_close(at);
        return r;
    }
    while (r == 0 && (entry = readdir(d))) {
        int below = depth_for ? depth_for(entry->d_name) : depth - 1;

        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && below >= 0)
            r = give_entry(h, dirfd(d), entry->d_name, below);
    }
    (void)closedir(d);
    return r;
}

static int give_entry(const struct handover *h, int dir, const char *name, int depth)
{
    AUTO(fd_close) int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    r = give(h, fd, &st);
    return r < 0 || !S_ISDIR(st.st_mode) || depth == 0 ? r : give_below(h, fd, depth, NULL);
}

/* ---- other places named by settings ---- */

/* The directory and its tenants' directories; their content belongs to sandboxes. */
static int give_storage(const struct handover *h, const char *path, int depth)
{
    AUTO(fd_close) int fd = path[0] ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    struct stat st;
    int r;

    if (fd < 0)
        return path[0] && errno != ENOENT ? -errno : 0;
    if (fstat(fd, &st) < 0)
        return -errno;
    r = give(h, fd, &st);
    return r < 0 || depth == 0 ? r : give_below(h, fd, depth, NULL);
}

static int give_database(const struct handover *h, const char *url)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", ".lock"};
    const char *path = url + strlen("sqlite:");
    int r = 0;

    if (!str_starts(str_of(url), STR("sqlite:")))
        return 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(ends); i++) {
        AUTO(mem_free) char *name = xasprintf("%s%s", path, ends[i]);

        r = give_entry(h, AT_FDCWD, name, 0);
    }
    return r;
}

int handover_make_dirs(const struct config *c, struct err *e)
{
    struct conf_dir dirs[CONF_DIRS_MAX];
    size_t n = conf_dirs(c, dirs, ARRAY_LEN(dirs));

    for (size_t i = 0; i < n; i++) {
        int r = dirs[i].shared ? 0 : dir_make_all(dirs[i].path, 0755);

        if (r < 0)
            return err_set(e, ERR_INVALID, -r, "setting '%s': make '%s'", dirs[i].key,
                           dirs[i].path);
        if (dirs[i].shared && tenant_make_dir(dirs[i].path, e) < 0)
            return err_wrap(e, "setting '%s'", dirs[i].key);
    }
    return 0;
}

static int give_all(const struct handover *h, const struct config *c, int dir, struct err *e)
{
    int r = give_below(h, dir, DEPTH_MAX, depth_of);
    struct conf_dir dirs[CONF_DIRS_MAX];
    size_t n = conf_dirs(c, dirs, ARRAY_LEN(dirs));

    for (size_t i = 0; r == 0 && i < n; i++)
        if (!dirs[i].shared)
            r = give_storage(h, dirs[i].path, 1);
    if (r == 0 && c->db)
        r = give_database(h, c->db);
    /* Last, so that an interrupted handover is repeated. */
    if (r == 0 && fchownat(dir, "", h->to->uid, h->to->gid, AT_EMPTY_PATH) < 0)
        r = -errno;
    return r < 0 ? err_set(e, ERR_FORBIDDEN, -r, "give it to user %u", h->to->uid) : 0;
}

int handover_state(const struct config *c, const struct account *to, struct err *e)
{
    struct handover h = {.from = ACCOUNT_HOLT, .to = to};
    AUTO(fd_close) int lock = state_open_for(c->state, to->uid, e);
    AUTO(fd_close) int dir = -1;

    if (lock < 0 || handover_make_dirs(c, e) < 0)
        return -1;
    dir = open(c->state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s'", c->state);
    helpers_end_old(c->state, to->uid);
    if (give_all(&h, c, dir, e) < 0)
        return err_wrap(e, "state directory '%s'", c->state);
    return TAKE_FD(lock);
}
