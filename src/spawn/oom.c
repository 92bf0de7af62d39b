/* oom: reports OOM kills as they happen. */

/* v2 marks memory.events as changed, v1 increments a registered eventfd (cgroup-v1/memory.rst, "OOM
 * Control"). */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "spawn/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void tell(struct sandbox *s, uint64_t kills)
{
    struct spawn_msg m = {.type = SPAWN_EVENT};

    s->oom_kills = kills;
    m.u.event = (struct spawn_event){str_of(s->id), SPAWN_OOM, (uint32_t)kills};
    server_send(&m, -1);
}

/* v1 notifies before it kills: the count may not include this one yet. */
static void on_v1(struct watch *w, uint32_t events)
{
    struct sandbox *s = CONTAINER_OF(w, struct sandbox, oom);
    uint64_t n = 0, kills = cgroup_oom_kills(s);

    (void)events;
    if (read(w->fd, &n, sizeof n) == (ssize_t)sizeof n)
        tell(s, kills > s->oom_kills ? kills : s->oom_kills + 1);
}

static void on_v2(struct watch *w, uint32_t events)
{
    struct sandbox *s = CONTAINER_OF(w, struct sandbox, oom);
    uint64_t kills;
    char text[256];

    (void)events;
    /* otherwise it stays marked; before counting, or a kill could be missed */
    (void)!pread(w->fd, text, sizeof text, 0);
    kills = cgroup_oom_kills(s);
    if (kills > s->oom_kills)
        tell(s, kills);
}

static int watch_v1(struct sandbox *s)
{
    AUTO(fd_close) int group = openat(host.cg1[CG1_MEMORY], s->id, O_PATH | O_CLOEXEC);
    AUTO(fd_close) int control = openat(group, "cgroup.event_control", O_WRONLY | O_CLOEXEC);
    AUTO(fd_close) int about = openat(group, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    AUTO(fd_close) int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    char text[32];
    int r;

    (void)snprintf(text, sizeof text, "%d %d", fd, about);
    if (control < 0 || about < 0 || fd < 0)
        return -errno;
    r = fd_write_all(control, text, strlen(text));
    if (r < 0)
        return r;
    s->oom_file = TAKE_FD(about);
    loop_add(&s->oom, TAKE_FD(fd), on_v1);
    loop_want(&s->oom, EPOLLIN);
    return 0;
}

/* Only with a limit: a lack of memory of the host itself is not about this sandbox. */
void oom_watch(struct sandbox *s)
{
    int fd;

    if (s->memory_bytes == 0 || !(s->enforced & SPAWN_CAN_MEMORY))
        return;
    s->oom_kills = cgroup_oom_kills(s);
    if (host.cg1[CG1_MEMORY] >= 0) {
        (void)watch_v1(s); /* the counts in stats show it too */
        return;
    }
    fd = s->cg2 < 0 ? -1 : openat(s->cg2, "memory.events", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    loop_add(&s->oom, fd, on_v2);
    loop_want(&s->oom, EPOLLPRI);
}

void oom_look(struct sandbox *s)
{
    if (s->oom.fd >= 0)
        s->oom.on(&s->oom, 0);
}

void oom_unwatch(struct sandbox *s)
{
    loop_remove(&s->oom);
    fd_close(s->oom_file);
    s->oom_file = -1;
}
