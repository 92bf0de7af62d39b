/* parked: processes waiting in v1 cgroups, to clone sandboxes there. */
#include "spawn/parked.h"

#include "base/fd.h"
#include "base/launch.h"
#include "base/loop.h"
#include "base/point.h"
#include "spawn/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK (256 * 1024)
#define FAILURES_MAX 5

enum { WAITS, WORKS, DID };

struct parked {
    pid_t pid;    /* 0: none */
    pid_t parent; /* holt-spawn */
    bool ready;   /* in all groups */
    /* consecutive failures: after some it is given up, and creates attach by themselves */
    int failures;
    bool taken;   /* a sandbox has it, and its groups */
    pid_t porter; /* the child that attaches it */
    struct watch attached;
    char group[24];
    char *stack;
    uint32_t word;
    struct clone_args args;
    int netns;
    void (*born)(void *arg);
    void *arg;
    long result;
};
static struct parked all[PARKED_MAX];

static void futex(uint32_t *word, int op, uint32_t value)
{
    (void)syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

/* Runs in our memory, but only while we wait for it: errno and everything else is shared. */
static int wait_for_work(void *arg)
{
    struct parked *p = arg;

    point_reached("parked");
    launch_tie(p->parent); /* it holds our listening socket, and must not outlive us */
    while (__atomic_load_n(&p->word, __ATOMIC_ACQUIRE) == WAITS)
        futex(&p->word, FUTEX_WAIT, WAITS);
    p->args.flags |= CLONE_PARENT;
    p->args.exit_signal = 0; /* CLONE_PARENT: it is our child, SIGCHLD */
    p->result = setns(p->netns, CLONE_NEWNET);
    if (p->result == 0)
        p->result = syscall(SYS_clone3, &p->args, sizeof p->args);
    if (p->result == 0)
        p->born(p->arg);
    if (p->result < 0)
        p->result = -errno;
    __atomic_store_n(&p->word, DID, __ATOMIC_RELEASE);
    futex(&p->word, FUTEX_WAKE, 1);
    return 0;
}

long parked_clone(struct parked *p, const struct clone_args *args, int netns,
                  void (*born)(void *arg), void *arg)
{
    p->args = *args;
    p->netns = netns;
    p->born = born;
    p->arg = arg;
    __atomic_store_n(&p->word, WORKS, __ATOMIC_RELEASE);
    futex(&p->word, FUTEX_WAKE, 1);
    while (__atomic_load_n(&p->word, __ATOMIC_ACQUIRE) == WORKS)
        futex(&p->word, FUTEX_WAIT, WORKS);
    return p->result;
}

/* ---- the stock ---- */

static void remove_groups(const char *name)
{
    for (int i = 0; i < CG1_COUNT; i++)
        if (host.cg1[i] >= 0)
            (void)unlinkat(host.cg1[i], name, AT_REMOVEDIR);
}

static int make_groups(const char *name)
{
    remove_groups(name); /* left by a killed holt-spawn */
    for (int i = 0; i < CG1_COUNT; i++)
        if (host.cg1[i] >= 0 && mkdirat(host.cg1[i], name, 0755) < 0)
            return -errno;
    return 0;
}

/* In a child, which may block: 0, or 1 if a group could not be entered. */
static int attach(const struct parked *p)
{
    char path[48], pid[16];

    (void)snprintf(path, sizeof path, "%s/cgroup.procs", p->group);
    (void)snprintf(pid, sizeof pid, "%d", p->pid);
    for (int i = 0; i < CG1_COUNT; i++) {
        AUTO(fd_close) int fd = -1;

        if (host.cg1[i] < 0)
            continue;
        fd = openat(host.cg1[i], path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || fd_write_all(fd, pid, strlen(pid)) < 0)
            return 1;
    }
    return 0;
}

static void on_attached(struct watch *w, uint32_t events)
{
    struct parked *p = CONTAINER_OF(w, struct parked, attached);
    int status = -1;

    (void)events;
    loop_remove(w);
    (void)waitpid(p->porter, &status, 0);
    p->porter = 0;
    p->ready = status == 0;
    p->failures = p->ready ? 0 : p->failures + 1;
    if (!p->ready)
        parked_drop(p);
}

static int start_porter(struct parked *p)
{
    int end[2];

    if (pipe2(end, O_CLOEXEC) < 0)
        return -errno;
    p->porter = fork();
    if (p->porter == 0) {
        launch_tie(p->parent);
        _exit(attach(p)); /* its end closes the pipe */
    }
    fd_close(end[1]);
    if (p->porter < 0) {
        p->porter = 0;
        fd_close(end[0]);
        return -EAGAIN;
    }
    loop_add(&p->attached, end[0], on_attached);
    loop_want(&p->attached, EPOLLIN);
    return 0;
}

static void fill(struct parked *p)
{
    static unsigned counter;

    if (!p->stack) {
        p->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (p->stack == MAP_FAILED) {
            p->stack = NULL;
            return;
        }
    }
    p->parent = getpid();
    p->word = WAITS;
    p->ready = p->taken = false;
    p->attached.fd = -1;
    (void)snprintf(p->group, sizeof p->group, "parked.%u", counter++ % 1000);
    if (make_groups(p->group) < 0) {
        p->failures++;
        return;
    }
    p->pid = clone(wait_for_work, p->stack + STACK, CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, p);
    if (p->pid < 0)
        p->pid = 0;
    if (p->pid == 0 || start_porter(p) < 0)
        parked_drop(p);
}

bool parked_lacks(void)
{
    bool lacks = false;

    if (host.netns_want == 0 ||
        (host.cg1[CG1_MEMORY] < 0 && host.cg1[CG1_PIDS] < 0 && host.cg1[CG1_CPU] < 0))
        return false;
    for (size_t i = 0; i < PARKED_MAX; i++)
        lacks = lacks || (all[i].pid == 0 && all[i].failures < FAILURES_MAX);
    return lacks;
}

/* Removes those of a killed holt-spawn; once, before there are any of our own. */
static void sweep(void)
{
    for (int i = 0; i < CG1_COUNT; i++) {
        int fd =
            host.cg1[i] < 0 ? -1 : openat(host.cg1[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        while (d && (entry = readdir(d)))
            if (strncmp(entry->d_name, "parked.", 7) == 0)
                (void)unlinkat(host.cg1[i], entry->d_name, AT_REMOVEDIR);
        if (d)
            (void)closedir(d);
        else
            fd_close(fd);
    }
}

void parked_fill(void)
{
    static bool swept;

    if (!swept)
        sweep();
    swept = true;
    for (size_t i = 0; i < PARKED_MAX; i++)
        if (all[i].pid == 0)
            fill(&all[i]);
}

struct parked *parked_take(void)
{
    for (size_t i = 0; i < PARKED_MAX; i++)
        if (all[i].ready && !all[i].taken) {
            all[i].taken = true;
            return &all[i];
        }
    return NULL;
}

const char *parked_group(const struct parked *p)
{
    return p->group;
}

/* Its groups belong to the sandbox once it is taken. */
void parked_drop(struct parked *p)
{
    int status;

    if (!p)
        return;
    if (p->porter != 0) {
        loop_remove(&p->attached);
        (void)waitpid(p->porter, &status, 0);
        p->porter = 0;
    }
    if (p->pid != 0) {
        (void)kill(p->pid, SIGKILL); /* after its work it is about to exit by itself */
        (void)waitpid(p->pid, &status, 0);
        p->pid = 0;
    }
    if (!p->taken)
        remove_groups(p->group);
    p->ready = p->taken = false;
}

void parked_end_all(void)
{
    for (size_t i = 0; i < PARKED_MAX; i++)
        if (all[i].pid != 0)
            parked_drop(&all[i]);
}
