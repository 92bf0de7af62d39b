/* group: a cgroup per command: make, kill, remove. */
#include "init/group.h"

#include "base/clock.h"
#include "base/fd.h"
#include "init/kin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCS_MAX (64 * 1024)
#define IDLE_MS 2
#define DYING_MAX 64
#define AGAIN_MIN_MS 2
#define AGAIN_MAX_MS 1000
#define FEW 16       /* up to this many processes are killed one by one */
#define FEW_ROUNDS 4 /* rounds before cgroup.kill */
#define STORM_MIN 64 /* forks, and at least one per ms */
#define STORM_MS 200
#define SLOW_MS 50    /* making or removing a group is faster than this */
#define SLOW_RESTS 20 /* pause of background work, in multiples of the time it took */

static int work_fd = -1;
static int events_fd = -1; /* memory.events of the sandbox's own group, which is above work */
static uint32_t next = 1;
static uint32_t oldest = 1; /* lower ones are removed */
static uint32_t spare;      /* made in advance; 0: none */
static int spare_fd = -1;
static bool refused;       /* making one in advance failed: the next command tries again */
static uint32_t ended[32]; /* to be removed */
static size_t ended_n;
static int64_t rests_until_ms; /* the kernel's lock is contended: no background work until then */

/* Killed, and checked again until empty: a process being forked may be missed, also by cgroup.kill
 * before Linux 6.14. */
struct dying {
    uint32_t number;
    int wait_ms, rounds;
    int64_t at_ms;
};
static struct dying dying[DYING_MAX];
static size_t dying_n;

static void name_of(uint32_t number, const char *file, char *to, size_t size)
{
    (void)snprintf(to, size, "ex_%u%s", number, file);
}

void group_setup(int work)
{
    struct stat st;

    if (work < 0 || fstat(work, &st) < 0 || !S_ISDIR(st.st_mode))
        return;
    (void)fcntl(work, F_SETFD, FD_CLOEXEC);
    work_fd = work;
    events_fd = openat(work, "../memory.events", O_RDONLY | O_CLOEXEC);
}

