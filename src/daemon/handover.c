/* handover: gives files of an earlier holtd to the user of this one. */
#include "daemon/handover.h"

#include "base/fd.h"
#include "base/hand_over.h"
#include "base/mem.h"
#include "core/identity/tenant.h"
#include "daemon/helpers.h"
#include "daemon/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ---- other places named by settings ---- */

/* The directory and its tenants' directories; their content belongs to sandboxes. */
static int give_storage(const struct hand_over *h, const char *path)
{
    AUTO(fd_close) int fd = path[0] ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd < 0)
        return path[0] && errno != ENOENT ? -errno : 0;
    return hand_over_entry(h, fd, ".", 1);
}

static int give_database(const struct hand_over *h, const char *url)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", ".lock"};
    const char *path = url + strlen("sqlite:");
    int r = 0;

    if (!str_starts(str_of(url), STR("sqlite:")))
        return 0;
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(ends); i++) {
        AUTO(mem_free) char *name = xasprintf("%s%s", path, ends[i]);

        r = hand_over_entry(h, AT_FDCWD, name, 0);
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

static int give_all(const struct hand_over *h, const struct config *c, int dir, struct err *e)
{
    int r = 0;
    struct conf_dir dirs[CONF_DIRS_MAX];
    size_t n = conf_dirs(c, dirs, ARRAY_LEN(dirs));

    for (size_t i = 0; r == 0 && i < n; i++)
        if (!dirs[i].shared)
            r = give_storage(h, dirs[i].path);
    if (r == 0 && c->db)
        r = give_database(h, c->db);
    if (r == 0)
        r = hand_over_state(h, dir);
    return r < 0 ? err_set(e, ERR_FORBIDDEN, -r, "change its owner to user %u", h->to.uid) : 0;
}

int handover_state(const struct config *c, const struct account *to, struct err *e)
{
    struct hand_over h = {.from = ACCOUNT_HOLT, .to = *to};
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
