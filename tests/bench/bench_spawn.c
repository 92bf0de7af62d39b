/* bench_spawn: what a sandbox and an exec cost, beside the floor and a plain posix_spawn,
 * interleaved. Usage: bench_spawn HOLT_SPAWN HOLT_INIT [ROUNDS] */
#include "floor_spawn.h"
#include "guest_client.h"
#include "spawn_client.h"

#include "base/clock.h"
#include "base/fd.h"
#include "spawn/host.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX 5000
#define PROGRAM "/usr/bin/true"

static char state[2][64];
static struct spawn_client client;
static struct guest_client standing; /* init of the sandbox that stays */
static int counter;

static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void run_in(struct guest_client *g, bool forget)
{
    const char *const argv[] = {PROGRAM, NULL};
    struct guest_result r = {0};
    char id[32];
    uint32_t ch;

    (void)snprintf(id, sizeof id, "ex_%d", counter++);
    ch = guest_client_start(g, id, 0, argv);
    guest_client_collect(g, ch, SIZE_MAX, &r);
    if (r.exit.how != GUEST_EXITED || r.exit.code != 0)
        fail("exec", "it did not end well");
    if (forget)
        guest_client_forget(g, ch);
}

static void make(const char *id, uint32_t flags, bool limits, struct guest_client *g)
{
    struct spawn_create spec = {.id = str_of(id), .hostname = STR("bench"), .flags = flags};
    struct err e = {0};
    char path[128];
    int pidfd;

    if (limits) {
        spec.pids = 100;
        spec.memory_bytes = 256 << 20;
        spec.cpu_millis = 1000;
    }
    if (spawn_client_create(&client, &spec, &pidfd, &e) < 0)
        fail("create", e.msg);
    fd_close(pidfd);
    (void)snprintf(path, sizeof path, "%s/sb/%s/init.sock", state[0], id);
    guest_client_connect_fast(g, path);
}

static void whole(uint32_t flags, bool limits)
{
    struct guest_client g;

    make("sb_bench", flags, limits, &g);
    run_in(&g, false);
    guest_client_close(&g);
    spawn_client_destroy(&client, "sb_bench");
}

static void holt_memory(void)
{
    whole(0, false);
}

static void holt_disk(void)
{
    whole(SPAWN_UPPER_DISK, false);
}

static void holt_limits(void)
{
    whole(0, true);
}

static void holt_exec(void)
{
    run_in(&standing, true);
}

/* From the claim to a command's end; the shell is there before, what follows is not counted. */
static struct guest_client claimed;

static uint32_t pool(uint32_t shells)
{
    struct spawn_msg m = {.type = SPAWN_POOL, .u.pool = {8, shells}};

    return spawn_client_call(&client, &m, NULL).u.pooled.ready;
}

static void wait_warm(void)
{
    while (pool(1) == 0)
        (void)usleep(1000);
    (void)usleep(2000);
}

static void end_first(void)
{
    guest_client_close(&claimed);
    spawn_client_destroy(&client, "sb_first");
}

static void end_warm(void)
{
    end_first();
    (void)pool(0);
}

static void first_memory(void)
{
    make("sb_first", 0, false, &claimed);
    run_in(&claimed, false);
}

static void first_disk(void)
{
    make("sb_first", SPAWN_UPPER_DISK, false, &claimed);
    run_in(&claimed, false);
}

static void floor_memory(void)
{
    struct err e = {0};

    if (floor_run(0, &e) < 0)
        fail("floor", e.msg);
}

static void floor_disk(void)
{
    struct err e = {0};

    if (floor_run(SPAWN_UPPER_DISK, &e) < 0)
        fail("floor", e.msg);
}

static void plain(void)
{
    char *argv[] = {(char *)PROGRAM, NULL}, *envp[] = {NULL};
    pid_t pid;
    int status;

    if (posix_spawn(&pid, PROGRAM, NULL, NULL, argv, envp) != 0 || waitpid(pid, &status, 0) != pid)
        fail("posix_spawn", "no");
}

