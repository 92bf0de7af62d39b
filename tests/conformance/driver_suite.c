#include "base/clock.h"
#include "driver_world.h"
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define TRIES (WORLD_WAIT_MS / 10) /* of 10 ms: for what hangs */
#define KILLS 5

static const struct driver_suite *suite;
static struct world world;

static int set_up(void **state)
{
    world_open(&world, suite);
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    world_close(*state);
    return 0;
}

static void make(struct world *w, const char *id)
{
    struct driver_spec s = world_spec(w, id);
    struct answer a;

    if (world_create(w, &s, &a) != ERR_NONE)
        fail_msg("create: %s", a.err.msg);
    assert_true(a.made.pid > 0 || suite->host); /* a machine's is no process here */
}

static void nothing_is_left(struct world *w, const char *id)
{
    struct answer a;

    assert_int_equal(world_list(w, &a), ERR_NONE);
    for (size_t i = 0; i < a.found_count; i++)
        assert_string_not_equal(a.found[i].id, id);
    assert_int_equal(count_files(w->state, id), 0);
    if (suite->pool_dir)
        assert_int_equal(count_files(suite->pool_dir, id), 0);
}

static void run(struct link *l, const char *id, const char *shell, const char *out, int code)
{
    struct command c;

    command_start(l, id, 0, shell, &c);
    command_end(l, &c);
    assert_int_equal(c.how.how, GUEST_EXITED);
    assert_int_equal(c.how.code, code);
    assert_true(str_eq_c(buf_str(&c.out), out));
    command_done(&c);
}

/* Of a runtime with a kernel of its own: the host sees none of its processes. */
static size_t count_inside(struct link *l, const char *before, const char *text)
{
    static unsigned number;
    struct command c;
    char id[24], shell[240];
    uint64_t n = 0;

    (void)snprintf(id, sizeof id, "ex_count%u", number++);
    (void)snprintf(shell, sizeof shell,
                   "n=0; for p in /proc/[0-9]*; do [ $p != /proc/$$ ] && tr '\\0' ' ' < $p/cmdline "
                   "2>/dev/null | grep -q '%s%s' && n=$((n+1)); done; printf %%d $n",
                   before, text);
    command_start(l, id, 0, shell, &c);
    command_end(l, &c);
    assert_int_equal(str_parse_u64(str_trim(buf_str(&c.out)), &n), 0);
    command_done(&c);
    return n;
}

/* l: NULL once the sandbox is gone. */
static size_t count_with(struct link *l, const char *text)
{
    return !suite->inside ? count_processes(text) : l ? count_inside(l, "", text) : 0;
}

/* A kill is sent; the kernel ends processes in its own time. */
static void they_end(struct world *w, struct link *l, const char *text)
{
    int64_t until = clock_mono_ms() + WORLD_WAIT_MS; /* a look inside takes its time */

    while (clock_mono_ms() < until && count_with(l, text) > 0)
        world_pass(w, 10);
    assert_int_equal(count_with(l, text), 0);
}

/* Waits for the process `sleep TIME` itself: a shell that will become one has the time in its
 * command line too, and no command line at all for a moment of its exec. */
static void it_sleeps(struct world *w, struct link *l, const char *time)
{
    int64_t until = clock_mono_ms() + WORLD_WAIT_MS;
    size_t n = 0;

    while (clock_mono_ms() < until && n == 0) {
        n = suite->inside ? count_inside(l, "^sleep ", time) : count_sleepers(time);
        if (n == 0)
            world_pass(w, 10);
    }
    assert_int_equal(n, 1);
}

/* ---- tests ---- */

static void a_command_runs_and_nothing_is_left(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct link *l;

    make(w, "sb_one");
    w->driver->ops->confirm(w->driver, "sb_one");
    l = link_open(w, "sb_one");
    run(l, "ex_1", "echo hi; exit 7", "hi\n", 7);
    run(l, "ex_2", "echo again", "again\n", 0);
    assert_int_equal(world_list(w, &a), ERR_NONE);
    assert_int_equal(a.found_count, 1);
    assert_true(a.found[0].running && a.found[0].confirmed);
    assert_string_equal(a.found[0].id, "sb_one");
    link_close(l);
    assert_int_equal(world_remove(w, "sb_one", false), ERR_NONE);
    nothing_is_left(w, "sb_one");
    assert_int_equal(w->ended, 0); /* its end was asked for */
    assert_int_equal(world_connect(w, "sb_one", &a), ERR_NOT_FOUND);
}

