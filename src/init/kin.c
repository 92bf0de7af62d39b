/* kin: finds, signals and pauses a command's processes without cgroups. */
#include "init/kin.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "init/job.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PROCS_MAX (256 * 1024)
#define KILL_ROUNDS 16 /* after that, stop everything first */
#define KILL_MS 1000
#define STOP_MS 1000
#define STOP_TRIES 4
#define STOP_WAIT_NS 1000000
#define STAT_SIZE 1024
#define LIMITS_SIZE 4096

/* ALIEN: not a descendant of init, or one of its jobs */
enum verdict { UNKNOWN, ALIEN, OTHER, OURS };

struct proc {
    pid_t pid, parent, session;
    char state;
    enum verdict verdict;
};
struct procs { /* by pid */
    struct proc *p;
    size_t n, size;
    /* a process ended during the scan, or pids wrapped around: a child may have been missed */
    bool gaps;
};
static inline void procs_done_p(struct procs *l)
{
    mem_free(l->p);
}
#define PROCS __attribute__((cleanup(procs_done_p))) struct procs

static bool paused;
/* while paused: processes that the commands had stopped themselves */
static struct procs stopped_before;

/* ---- marks ---- */

static uint64_t check_of(uint32_t number)
{
    return map_hash(str_make((const char *)&number, sizeof number)) & UINT32_MAX;
}

/* A hard limit can be lowered but never raised (no CAP_SYS_RESOURCE in a user namespace), and
 * RLIMIT_LOCKS has had no effect since Linux 2.4.25 (getrlimit(2)).  A lowered limit is no longer a
 * valid mark: the lower half is a keyed checksum that only init can compute. */
uint64_t kin_mark(uint32_t number)
{
    static int works = -1; /* gVisor has the limit, and lets nobody set it */
    struct rlimit own;

    if (getrlimit(RLIMIT_LOCKS, &own) < 0 || own.rlim_max != RLIM_INFINITY)
        return 0;
    if (works < 0)
        works = setrlimit(RLIMIT_LOCKS, &own) == 0;
    if (!works)
        return 0;
    return (uint64_t)(number & INT32_MAX) << 32 | check_of(number);
}

/* The number of the command; 0: no valid mark; -1: unknown. */
static int64_t mark_of(pid_t pid)
{
    char path[48], text[LIMITS_SIZE];
    AUTO(fd_close) int fd = -1;
    unsigned long long mark;
    const char *line;
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%d/limits", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    line = strstr(text, "Max file locks");
    if (!line || sscanf(line, "Max file locks %*s %llu", &mark) != 1)
        return line ? 0 : -1;
    return kin_mark((uint32_t)(mark >> 32)) == mark ? (int64_t)(mark >> 32) : 0;
}

/* ---- scanning /proc ---- */

/* "pid (name) S parent group session …": the name may hold anything, so it ends at the last
 * parenthesis. */
static bool read_proc(pid_t pid, struct proc *ret)
{
    char path[48], text[STAT_SIZE];
    AUTO(fd_close) int fd = -1;
    const char *end;
    ssize_t n;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    end = strrchr(text, ')');
    *ret = (struct proc){.pid = pid};
    return end && sscanf(end, ") %c %d %*d %d", &ret->state, &ret->parent, &ret->session) == 3;
}

