/* idmap: ranges of user ids for sandboxes, and idmapped mounts. */
#include "spawn/idmap.h"

#include "base/fd.h"
#include "base/launch.h"
#include "spawn/guards.h"
#include "spawn/host.h"
#include "spawn/mnt.h"
#include "spawn/range.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_MAX 32

static uint64_t used[IDMAP_SLOTS / 64 + 1];
static uint32_t next_slot = 1;
/* Free ranges whose user namespace still exists: making one takes 0.3 ms.  They stay claimed:
 * otherwise another installation could soon use the same ids. */
static struct idmap ready[READY_MAX];
static size_t ready_n;

uint32_t idmap_base(uint32_t slot)
{
    if (host.rootless)
        return 0;
    return SPAWN_STORED_ID + (host.idmapped && !guard_left_out("ids") ? slot * HOST_IDS : 0);
}

uint32_t idmap_stored(void)
{
    return host.rootless ? 0 : SPAWN_STORED_ID;
}

void idmap_mark(const struct idmap *m)
{
    if (m->slot > 0 && m->slot < IDMAP_SLOTS)
        used[m->slot / 64] |= 1ULL << (m->slot % 64);
}

static bool is_used(uint32_t slot)
{
    return (used[slot / 64] >> (slot % 64)) & 1;
}

void idmap_take(struct idmap *m)
{
    *m = (struct idmap){.userns = -1};
    if (ready_n > 0)
        *m = ready[--ready_n];
    for (uint32_t i = 0; i < IDMAP_SLOTS && m->slot == 0; i++) {
        if (!is_used(next_slot) && range_claim(next_slot))
            m->slot = next_slot;
        next_slot = next_slot + 1 < IDMAP_SLOTS ? next_slot + 1 : 1;
    }
    idmap_mark(m);
}

void idmap_give(struct idmap *m)
{
    if (m->slot > 0 && m->slot < IDMAP_SLOTS)
        used[m->slot / 64] &= ~(1ULL << (m->slot % 64));
    if (m->userns >= 0 && ready_n < READY_MAX) {
        ready[ready_n++] = *m;
    } else {
        range_give(m->slot);
        fd_close(m->userns);
    }
    *m = (struct idmap){.userns = -1};
}

void idmap_give_ready(void)
{
    while (ready_n > 0) {
        range_give(ready[--ready_n].slot);
        fd_close(ready[ready_n].userns);
    }
}

static int write_map(pid_t pid, const char *which, uint32_t inside, uint32_t base, uint32_t n)
{
    char path[48], text[48];
    AUTO(fd_close) int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, which);
    (void)snprintf(text, sizeof text, "%u %u %u\n", inside, base, n);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* It holds our lock and our listening socket: if we die, it must die too. */
static _Noreturn void wait_for_kill(pid_t parent)
{
    launch_tie(parent);
    while (true)
        (void)pause();
}

/* A user namespace exists only with a process in it or a descriptor on it: make a process, map,
 * open, kill. */
static int make_userns(uid_t uid, gid_t gid, uint32_t base, uint32_t n)
{
    pid_t parent = getpid();
    struct clone_args args = {.flags = CLONE_NEWUSER | CLONE_CLEAR_SIGHAND};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    char path[48];
    int r, status, fd;

    if (pid < 0)
        return -errno;
    if (pid == 0)
        wait_for_kill(parent);
    (void)snprintf(path, sizeof path, "/proc/%ld/ns/user", pid);
    r = write_map((pid_t)pid, "uid_map", uid, base, n);
    if (r == 0)
        r = write_map((pid_t)pid, "gid_map", gid, base, n);
    fd = r < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (r == 0 && fd < 0)
        r = -errno;
    (void)kill((pid_t)pid, SIGKILL);
    (void)waitpid((pid_t)pid, &status, __WALL);
    return r < 0 ? r : fd;
}

static int set_idmap(int tree, int userns)
{
    struct mount_attr a = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (unsigned)userns};

    return mnt_set_fd(tree, &a, false);
}

/* A failure is reported when it is needed. */
void idmap_prepare(struct idmap *m)
{
    uint32_t base = idmap_base(m->slot);

    if (host.idmapped && base != SPAWN_STORED_ID && m->userns < 0)
        m->userns = make_userns(SPAWN_STORED_ID, SPAWN_STORED_ID, base, HOST_IDS);
}

int idmap_tree(struct idmap *m, int tree, uid_t owner, gid_t group)
{
    uint32_t base = idmap_base(m->slot);

    bool stored = owner >= SPAWN_STORED_ID && owner < SPAWN_STORED_ID + HOST_IDS;

    if (!host.idmapped || (stored && base == SPAWN_STORED_ID))
        return 0;
    if (stored) {
        idmap_prepare(m);
        return m->userns < 0 ? m->userns : set_idmap(tree, m->userns);
    }
    AUTO(fd_close) int userns = make_userns(owner, group, base, 1);
    return userns < 0 ? userns : set_idmap(tree, userns);
}

int idmap_probe(int dir)
{
    AUTO(fd_close) int tree = mnt_clone(dir, false);
    AUTO(fd_close)
    int userns =
        make_userns(SPAWN_STORED_ID, SPAWN_STORED_ID, SPAWN_STORED_ID + HOST_IDS, HOST_IDS);

    if (tree < 0 || userns < 0)
        return tree < 0 ? tree : userns;
    return set_idmap(tree, userns);
}
