/* core_live: sandboxes and commands on the fake runtime with a real holt-init and a real store:
 * from the request to the row, and through deaths of the process that keeps them. Usage: core_live
 * HOLT_INIT */
#include "core_world.h"

#include "base/mem.h"
#include "driver/fake/fake.h"
#include "driver/native/native.h"

#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world w;

static bool is(struct buf *b, const char *text)
{
    return str_eq_c(buf_str(b), text);
}

static void a_command_runs_and_its_output_is_read(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct output o = {0};
    struct exec_info i;
    struct exec *x;

    CHECK(s != NULL);
    x = world_sh(&w, s, "echo out; echo err >&2; exit 7");
    CHECK(x != NULL);
    world_wait(&w, x);
    exec_info(x, &i);
    CHECK(i.state == EXEC_EXITED && i.exit_code == 7 && i.out_end == 4 && i.err_end == 4);
    world_read(&w, x, EXEC_BOTH, 0, 0, &o);
    CHECK(o.e.code == ERR_NONE && is(&o.bytes[0], "out\n") && is(&o.bytes[1], "err\n"));
    world_read(&w, x, EXEC_STDOUT, -2, 0, &o);
    CHECK(is(&o.bytes[0], "t\n") && buf_len(&o.bytes[1]) == 0);
    world_destroy(&w, s);
    CHECK(w.e.code == ERR_NONE);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM sandboxes") == 0);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM execs") == 0);
    output_done(&o);
}

/* --- output --- */

#define LINES 40000 /* of 8 bytes: 320,000 */
static const char lines[] = "i=0; while [ $i -lt 40000 ]; do printf '%07d\\n' $i; i=$((i+1)); done";

static void check_lines(const struct buf *b, int64_t from)
{
    const char *p = buf_data(b);

    for (size_t i = 0; i < buf_len(b); i++) {
        int64_t at = from + (int64_t)i;
        char line[16];

        (void)snprintf(line, sizeof line, "%07lld\n", (long long)(at / 8));
        CHECK(p[i] == line[at % 8]);
    }
}

static void large_output_is_followed_and_read_again(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct exec *x = world_sh(&w, s, lines);
    struct output o = {0};

    (void)exec_read(x, EXEC_STDOUT, 0, 0, true, &output_ops, &o);
    while (!o.ended)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
    CHECK(o.e.code == ERR_NONE && buf_len(&o.bytes[0]) == 8 * LINES);
    check_lines(&o.bytes[0], 0);
    for (int64_t at = 0; at < 8 * LINES; at += 12345) {
        world_read(&w, x, EXEC_STDOUT, at, 0, &o);
        CHECK(buf_len(&o.bytes[0]) == (size_t)(8 * LINES - at));
        check_lines(&o.bytes[0], at);
    }
    world_destroy(&w, s);
    output_done(&o);
}

/* One that takes a piece, waits, and takes the next. */
struct slow {
    struct output o;
    struct exec_reader *r;
    bool paused;
};

static int slow_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                      struct str bytes)
{
    struct slow *l = arg;

    (void)output_ops.bytes(&l->o, stream, offset, time_us, bytes);
    l->paused = true;
    return 1;
}

static int slow_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    return output_ops.gap(&((struct slow *)arg)->o, stream, from, to);
}

static void slow_end(void *arg, const struct err *e)
{
    output_ops.end(&((struct slow *)arg)->o, e);
}

static const struct exec_reader_ops slow_ops = {slow_bytes, slow_gap, slow_end};

static void drain_slowly(struct slow *l)
{
    while (!l->o.ended) {
        (void)uv_run(&w.loop, UV_RUN_ONCE);
        if (!l->paused)
            continue;
        l->paused = false;
        exec_reader_resume(l->r);
    }
}

