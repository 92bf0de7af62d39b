/* fake_pool: inits of the fake driver made ahead. */
#include "driver/fake/fake_pool.h"

#include "base/fd.h"
#include "driver/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "pool."

/* It has run no command: one process, which ends at once. */
static void end(const struct box_home *h, struct box *b)
{
    siginfo_t si;

    if (b->pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
        (void)waitid((idtype_t)P_PIDFD, (id_t)b->pidfd, &si, WEXITED);
    }
    box_done(b);
    (void)!tree_remove(h->dir, b->id);
}

static void drop(struct fake_pool *p, size_t i)
{
    p->boxes[i] = p->boxes[--p->count];
}

bool fake_pool_step(struct fake_pool *p, const struct box_home *h)
{
    struct box b = {.pidfd = -1};
    struct err e;

    if (p->count > p->want) {
        end(h, &p->boxes[p->count - 1]);
        p->count--;
    } else if (p->count < p->want) {
        (void)snprintf(b.id, sizeof b.id, PREFIX "%u", p->named++);
        if (box_start(h, false, &b, &e) < 0)
            return true;
        p->boxes[p->count++] = b;
    }
    return p->count == p->want;
}

void fake_pool_want(struct fake_pool *p, const struct box_home *h, const struct driver_want *want)
{
    bool same = memcmp(&p->limits, &want->kind.limits, sizeof p->limits) == 0;

    while (p->count > 0 && !same) {
        end(h, &p->boxes[p->count - 1]);
        p->count--;
    }
    p->limits = want->kind.limits;
    p->want = want->kind.layer_count > 0 ? 0 : size_min(want->size, DRIVER_POOL_MAX);
}

int64_t fake_pool_ready(struct fake_pool *p, const struct box_home *h)
{
    bool known;
    int how;

    for (size_t i = p->count; i > 0; i--)
        if (box_reap(&p->boxes[i - 1], &how, &known) != 0) {
            end(h, &p->boxes[i - 1]);
            drop(p, i - 1);
            p->broken++;
        }
    return (int64_t)p->count;
}

bool fake_pool_take(struct fake_pool *p, const struct box_home *h, const struct sandbox_limits *l,
                    struct box *b)
{
    struct box *from;

    if (memcmp(&p->limits, l, sizeof *l) != 0 || fake_pool_ready(p, h) == 0)
        return false;
    from = &p->boxes[0]; /* the oldest */
    if (renameat2(h->dir, from->id, h->dir, b->id, RENAME_NOREPLACE) < 0)
        return false; /* making it will report why */
    memcpy(from->id, b->id, sizeof from->id);
    *b = *from;
    drop(p, 0);
    return box_save(h, b) == 0;
}

void fake_pool_sweep(const struct box_home *h)
{
    int fd = openat(h->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct box b = {.pidfd = -1};
        struct err e;

        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 || strlen(entry->d_name) >= ID_SIZE)
            continue;
        if (box_load(h, entry->d_name, &b, &e) == 0)
            end(h, &b);
        else
            (void)!tree_remove(h->dir, entry->d_name);
    }
    if (dir)
        (void)closedir(dir);
    else
        fd_close(fd);
}

void fake_pool_end(struct fake_pool *p, const struct box_home *h)
{
    for (; p->count > 0; p->count--)
        end(h, &p->boxes[p->count - 1]);
}