/* The text with a number of this run's for each '@': processes are found by the time they sleep,
 * and several runs at once must not find each other's. */
static const char *nap(const char *text)
{
    static char made[4][160];
    static size_t at;
    char *to = made[at++ % ARRAY_LEN(made)];
    size_t n = 0;

    for (; *text; text++)
        n += (size_t)snprintf(to + n, sizeof made[0] - n, *text == '@' ? "9%06d" : "%c",
                              *text == '@' ? (int)getpid() : *text);
    return to;
}

static void kill_of_the_work_leaves_init(void **state)
{
    struct world *w = *state;
    struct command c;
    struct link *l;

    make(w, "sb_kill");
    l = link_open(w, "sb_kill");
    command_start(l, "ex_1", 0, nap("setsid sleep @7.25 & sleep @7.5"), &c);
    world_until(w, &c.running);
    it_sleeps(w, l, nap("@7.25"));
    assert_int_equal(world_kill(w, "sb_kill", DRIVER_WORK), ERR_NONE);
    command_end(l, &c);
    assert_int_equal(c.how.how, GUEST_SIGNALLED);
    assert_int_equal(c.how.code, SIGKILL);
    they_end(w, l, nap("@7"));
    run(l, "ex_2", "echo alive", "alive\n", 0);
    assert_false(l->lost);
    command_done(&c);
    link_close(l);
    assert_int_equal(world_remove(w, "sb_kill", false), ERR_NONE);
}

/* Each process forks the next and ends: one that a kill does not see would go on for ever. */
static void kill_of_the_work_ends_what_forks(void **state)
{
    struct world *w = *state;
    struct link *l;

    if (!(suite->ops->caps & DRIVER_ISOLATES))
        skip(); /* nothing holds what left its session */
    make(w, "sb_forks");
    l = link_open(w, "sb_forks");
    for (int i = 0; i < KILLS; i++) {
        struct command c;
        char id[24];

        (void)snprintf(id, sizeof id, "ex_%d", i);
        command_start(l, id, 0,
                      nap("f() { : @6; f & }; f & f & f & f & f & f & f & f & f & f & f & f & echo "
                          "on; sleep @6.5"),
                      &c);
        while (buf_len(&c.out) == 0)
            world_pass(w, 10);
        world_pass(w, 100); /* let them fork */
        assert_int_equal(world_kill(w, "sb_forks", DRIVER_WORK), ERR_NONE);
        command_end(l, &c);
        they_end(w, l, nap("@6"));
        command_done(&c);
    }
    link_close(l);
    assert_int_equal(world_remove(w, "sb_forks", false), ERR_NONE);
    nothing_is_left(w, "sb_forks");
}

/* Whatever left its session and its parents goes with its command, and nothing else does. */
static void kill_of_a_command_spares_the_others(void **state)
{
    struct world *w = *state;
    struct command killed, other;
    struct link *l;

    make(w, "sb_one");
    l = link_open(w, "sb_one");
    run(l, "ex_old", nap("setsid sleep @5.25 >/dev/null 2>&1 & echo left"), "left\n", 0);
    command_start(l, "ex_other", 0, nap("setsid sh -c 'sleep @4.25 &' & sleep @4.5"), &other);
    command_start(l, "ex_killed", 0,
                  nap("setsid sh -c 'setsid sleep @3.25 & exec sleep @3.5' & sleep @3.75"),
                  &killed);
    world_until(w, &killed.running);
    it_sleeps(w, l, nap("@3.25"));
    it_sleeps(w, l, nap("@3.5"));
    it_sleeps(w, l, nap("@4.25"));
    it_sleeps(w, l, nap("@4.5"));
    it_sleeps(w, l, nap("@5.25"));
    guest_exec_signal(killed.x, SIGKILL, GUEST_SCOPE_ALL);
    command_end(l, &killed);
    assert_int_equal(killed.how.how, GUEST_SIGNALLED);
    they_end(w, l, nap("@3"));
    world_pass(w, 50);
    assert_true(count_with(l, nap("@4.25")) > 0 && count_with(l, nap("@4.5")) > 0);
    assert_true(count_with(l, nap("@5.25")) > 0);
    link_close(l);
    assert_int_equal(world_remove(w, "sb_one", false), ERR_NONE);
    they_end(w, NULL, nap("@"));
    command_done(&killed);
    command_done(&other);
}