static void the_oldest_output_goes_and_that_is_said(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct exec *x = world_start(
        &w, s,
        (struct exec_spec){.shell = STR("head -c 3000000 /dev/zero"), .output_bytes = 1 << 18});
    struct output o = {0};
    struct exec_info i;

    world_wait(&w, x);
    exec_info(x, &i);
    CHECK(i.out_end == 3000000 && i.out_from >= 3000000 - (1 << 18) - 65536);
    world_read(&w, x, EXEC_STDOUT, 0, 0, &o);
    CHECK(o.gap == i.out_from && o.gap + (int64_t)buf_len(&o.bytes[0]) == 3000000);
    world_destroy(&w, s);
    output_done(&o);
}

static void a_command_waits_for_its_reader(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct exec *x = world_start(&w, s,
                                 (struct exec_spec){.shell = STR("head -c 3000000 /dev/zero"),
                                                    .output_bytes = 1 << 18,
                                                    .block_when_full = true});
    struct slow l = {0};
    struct exec_info i;

    world_turn(&w, 500);
    exec_info(x, &i);
    CHECK(i.state == EXEC_RUNNING && i.out_from == 0 && i.out_end < 1 << 20);
    l.r = exec_read(x, EXEC_STDOUT, 0, 0, true, &slow_ops, &l);
    drain_slowly(&l);
    CHECK(l.o.gap == 0 && buf_len(&l.o.bytes[0]) == 3000000);
    exec_info(x, &i);
    CHECK(i.out_from > 0); /* what was read could go */
    world_destroy(&w, s);
    output_done(&l.o);
}

/* --- stdin --- */

static bool room;
static void on_room(void *arg)
{
    (void)arg;
    room = true;
}

static void stdin_goes_through_at_the_commands_pace(void)
{
    enum { BYTES = 1 << 20 };
    struct sandbox *s = world_create(&w, NULL);
    struct exec *x =
        world_start(&w, s, (struct exec_spec){.shell = STR("sleep 0.2; cat"), .want_stdin = true});
    AUTO(mem_free) char *sent = xmalloc(BYTES);
    struct output o = {0};
    size_t at = 0;
    int waits = 0;

    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (char)(i * 7 + i / 251);
    while (at < BYTES) {
        room = false;
        at += exec_stdin(x, str_make(sent + at, BYTES - at), true, on_room, NULL);
        while (at < BYTES && !room)
            (void)uv_run(&w.loop, UV_RUN_ONCE);
        waits++;
    }
    CHECK(waits > 4);
    world_wait(&w, x);
    world_read(&w, x, EXEC_STDOUT, 0, 0, &o);
    CHECK(buf_len(&o.bytes[0]) == BYTES && memcmp(buf_data(&o.bytes[0]), sent, BYTES) == 0);
    world_destroy(&w, s);
    output_done(&o);
}

/* --- ends --- */

static void deadlines_and_cancel_end_all_of_it(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct exec_info i;
    struct exec *x = world_start(
        &w, s, (struct exec_spec){.shell = STR("setsid sleep 100 & sleep 100"), .timeout_ms = 150});

    world_wait(&w, x);
    exec_info(x, &i);
    CHECK(i.state == EXEC_EXITED && i.timed_out && i.signal == 9 && i.exit_code == 137);
    x = world_sh(&w, s, "sleep 100");
    exec_cancel(x, on_exec, &w);
    world_await(&w);
    exec_info(x, &i);
    CHECK(i.state == EXEC_EXITED && i.cancelled && !i.timed_out && i.signal == 9);
    exec_cancel(x, on_exec, &w); /* again: nothing happens */
    world_await(&w);
    CHECK(w.e.code == ERR_NONE);
    exec_signal(x, 15, on_exec, &w);
    world_await(&w);
    CHECK(w.e.code == ERR_CONFLICT);
    x = world_sh(&w, s, "trap 'exit 3' USR1; echo ready; while :; do sleep 0.05; done");
    world_until_out(&w, x, 1);
    exec_signal(x, SIGUSR1, on_exec, &w);
    world_await(&w);
    world_wait(&w, x);
    exec_info(x, &i);
    CHECK(i.exit_code == 3);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM events WHERE type = 'exec.timed_out'") == 1);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM events WHERE type = 'exec.cancelled'") == 1);
    world_destroy(&w, s);
}