static int by_pid(const void *a, const void *b)
{
    const struct proc *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct proc *find(const struct procs *l, pid_t pid)
{
    struct proc key = {.pid = pid};

    return l->n == 0 ? NULL : bsearch(&key, l->p, l->n, sizeof *l->p, by_pid);
}

/* The last pid assigned in our namespace: the fifth field of loadavg (proc(5)). */
int kin_last_pid(void)
{
    AUTO(fd_close) int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    char text[128];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    int pid;

    text[n < 0 ? 0 : n] = '\0';
    return sscanf(text, "%*s %*s %*s %*s %d", &pid) == 1 ? pid : INT32_MAX;
}

/* The kernel lists processes by pid, so new ones are seen unless pids wrap around. */
static void procs_read(struct procs *l)
{
    int last = kin_last_pid();
    DIR *dir = opendir("/proc");
    struct dirent *d;

    l->n = 0;
    l->gaps = false;
    while (dir && l->n < PROCS_MAX && (d = readdir(dir))) {
        struct proc p;
        uint64_t pid;

        if (str_parse_u64(str_of(d->d_name), &pid) < 0 || pid > INT32_MAX)
            continue;
        if (!read_proc((pid_t)pid, &p)) {
            l->gaps = true;
            continue;
        }
        if (l->n == l->size) {
            l->size = l->size ? 2 * l->size : 64;
            l->p = xrealloc(l->p, l->size * sizeof *l->p);
        }
        l->p[l->n++] = p;
    }
    if (dir)
        (void)closedir(dir);
    l->gaps = l->gaps || kin_last_pid() < last;
    if (l->n > 0)
        qsort(l->p, l->n, sizeof *l->p, by_pid);
}

static bool is_ended(const struct proc *p)
{
    return p->state == 'Z' || p->state == 'X';
}

/* Classifies a child of init.  A process that has destroyed its mark is killed with the next
 * command that is: it cannot hide, only pass for a command whose mark it has read. */
static enum verdict judge_child(struct procs *l, const struct proc *p, uint32_t number,
                                pid_t leader)
{
    int64_t mark;

    if (job_is(p->pid))
        return ALIEN;
    if (p->pid == leader)
        return OURS;
    if (number == 0 || is_ended(p))
        return OTHER;
    if (kin_mark(number) == 0)
        return p->session == leader ? OURS : OTHER;
    mark = mark_of(p->pid);
    l->gaps = l->gaps || mark < 0; /* it has ended meanwhile */
    return mark == 0 || mark == (int64_t)number ? OURS : OTHER;
}

/* number 0: no process is OURS, and descendants of init are separated from the rest.  A process
 * whose parent ended during the scan is a gap.  (Parent 0: it came from outside.) */
static void procs_judge(struct procs *l, uint32_t number, pid_t leader)
{
    bool more = true;
    pid_t init = getpid();

    for (size_t i = 0; i < l->n; i++)
        if (l->p[i].parent == init)
            l->p[i].verdict = judge_child(l, &l->p[i], number, leader);
    while (more) { /* usually once: parents have lower pids */
        more = false;
        for (size_t i = 0; i < l->n; i++) {
            const struct proc *up = l->p[i].verdict == UNKNOWN ? find(l, l->p[i].parent) : NULL;

            if (!up || up->verdict == UNKNOWN)
                continue;
            l->p[i].verdict = up->verdict;
            more = true;
        }
    }
    for (size_t i = 0; i < l->n; i++)
        l->gaps = l->gaps ||
                  (l->p[i].verdict == UNKNOWN && l->p[i].parent != 0 && !find(l, l->p[i].parent));
}

static bool is_stopped(const struct proc *p)
{
    return p->state == 'T' || p->state == 't';
}

/* ---- all processes ---- */

/* kill(2): -1 means every process in the pid namespace except init and the caller; Linux does it in
 * one pass during which no fork can complete, so no process escapes.  gVisor does not: a child may
 * be born behind the pass.  Outside a pid namespace it would be the whole host. */
static bool signal_all(int signal)
{
    if (getpid() != 1)
        return false;
    (void)kill(-1, signal);
    return true;
}

/* The number of processes that have not ended, or are not stopped if that is asked. */
static size_t count_running(struct procs *now, bool or_stopped)
{
    size_t n = 0;

    procs_read(now);
    procs_judge(now, 0, 0);
    for (size_t i = 0; i < now->n; i++)
        n += now->p[i].verdict == OTHER && !is_ended(&now->p[i]) &&
             !(or_stopped && is_stopped(&now->p[i]));
    return now->gaps && n == 0 ? 1 : n;
}

/* What was killed has ended before the next look, or might have had a child since. */
void kin_kill_all(void)
{
    const struct timespec wait = {.tv_nsec = STOP_WAIT_NS};
    int64_t until = clock_mono_ms() + KILL_MS;
    PROCS now = {0};

    while (signal_all(SIGKILL) && count_running(&now, false) > 0 && clock_mono_ms() < until)
        (void)nanosleep(&wait, NULL);
}

/* Repeats until all have stopped: a running process may wake another, and on a busy machine it
 * takes a while until each is scheduled to stop.  Some may keep running, such as one waiting for a
 * disk. */
static void stop_all(void)
{
    const struct timespec wait = {.tv_nsec = STOP_WAIT_NS};
    int64_t until = clock_mono_ms() + STOP_MS;
    PROCS now = {0};

    while (clock_mono_ms() < until && signal_all(SIGSTOP)) {
        job_wake_all();
        if (count_running(&now, true) == 0)
            return;
        (void)nanosleep(&wait, NULL);
    }
}

static void continue_all(const struct procs *before)
{
    PROCS now = {0};

    procs_read(&now);
    procs_judge(&now, 0, 0);
    for (size_t i = 0; i < now.n; i++) {
        const struct proc *was = find(before, now.p[i].pid);

        /* Also those still running: their stop may be pending, and SIGCONT cancels it
         * (signal(7)). */
        if (now.p[i].verdict == OTHER && !(was && is_stopped(was)))
            (void)kill(now.p[i].pid, SIGCONT);
    }
}

void kin_pause(bool on)
{
    if (on == paused || getpid() != 1)
        return;
    paused = on;
    if (on) {
        procs_read(&stopped_before);
        stop_all();
    } else {
        continue_all(&stopped_before);
    }
}

bool kin_is_paused(void)
{
    return paused;
}

/* ---- one command ---- */

/* The number of processes signalled that are not in `known`. */
static size_t signal_round(struct procs *now, const struct procs *known, uint32_t number,
                           pid_t leader, int signal)
{
    size_t fresh = 0;

    procs_read(now);
    procs_judge(now, number, leader);
    for (size_t i = 0; i < now->n; i++) {
        const struct proc *was = find(known, now->p[i].pid);

        if (now->p[i].verdict != OURS || is_ended(&now->p[i]))
            continue;
        (void)kill(now->p[i].pid, signal);
        fresh += !was || was->verdict != OURS;
    }
    return fresh;
}

/* A process killed (or stopped) in the last round cannot fork, so a round that saw every process
 * and found no new one is the last. */
static bool signal_rounds(uint32_t number, pid_t leader, int signal)
{
    PROCS now = {0};
    PROCS known = {0};

    for (int round = 0; round < KILL_ROUNDS; round++) {
        struct procs last = known;

        if (signal_round(&now, &known, number, leader, signal) == 0 && !now.gaps)
            return true;
        known = now;
        now = last;
    }
    return false;
}

/* The leader goes before its children, whose end it could react to.  Without marks its end would
 * hide them: they are stopped first. */
static bool kill_command(uint32_t number, pid_t leader, bool gone)
{
    int first = kin_mark(number) == 0 ? SIGSTOP : SIGKILL;

    if (!gone)
        (void)kill(leader, first);
    if (first == SIGSTOP)
        (void)signal_rounds(number, leader, SIGSTOP);
    return signal_rounds(number, leader, SIGKILL);
}

void kin_signal(uint32_t number, pid_t leader, bool gone, int signal)
{
    PROCS before = {0};

    if (gone && kin_mark(number) != 0)
        leader = 0; /* its pid may be another's by now; a session's id is not given away */
    if (signal != SIGKILL) {
        PROCS now = {0};

        (void)signal_round(&now, &before, number, leader, signal);
        return;
    }
    if (kill_command(number, leader, gone))
        return;
    procs_read(&before); /* it forks faster than we scan */
    for (int tries = 0; tries < STOP_TRIES; tries++) {
        stop_all();
        if (signal_rounds(number, leader, SIGKILL))
            break;
    }
    if (!paused)
        continue_all(&before);
}