static void the_end_of_init_is_told(void **state)
{
    struct world *w = *state;
    struct command c;
    struct link *l;

    make(w, "sb_end");
    l = link_open(w, "sb_end");
    command_start(l, "ex_1", 0, nap("sleep @8.25"), &c);
    world_until(w, &c.running);
    assert_int_equal(world_kill(w, "sb_end", DRIVER_ALL), ERR_NONE);
    world_until(w, &l->lost);
    assert_true(c.gone);
    while (w->ended == 0)
        world_pass(w, 10);
    assert_string_equal(w->ended_id, "sb_end");
    they_end(w, NULL, nap("@8.25"));
    command_done(&c);
    link_close(l);
    assert_int_equal(world_remove(w, "sb_end", false), ERR_NONE);
    nothing_is_left(w, "sb_end");
    assert_int_equal(w->ended, 1);
}

static void a_stop_keeps_the_files(void **state)
{
    struct world *w = *state;
    struct driver_spec again = world_spec(w, "sb_stop");
    AUTO(buf_done) struct buf got = {0};
    struct answer a;
    struct link *l;
    char path[200];

    if (!(suite->ops->caps & DRIVER_CAN_STOP))
        skip();
    suite->kept_path(w->state, "sb_stop", path, sizeof path);
    make(w, "sb_stop");
    w->driver->ops->confirm(w->driver, "sb_stop");
    l = link_open(w, "sb_stop");
    assert_int_equal(file_put(l, path, STR("a small otter")), ERR_NONE);
    link_close(l);
    assert_int_equal(world_remove(w, "sb_stop", true), ERR_NONE);
    assert_int_equal(world_connect(w, "sb_stop", &a), ERR_NOT_FOUND);
    assert_int_equal(world_remove(w, "sb_stop", true), ERR_NONE); /* twice is once */
    again.restart = true;
    if (world_create(w, &again, &a) != ERR_NONE)
        fail_msg("start again: %s", a.err.msg);
    l = link_open(w, "sb_stop");
    assert_int_equal(file_get(l, path, &got), ERR_NONE);
    assert_true(str_eq_c(buf_str(&got), "a small otter"));
    link_close(l);
    assert_int_equal(world_remove(w, "sb_stop", true), ERR_NONE);
    assert_int_equal(world_remove(w, "sb_stop", false), ERR_NONE); /* stopped, then destroyed */
    nothing_is_left(w, "sb_stop");
    assert_true(world_create(w, &again, &a) != ERR_NONE); /* nothing to go on with */
    nothing_is_left(w, "sb_stop");
}

static void pause_stops_and_resume_goes_on(void **state)
{
    struct world *w = *state;
    struct command c;
    struct link *l;
    size_t before = 0;

    if (!(suite->ops->caps & DRIVER_CAN_PAUSE))
        skip();
    make(w, "sb_pause");
    l = link_open(w, "sb_pause");
    command_start(l, "ex_1", 0, "while :; do echo tick; sleep 0.02; done", &c);
    while (buf_len(&c.out) == 0)
        world_pass(w, 10);
    assert_int_equal(world_pause(w, "sb_pause", true), ERR_NONE);
    for (int i = 0; i < 20; i++) { /* what it wrote before is on its way */
        before = buf_len(&c.out);
        world_pass(w, 300);
        if (buf_len(&c.out) == before)
            break;
    }
    assert_int_equal(buf_len(&c.out), before);
    assert_int_equal(world_pause(w, "sb_pause", false), ERR_NONE);
    for (int i = 0; i < WORLD_WAIT_MS / 100 && buf_len(&c.out) == before; i++)
        world_pass(w, 100);
    assert_true(buf_len(&c.out) > before);
    assert_int_equal(world_pause(w, "sb_pause", true), ERR_NONE);
    link_close(l);
    assert_int_equal(world_remove(w, "sb_pause", false), ERR_NONE); /* also while it is paused */
    command_done(&c);
    nothing_is_left(w, "sb_pause");
}

