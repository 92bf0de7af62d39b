/* tenant: makes the directories that a tenant's sandboxes share. */
#include "core/identity/tenant.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/identity/owner.h"
#include "wire/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int tenant_check(struct str t, struct err *e)
{
    bool good = t.n <= TENANT_MAX && (t.n == 0 || (t.p[0] != '.' && t.p[0] != '-'));

    for (size_t i = 0; good && i < t.n; i++)
        good = (t.p[i] >= '0' && t.p[i] <= '9') || (t.p[i] >= 'a' && t.p[i] <= 'z') ||
               (t.p[i] >= 'A' && t.p[i] <= 'Z') || (t.p[i] != '\0' && strchr("._-", t.p[i]));
    if (good)
        return 0;
    err_set(e, ERR_INVALID, 0, "the tenant '" STR_FMT "' cannot be used", (int)size_min(t.n, 80),
            t.p);
    return err_hint(e, "up to %d letters, digits, '.', '_' and '-', not beginning with '.' or '-'",
                    TENANT_MAX);
}

struct job {
    uv_work_t work;
    char *dir;
    const char *const *names;
    tenant_cb done;
    void *arg;
    struct err e;
};

/* Owned by the host's root and empty, so that nobody can mean to keep it as it is. */
static bool is_roots_and_empty(const char *path)
{
    struct stat st;
    struct dirent *at;
    bool empty = true;
    DIR *d;

    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != 0)
        return false;
    d = opendir(path);
    if (!d)
        return false;
    while (empty && (at = readdir(d)))
        empty = strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0;
    (void)closedir(d);
    return empty;
}

/* As the host's root, gives directories to the id that stands for root in all sandboxes: files of
 * the host's root are not root's inside.  An existing empty directory is given too. */
static int make_dir(const char *path, bool give, struct err *e)
{
    bool there = mkdir(path, 0755) < 0;

    if (there && errno != EEXIST)
        return err_set(e, ERR_INTERNAL, errno, "make directory '%s'", path);
    if (there && !is_roots_and_empty(path))
        return 0;
    if (give && geteuid() == 0 && lchown(path, SPAWN_STORED_ID, SPAWN_STORED_ID) < 0)
        return err_set(e, ERR_INTERNAL, errno, "change the owner of directory '%s'", path);
    return 0;
}

int tenant_make_dir(const char *path, struct err *e)
{
    AUTO(mem_free) char *above = xstrdup(path);
    char *last = strrchr(above, '/');
    int r;

    if (last && last > above) {
        *last = '\0';
        r = dir_make_all(above, 0755);
        if (r < 0)
            return err_set(e, ERR_INVALID, -r, "make directory '%s'", above);
    }
    return make_dir(path, true, e);
}

/* Sandboxes see files of the host's root as nobody's (docs/runtime.md, "Ids"): a session would
 * silently get a directory it cannot write to. */
static int check_owner(const char *path, struct err *e)
{
    struct stat st;
    bool own;

    if (lstat(path, &st) < 0 || st.st_uid != 0 || (st.st_mode & 0002))
        return 0;
    own = geteuid() == 0;
    (void)err_set(e, ERR_CONFLICT, 0,
                  "directory '%s' belongs to root of the host, so no session could write there; "
                  "run chown -R %u:%u on it",
                  path, own ? SPAWN_STORED_ID : geteuid(), own ? SPAWN_STORED_ID : getegid());
    return err_hint(e, "%s", own ? "that id is root in all sandboxes" : "that is holtd's own user");
}

static void make_all(uv_work_t *w)
{
    struct job *j = w->data;
    int r = make_dir(j->dir, false, &j->e);

    for (const char *const *name = j->names; r == 0 && *name; name++) {
        AUTO(mem_free) char *path = xasprintf("%s/%s", j->dir, *name);

        r = make_dir(path, true, &j->e);
        if (r == 0)
            r = check_owner(path, &j->e);
    }
}

static void dirs_made(uv_work_t *w, int status)
{
    struct job *j = w->data;

    (void)status; /* it is never cancelled */
    j->done(j->arg, &j->e);
    mem_free(j->dir);
    mem_free(j);
}

void tenant_make_dirs(uv_loop_t *loop, const struct principal *by, struct tenant_dirs dirs,
                      tenant_cb done, void *arg)
{
    struct err e = {0};
    struct str tenant;
    struct job *j;

    if (owner_tenant(by, dirs.tenant, &tenant, &e) < 0) {
        done(arg, &e);
        return;
    }
    j = xzalloc(sizeof *j);
    j->work.data = j;
    j->dir = xasprintf("%s/" STR_FMT, dirs.base, STR_ARG(tenant));
    j->names = dirs.names;
    j->done = done;
    j->arg = arg;
    (void)uv_queue_work(loop, &j->work, make_all, dirs_made);
}