static struct {
    const char *name;
    void (*run)(void);
    size_t against;                       /* the row its ratio is to */
    void (*before)(void), (*after)(void); /* not counted */
    int64_t ns[ROUNDS_MAX];
} rows[] = {
    {"posix_spawn true", plain, 0, NULL, NULL, {0}},
    {"floor: sandbox, true, gone (memory)", floor_memory, 1, NULL, NULL, {0}},
    {"holt: create, exec, destroy (memory)", holt_memory, 1, NULL, NULL, {0}},
    {"floor: sandbox, true, gone (disk)", floor_disk, 3, NULL, NULL, {0}},
    {"holt: create, exec, destroy (disk)", holt_disk, 3, NULL, NULL, {0}},
    {"holt: exec in a running sandbox", holt_exec, 0, NULL, NULL, {0}},
    {"holt: create, exec; cold (memory)", first_memory, 0, NULL, end_first, {0}},
    {"holt: create, exec; a shell's (memory)", first_memory, 0, wait_warm, end_warm, {0}},
    {"holt: create, exec; cold (disk)", first_disk, 0, NULL, end_first, {0}},
    {"holt: create, exec; a shell's (disk)", first_disk, 0, wait_warm, end_warm, {0}},
    {"holt: the whole with v1 limits (memory)", holt_limits, 1, NULL, NULL, {0}},
};

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void measure(int rounds)
{
    for (int i = -5; i < rounds; i++)
        for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
            int64_t from;

            if (rows[k].before)
                rows[k].before();
            from = clock_mono_ns();
            rows[k].run();
            if (i >= 0)
                rows[k].ns[i] = clock_mono_ns() - from;
            if (rows[k].after)
                rows[k].after();
            if (rows[k].run == holt_limits)
                (void)usleep(60000); /* spawn parks anew meanwhile, which holds up every fork */
        }
    for (size_t k = 0; k < ARRAY_LEN(rows); k++)
        qsort(rows[k].ns, (size_t)rounds, sizeof(int64_t), by_value);
    (void)printf("%-42s %9s %9s %9s %7s\n", "", "p10 us", "median us", "p95 us", "ratio");
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        int64_t median = rows[k].ns[rounds / 2];

        (void)printf("%-42s %9.0f %9.0f %9.0f %7.2f\n", rows[k].name,
                     (double)rows[k].ns[rounds / 10] / 1000, (double)median / 1000,
                     (double)rows[k].ns[rounds * 95 / 100] / 1000,
                     (double)median / (double)rows[rows[k].against].ns[rounds / 2]);
    }
}

/* Memory that is a process's own, in KiB: what it wrote.  Clean pages are the program's, shared by
 * all. */
static long private_kib(pid_t pid)
{
    AUTO(buf_done) struct buf text = {0};
    char path[64];
    struct str rest;
    long sum = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    if (file_read(path, 65536, &text) < 0)
        return -1;
    rest = buf_str(&text);
    while (rest.n > 0) {
        struct str value, line = str_cut(rest, '\n', &rest), key = str_cut(line, ':', &value);
        uint64_t kib;

        value = str_trim(value);
        if (str_starts(key, STR("Private_Dirty")) &&
            str_parse_u64(str_cut(value, ' ', &value), &kib) == 0)
            sum += (long)kib;
    }
    return sum;
}

int main(int argc, char **argv)
{
    uint64_t rounds = 200;
    struct spawn_msg m;
    struct err e = {0};
    pid_t spawn;
    int status, fd = -1;
    char dev[80];

    if (argc < 3 || (argc > 3 && str_parse_u64(str_of(argv[3]), &rounds) < 0) || rounds < 1 ||
        rounds > ROUNDS_MAX)
        return 2;
    for (int i = 0; i < 2; i++) {
        (void)snprintf(state[i], sizeof state[i], "/tmp/holt-bench-spawn.XXXXXX");
        if (!mkdtemp(state[i]))
            fail("mkdtemp", "no");
    }
    spawn = spawn_client_start(argv[1], state[0], argv[2]);
    spawn_client_connect(&client, state[0]);
    (void)pool(0);
    if (floor_init(state[1], PROGRAM, &e) < 0)
        fail("floor", e.msg);
    make("sb_other", 0, false, &standing); /* so that shared pages of init count as shared */
    guest_client_close(&standing);
    make("sb_stays", 0, false, &standing);
    holt_exec();
    m = (struct spawn_msg){.type = SPAWN_ADOPT};
    m.u.name.id = STR("sb_stays");
    m = spawn_client_call(&client, &m, &fd);
    (void)printf("idle init: %ld KiB private; holt-spawn: %ld KiB private\n",
                 private_kib((pid_t)m.u.created.pid), private_kib(spawn));
    fd_close(fd);
    measure((int)rounds);
    (void)printf("after %d execs: init %ld KiB private; holt-spawn %ld KiB\n", counter,
                 private_kib((pid_t)m.u.created.pid), private_kib(spawn));
    guest_client_close(&standing);
    spawn_client_destroy(&client, "sb_stays");
    spawn_client_destroy(&client, "sb_other");
    (void)kill(spawn, SIGTERM);
    (void)waitpid(spawn, &status, 0);
    host_close_cgroups();
    spawn_client_remove_state(state[0]);
    (void)snprintf(dev, sizeof dev, "%s/dev", state[1]);
    (void)umount2(dev, MNT_DETACH); /* the floor's, in this process */
    spawn_client_remove_state(state[1]);
    return 0;
}
