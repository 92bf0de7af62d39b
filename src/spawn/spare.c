/* spare: keeps sandboxes made ahead of requests. */
#include "spawn/spare.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/rnd.h"
#include "spawn/sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#define PREFIX "shell."
#define AGAIN_MS 1000 /* after one that could not be made */
#define END_TRIES 2000

/* Those made or being made: as many as may be wanted, oldest first. */
static struct sandbox *all[SPAWN_SPARES_MAX];
static size_t count;
static uint32_t want;
static uint64_t broken;
static int64_t not_before_ms;

static struct sandbox *find(enum spare_state state)
{
    for (size_t i = 0; i < count; i++)
        if (all[i]->spare == state)
            return all[i];
    return NULL;
}

void spare_want(uint32_t n)
{
    want = n;
}

uint32_t spare_ready_count(void)
{
    uint32_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += all[i]->spare == SPARE_READY;
    return n;
}

uint64_t spare_broken_count(void)
{
    return broken;
}

bool spare_is_name(struct str name)
{
    return str_starts(name, STR(PREFIX)) && name.n <= SPAWN_ID_MAX;
}

/* One at a time: a request that arrives meanwhile waits for at most one. */
int spare_wait_ms(void)
{
    int64_t left = not_before_ms - clock_mono_ms();

    if (count == want || find(SPARE_MAKING))
        return -1;
    return left > SPARE_QUIET_MS ? (int)left : SPARE_QUIET_MS;
}

bool spare_is_late(void)
{
    static int64_t late_ms;
    int64_t now = clock_mono_ms();

    if (count >= want || find(SPARE_MAKING))
        late_ms = now + SPARE_LATE_MS;
    return now >= late_ms;
}

void spare_fill(void)
{
    static uint32_t life, counter; /* names of an earlier run may still be in use */
    struct sandbox *s = count > want ? find(SPARE_READY) : NULL;
    char name[SPAWN_ID_MAX + 1];

    if (s)
        spare_gone(s, false);
    if (count >= want || find(SPARE_MAKING) || clock_mono_ms() < not_before_ms)
        return;
    if (life == 0)
        rnd_bytes(&life, sizeof life);
    (void)snprintf(name, sizeof name, PREFIX "%08x.%u", life, counter++);
    s = sandbox_make_spare(name);
    if (s)
        all[count++] = s;
    else
        not_before_ms = clock_mono_ms() + AGAIN_MS;
}

static void drop(struct sandbox *s)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        if (all[i] != s)
            all[n++] = all[i];
    count = n;
}

/* Nesting needs another filter, and so does the kind of calls that spares are not made with; a
 * restart has another directory; everything else is as on the host. */
static bool fits(const struct spawn_create *c)
{
    return c->runtime.n == 0 && !(c->flags & (SPAWN_NESTING | SPAWN_RESTART)) &&
           ((c->flags & SPAWN_WIDE) != 0) == host.wide_spares && cgroup_can_limit(c) &&
           !ids_must_be_stored(c);
}

bool spare_fits(const struct spawn_create *c)
{
    return fits(c) && find(SPARE_READY);
}

struct sandbox *spare_take(const struct spawn_create *c)
{
    struct sandbox *s = fits(c) ? find(SPARE_READY) : NULL;

    if (!s)
        return NULL;
    drop(s);
    s->spare = SPARE_CLAIMED;
    return s;
}

void spare_ready(struct sandbox *s)
{
    if (record_spare(s) < 0)
        spare_gone(s, true);
    else
        s->spare = SPARE_READY;
}

void spare_gone(struct sandbox *s, bool is_broken)
{
    if (is_broken) {
        broken++;
        not_before_ms = s->spare == SPARE_MAKING ? clock_mono_ms() + AGAIN_MS : not_before_ms;
        log_warn("a spare sandbox is broken", LOG_C("spare", s->id), LOG_E(&s->failure));
    }
    drop(s);
    s->spare = SPARE_MAKING; /* without an owner, to its end */
    sandbox_destroy(s, 0, false);
}

/* ---- leftovers ---- */

/* A group without a sandbox: its processes ended with the holt-spawn that made them. */
static void destroy_group(const char *name)
{
    struct spawn_create c = {.id = str_of(name), .hostname = STR("adopted")};
    struct sandbox *s = sandbox_new(&c, 0);

    s->spare = SPARE_MAKING;
    s->cg2 = openat(host.cg2, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)cgroup_kill(s, false);
    sandbox_adopted(s, -1);
    sandbox_destroy(s, 0, false);
}

void spare_sweep(void)
{
    int fd = host.cg2 < 0 ? -1 : openat(host.cg2, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (spare_is_name(str_of(entry->d_name)) && !sandbox_of_group(entry->d_name))
            destroy_group(entry->d_name);
    if (d)
        (void)closedir(d);
    else
        fd_close(fd);
}

void spare_end_all(void)
{
    want = 0;
    while (count > 0)
        spare_gone(all[0], false);
    for (int i = 0; i < END_TRIES && sandbox_any_spare(); i++) {
        (void)sandbox_retry();
        loop_turn(1);
    }
}