static void what_cannot_run_says_why(void)
{
    static const struct str none[] = {STR("/no/such/program")};
    struct sandbox *s = world_create(&w, NULL);
    struct exec *x = world_start(&w, s, (struct exec_spec){.argv = none, .argc = 1});
    struct exec_info i;

    CHECK(x != NULL);
    exec_info(x, &i);
    CHECK(i.state == EXEC_FAILED && i.failure.n > 0 && i.exit_code == 127);
    CHECK(world_start(&w, s, (struct exec_spec){0}) == NULL && w.e.code == ERR_INVALID);
    world_destroy(&w, s);
}

static void a_repeated_request_is_the_same_command(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct exec_spec spec = {.shell = STR("echo once")};
    struct exec *x = world_start(&w, s, spec);
    struct exec_info i;

    exec_info(x, &i);
    spec.again = str_of(i.id);
    CHECK(world_start(&w, s, spec) == x);
    world_destroy(&w, s);
}

static void env_is_what_was_given(void)
{
    const struct pair env[] = {{STR("A"), STR("sandbox")}, {STR("B"), STR("sandbox")}};
    const struct pair more[] = {{STR("B"), STR("exec")}};
    struct sandbox *s = world_create(&w, &(struct sandbox_spec){.env = env, .env_count = 2});
    struct exec *x = world_start(
        &w, s,
        (struct exec_spec){
            .shell = STR("echo $A $B; pwd"), .env = more, .env_count = 1, .cwd = STR("/tmp")});
    struct output o = {0};

    world_wait(&w, x);
    world_read(&w, x, EXEC_STDOUT, 0, 0, &o);
    CHECK(str_starts(buf_str(&o.bytes[0]), STR("sandbox exec\n")));
    CHECK(world_count(&w, "SELECT COUNT(*) FROM events WHERE data LIKE '%\"exec\"%' AND type LIKE "
                          "'sandbox%'") == 0);
    world_destroy(&w, s);
    output_done(&o);
}

/* --- names --- */

static enum err_code create_code(struct sandbox_spec spec)
{
    (void)world_create(&w, &spec);
    return w.e.code;
}

static void names_are_unique_and_found(void)
{
    static const struct alias_name names[] = {{STR("sbx"), STR("SBX-9")},
                                              {STR("sbx"), STR("sbx-nine")},
                                              {STR("agentbox"), STR("5f0c1c4e")}};
    struct sandbox *s = world_create(
        &w, &(struct sandbox_spec){
                .name = STR("box-1"), .dialect = STR("sbx"), .aliases = names, .alias_count = 3});
    struct err e = {0};
    struct sandbox_info i;

    CHECK(s && sandbox_find(w.all, &principal_system, STR("box-1"), &e) == s);
    CHECK(sandbox_find(w.all, &principal_system, STR("SBX-9"), &e) == s);
    CHECK(sandbox_find(w.all, &principal_system, STR("sbx-nine"), &e) == s);
    CHECK(sandbox_find(w.all, &principal_system, STR("5f0c1c4e"), &e) == s);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM aliases") == 3);
    CHECK(create_code((struct sandbox_spec){.aliases = names, .alias_count = 1}) == ERR_CONFLICT);
    CHECK(create_code((struct sandbox_spec){.name = STR("sbx-nine")}) == ERR_CONFLICT);
    sandbox_info(s, &i);
    CHECK(sandbox_find(w.all, &principal_system, str_of(i.id), &e) == s);
    CHECK(!sandbox_find(w.all, &principal_system, STR("box-2"), &e) && e.code == ERR_NOT_FOUND);
    CHECK(strstr(e.hint, "box-1") != NULL);
    CHECK(create_code((struct sandbox_spec){.name = STR("box-1")}) == ERR_CONFLICT);
    CHECK(create_code((struct sandbox_spec){.name = STR("-x")}) == ERR_INVALID);
    CHECK(create_code((struct sandbox_spec){.name = STR("Box")}) == ERR_INVALID);
    CHECK(create_code((struct sandbox_spec){.runtime = STR("nope")}) == ERR_INVALID);
    CHECK(strstr(w.e.hint, w.drivers[0]->name) != NULL);
    CHECK(create_code((struct sandbox_spec){.image = STR("nope")}) == ERR_NOT_FOUND);
    CHECK(create_code((struct sandbox_spec){.traits.limits.pids = 1}) == ERR_INVALID);
    sandbox_update(s, &(struct sandbox_change){.name = STR("other")}, &tester, on_sandbox, &w);
    world_await(&w);
    CHECK(w.e.code == ERR_NONE && sandbox_find(w.all, &principal_system, STR("other"), &e) == s);
    CHECK(!sandbox_find(w.all, &principal_system, STR("box-1"), &e));
    world_destroy(&w, s);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM aliases") == 0);
    CHECK(sandboxes_count(w.all) == 0);
}

