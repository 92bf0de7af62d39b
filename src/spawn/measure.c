/* measure: measures the size of a volume. */
#include "spawn/measure.h"

#include "base/fd.h"
#include "base/mem.h"
#include "spawn/host.h"
#include "spawn/server.h"
#include "spawn/shared.h"
#include "spawn/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct measure {
    struct tree_job job;
    uint32_t tag;
};

static void answer(uint32_t tag, uint64_t bytes)
{
    struct spawn_msg m = {.type = SPAWN_MEASURED, .tag = tag};

    m.u.measured.bytes = bytes;
    server_send(&m, -1);
}

static void refuse(uint32_t tag, int r, const char *id)
{
    struct err e;

    (void)err_set(&e, r == -EINVAL ? ERR_INVALID : err_code_from_errno(-r), -r, "measure '%s'", id);
    server_done(tag, &e);
}

static void on_end(struct tree_job *j)
{
    struct measure *m = CONTAINER_OF(j, struct measure, job);

    answer(m->tag, j->bytes);
    mem_free(m);
}

static int on_disk(const char *id, uint32_t tag)
{
    AUTO(fd_close)
    int dir = openat(host.state, "volumes", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct measure *m;
    int r;

    if (dir < 0 || faccessat(dir, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno; /* it was never used */
    m = xzalloc(sizeof *m);
    m->tag = tag;
    m->job.told.fd = -1;
    m->job.on_end = on_end;
    r = tree_measure(&m->job, dir, id);
    if (r < 0)
        mem_free(m);
    return r < 0 ? r : 1;
}

void measure_begin(const struct spawn_measure *ask, uint32_t tag)
{
    char id[SPAWN_ID_MAX + 1];
    uint64_t bytes = 0;
    int r = -EINVAL;

    (void)snprintf(id, sizeof id, STR_FMT, STR_ARG(ask->id));
    if (spawn_id_is_safe(ask->id))
        r = ask->kind == SPAWN_MOUNT_SHARED ? shared_bytes(id, &bytes) : on_disk(id, tag);
    if (r < 0)
        refuse(tag, r, id);
    else if (r == 0)
        answer(tag, bytes);
}
