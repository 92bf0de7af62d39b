/* stats: the resource use of a sandbox. */
#include "spawn/disk.h"
#include "spawn/own.h"
#include "spawn/sandbox.h"
#include "spawn/server.h"

static void on_measured(struct tree_job *j)
{
    struct sandbox *s = CONTAINER_OF(j, struct sandbox, job);
    struct spawn_msg m = {.type = SPAWN_STATS, .tag = s->stats_tag};

    j->on_end = NULL;
    j->ended = false; /* this end is handled; a removal is another job */
    s->stats_tag = 0;
    if (m.tag == 0)
        return;
    cgroup_stats(s, &m.u.stats);
    m.u.stats.disk_bytes = j->bytes + own_used(s);
    server_send(&m, -1);
}

void sandbox_stats(struct sandbox *s, uint32_t tag)
{
    struct spawn_msg m = {.type = SPAWN_STATS, .tag = tag};

    if (s->dir >= 0 && disk_is_there(s->dir)) {
        cgroup_stats(s, &m.u.stats);
        m.u.stats.disk_bytes = disk_used(s->dir, s->disk) + own_used(s);
        server_send(&m, -1);
        return;
    }
    if ((s->flags & SPAWN_UPPER_DISK) && s->stats_tag == 0 && s->dir >= 0 &&
        tree_measure(&s->job, s->dir, "fs") == 0) {
        s->stats_tag = tag;
        s->job.on_end = on_measured;
        return;
    }
    cgroup_stats(s, &m.u.stats); /* a second request gets no disk size: 0 */
    server_send(&m, -1);
}