/* --- lives --- */

static void stop_keeps_files_and_start_goes_on(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct sandbox_info si;
    struct exec_info i;
    struct exec *x = world_sh(&w, s, "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done");

    world_until_out(&w, x, 1);
    sandbox_stop(s, 60000, false, &tester, on_sandbox, &w);
    world_await(&w);
    CHECK(w.e.code == ERR_NONE);
    sandbox_info(s, &si);
    CHECK(si.state == SANDBOX_STOPPED && si.execs_live == 0);
    exec_info(x, &i);
    CHECK(i.state == EXEC_EXITED && i.exit_code == 5);
    CHECK(world_sh(&w, s, "true") == NULL && w.e.code == ERR_CONFLICT);
    sandbox_start(s, &tester, on_sandbox, &w);
    world_await(&w);
    CHECK(w.e.code == ERR_NONE);
    x = world_sh(&w, s, "echo again");
    CHECK(x != NULL);
    world_wait(&w, x);
    x = world_sh(&w, s, "trap '' TERM; echo up; while :; do sleep 0.05; done");
    world_until_out(&w, x, 1);
    sandbox_stop(s, 100, false, &tester, on_sandbox, &w);
    world_await(&w);
    exec_info(x, &i);
    CHECK(w.e.code == ERR_NONE && i.signal == 9);
    world_destroy(&w, s);
    CHECK(w.e.code == ERR_NONE);
}

static void pause_freezes_and_resume_goes_on(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct sandbox_info si;
    struct exec *x = world_sh(&w, s, "while :; do echo x; sleep 0.02; done");
    struct exec_info i;

    world_until_out(&w, x, 1);
    sandbox_pause(s, true, &tester, on_sandbox, &w);
    world_await(&w);
    CHECK(w.e.code == ERR_NONE);
    world_until_still(&w, x);
    exec_info(x, &i);
    sandbox_info(s, &si);
    CHECK(si.state == SANDBOX_PAUSED);
    sandbox_pause(s, false, &tester, on_sandbox, &w);
    world_await(&w);
    world_until_out(&w, x, i.out_end + 1);
    world_destroy(&w, s);
}

static void lifetimes_end(void)
{
    struct sandbox *idle = world_create(&w, &(struct sandbox_spec){.traits.idle_ttl_ms = 2000});
    struct exec *x =
        world_start(&w, idle, (struct exec_spec){.shell = STR("read l"), .want_stdin = true});

    CHECK(x && world_create(&w, &(struct sandbox_spec){.traits.ttl_ms = 300}) != NULL);
    world_turn(&w, 3000);
    world_until_boxes(&w, 1);
    CHECK(sandbox_next(w.all, &principal_system, STR("")) ==
          idle); /* a running command is activity */
    CHECK(exec_stdin(x, STR("\n"), true, NULL, NULL) == 1);
    world_wait(&w, x);
    world_until_boxes(&w, 0);
}

