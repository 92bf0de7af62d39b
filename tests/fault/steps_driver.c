/* steps_driver: every set-up step fails in turn, before, after and by the death of the child; the
 * create says so and nothing is left.  Usage: steps_driver HOLT_SPAWN_FAULTY HOLT_INIT */
#include "guest_client.h"
#include "spawn_client.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char state[64];
static pid_t spawn;
static int checks;
static bool stocked; /* spawn makes things ahead */

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        checks++;                                                                                  \
        if (!(cond)) {                                                                             \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static size_t entries(const char *fmt, pid_t pid)
{
    char path[128];
    size_t n = 0;
    DIR *d;

    (void)snprintf(path, sizeof path, "%s%d%s", "/proc/", pid, fmt);
    d = opendir(fmt[0] == '@' ? fmt + 1 : path);
    CHECK(d != NULL);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n - 2;
}

static size_t lines_of(const char *path)
{
    AUTO(buf_done) struct buf text = {0};
    size_t n = 0;

    CHECK(file_read(path, 1 << 22, &text) == 0);
    for (size_t i = 0; i < buf_len(&text); i++)
        n += buf_data(&text)[i] == '\n';
    return n;
}

struct seen { /* what a leak would show in */
    size_t boxes, fds, mounts, children, cgroups;
};

static size_t cgroup_dirs(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified",
                                         "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids",
                                         "/sys/fs/cgroup/cpu"};
    struct stat st;
    size_t n = 0;

    CHECK(stat(state, &st) == 0);
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        char path[160];
        struct stat group;

        (void)snprintf(path, sizeof path, "%s/holt-%lx-%lx", mounts[i], (unsigned long)st.st_dev,
                       (unsigned long)st.st_ino);
        if (stat(path, &group) == 0)
            n += group.st_nlink; /* 2, and one for each below */
    }
    return n;
}

static struct seen look(void)
{
    AUTO(buf_done) struct buf text = {0};
    char boxes[96], mounts[64], children[64];
    struct seen s;

    (void)snprintf(boxes, sizeof boxes, "@%s/sb", state);
    (void)snprintf(mounts, sizeof mounts, "/proc/%d/mountinfo", spawn);
    (void)snprintf(children, sizeof children, "/proc/%d/task/%d/children", spawn, spawn);
    s.boxes = entries(boxes, 0);
    s.fds = entries("/fd", spawn);
    s.mounts = lines_of(mounts);
    CHECK(file_read(children, 65536, &text) == 0);
    s.children = 0;
    for (size_t i = 0; i < buf_len(&text); i++)
        s.children += buf_data(&text)[i] == ' ';
    s.cgroups = cgroup_dirs();
    return s;
}

static bool same(const struct seen *a, const struct seen *b)
{
    return a->boxes == b->boxes && a->fds == b->fds && a->mounts == b->mounts &&
           a->children == b->children && a->cgroups == b->cgroups;
}

/* False: there is no such step, the sandbox was made. */
static bool fail_at(struct spawn_client *c, const char *when, size_t i, uint32_t flags)
{
    char hostname[32];
    struct spawn_create spec = {
        .id = STR("sb_f"), .flags = flags, .pids = 50, .memory_bytes = 64 << 20, .ca = STR("pem")};
    static const struct spawn_mount_row mounts[] = {
        {SPAWN_MOUNT_VOLUME, {"vol_1", 5}, {"/volume", 7}, 0, 0},
        {SPAWN_MOUNT_SHARED, {"mem_1", 5}, {"/shared", 7}, 0, 0},
        {SPAWN_MOUNT_TMPFS, {"", 0}, {"/memory", 7}, 1, 0},
    };
    struct seen before = look(), after;
    struct err e = {0};
    int pidfd = -1;

    (void)snprintf(hostname, sizeof hostname, "%s-%zu", when, i);
    spec.hostname = str_of(hostname);
    if (flags & SPAWN_UPPER_DISK) {
        spec.flags |= SPAWN_NETWORK;
        spec.disk_bytes = 8 << 20;
        spec.mounts = (struct wire_rows){.count = ARRAY_LEN(mounts), .items = mounts};
    }
    if (spawn_client_create(c, &spec, &pidfd, &e) == 0) {
        fd_close(pidfd);
        spawn_client_destroy(c, "sb_f");
        return false;
    }
    CHECK(strstr(e.msg, "sb_f") != NULL);
    CHECK(strstr(e.msg, "injected") != NULL || strstr(e.msg, "died") != NULL);
    after = look();
    for (int tries = 0; stocked && tries < 200 && !same(&before, &after); tries++) {
        (void)usleep(10000); /* what is made ahead is made again */
        after = look();
    }
    if (!same(&before, &after)) {
        (void)fprintf(stderr,
                      "%s: left: boxes %zu->%zu fds %zu->%zu mounts %zu->%zu children "
                      "%zu->%zu cgroups %zu->%zu\n",
                      hostname, before.boxes, after.boxes, before.fds, after.fds, before.mounts,
                      after.mounts, before.children, after.children, before.cgroups, after.cgroups);
        exit(1);
    }
    checks++;
    return true;
}

int main(int argc, char **argv)
{
    static const char *const whens[] = {"before", "after", "die"};
    struct spawn_msg m = {.type = SPAWN_POOL};
    struct spawn_client c;
    size_t n = 0;
    int status;

    if (argc != 3)
        return 2;
    (void)snprintf(state, sizeof state, "/tmp/holt-fault-test.XXXXXX");
    CHECK(mkdtemp(state) != NULL);
    spawn = spawn_client_start(argv[1], state, argv[2]);
    spawn_client_connect(&c, state);
    /* What spawn keeps from the first on: a range's namespace, an empty image. */
    for (uint32_t flags = 0; flags <= SPAWN_UPPER_DISK; flags += SPAWN_UPPER_DISK)
        (void)fail_at(&c, "none", 0, flags);
    for (size_t w = 0; w < ARRAY_LEN(whens); w++)
        for (uint32_t flags = 0; flags <= SPAWN_UPPER_DISK; flags += SPAWN_UPPER_DISK)
            for (n = 0; fail_at(&c, whens[w], n, flags); n++)
                ;
    m.u.pool.netns = 2;
    CHECK(spawn_client_call(&c, &m, NULL).u.done.err.code == ERR_NONE);
    stocked = true;
    (void)usleep(300000);
    for (n = 0; fail_at(&c, "before", n, 0); n++)
        ;
    CHECK(n >= 15); /* the walk ended at the table's end, not at its start */
    (void)kill(spawn, SIGTERM);
    CHECK(waitpid(spawn, &status, 0) == spawn);
    spawn_client_remove_state(state);
    (void)printf("%d checks passed, %zu steps\n", checks, n);
    return 0;
}