static void make_spare(void)
{
    char name[32];

    if (work_fd < 0 || spare != 0)
        return;
    name_of(next, "", name, sizeof name);
    refused = mkdirat(work_fd, name, 0755) < 0;
    if (refused)
        return;
    spare_fd = openat(work_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    spare = next++;
}

int group_make(uint32_t *ret_number, int *ret_fd)
{
    *ret_fd = -1;
    if (work_fd < 0) {
        *ret_number = next++;
        return 0;
    }
    make_spare();
    if (spare == 0)
        return -errno;
    *ret_number = spare;
    *ret_fd = TAKE_FD(spare_fd);
    spare = 0;
    return 0;
}

uint64_t group_mark(uint32_t number)
{
    return work_fd < 0 ? kin_mark(number) : 0;
}

static bool kill_all(uint32_t number)
{
    char name[48];
    AUTO(fd_close) int fd = -1;

    name_of(number, "/cgroup.kill", name, sizeof name);
    fd = openat(work_fd, name, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "1", 1) == 1;
}

/* A removed group has no processes.  False: there are more than `most`. */
static bool signal_listed(uint32_t number, int signal, size_t most)
{
    AUTO(buf_done) struct buf text = {0};
    AUTO(fd_close) int fd = -1;
    char name[48];
    struct str rest;
    size_t n = 0;

    name_of(number, "/cgroup.procs", name, sizeof name);
    fd = openat(work_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fd_read_all(fd, PROCS_MAX, &text) < 0)
        return fd < 0;
    for (rest = buf_str(&text); rest.n > 0 && n <= most; n++) {
        uint64_t pid;

        if (str_parse_u64(str_cut(rest, '\n', &rest), &pid) == 0 && pid > 1 && pid <= INT32_MAX)
            (void)kill((pid_t)pid, signal);
    }
    return n <= most;
}

static bool is_empty(uint32_t number)
{
    AUTO(fd_close) int fd = -1;
    char name[48], byte;

    name_of(number, "/cgroup.procs", name, sizeof name);
    fd = openat(work_fd, name, O_RDONLY | O_CLOEXEC);
    return fd < 0 || read(fd, &byte, 1) <= 0;
}

/* cgroup.kill takes a lock that is held until every fork in progress is done, which takes seconds
 * beside a fork bomb, and no exit of a command would be reported meanwhile.  So a few processes are
 * killed one by one, as often as needed; many are killed only by a tick, which runs after pending
 * reports. */
static void kill_now(struct dying *d, bool may_wait)
{
    bool few = d->rounds++ < FEW_ROUNDS && signal_listed(d->number, SIGKILL, FEW);

    if (!few && may_wait && !kill_all(d->number)) /* no cgroup.kill before Linux 5.14 */
        (void)signal_listed(d->number, SIGKILL, SIZE_MAX);
    if (!few && !may_wait) {
        d->rounds = FEW_ROUNDS;
        d->at_ms = clock_mono_ms();
        return;
    }
    d->at_ms = clock_mono_ms() + d->wait_ms;
    d->wait_ms = d->wait_ms < AGAIN_MAX_MS / 2 ? 2 * d->wait_ms : AGAIN_MAX_MS;
}

static void kill_group(uint32_t number)
{
    struct dying *d = dying;

    while (d < dying + dying_n && d->number != number)
        d++;
    if (d == dying + DYING_MAX) /* the first has been tried longest */
        memmove(dying, dying + 1, (size_t)(--d - dying) * sizeof *d);
    else if (d == dying + dying_n)
        dying_n++;
    *d = (struct dying){.number = number, .wait_ms = AGAIN_MIN_MS};
    kill_now(d, false);
}

bool group_is_due(void)
{
    int64_t now = dying_n > 0 ? clock_mono_ms() : 0;

    for (size_t i = 0; i < dying_n; i++)
        if (dying[i].at_ms <= now)
            return true;
    return false;
}

void group_tick(void)
{
    int64_t now = dying_n > 0 ? clock_mono_ms() : 0;
    size_t n = 0;

    for (size_t i = 0; i < dying_n; i++) {
        bool due = dying[i].at_ms <= now;

        if (due && is_empty(dying[i].number))
            continue;
        if (due)
            kill_now(&dying[i], true);
        dying[n++] = dying[i];
    }
    dying_n = n;
}

void group_signal(uint32_t number, pid_t leader, bool gone, int signal)
{
    if (number == 0)
        return;
    if (work_fd < 0) {
        kin_signal(number, leader, gone, signal);
        return;
    }
    if (signal == SIGKILL && !gone)
        (void)kill(leader, SIGKILL); /* before its children, whose end it could react to */
    if (signal == SIGKILL)
        kill_group(number);
    else
        (void)signal_listed(number, signal, SIZE_MAX);
}

uint64_t group_ooms(void)
{
    char text[512];
    ssize_t n = events_fd < 0 ? -1 : pread(events_fd, text, sizeof text, 0);
    struct str rest = n < 0 ? (struct str){0} : str_make(text, (size_t)n);

    while (rest.n > 0) {
        struct str count, key = str_cut(str_cut(rest, '\n', &rest), ' ', &count);
        uint64_t kills;

        if (str_eq_c(key, "oom_kill") && str_parse_u64(count, &kills) == 0)
            return kills;
    }
    return 0;
}

static int remove_one(uint32_t number)
{
    char name[32];

    name_of(number, "", name, sizeof name);
    return unlinkat(work_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* A command may leave processes behind: its group stays until a later removal finds it empty. */
static void remove_ended(void)
{
    while (ended_n > 0)
        (void)remove_one(ended[--ended_n]);
    for (int tries = 0; oldest < next && oldest != spare && tries < 4; tries++) {
        if (remove_one(oldest) == -EBUSY)
            return;
        oldest++;
    }
}

void group_remove(uint32_t number)
{
    if (number == 0 || work_fd < 0)
        return;
    if (ended_n == ARRAY_LEN(ended))
        remove_ended();
    ended[ended_n++] = number;
}

int group_timeout_ms(void)
{
    int64_t now = clock_mono_ms(), left = -1;

    if (work_fd >= 0 && ((spare == 0 && !refused) || ended_n > 0))
        left = i64_max(rests_until_ms - now, IDLE_MS);
    for (size_t i = 0; i < dying_n; i++) {
        int64_t due = i64_max(dying[i].at_ms - now, 0);

        left = left < 0 ? due : i64_min(left, due);
    }
    return (int)left;
}

/* Beside a fork bomb the lock for making and removing groups is held for seconds. */
static bool is_storm(int64_t now)
{
    static int64_t seen_ms;
    static int seen;
    int last = kin_last_pid(), born = last - seen;
    int64_t since = now - seen_ms;

    seen = last;
    seen_ms = now;
    return born >= STORM_MIN && born >= since;
}

void group_idle(void)
{
    int64_t began = clock_mono_ms(), took;

    if (work_fd < 0 || began < rests_until_ms || ((spare != 0 || refused) && ended_n == 0))
        return;
    if (is_storm(began)) {
        rests_until_ms = began + STORM_MS;
        return;
    }
    make_spare();
    remove_ended();
    took = clock_mono_ms() - began;
    if (took >= SLOW_MS)
        rests_until_ms = began + took + took * SLOW_RESTS;
}
