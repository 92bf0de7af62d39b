/* bench_core: what the registry costs, on the fake runtime (an init that is an ordinary process):
 * one run, one exec, output to the log and out of it, memory of an idle sandbox, a restart with
 * many. Usage: bench_core HOLT_INIT [SANDBOXES] */
#include "core_world.h"

#include "base/clock.h"
#include "base/mem.h"
#include "driver/fake/fake.h"

#include <libgen.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

static struct world w;

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print(const char *what, int64_t *ns, size_t n)
{
    qsort(ns, n, sizeof *ns, by_size);
    (void)printf("%-28s median %7.3f ms  p95 %7.3f ms\n", what, (double)ns[n / 2] / 1e6,
                 (double)ns[n * 95 / 100] / 1e6);
}

struct one {
    struct run *run;
    bool done;
};

static void over(void *arg, struct exec *x, const struct err *e)
{
    struct exec_info i;

    (void)e;
    CHECK(x != NULL);
    exec_info(x, &i);
    CHECK(i.exit_code == 0);
    run_end(((struct one *)arg)->run);
}

static void started(void *arg, struct exec *x)
{
    (void)exec_wait(x, over, arg);
}

static void failed(void *arg, const struct err *e)
{
    (void)arg;
    (void)fprintf(stderr, "%s\n", e->msg);
    exit(1);
}

static void destroyed(void *arg)
{
    ((struct one *)arg)->done = true;
}

static void runs(void)
{
    static const struct run_ops ops = {
        .started = started, .failed = failed, .destroyed = destroyed};
    static const struct str argv[] = {STR("/bin/true")};
    const struct run_spec spec = {.sandbox = &(struct sandbox_spec){0},
                                  .exec = &(struct exec_spec){.argv = argv, .argc = 1}};
    int64_t ns[200];

    for (size_t i = 0; i < ARRAY_LEN(ns); i++) {
        int64_t from = clock_mono_ns();
        struct one one = {0};

        one.run = run_start(w.all, &spec, &tester, &ops, &one);
        while (!one.done)
            (void)uv_run(&w.loop, UV_RUN_ONCE);
        ns[i] = clock_mono_ns() - from;
    }
    print("run true (fake)", ns, ARRAY_LEN(ns));
}

static void execs(void)
{
    static const struct str argv[] = {STR("/bin/true")};
    struct sandbox *s = world_create(&w, NULL);
    int64_t ns[300];

    for (size_t i = 0; i < ARRAY_LEN(ns); i++) {
        int64_t from = clock_mono_ns();

        world_wait(&w, world_start(&w, s, (struct exec_spec){.argv = argv, .argc = 1}));
        ns[i] = clock_mono_ns() - from;
    }
    print("exec true", ns, ARRAY_LEN(ns));
    world_destroy(&w, s);
}

static int count_bytes(void *arg, enum exec_which s, int64_t offset, int64_t time_us,
                       struct str bytes)
{
    (void)s;
    (void)offset;
    (void)time_us;
    *(int64_t *)arg += (int64_t)bytes.n;
    return 0;
}

static bool ended;
static void count_end(void *arg, const struct err *e)
{
    (void)arg;
    (void)e;
    ended = true;
}

static double ms(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static void output(void)
{
    struct rusage before, after;
    static const struct exec_reader_ops ops = {.bytes = count_bytes, .end = count_end};
    struct sandbox *s = world_create(&w, NULL);
    int64_t from = clock_mono_ns(), bytes = 0;
    struct exec *x = world_start(
        &w, s,
        (struct exec_spec){.shell = STR("head -c 1073741824 /dev/zero"), .block_when_full = true});

    (void)getrusage(RUSAGE_SELF, &before);
    (void)exec_read(x, EXEC_STDOUT, 0, 0, true, &ops, &bytes);
    while (!ended)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    (void)getrusage(RUSAGE_SELF, &after);
    (void)printf(
        "%-28s %.0f MB/s; %.0f ms of user and %.0f ms of system time per GiB\n",
        "stdout, to log, to reader", (double)bytes * 1e3 / (double)(clock_mono_ns() - from),
        ms(after.ru_utime) - ms(before.ru_utime), ms(after.ru_stime) - ms(before.ru_stime));
    world_destroy(&w, s);
}

static void many(int n)
{
    struct mallinfo2 before = mallinfo2(), after;
    int64_t from;

    for (int i = 0; i < n; i++)
        CHECK(world_create(&w, NULL) != NULL);
    world_turn(&w, 300);
    after = mallinfo2();
    (void)printf("%-28s %.1f KiB of heap each\n", "an idle sandbox",
                 (double)(after.uordblks - before.uordblks) / 1024 / n);
    world_close(&w);
    from = clock_mono_ns();
    world_open(&w);
    (void)printf("%-28s %.1f ms to open", "restart", (double)(clock_mono_ns() - from) / 1e6);
    world_settle(&w);
    (void)printf(", %.1f ms to know what lives (%d)\n", (double)(clock_mono_ns() - from) / 1e6, n);
    while (sandboxes_count(w.all) > 0)
        world_destroy(&w, sandbox_next(w.all, &principal_system, STR("")));
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    (void)snprintf(w.bindir, sizeof w.bindir, "%s", dirname(argv[1]));
    CHECK(scratch_make(w.dir, "core") == 0);
    w.drivers[0] = &driver_fake;
    world_open(&w);
    world_settle(&w);
    runs();
    execs();
    output();
    many(argc > 2 ? (int)strtol(argv[2], NULL, 10) : 200);
    world_close(&w);
    world_remove(&w);
    return 0;
}
