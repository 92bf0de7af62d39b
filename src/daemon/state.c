/* state: the state directory: lock, owner, installation. */
#include "daemon/state.h"

#include "base/account.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* `heir`: the user it is handed over to. */
static int check_dir(const char *dir, uid_t heir, struct err *e)
{
    struct stat st;

    if (stat(dir, &st) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "look at '%s'", dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(e, ERR_INVALID, 0, "'%s' is not a directory", dir);
    if (st.st_uid != geteuid() && st.st_uid != heir &&
        !(geteuid() == 0 && st.st_uid == ACCOUNT_HOLT)) {
        err_set(e, ERR_FORBIDDEN, 0, "'%s' belongs to user %u, holtd runs as user %u", dir,
                st.st_uid, geteuid());
        return err_hint(e, "start holtd as that user, or choose another directory with --state");
    }
    if (st.st_mode & (S_IWGRP | S_IWOTH)) {
        err_set(e, ERR_FORBIDDEN, 0, "other users may write to '%s'", dir);
        return err_hint(e, "chmod 700 %s", dir);
    }
    return 0;
}

static int lock_dir(const char *dir, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/lock", dir);
    AUTO(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    char text[24] = "";
    ssize_t n;

    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "open '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        n = pread(fd, text, sizeof text - 1, 0);
        text[n > 0 ? strcspn(text, "\n") : 0] = '\0';
        err_set(e, ERR_CONFLICT, 0, "it is in use by another holtd, process %s",
                text[0] ? text : "?");
        return err_hint(e, "stop that one, or choose another directory with --state");
    }
    (void)snprintf(text, sizeof text, "%d\n", getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, strlen(text), 0) < 0)
        return err_set(e, err_code_from_errno(errno), errno, "write '%s'", path);
    return TAKE_FD(fd);
}

int state_open_for(const char *dir, uid_t heir, struct err *e)
{
    int r = dir_make_all(dir, 0700);

    if (r < 0) {
        err_set(e, err_code_from_errno(-r), -r, "make the state directory '%s'", dir);
        return err_hint(e, "choose another with --state");
    }
    r = check_dir(dir, heir, e) < 0 ? -1 : lock_dir(dir, e);
    return r < 0 ? err_wrap(e, "state directory '%s'", dir) : r;
}

int state_open(const char *dir, struct err *e)
{
    return state_open_for(dir, geteuid(), e);
}

static int make_installation(const char *path, char *to, struct err *e)
{
    AUTO(fd_close)
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return err_set(e, err_code_from_errno(errno), errno, "make '%s'", path);
    id_make("in", to);
    r = fd_write_all(fd, to, strlen(to));
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0)
        return 0;
    (void)unlink(path); /* an incomplete name is useless */
    return err_set(e, err_code_from_errno(-r), -r, "write '%s'", path);
}

int state_installation(const char *dir, char *to, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/installation", dir);
    AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n;

    if (fd < 0 && errno == ENOENT)
        return make_installation(path, to, e);
    n = fd < 0 ? -1 : read(fd, to, ID_SIZE - 1);
    if (n < 0)
        return err_set(e, err_code_from_errno(errno), errno, "read '%s'", path);
    to[n] = '\0';
    to[strcspn(to, "\n")] = '\0';
    if (id_is_valid("in", str_of(to)))
        return 0;
    err_set(e, ERR_INTERNAL, 0, "'%s' does not contain the name of an installation", path);
    return err_hint(
        e, "restore it from a backup, or remove it: running sandboxes are then not adopted");
}

/* --- the database's owner --- */

struct owner {
    const char *installation;
    bool empty, foreign;
};

static bool is_empty(const char *dir, const char *name)
{
    AUTO(mem_free) char *path = xasprintf("%s/%s", dir, name);
    DIR *d = opendir(path);
    const struct dirent *entry;
    bool empty = true;

    while (d && (entry = readdir(d)))
        empty = empty && entry->d_name[0] == '.';
    if (d)
        (void)closedir(d);
    return empty;
}

static int look_at_owner(struct store_tx *tx, void *arg, struct err *e)
{
    struct owner *o = arg;
    struct store_rows *rows;
    bool ours;
    int r;

    if (tx_query(tx, "SELECT value FROM meta WHERE name = 'installation'", NO_PARAMS, &rows, e) < 0)
        return -1;
    r = rows_step(rows, e);
    ours = r > 0 && str_eq_c(rows_text(rows, 0), o->installation);
    rows_end(rows);
    o->foreign = r >= 0 && !ours && !o->empty;
    if (r < 0 || ours || o->foreign)
        return r < 0 ? -1 : 0;
    return tx_run(tx,
                  "INSERT INTO meta (name, value) VALUES ('installation', :id) ON CONFLICT (name) "
                  "DO UPDATE SET value = :id",
                  PARAMS(P_C("id", o->installation)), e) < 0
               ? -1
               : 0;
}

int state_is_foreign(const char *dir, const char *installation, struct store *s, bool *ret,
                     struct err *e)
{
    static const char *const holds[] = {"sb", "execs", "layers", "volumes"};
    struct owner o = {.installation = installation, .empty = true};

    for (size_t i = 0; i < ARRAY_LEN(holds); i++)
        o.empty = o.empty && is_empty(dir, holds[i]);
    if (store_now(s, look_at_owner, &o, e) < 0)
        return err_wrap(e, "read the installation's name from the database");
    *ret = o.foreign;
    return 0;
}

char *state_bindir(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    if (n <= 0)
        return xstrdup("/usr/local/bin");
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    return xstrdup(path[0] ? path : "/");
}