static void init_dies(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct exec *x = world_sh(&w, s, "kill -9 $PPID; sleep 100");
    struct sandbox_info si;
    struct exec_info i;

    CHECK(x != NULL);
    world_wait(&w, x);
    exec_info(x, &i);
    CHECK(i.state == EXEC_LOST && i.exit_code == -1 && i.failure.n > 0);
    sandbox_info(s, &si);
    CHECK(si.state == SANDBOX_FAILED && si.failure.n > 0);
    world_destroy(&w, s);
    CHECK(w.e.code == ERR_NONE && sandboxes_count(w.all) == 0);
}

/* --- run --- */

struct ran {
    struct run *run;
    struct exec_reader *reader;
    struct exec_wait *wait;
    bool failed, destroyed;
    struct err e;
    int exit_code;
    char out[64];
    size_t n;
};

static int ran_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_ms,
                     struct str bytes)
{
    struct ran *n = arg;

    (void)stream, (void)offset, (void)time_ms;
    bytes.n = size_min(bytes.n, sizeof n->out - 1 - n->n);
    memcpy(n->out + n->n, bytes.p, bytes.n);
    n->n += bytes.n;
    return 0;
}

static void ran_end(void *arg, const struct err *e)
{
    ((struct ran *)arg)->reader = NULL;
    CHECK(e->code == ERR_NONE);
}

static void ran_over(void *arg, struct exec *x, const struct err *e)
{
    struct ran *n = arg;
    struct exec_info i;

    n->wait = NULL;
    CHECK(x && e->code == ERR_NONE);
    exec_info(x, &i);
    n->exit_code = i.exit_code;
    run_end(n->run);
}

static void ran_started(void *arg, struct exec *x)
{
    static const struct exec_reader_ops reads = {.bytes = ran_bytes, .end = ran_end};
    struct ran *n = arg;

    n->reader = exec_read(x, EXEC_BOTH, 0, 0, true, &reads, n);
    n->wait = exec_wait(x, ran_over, n);
}

static void ran_failed(void *arg, const struct err *e)
{
    struct ran *n = arg;

    n->failed = true;
    n->e = *e;
    run_end(n->run);
}

static void ran_destroyed(void *arg)
{
    ((struct ran *)arg)->destroyed = true;
}

static const struct run_ops ran_ops = {
    .reads = true, .started = ran_started, .failed = ran_failed, .destroyed = ran_destroyed};

static void ran_wait(struct ran *n, const struct sandbox_spec *box, const struct exec_spec *x)
{
    *n = (struct ran){0};
    n->run = run_start(w.all, &(struct run_spec){.sandbox = box, .exec = x}, &tester, &ran_ops, n);
    while (!n->destroyed)
        (void)uv_run(&w.loop, UV_RUN_ONCE);
}

static void one_run(void)
{
    const struct sandbox_spec box = {0}, nowhere = {.runtime = STR("nope")};
    const struct exec_spec x = {.shell = STR("echo hello; exit 4")};
    const struct exec_spec forever = {.shell = STR("sleep 1000")};
    struct ran n;

    ran_wait(&n, &box, &x);
    CHECK(!n.failed && n.exit_code == 4 && strcmp(n.out, "hello\n") == 0);
    CHECK(sandboxes_count(w.all) == 0);
    for (int ms = 0; ms < 60; ms += 15) { /* who asked is gone, at several points */
        n = (struct ran){0};
        n.run = run_start(w.all, &(struct run_spec){.sandbox = &box, .exec = &forever}, &tester,
                          &ran_ops, &n);
        world_turn(&w, ms);
        exec_wait_cancel(n.wait);
        exec_reader_end(n.reader);
        run_forget(n.run);
        while (sandboxes_count(w.all) > 0)
            (void)uv_run(&w.loop, UV_RUN_ONCE);
        CHECK(!n.failed && !n.destroyed);
    }
    ran_wait(&n, &nowhere, &x);
    CHECK(n.failed && n.e.code == ERR_INVALID);
    CHECK(world_count(&w, "SELECT COUNT(*) FROM sandboxes") == 0);
}

/* --- the process that keeps them goes, and comes back --- */

static struct sandbox *only(void)
{
    struct sandbox *s = sandbox_next(w.all, &principal_system, STR(""));

