/* steps_driver: every set-up step fails in turn, before, after and by the death of the child; the
 * create says so and nothing is left.  Usage: steps_driver HOLT_SPAWN_FAULTY HOLT_INIT */
#include "guest_client.h"
#include "spawn_client.h"

#include "../check.h"
#include "../scratch.h"
#include "base/fd.h"
#include "spawn/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEATH_MS 50
#define DEATH_LIMIT_MS 20000
#define REST_TRIES 3000 /* of 10 ms: for what hangs */
#define STEPS_MAX 64

static char state[SCRATCH_SIZE];
static pid_t spawn;
static bool stocked;                      /* spawn makes things ahead */
static enum setup_phase phase[STEPS_MAX]; /* of each step, as its first failure told */
static size_t steps;
static bool without_shared; /* a volume in memory, with which no shell would be taken */

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

/* Mounts of others, which holt-spawn found when it made its namespace, may go: whoever removes a
 * mount point of theirs takes them from every namespace (rmdir(2), since Linux 3.18). */
static bool same(const struct seen *before, const struct seen *after)
{
    return before->boxes == after->boxes && before->fds == after->fds &&
           before->mounts >= after->mounts && before->children == after->children &&
           before->cgroups == after->cgroups;
}

/* How much more time than here things may take: tools/v2-guest. */
static int slowness(void)
{
    const char *text = getenv("HOLT_SLOW");
    long n = text ? strtol(text, NULL, 10) : 1;

    return n > 1 && n < 100 ? (int)n : 1;
}

/* Once nothing more is being made ahead: on a busy machine one look alike is not yet rest. */
static struct seen look_at_rest(void)
{
    struct seen a = look(), b;
    int slow = slowness();

    for (int i = 0, still = 0; stocked && i < REST_TRIES * slow && still < 5 * slow; i++, a = b) {
        (void)usleep(10000);
        b = look();
        still = same(&a, &b) ? still + 1 : 0;
    }
    return a;
}

/* Of a shell only what the claim brings can fail a create: the others have no request to take the
 * name from. */
static bool is_claims(size_t i)
{
    return phase[i] == SETUP_CLAIM || phase[i] == SETUP_BUILD || phase[i] == SETUP_ENTER;
}

/* The last step of a shell's builder comes after its reply: init then ends.  An end that must come
 * is waited for, however busy the machine is; one that must not come is looked for a moment. */
static bool ended(int pidfd, bool must)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return poll(&p, 1, (must ? DEATH_LIMIT_MS : DEATH_MS) * slowness()) == 1;
}

/* "... injected in phase N ..." */
static void learn_phase(size_t i, const char *text)
{
    static const char words[] = "injected in phase ";
    const char *at = strstr(text, words);

    CHECK(i < STEPS_MAX && at != NULL);
    phase[i] = (enum setup_phase)strtol(at + strlen(words), NULL, 10);
}