static void stats_tell_what_it_uses(void **state)
{
    struct world *w = *state;
    struct command c;
    struct answer a;
    struct link *l;

    make(w, "sb_stats");
    l = link_open(w, "sb_stats");
    command_start(l, "ex_1", 0, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 100", &c);
    world_until(w, &c.running);
    for (int i = 0; i < WORLD_WAIT_MS / 100; i++) {
        world_pass(w, 100);
        if (world_stats(w, "sb_stats", &a) != ERR_NONE)
            fail_msg("stats: %s", a.err.msg);
        if (!suite->counts || a.stats.cpu_us > 10000)
            break;
    }
    if (suite->counts) {
        assert_true(a.stats.pids >= 2 && a.stats.pids < 10);
        assert_true(a.stats.memory_bytes > 100 * 1024);
        assert_true(a.stats.cpu_us > 10000);
    }
    assert_int_equal(world_stats(w, "sb_none", &a), ERR_NOT_FOUND);
    link_close(l);
    assert_int_equal(world_remove(w, "sb_stats", false), ERR_NONE);
    command_done(&c);
}

static void a_restart_adopts_what_lives(void **state)
{
    struct world *w = *state;
    struct command c;
    struct answer a;
    struct link *l;

    make(w, "sb_adopt");
    w->driver->ops->confirm(w->driver, "sb_adopt");
    make(w, "sb_loose"); /* never confirmed */
    l = link_open(w, "sb_adopt");
    command_start(l, "ex_1", 0, "echo before; sleep 2; echo after; exit 5", &c);
    while (buf_len(&c.out) == 0)
        world_pass(w, 10);
    link_close(l);
    assert_true(c.gone);
    world_reopen(w);
    assert_int_equal(world_list(w, &a), ERR_NONE);
    assert_int_equal(a.found_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(a.found[i].running);
        assert_int_equal(a.found[i].confirmed, strcmp(a.found[i].id, "sb_adopt") == 0);
    }
    if (world_adopt(w, "sb_adopt", &a) != ERR_NONE)
        fail_msg("adopt: %s", a.err.msg);
    assert_true(a.made.pid > 0 || suite->host); /* a machine's is no process here */
    l = link_open(w, "sb_adopt");
    assert_int_equal(l->execs, 1);
    command_attach(l, "ex_1", &c);
    command_end(l, &c);
    assert_int_equal(c.how.code, 5);
    assert_true(str_eq_c(buf_str(&c.out), "before\nafter\n"));
    assert_int_equal(world_remove(w, "sb_loose", false), ERR_NONE); /* without adopting it */
    assert_int_equal(world_kill(w, "sb_adopt", DRIVER_ALL), ERR_NONE);
    while (w->ended == 0)
        world_pass(w, 10);
    assert_string_equal(w->ended_id, "sb_adopt");
    link_close(l);
    assert_true(world_adopt(w, "sb_none", &a) != ERR_NONE);
    assert_int_equal(world_remove(w, "sb_adopt", false), ERR_NONE);
    nothing_is_left(w, "sb_adopt");
    nothing_is_left(w, "sb_loose");
    command_done(&c);
}

static void an_id_is_used_once(void **state)
{
    struct world *w = *state;
    struct driver_spec s = world_spec(w, "sb_twice"), bad = world_spec(w, "../sb_bad");
    struct answer a;
    struct link *l;

    make(w, "sb_twice");
    assert_int_equal(world_create(w, &s, &a), ERR_CONFLICT);
    l = link_open(w, "sb_twice"); /* the first lives on */
    run(l, "ex_1", "echo here", "here\n", 0);
    link_close(l);
    assert_int_equal(world_remove(w, "sb_twice", false), ERR_NONE);
    assert_int_equal(world_remove(w, "sb_twice", false), ERR_NONE);
    assert_int_equal(world_remove(w, "sb_never", false), ERR_NONE);
    assert_int_equal(world_create(w, &bad, &a), ERR_INVALID);
    assert_int_equal(world_remove(w, "../sb_bad", false), ERR_INVALID);
}

static void a_failed_create_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct driver_spec s = world_spec(w, "sb_fail");
    struct str layer = STR("ly_missing");
    struct answer a;

    s.layers = &layer;
    s.layer_count = 1;
    assert_true(world_create(w, &s, &a) != ERR_NONE);
    assert_true(a.err.msg[0] != '\0');
    nothing_is_left(w, "sb_fail");
    assert_int_equal(w->ended, 0);
}