    CHECK(s && !sandbox_next(w.all, &principal_system, STR("sb_zzzzzzzzzzzzzzzzzzzzz")));
    return s;
}

static void reopen(void)
{
    world_close(&w);
    world_open(&w);
    world_settle(&w);
}

static void a_command_outlives_a_restart(void)
{
    struct sandbox *s = world_create(&w, &(struct sandbox_spec){.name = STR("kept")});
    struct output o = {0};
    struct exec_info i;
    struct exec *x, *y;
    struct err e;

    x = world_start(&w, s,
                    (struct exec_spec){.shell = STR("echo a; read l; echo got $l; read l; "
                                                    "echo and $l; exit 9"),
                                       .want_stdin = true});
    y = world_sh(&w, s, "echo small");
    world_wait(&w, y);
    CHECK(exec_stdin(x, STR("one\n"), false, NULL, NULL) == 4);
    world_until_out(&w, x, (int64_t)strlen("a\ngot one\n"));
    reopen();
    s = sandbox_find(w.all, &principal_system, STR("kept"), &e);
    CHECK(s != NULL);
    x = exec_next(s, STR(""));
    world_turn(&w, 200);
    CHECK(exec_stdin(x, STR("two\n"), true, NULL, NULL) == 4);
    world_wait(&w, x);
    exec_info(x, &i);
    CHECK(i.state == EXEC_EXITED && i.exit_code == 9);
    world_read(&w, x, EXEC_STDOUT, 0, 0, &o);
    CHECK(is(&o.bytes[0], "a\ngot one\nand two\n"));
    reopen(); /* ended ones are read from their rows */
    s = only();
    x = exec_next(s, STR(""));
    world_read(&w, x, EXEC_STDOUT, 2, 0, &o);
    CHECK(is(&o.bytes[0], "got one\nand two\n"));
    exec_info(x, &i);
    CHECK(i.exit_code == 9 && i.out_end == 18 && i.argc == 3);
    y = exec_next(s, str_of(i.id));
    world_read(&w, y, EXEC_BOTH, 0, 0, &o);
    CHECK(is(&o.bytes[0], "small\n"));
    world_destroy(&w, s);
    output_done(&o);
}

/* kill -9 of a process that runs the loop, at any moment; then every byte, once. */
static void killed_at_any_moment(int rounds)
{
    static const char line[] =
        "i=0; while [ $i -lt 40000 ]; do printf '%07d\\n' $i; i=$((i+1)); "
        "[ $((i % 4000)) -eq 0 ] && { echo e$i >&2; sleep 0.02; }; done; exit 3";

    for (int round = 0; round < rounds; round++) {
        struct output o = {0};
        struct exec_info i;
        struct exec *x;
        pid_t pid;
        int status;

        world_close(&w);
        for (int life = 0; life < 3; life++) {
            (void)fflush(NULL);
            pid = fork();
            CHECK(pid >= 0);
            if (pid == 0) {
                world_open(&w);
                world_settle(&w);
                if (life == 0)
                    (void)world_sh(&w, world_create(&w, NULL), line);
                for (;;)
                    (void)uv_run(&w.loop, UV_RUN_ONCE);
            }
            (void)usleep((useconds_t)(life == 0 ? 120000 : 20000) +
                         (useconds_t)(round * 7919 % 60000));
            CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
        }
        world_open(&w);
        world_settle(&w);
        if (sandboxes_count(w.all) == 0)
            continue; /* it was killed before anything was promised */
        x = exec_next(only(), STR(""));
        if (x) {
            world_wait(&w, x);
            exec_info(x, &i);
            CHECK(i.state == EXEC_EXITED && i.exit_code == 3);
            world_read(&w, x, EXEC_BOTH, 0, 0, &o);
            CHECK(o.gap == 0 && buf_len(&o.bytes[0]) == 8 * LINES);
            check_lines(&o.bytes[0], 0);
            CHECK(str_eq_c(buf_str(&o.bytes[1]), "e4000\ne8000\ne12000\ne16000\ne20000\ne24000\n"
                                                 "e28000\ne32000\ne36000\ne40000\n"));
        }
        world_destroy(&w, only());
        CHECK(w.e.code == ERR_NONE);
        output_done(&o);
    }
}