/* False: there is no such step, the sandbox was made. */
static bool fail_at(struct spawn_client *c, const char *when, size_t i, uint32_t flags)
{
    char hostname[32];
    struct spawn_create spec = {.id = STR("sb_f"), .flags = flags, .ca = STR("pem")};
    static const struct spawn_mount_row mounts[] = {
        {SPAWN_MOUNT_VOLUME, {"vol_1", 5}, {"/volume", 7}, 0, 0},
        {SPAWN_MOUNT_TMPFS, {"", 0}, {"/memory", 7}, 1, 0},
        {SPAWN_MOUNT_SHARED, {"mem_1", 5}, {"/shared", 7}, 0, 0},
    };
    struct seen before, after;
    struct err e = {0};
    int pidfd = -1;

    if (c->shells > 0) {
        spawn_client_wait_shell(c);
    } else { /* of v1 they are not a shell's */
        spec.pids = 50;
        spec.memory_bytes = 64 << 20;
    }
    before = look_at_rest();
    (void)snprintf(hostname, sizeof hostname, "%s-%zu", when, i);
    spec.hostname = str_of(hostname);
    if (flags & SPAWN_UPPER_DISK) {
        spec.flags |= SPAWN_NETWORK;
        spec.disk_bytes = 8 << 20;
        spec.mounts =
            (struct wire_rows){.count = ARRAY_LEN(mounts) - without_shared, .items = mounts};
    }
    if (spawn_client_create(c, &spec, &pidfd, &e) == 0) {
        bool dies = c->shells > 0 && ended(pidfd, strcmp(when, "none") != 0 && is_claims(i));

        fd_close(pidfd);
        spawn_client_destroy(c, "sb_f");
        if (!dies)
            return false;
    } else {
        CHECK(strstr(e.msg, "sb_f") != NULL);
        if (!strstr(e.msg, "died"))
            learn_phase(i, e.msg);
    }
    after = look();
    for (int tries = 0; stocked && tries < REST_TRIES * slowness() && !same(&before, &after);
         tries++) {
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

static void walk(struct spawn_client *c, uint32_t flags)
{
    static const char *const whens[] = {"before", "after", "die"};

    for (size_t w = 0; w < ARRAY_LEN(whens); w++)
        for (size_t i = 0; i < steps; i++)
            CHECK(fail_at(c, whens[w], i, flags));
}

/* The first step past which a create succeeds: the table's end. */
static void count_steps(struct spawn_client *c)
{
    while (fail_at(c, "before", steps, 0))
        steps++;
    CHECK(steps >= 15);
}

/* Before Linux 6.3 a tmpfs cannot be shown in other ids, and a sandbox with a volume in memory is
 * made without a range of its own: no shell fits.  walk() has had those. */
static bool takes_shell(struct spawn_client *c, uint32_t flags)
{
    CHECK(!fail_at(c, "none", 0, flags));
    return c->warm;
}

static void walk_claims(struct spawn_client *c, uint32_t flags)
{
    without_shared = !takes_shell(c, flags);
    CHECK(takes_shell(c, flags));
    for (size_t i = 0; i < steps; i++)
        CHECK(fail_at(c, "before", i, flags) == is_claims(i));
    for (size_t i = 0; i < steps; i++) {
        CHECK(fail_at(c, "after", i, flags) == is_claims(i));
        CHECK(fail_at(c, "die", i, flags) == is_claims(i));
    }
    CHECK(takes_shell(c, flags));
    without_shared = false;
}

/* A range's namespace is kept once it was made: as many as are ever in use at once. */
static void make_ranges(struct spawn_client *c)
{
    static const char *const ids[] = {"sb_1", "sb_2", "sb_3", "sb_4"};
    struct err e = {0};
    int pidfd;

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct spawn_create spec = {.id = str_of(ids[i]), .hostname = STR("none")};

        CHECK(spawn_client_create(c, &spec, &pidfd, &e) == 0);
        fd_close(pidfd);
    }
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        spawn_client_destroy(c, ids[i]);
}

int main(int argc, char **argv)
{
    struct spawn_client c;
    int status;

    if (argc != 3)
        return 2;
    if (geteuid() != 0) { /* a step whose feature is lacking cannot be made to fail */
        (void)puts("needs root: walks the steps of disk images and cgroups too");
        return 77;
    }
    CHECK(scratch_make(state, "fault-test") == 0);
    spawn = spawn_client_start(argv[1], state, argv[2]);
    spawn_client_connect(&c, state);
    /* What spawn keeps from the first on: a range's namespace, an empty image. */
    for (uint32_t flags = 0; flags <= SPAWN_UPPER_DISK; flags += SPAWN_UPPER_DISK)
        (void)fail_at(&c, "none", 0, flags);
    make_ranges(&c);
    count_steps(&c);
    for (uint32_t flags = 0; flags <= SPAWN_UPPER_DISK; flags += SPAWN_UPPER_DISK)
        walk(&c, flags);
    (void)spawn_client_pool(&c, 0);
    stocked = true;
    (void)usleep(300000);
    walk(&c, 0);
    (void)spawn_client_pool(&c, 1);
    for (uint32_t flags = 0; flags <= SPAWN_UPPER_DISK; flags += SPAWN_UPPER_DISK)
        walk_claims(&c, flags);
    (void)kill(spawn, SIGTERM);
    CHECK(waitpid(spawn, &status, 0) == spawn);
    spawn_client_remove_state(state);
    (void)printf("%d checks passed, %zu steps\n", checks, steps);
    return 0;
}