static void remove_ends_what_commands_left(void **state)
{
    struct world *w = *state;
    struct link *l;

    make(w, "sb_left");
    l = link_open(w, "sb_left");
    run(l, "ex_1", nap("setsid sh -c 'sleep @9.25 & sleep @9.5' >/dev/null 2>&1 & echo ok"), "ok\n",
        0);
    it_sleeps(w, l, nap("@9.25"));
    it_sleeps(w, l, nap("@9.5"));
    link_close(l);
    assert_int_equal(world_remove(w, "sb_left", false), ERR_NONE);
    assert_int_equal(count_processes(nap("@9")), 0);
    nothing_is_left(w, "sb_left");
}

static void many_at_once(void **state)
{
    enum { MOST = 50 };
    static struct answer a[MOST];
    static struct command c[MOST];
    static struct link *l[MOST];
    const int n = suite->many > 0 ? suite->many : MOST;
    struct world *w = *state;
    char id[MOST][ID_SIZE];

    for (int i = 0; i < n; i++) {
        struct driver_spec s;

        (void)snprintf(id[i], sizeof id[i], "sb_many%02d", i);
        s = world_spec(w, id[i]);
        world_begin(w, &s, &a[i]);
    }
    for (int i = 0; i < n; i++) {
        world_until(w, &a[i].done);
        if (a[i].err.code != ERR_NONE)
            fail_msg("create %d: %s", i, a[i].err.msg);
        l[i] = link_open(w, id[i]);
    }
    for (int i = 0; i < n; i++)
        command_start(l[i], "ex_1", 0, "echo $((6*7))", &c[i]);
    for (int i = 0; i < n; i++) {
        command_end(l[i], &c[i]);
        if (!str_eq_c(buf_str(&c[i].out), "42\n"))
            fail_msg("%d: how %d, code %d: %s", i, c[i].how.how, c[i].how.code, c[i].how.err.msg);
        command_done(&c[i]);
        link_close(l[i]);
        world_begin_remove(w, id[i], false, &a[i]);
    }
    for (int i = 0; i < n; i++) {
        world_until(w, &a[i].done);
        assert_int_equal(a[i].err.code, ERR_NONE);
    }
    nothing_is_left(w, "sb_many");
}

static void much_output_comes_whole(void **state)
{
    struct world *w = *state;
    AUTO(buf_done) struct buf expected = {0};
    struct command c;
    struct link *l;

    for (int i = 1; i <= 300000; i++)
        buf_printf(&expected, "%d\n", i);
    make(w, "sb_much");
    l = link_open(w, "sb_much");
    command_start(l, "ex_1", 0, "seq 1 300000", &c);
    command_end(l, &c);
    assert_true(str_eq(buf_str(&c.out), buf_str(&expected)));
    command_done(&c);
    link_close(l);
    assert_int_equal(world_remove(w, "sb_much", false), ERR_NONE);
}

static void its_helper_may_die(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct link *l;
    int well;

    if (!suite->kill_helper)
        skip();
    make(w, "sb_old");
    w->driver->ops->confirm(w->driver, "sb_old");
    l = link_open(w, "sb_old");
    well = w->well; /* one that has hosts says that they are up */
    suite->kill_helper(w->state);
    for (int i = 0; i < TRIES && w->well == well; i++)
        world_pass(w, 10);
    assert_true(w->ill > 0 && w->well == well + 1);
    if (suite->host) { /* its helper carries the bytes too */
        world_until(w, &l->lost);
        link_close(l);
        l = link_open(w, "sb_old");
    }
    run(l, "ex_1", "echo on", "on\n", 0); /* the sandbox went on */
    make(w, "sb_new");
    assert_int_equal(world_list(w, &a), ERR_NONE);
    assert_int_equal(a.found_count, 2);
    link_close(l);
    assert_int_equal(w->ended, 0);
    assert_int_equal(world_remove(w, "sb_old", false), ERR_NONE);
    assert_int_equal(world_remove(w, "sb_new", false), ERR_NONE);
    nothing_is_left(w, "sb_old");
}

static bool make_warm(struct world *w, const char *id, const struct sandbox_limits *limits)
{
    struct driver_spec s = world_spec(w, id);
    struct answer a;

    if (limits)
        s.traits.limits = *limits;
    if (world_create(w, &s, &a) != ERR_NONE)
        fail_msg("create: %s", a.err.msg);
    return a.made.warm;
}