static int drop_rows(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx, "DELETE FROM sandboxes", NO_PARAMS, e) < 0 ? -1 : 0;
}

static void one_without_a_row_is_an_orphan(void)
{
    static const char said[] = "SELECT COUNT(*) FROM events WHERE type = 'sandbox.orphan'";
    struct sandbox *s = world_create(&w, NULL);
    struct sandbox_info i;
    struct err e = {0};
    char id[ID_SIZE];

    sandbox_info(s, &i);
    (void)snprintf(id, sizeof id, "%s", i.id);
    CHECK(store_now(w.store, drop_rows, NULL, &e) == 0);
    reopen();
    s = only();
    sandbox_info(s, &i);
    CHECK(strcmp(i.id, id) == 0 && i.orphan && i.state == SANDBOX_STOPPED);
    for (int tries = 0; tries < 600 && world_count(&w, said) == 0; tries++)
        world_turn(&w, 100);
    CHECK(world_count(&w, said) == 1);
    reopen();
    s = only();
    sandbox_info(s, &i);
    CHECK(i.orphan);
    sandbox_start(s, &tester, on_sandbox, &w);
    world_await(&w);
    CHECK(w.e.code == ERR_CONFLICT);
    world_destroy(&w, s);
    CHECK(sandboxes_count(w.all) == 0);
}

static void init_died_while_nobody_watched(void)
{
    struct sandbox *s = world_create(&w, NULL);
    struct sandbox_info si;
    struct exec_info i;

    CHECK(world_sh(&w, s, "sleep 0.3; kill -9 $PPID; sleep 100") != NULL);
    world_close(&w);
    (void)usleep(600000);
    world_open(&w);
    world_settle(&w);
    s = only();
    world_until_state(&w, s, SANDBOX_FAILED);
    sandbox_info(s, &si);
    CHECK(si.failure.n > 0);
    exec_info(exec_next(s, STR("")), &i);
    CHECK(i.state == EXEC_LOST);
    world_destroy(&w, s);
}

int main(int argc, char **argv)
{
    int rounds = getenv("HOLT_SOAK") ? 100 : 6;
    bool native = argc == 3 && strcmp(argv[2], "native") == 0;

    CHECK(argc == 2 || argc == 3);
    (void)snprintf(w.bindir, sizeof w.bindir, "%s", dirname(argv[1]));
    CHECK(scratch_make(w.dir, "core") == 0);
    w.drivers[0] = native ? &driver_native : &driver_fake;
    world_open(&w);
    world_settle(&w);
#define RUN(fn)                                                                                    \
    do {                                                                                           \
        (void)fprintf(stderr, "%s\n", #fn);                                                        \
        fn;                                                                                        \
    } while (0)
    RUN(a_command_runs_and_its_output_is_read());
    RUN(large_output_is_followed_and_read_again());
    RUN(the_oldest_output_goes_and_that_is_said());
    RUN(a_command_waits_for_its_reader());
    RUN(stdin_goes_through_at_the_commands_pace());
    RUN(deadlines_and_cancel_end_all_of_it());
    RUN(what_cannot_run_says_why());
    RUN(a_repeated_request_is_the_same_command());
    RUN(env_is_what_was_given());
    RUN(names_are_unique_and_found());
    RUN(stop_keeps_files_and_start_goes_on());
    RUN(pause_freezes_and_resume_goes_on());
    RUN(lifetimes_end());
    if (!native) /* there nobody inside can kill it */
        RUN(init_dies());
    RUN(one_run());
    RUN(a_command_outlives_a_restart());
    RUN(one_without_a_row_is_an_orphan());
    if (!native)
        RUN(init_died_while_nobody_watched());
    RUN(killed_at_any_moment(rounds));
    world_close(&w);
    world_remove(&w);
    return 0;
}
