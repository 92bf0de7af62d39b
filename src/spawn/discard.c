/* discard: removes volumes and layers, whose files belong to ids that holtd cannot remove. */
#include "spawn/discard.h"

#include "base/fd.h"
#include "base/mem.h"
#include "spawn/host.h"
#include "spawn/server.h"
#include "spawn/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct discard {
    struct tree_job job;
    uint32_t tag;
    char id[SPAWN_LAYER_MAX + 1];
};

static void answer(struct discard *d, int r)
{
    struct err e = {0};

    if (r < 0)
        (void)err_set(&e, r == -EINVAL ? ERR_INVALID : err_code_from_errno(-r), -r, "discard '%s'",
                      d->id);
    server_done(d->tag, r < 0 ? &e : NULL);
    mem_free(d);
}

static void on_end(struct tree_job *j)
{
    answer(CONTAINER_OF(j, struct discard, job), j->result);
}

void discard_begin(const struct spawn_discard *ask, uint32_t tag)
{
    bool layer = ask->what == SPAWN_DISCARD_LAYER;
    AUTO(fd_close)
    int dir = openat(host.state, layer ? "layers" : "volumes",
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct discard *d = xzalloc(sizeof *d);
    int r = -EINVAL;

    d->tag = tag;
    d->job.told.fd = -1;
    (void)snprintf(d->id, sizeof d->id, STR_FMT, STR_ARG(ask->id));
    if (layer ? spawn_layer_is_safe(ask->id) : spawn_id_is_safe(ask->id))
        r = dir >= 0 ? tree_remove_by_job(&d->job, dir, d->id) : errno == ENOENT ? 0 : -errno;
    if (r == -EBUSY)
        d->job.on_end = on_end;
    else
        answer(d, r);
}