static void what_is_made_ahead_is_used_once(void **state)
{
    struct world *w = *state;
    struct answer a;
    struct link *l;

    if (!suite->ops->pool)
        skip(); /* it makes none ahead */

    assert_false(make_warm(w, "sb_cold", NULL));
    world_pool(w, 2, NULL);
    assert_int_equal(world_list(w, &a), ERR_NONE);
    assert_int_equal(a.found_count, 1); /* nobody's are not listed */
    assert_true(make_warm(w, "sb_one", NULL));
    world_pool(w, 2, NULL);
    assert_true(make_warm(w, "sb_two", NULL));
    l = link_open(w, "sb_one");
    run(l, "ex_1", "echo one > /tmp/ahead-$$; rm /tmp/ahead-$$; echo well", "well\n", 0);
    link_close(l);
    assert_int_equal(world_list(w, &a), ERR_NONE);
    assert_int_equal(a.found_count, 3);
    assert_int_equal(world_remove(w, "sb_cold", false), ERR_NONE);
    assert_int_equal(world_remove(w, "sb_one", false), ERR_NONE);
    assert_int_equal(world_remove(w, "sb_two", false), ERR_NONE);
    nothing_is_left(w, "sb_one");
    world_pool(w, 0, NULL);
    assert_false(make_warm(w, "sb_cold", NULL));
    assert_int_equal(world_remove(w, "sb_cold", false), ERR_NONE);
    assert_int_equal(w->ended, 0); /* the end of what nobody had is not told */
}

static void another_kind_is_made_cold(void **state)
{
    const struct sandbox_limits some = {.nofile = 64}, other = {.nofile = 128};
    struct world *w = *state;

    if (!suite->ops->pool)
        skip(); /* it makes none ahead */

    world_pool(w, 1, &some);
    assert_int_equal(make_warm(w, "sb_other", &other), !suite->keyed);
    world_pool(w, 1, &some);
    assert_true(make_warm(w, "sb_some", &some));
    world_pool(w, 1, &other); /* those of the old kind make room */
    assert_true(make_warm(w, "sb_new", &other));
    assert_int_equal(world_remove(w, "sb_other", false), ERR_NONE);
    assert_int_equal(world_remove(w, "sb_some", false), ERR_NONE);
    assert_int_equal(world_remove(w, "sb_new", false), ERR_NONE);
    world_pool(w, 0, NULL);
}

static void a_restart_has_them_again(void **state)
{
    struct world *w = *state;
    struct answer a;

    if (!suite->ops->pool)
        skip(); /* it makes none ahead */

    world_pool(w, 2, NULL);
    world_reopen(w);
    assert_int_equal(world_list(w, &a), ERR_NONE);
    assert_int_equal(a.found_count, 0);
    world_pool(w, 2, NULL);
    assert_true(make_warm(w, "sb_warm", NULL));
    if (suite->kill_helper) { /* those of the dead one are gone, the next makes its own */
        suite->kill_helper(w->state);
        for (int i = 0; i < TRIES && w->well == 0; i++)
            world_pass(w, 10);
        world_pool(w, 2, NULL);
        assert_true(make_warm(w, "sb_after", NULL));
        assert_int_equal(world_remove(w, "sb_after", false), ERR_NONE);
    }
    assert_int_equal(world_remove(w, "sb_warm", false), ERR_NONE);
    world_pool(w, 0, NULL);
    for (int i = 0; i < TRIES && count_files(w->state, "shell.") > 0; i++)
        world_pass(w, 10); /* one that was on its way */
    assert_int_equal(count_files(w->state, "shell."), 0);
    assert_int_equal(count_files(w->state, "pool."), 0);
}

int driver_suite_run(const struct driver_suite *s)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_command_runs_and_nothing_is_left),
        T(kill_of_the_work_leaves_init),
        T(kill_of_the_work_ends_what_forks),
        T(kill_of_a_command_spares_the_others),
        T(the_end_of_init_is_told),
        T(a_stop_keeps_the_files),
        T(pause_stops_and_resume_goes_on),
        T(stats_tell_what_it_uses),
        T(a_restart_adopts_what_lives),
        T(an_id_is_used_once),
        T(a_failed_create_leaves_nothing),
        T(remove_ends_what_commands_left),
        T(many_at_once),
        T(much_output_comes_whole),
        T(its_helper_may_die),
        T(what_is_made_ahead_is_used_once),
        T(another_kind_is_made_cold),
        T(a_restart_has_them_again),
    };
#undef T

    suite = s;
    return cmocka_run_group_tests_name(s->ops->name, tests, NULL, NULL);
}
