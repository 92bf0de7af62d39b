#include "core/sandbox/sandbox.h"

#include "base/clock.h"
#include "box_fixture.h"

#include <signal.h>
#include <unistd.h>

static struct exec *start(struct fixture *f, struct sandbox *s, int64_t timeout_ms)
{
    exec_start(s, &(struct exec_spec){.shell = STR("x"), .timeout_ms = timeout_ms}, &tester,
               on_exec, f);
    await(f);
    return f->x;
}

static enum sandbox_state state_of(const struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    return i.state;
}

static struct exec_info info_of(const struct exec *x)
{
    struct exec_info i;

    exec_info(x, &i);
    return i;
}

struct count {
    const char *sql;
    int64_t n;
};

static int count_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct count *c = arg;
    struct store_rows *rows;

    if (tx_query(tx, c->sql, NO_PARAMS, &rows, e) < 0 || rows_step(rows, e) <= 0)
        return -1;
    c->n = rows_int(rows, 0);
    rows_end(rows);
    return 0;
}

static int64_t count(struct fixture *f, const char *sql)
{
    struct count c = {.sql = sql};
    struct err e = {0};

    settle(f);
    assert_int_equal(store_now(f->g.store, count_work, &c, &e), 0);
    return c.n;
}

static int64_t events(struct fixture *f, const char *type)
{
    AUTO(mem_free) char *sql = xasprintf("SELECT COUNT(*) FROM events WHERE type = '%s'", type);

    return count(f, sql);
}

static void inject(enum script_call c)
{
    err_set(&script.fail[c], ERR_INTERNAL, 0, "injected");
}

static struct clock_fake now;

static int setup(void **state)
{
    now = (struct clock_fake){0};
    return box_setup(state, "sandbox");
}

static int teardown(void **state)
{
    clock_set_fake(NULL);
    return box_teardown(state);
}

/* Time passes for the daemon's clocks, and it looks at them. */
static void pass(struct fixture *f, int64_t ms)
{
    if (now.wall_ms == 0)
        now = (struct clock_fake){clock_wall_ms(), clock_mono_ns()};
    now.wall_ms += ms;
    now.mono_ns += ms * 1000000;
    clock_set_fake(&now);
    sandboxes_tick(f->all);
    settle(f);
}

/* --- create --- */

static void create_commits_confirms_and_tells(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);

    assert_non_null(s);
    assert_int_equal(state_of(s), SANDBOX_RUNNING);
    assert_int_equal(script.calls[CALL_CONFIRM], 1);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM sandboxes WHERE state = 'running'"), 1);
    assert_int_equal(events(f, "sandbox.created"), 1);
    assert_int_equal(events(f, "sandbox.running"), 1);
}

static void a_run_is_confirmed_only_when_it_lasts(void **state)
{
    struct fixture *f = *state;

    sandbox_create(f->all, &(struct sandbox_spec){.traits.one_shot = true}, &tester, on_sandbox, f);
    await(f);
    assert_non_null(f->s);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM sandboxes WHERE state = 'running'"), 1);
    assert_int_equal(script.calls[CALL_CONFIRM], 0);
    pass(f, 200);
    assert_int_equal(script.calls[CALL_CONFIRM], 1);
    sandbox_destroy(f->s, &tester, on_sandbox, f);
    await(f);
    sandbox_create(f->all, &(struct sandbox_spec){.traits.one_shot = true}, &tester, on_sandbox, f);
    await(f);
    sandbox_destroy(f->s, &tester, on_sandbox, f);
    await(f);
    pass(f, 200);
    assert_int_equal(script.calls[CALL_CONFIRM], 1);
}

static void a_create_that_fails_leaves_nothing(void **state)
{
    struct fixture *f = *state;

    inject(CALL_CREATE);
    assert_null(create(f));
    assert_non_null(strstr(f->e.msg, "injected"));
    script.fail[CALL_CREATE] = (struct err){0};
    assert_int_equal(script.calls[CALL_REMOVE], 1);
    assert_int_equal(script.calls[CALL_CONFIRM], 0);
    assert_int_equal(sandboxes_count(f->all), 0);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM sandboxes"), 0);
    assert_int_equal(events(f, "sandbox.failed"), 1);
    assert_int_equal(events(f, "sandbox.destroyed"), 1);
}

static void an_init_that_never_answers_fails_the_create(void **state)
{
    struct fixture *f = *state;

    script.silent = true;
    sandbox_create(f->all, &(struct sandbox_spec){.name = STR("a")}, &tester, on_sandbox, f);
    settle(f);
    assert_false(f->called);
    pass(f, 31000);
    await(f);
    assert_int_equal(f->e.code, ERR_TIMEOUT);
    assert_int_equal(sandboxes_count(f->all), 0);
    assert_int_equal(script.calls[CALL_CONFIRM], 0);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM sandboxes"), 0);
    script.silent = false;
    sandbox_create(f->all, &(struct sandbox_spec){.name = STR("a")}, &tester, on_sandbox, f);
    await(f); /* the name is free again */
    assert_non_null(f->s);
}

static void destroy_while_it_is_made(void **state)
{
    struct fixture *f = *state;
    struct fixture other = {0};

    script.hold[CALL_CREATE] = true;
    sandbox_create(f->all, &(struct sandbox_spec){0}, &tester, on_sandbox, f);
    turn(f);
    sandbox_destroy(sandbox_next(f->all, &principal_system, STR("")), &tester, on_sandbox, &other);
    settle(f);
    assert_false(other.called);
    script_release(CALL_CREATE);
    await(f);
    assert_int_equal(f->e.code, ERR_CANCELLED);
    assert_true(other.called);
    assert_int_equal(other.e.code, ERR_NONE);
    assert_int_equal(sandboxes_count(f->all), 0);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM sandboxes"), 0);
}

static void there_is_a_bound(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 5; i++)
        assert_non_null(create(f));
    assert_null(create(f));
    assert_int_equal(f->e.code, ERR_LIMIT);
}

/* --- lives --- */

static void destroy_twice_and_a_remove_that_fails(void **state)
{
    struct fixture *f = *state;
    struct fixture other = {0};
    struct sandbox *s = create(f);

    inject(CALL_REMOVE);
    sandbox_destroy(s, &tester, on_sandbox, f);
    await(f);
    assert_int_equal(f->e.code, ERR_INTERNAL);
    assert_int_equal(sandboxes_count(f->all), 1);
    script.fail[CALL_REMOVE] = (struct err){0};
    sandbox_destroy(s, &tester, on_sandbox, f);
    sandbox_destroy(s, &tester, on_sandbox, &other);
    await(f);
    assert_int_equal(f->e.code, ERR_NONE);
    assert_true(other.called);
    assert_int_equal(events(f, "sandbox.destroyed"), 1);
    assert_int_equal(sandboxes_count(f->all), 0);
}

static void what_was_to_go_goes_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);

    script.hold[CALL_REMOVE] = true;
    sandbox_destroy(s, &tester, NULL, NULL);
    settle(f);
    close_all(f);
    script_reset();
    open_all(f);
    settle(f);
    assert_int_equal(script.calls[CALL_REMOVE], 1);
    assert_int_equal(sandboxes_count(f->all), 0);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM sandboxes"), 0);
}

static void pause_that_fails_leaves_it_running(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);

    inject(CALL_PAUSE);
    sandbox_pause(s, true, &tester, on_sandbox, f);
    await(f);
    assert_int_equal(f->e.code, ERR_INTERNAL);
    assert_int_equal(state_of(s), SANDBOX_RUNNING);
    script.fail[CALL_PAUSE] = (struct err){0};
    script.hold[CALL_PAUSE] = true;
    sandbox_pause(s, true, &tester, on_sandbox, f);
    turn(f);
    {
        struct fixture other = {0};

        sandbox_stop(s, 0, true, &tester, on_sandbox, &other); /* one step at a time */
        settle(f);
        assert_true(other.called);
        assert_int_equal(other.e.code, ERR_CONFLICT);
    }
    script_release(CALL_PAUSE);
    await(f);
    assert_int_equal(state_of(s), SANDBOX_PAUSED);
    assert_null(start(f, s, 0));
    assert_int_equal(f->e.code, ERR_CONFLICT);
}

static void destroy_waits_for_the_step_under_way(void **state)
{
    struct fixture *f = *state;
    struct fixture other = {0};
    struct sandbox *s = create(f);

    script.hold[CALL_PAUSE] = true;
    sandbox_pause(s, true, &tester, on_sandbox, &other);
    turn(f);
    sandbox_destroy(s, &tester, on_sandbox, f);
    settle(f);
    assert_int_equal(script.calls[CALL_REMOVE], 0);
    script_release(CALL_PAUSE);
    await(f);
    assert_int_equal(f->e.code, ERR_NONE);
    assert_true(other.called);
    assert_int_equal(script.calls[CALL_REMOVE], 1);
    assert_int_equal(sandboxes_count(f->all), 0);
}

struct paused_box {
    struct fixture *f;
    struct sandbox *s;
};

static void destroy_when_told(void *arg, struct sandbox *s, const struct err *e)
{
    const struct paused_box *p = arg;

    assert_null(s);
    assert_int_equal(e->code, ERR_CONFLICT);
    sandbox_destroy(p->s, &tester, on_sandbox, p->f);
}

/* The callback of the pause that this cuts off acts at once: what it begins is not lost. */
static void init_ends_during_a_pause(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);
    struct paused_box p = {f, s};
    struct sandbox_info i;

    script.hold[CALL_PAUSE] = true;
    sandbox_pause(s, true, &tester, destroy_when_told, &p);
    turn(f);
    sandbox_info(s, &i);
    script.events.init_ended(script.events.arg, i.id, SIGKILL, true);
    await(f);
    assert_int_equal(f->e.code, ERR_NONE);
    assert_int_equal(script.calls[CALL_KEEP], 1); /* first what was left of it, then its files */
    assert_int_equal(script.calls[CALL_REMOVE], 1);
    assert_int_equal(sandboxes_count(f->all), 0);
    script_release(CALL_PAUSE); /* too late, and nobody's */
    settle(f);
}

static void lifetimes_by_the_clock(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s;
    struct exec *x;

    sandbox_create(f->all, &(struct sandbox_spec){.traits.idle_ttl_ms = 60000}, &tester, on_sandbox,
                   f);
    await(f);
    s = f->s;
    pass(f, 50000);
    x = start(f, s, 0);
    assert_non_null(x);
    pass(f, 50000);
    pass(f, 50000);
    assert_int_equal(sandboxes_count(f->all), 1);
    script_exit(&script.execs[0], 0);
    settle(f);
    pass(f, 50000);
    assert_int_equal(sandboxes_count(f->all), 1);
    pass(f, 11000);
    assert_int_equal(sandboxes_count(f->all), 0);
}

/* --- after a restart --- */

static void found(const char *id, bool confirmed)
{
    struct driver_found *d = &script.found[script.found_count++];

    *d = (struct driver_found){.running = true, .confirmed = confirmed};
    (void)snprintf(d->id, sizeof d->id, "%s", id);
}

static void what_lives_is_adopted_and_what_nobody_knows_is_not(void **state)
{
    struct fixture *f = *state;
    char kept[ID_SIZE], dead[ID_SIZE], stray[ID_SIZE], lost[ID_SIZE];
    struct sandbox_info i;
    struct err e;

    sandbox_info(create(f), &i);
    (void)snprintf(kept, sizeof kept, "%s", i.id);
    sandbox_info(create(f), &i);
    (void)snprintf(dead, sizeof dead, "%s", i.id);
    close_all(f);
    script_reset();
    found(kept, true);
    found(id_make("sb", stray), false);
    found(id_make("sb", lost), true);
    open_all(f);
    assert_int_equal(script.calls[CALL_ADOPT], 1);
    assert_int_equal(script.calls[CALL_REMOVE], 1); /* the stray's */
    assert_int_equal(script.calls[CALL_KEEP], 2);   /* the dead one's rest, the orphan */
    assert_int_equal(sandboxes_count(f->all), 3);
    assert_int_equal(state_of(sandbox_find(f->all, &principal_system, str_of(kept), &e)),
                     SANDBOX_RUNNING);
    assert_int_equal(state_of(sandbox_find(f->all, &principal_system, str_of(dead), &e)),
                     SANDBOX_FAILED);
    sandbox_info(sandbox_find(f->all, &principal_system, str_of(lost), &e), &i);
    assert_true(i.orphan);
    assert_null(sandbox_find(f->all, &principal_system, str_of(stray), &e));
    assert_non_null(start(f, sandbox_find(f->all, &principal_system, str_of(kept), &e), 0));
}

static void a_runtime_that_cannot_list_is_asked_again(void **state)
{
    struct fixture *f = *state;

    (void)create(f);
    close_all(f);
    script_reset();
    inject(CALL_LIST);
    open_all(f);
    assert_false(sandboxes_settled(f->all));
    assert_int_equal(state_of(sandbox_next(f->all, &principal_system, STR(""))), SANDBOX_RUNNING);
    script.fail[CALL_LIST] = (struct err){0};
    pass(f, 1500);
    assert_true(sandboxes_settled(f->all));
    assert_int_equal(state_of(sandbox_next(f->all, &principal_system, STR(""))), SANDBOX_FAILED);
}

/* A client may come before the runtime has said what lives. */
static void requests_come_before_the_list(void **state)
{
    struct fixture *f = *state, other = {0};
    struct sandbox *s;

    (void)create(f);
    close_all(f);
    script_reset();
    inject(CALL_LIST);
    open_all(f);
    s = sandbox_next(f->all, &principal_system, STR(""));
    sandbox_stop(s, 0, true, &tester, on_sandbox, f);
    await(f);
    assert_int_equal(f->e.code, ERR_UNAVAILABLE);
    assert_int_equal(state_of(s), SANDBOX_RUNNING);
    script.fail[CALL_LIST] = (struct err){0};
    script.hold[CALL_REMOVE] = true;
    sandbox_destroy(s, &tester, on_sandbox, &other);
    pass(f, 1500); /* the list comes while it is being destroyed */
    assert_true(sandboxes_settled(f->all));
    script_release(CALL_REMOVE);
    settle(f);
    assert_true(other.called);
    assert_int_equal(other.e.code, ERR_NONE);
    assert_int_equal(sandboxes_count(f->all), 0);
}

/* --- commands --- */

static void a_kill_that_is_not_reported_is_the_runtimes_turn(void **state)
{
    struct fixture *f = *state;
    struct exec *x = start(f, create(f), 1000);

    script.deaf = true;
    pass(f, 900);
    assert_int_equal(script.execs[0].killed, 0);
    pass(f, 200);
    assert_int_equal(script.execs[0].killed, SIGKILL);
    assert_int_equal(script.calls[CALL_KILL_WORK], 0);
    pass(f, 2100);
    assert_int_equal(script.calls[CALL_KILL_WORK], 1);
    assert_int_equal(script.calls[CALL_KILL_ALL], 0);
    pass(f, 2100);
    assert_int_equal(script.calls[CALL_KILL_ALL], 1);
    pass(f, 2100);
    assert_int_equal(info_of(x).state, EXEC_LOST);
    assert_true(info_of(x).timed_out);
}

static void a_lost_connection_is_made_again(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);
    struct exec *x = start(f, s, 0);
    struct exec_info i;

    script_output(&script.execs[0], STR("before "));
    settle(f);
    script_drop();
    settle(f);
    pass(f, 3000);
    assert_int_equal(script.calls[CALL_CONNECT], 2);
    script_output(&script.execs[0], STR("after"));
    script_exit(&script.execs[0], 5);
    settle(f);
    i = info_of(x);
    assert_int_equal(i.state, EXEC_EXITED);
    assert_int_equal(i.exit_code, 5);
    assert_int_equal(i.out_end, 12);
    assert_true(script.execs[0].forgotten);
    assert_int_equal(events(f, "exec.exited"), 1);
}

static void another_epoch_is_another_init(void **state)
{
    struct fixture *f = *state;
    struct exec *x = start(f, create(f), 0);

    script_drop();
    script.epoch[0] = 1;
    settle(f);
    pass(f, 3000);
    assert_int_equal(info_of(x).state, EXEC_LOST);
    assert_int_equal(info_of(x).exit_code, -1);
    assert_true(script.execs[0].forgotten); /* what it claims to know is ended there */
    assert_int_equal(events(f, "exec.lost"), 1);
}

static void output_is_acknowledged_when_it_is_written(void **state)
{
    struct fixture *f = *state;
    struct exec *x = start(f, create(f), 0);
    AUTO(mem_free)
    char *path = xasprintf("%s/execs/%s/%s.log", f->g.dir, info_of(x).sandbox, info_of(x).id);

    pass(f, 0); /* the clock stands */
    script_output(&script.execs[0], STR("small"));
    settle(f);
    assert_int_equal(info_of(x).out_end, 5);
    assert_int_equal(script.execs[0].acked, 0);
    assert_int_equal(access(path, F_OK), -1);
    pass(f, 300);
    assert_int_equal(access(path, F_OK), 0);
    {
        AUTO(mem_free) char *more = xzalloc(200000);

        script_output(&script.execs[0], str_make(more, 200000));
        settle(f);
        assert_true(script.execs[0].acked > 0); /* not each of them is told */
    }
    script_exit(&script.execs[0], 0);
    settle(f);
    assert_int_equal(access(path, F_OK), 0); /* too large for the row */
    assert_int_equal(count(f, "SELECT COUNT(*) FROM execs WHERE output IS NULL"), 1);
}

static void the_oldest_commands_go(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);

    for (size_t i = 0; i < 6; i++) {
        assert_non_null(start(f, s, 0));
        script_exit(&script.execs[i], 0);
        settle(f);
    }
    assert_int_equal(count(f, "SELECT COUNT(*) FROM execs"), 4);
    assert_non_null(start(f, s, 0));
    assert_non_null(start(f, s, 0));
}

static void a_command_nobody_knows_is_ended(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);

    (void)snprintf(script.execs[0].id, sizeof script.execs[0].id, "ex_unknown");
    script.exec_count = 1;
    script_drop();
    settle(f);
    pass(f, 3000);
    assert_int_equal(script.execs[0].killed, SIGKILL);
    assert_true(script.execs[0].forgotten);
    assert_int_equal(state_of(s), SANDBOX_RUNNING);
}

static void a_start_waits_for_the_connection(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);

    inject(CALL_CONNECT);
    script_drop();
    settle(f);
    exec_start(s, &(struct exec_spec){.shell = STR("x")}, &tester, on_exec, f);
    pass(f, 3000);
    assert_false(f->called);
    script.fail[CALL_CONNECT] = (struct err){0};
    pass(f, 3000);
    await(f);
    assert_non_null(f->x);
    assert_int_equal(info_of(f->x).state, EXEC_RUNNING);
    inject(CALL_CONNECT);
    script_drop();
    settle(f);
    exec_start(s, &(struct exec_spec){.shell = STR("x")}, &tester, on_exec, f);
    pass(f, 11000);
    await(f);
    assert_int_equal(info_of(f->x).state, EXEC_FAILED);
}

static void init_ends_and_its_commands_are_lost(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);
    struct exec *x = start(f, s, 0);
    struct sandbox_info i;

    sandbox_info(s, &i);
    script.events.oom(script.events.arg, i.id);
    script.events.init_ended(script.events.arg, i.id, SIGKILL, true);
    settle(f);
    assert_int_equal(info_of(x).state, EXEC_LOST);
    sandbox_info(s, &i);
    assert_int_equal(i.state, SANDBOX_FAILED);
    assert_non_null(strstr(i.failure.p, "signal 9"));
    assert_int_equal(events(f, "sandbox.oom"), 1);
    sandbox_start(s, &tester, on_sandbox, f); /* its files are there */
    await(f);
    assert_int_equal(state_of(s), SANDBOX_RUNNING);
    assert_int_equal(events(f, "sandbox.started"), 1);
}

/* --- a store that fails --- */

static int sql_work(struct store_tx *tx, void *arg, struct err *e)
{
    return tx_run(tx, arg, NO_PARAMS, e) < 0 ? -1 : 0;
}

static void sql(struct fixture *f, const char *text)
{
    struct err e = {0};

    assert_int_equal(store_now(f->g.store, sql_work, (void *)(uintptr_t)text, &e), 0);
}

static void a_create_that_cannot_be_written_leaves_nothing(void **state)
{
    struct fixture *f = *state;

    sql(f, "ALTER TABLE sandboxes RENAME TO away");
    assert_null(create(f));
    assert_int_equal(script.calls[CALL_REMOVE], 1);
    assert_int_equal(script.calls[CALL_CONFIRM], 0);
    assert_int_equal(sandboxes_count(f->all), 0);
    sql(f, "ALTER TABLE away RENAME TO sandboxes");
    assert_non_null(create(f));
}

static void an_end_is_told_when_it_is_written(void **state)
{
    struct fixture *f = *state;
    struct exec *x = start(f, create(f), 0);

    (void)exec_wait(x, on_exec, f);
    sql(f, "ALTER TABLE execs RENAME TO away");
    script_exit(&script.execs[0], 3);
    settle(f);
    assert_int_equal(info_of(x).state, EXEC_EXITED);
    assert_false(f->called);
    assert_false(script.execs[0].forgotten); /* init still has it */
    sql(f, "ALTER TABLE away RENAME TO execs");
    pass(f, 1000);
    await(f);
    assert_ptr_equal(f->x, x);
    assert_true(script.execs[0].forgotten);
    assert_int_equal(events(f, "exec.exited"), 1);
}

/* Input that init acknowledges after it has told of the end, while that is being written. */
static void a_late_acknowledgement_of_input_is_harmless(void **state)
{
    struct fixture *f = *state;
    size_t size = GUEST_WINDOW_DOWN + 10; /* what does not fit waits for room */
    AUTO(mem_free) char *input = xzalloc(size);
    struct exec *x;

    exec_start(create(f), &(struct exec_spec){.shell = STR("x"), .want_stdin = true}, &tester,
               on_exec, f);
    await(f);
    x = f->x;
    assert_int_equal(exec_stdin(x, str_make(input, size), false, NULL, NULL), size);
    settle(f);
    sql(f, "ALTER TABLE execs RENAME TO away"); /* the channel stays until the end is written */
    script_exit(&script.execs[0], 0);
    settle(f);
    script_took(&script.execs[0], 4);
    settle(f);
    assert_int_equal(info_of(x).state, EXEC_EXITED);
    assert_int_equal(exec_stdin(x, STR("more"), true, NULL, NULL), 4);
    sql(f, "ALTER TABLE away RENAME TO execs");
    pass(f, 1000);
    assert_true(script.execs[0].forgotten);
    assert_int_equal(state_of(sandbox_next(f->all, &principal_system, STR(""))), SANDBOX_RUNNING);
}

/* What a create or a command wants written with the row. */
struct also {
    char object[ID_SIZE + 16];
    int freed;
};

static void also_ready(void *arg, const void *sandbox)
{
    struct also *a = arg;
    struct sandbox_info i;

    sandbox_info(sandbox, &i);
    (void)snprintf(a->object, sizeof a->object, "sandbox/%s", i.id);
}

static void exec_also_ready(void *arg, const void *exec)
{
    struct also *a = arg;
    struct exec_info i;

    exec_info(exec, &i);
    (void)snprintf(a->object, sizeof a->object, "exec/%s", i.id);
}

static int also_write(struct store_tx *tx, void *arg, struct err *e)
{
    const struct also *a = arg;

    return tx_run(tx,
                  "INSERT INTO idempotency (principal, key, op, request_hash, status, object, "
                  "created_ms) VALUES ('a', :object, 'c', :hash, 201, :object, 1)",
                  PARAMS(P_C("object", a->object), P_BLOB("hash", STR("h"))), e) < 0
               ? -1
               : 0;
}

static void also_free(void *arg)
{
    ((struct also *)arg)->freed++;
}

static const struct tx_hook sandbox_also = {also_ready, also_write, also_free},
                            exec_also = {exec_also_ready, also_write, also_free};
static const char keys[] = "SELECT COUNT(*) FROM idempotency";

static void a_command_under_a_key_waits_for_its_row(void **state)
{
    struct fixture *f = *state;
    struct fixture other = {0};
    struct sandbox *s = create(f);
    struct also a[2] = {0};
    struct exec_spec spec = {.shell = STR("x"), .tx_hook = &exec_also, .tx_hook_arg = &a[0]};
    struct exec_spec again = {.shell = STR("x")};

    sql(f, "ALTER TABLE execs RENAME TO away");
    exec_start(s, &spec, &tester, on_exec, f);
    await(f);
    assert_int_not_equal(f->e.code, ERR_NONE);
    assert_int_equal(script.exec_count, 0); /* what no row knows init was not told */
    sql(f, "ALTER TABLE away RENAME TO execs");
    assert_int_equal(count(f, keys), 0);
    assert_int_equal(a[0].freed, 1);
    spec.tx_hook_arg = &a[1];
    exec_start(s, &spec, &tester, on_exec, f);
    again.again = str_skip(str_of(a[1].object), strlen("exec/"));
    exec_start(s, &again, &tester, on_exec, &other); /* asked again before it runs */
    await(f);
    assert_int_equal(f->e.code, ERR_NONE);
    assert_int_equal(count(f, keys), 1);
    assert_int_equal(a[1].freed, 1);
    assert_true(other.called);
    assert_int_equal(other.e.code, ERR_UNAVAILABLE);
    exec_start(s, &again, &tester, on_exec, f);
    await(f);
    assert_non_null(f->x);
    assert_int_equal(script.exec_count, 1);
    again.again = STR("ex_that_is_no_longer_kept");
    exec_start(s, &again, &tester, on_exec, f);
    await(f);
    assert_int_equal(f->e.code, ERR_CONFLICT);
    assert_int_equal(script.exec_count, 1);
}

/* Its row was committed and holtd died before init was told, or after: then init knows it. */
static void a_command_that_never_began_is_not_there(void **state)
{
    struct fixture *f = *state;
    struct sandbox *s = create(f);
    struct also a[2] = {0};
    struct exec_spec spec = {.shell = STR("x"), .tx_hook = &exec_also};
    char id[ID_SIZE];
    struct err e;

    for (size_t i = 0; i < 2; i++) {
        spec.tx_hook_arg = &a[i];
        exec_start(s, &spec, &tester, on_exec, f);
        await(f);
        assert_non_null(f->x);
    }
    (void)snprintf(id, sizeof id, "%s", info_of(f->x).sandbox);
    assert_int_equal(count(f, keys), 2);
    pass(f, 0);
    script_output(&script.execs[1], STR("it ran"));
    settle(f);
    pass(f, 300);
    close_all(f);
    script_reset();
    found(id, true);
    open_all(f);
    s = sandbox_find(f->all, &principal_system, str_of(id), &e);
    assert_int_equal(count(f, "SELECT COUNT(*) FROM execs"), 1);
    assert_int_equal(count(f, keys), 1); /* the key of the one that never ran is free */
    assert_int_equal(events(f, "exec.removed"), 1);
    assert_int_equal(info_of(exec_next(s, STR(""))).state, EXEC_LOST);
}

static void a_key_is_there_when_the_row_is(void **state)
{
    struct fixture *f = *state;
    struct also a[3] = {0};
    struct sandbox_spec spec = {.name = STR("a"), .tx_hook = &sandbox_also, .tx_hook_arg = &a[0]};

    sandbox_create(f->all, &spec, &tester, on_sandbox, f);
    await(f);
    assert_non_null(f->s);
    assert_int_equal(count(f, keys), 1);
    assert_int_equal(a[0].freed, 1);
    spec.tx_hook_arg = &a[1]; /* the name is taken: nothing is made */
    sandbox_create(f->all, &spec, &tester, on_sandbox, f);
    await(f);
    assert_int_equal(f->e.code, ERR_CONFLICT);
    assert_int_equal(a[1].freed, 1);
    script.silent = true; /* the row is written, and then it comes to nothing */
    spec.name = STR("b");
    spec.tx_hook_arg = &a[2];
    sandbox_create(f->all, &spec, &tester, on_sandbox, f);
    settle(f);
    assert_int_equal(count(f, keys), 2);
    pass(f, 31000);
    await(f);
    assert_int_equal(f->e.code, ERR_TIMEOUT);
    assert_int_equal(count(f, keys), 1);
    assert_int_equal(a[2].freed, 1);
}

#define MANY 1000

static int many_work(struct store_tx *tx, void *arg, struct err *e)
{
    char sb[ID_SIZE], ex[ID_SIZE];

    (void)arg;
    for (int i = 0; i < MANY; i++)
        if (tx_run(
                tx,
                "INSERT INTO sandboxes SELECT :id, 'n' || :i, 'stopped', goal, runtime, image, "
                "tenant, owner, failure, enforced, orphan, created_ms, started_ms, ended_ms, "
                "ttl_ms, idle_ttl_ms, last_activity_ms, spec, host FROM sandboxes WHERE name = ''",
                PARAMS(P_C("id", id_make("sb", sb)), P_INT("i", i)), e) < 0 ||
            tx_run(tx,
                   "INSERT INTO execs SELECT :id, :sb, state, failure, flags, "
                   "exit_code, signal, pid, created_us, started_ms, ended_us, duration_ms, "
                   "timeout_ms, user_us, system_us, max_rss_kib, output_bytes, out_from, out_end, "
                   "err_from, err_end, spec, output FROM execs LIMIT 1",
                   PARAMS(P_C("id", id_make("ex", ex)), P_C("sb", sb)), e) < 0)
            return -1;
    return 0;
}

static void moments_grow_when_the_clock_is_set_back(void **state)
{
    struct fixture *f = *state;
    struct exec *x = start(f, create(f), 0);
    int64_t created, ended;

    script_exit(&script.execs[0], 0);
    settle(f);
    created = info_of(x).created_us;
    ended = info_of(x).ended_us;
    assert_true(created > 0 && ended > created);
    close_all(f);
    now = (struct clock_fake){clock_wall_ms() - 3600 * 1000, clock_mono_ns()};
    clock_set_fake(&now);
    open_all(f);
    settle(f);
    x = start(f, create(f), 0);
    assert_true(info_of(x).created_us > ended);
}

static void a_thousand_are_read_in_a_moment(void **state)
{
    struct fixture *f = *state;
    struct exec *x = start(f, create(f), 0);
    struct err e = {0};
    int64_t from;

    script_exit(&script.execs[0], 0);
    settle(f);
    assert_int_equal(info_of(x).state, EXEC_EXITED);
    assert_int_equal(store_now(f->g.store, many_work, NULL, &e), 0);
    close_all(f);
    from = clock_mono_ms();
    open_all(f);
    assert_true(clock_mono_ms() - from < 20000);
    assert_int_equal(sandboxes_count(f->all), MANY + 1);
    assert_non_null(exec_next(sandbox_find(f->all, &principal_system, STR("n77"), &e), STR("")));
}

static void create_as(struct fixture *f, struct str name, const struct alias_name *aliases,
                      size_t count)
{
    const struct sandbox_spec spec = {.name = name, .aliases = aliases, .alias_count = count};

    sandbox_create(f->all, &spec, &tester, on_sandbox, f);
    await(f);
}

static void aliases_lead_to_one_sandbox_across_a_restart(void **state)
{
    static const struct alias_name first[] = {{STR("sbx"), STR("SBX-1")},
                                              {STR("agentbox"), STR("0af9-uuid")}};
    static const struct alias_name same_text = {STR("fluid"), STR("SBX-1")};
    static const struct alias_name a_name = {STR("vm"), STR("two")};
    struct fixture *f = *state;
    char a[ID_SIZE], b[ID_SIZE];
    struct sandbox_info i;
    struct err e = {0};

    create_as(f, STR(""), first, ARRAY_LEN(first));
    assert_int_equal(f->e.code, ERR_NONE);
    sandbox_info(f->s, &i);
    (void)snprintf(a, sizeof a, "%s", i.id);
    create_as(f, STR("two"), &same_text, 1);
    assert_int_equal(f->e.code, ERR_NONE);
    sandbox_info(f->s, &i);
    (void)snprintf(b, sizeof b, "%s", i.id);
    create_as(f, STR(""), first, 1);
    assert_int_equal(f->e.code, ERR_CONFLICT);
    create_as(f, STR(""), &a_name, 1);
    assert_int_equal(f->e.code, ERR_CONFLICT); /* the name of the other */

    close_all(f);
    open_all(f);
    sandbox_info(sandbox_find(f->all, &principal_system, STR("0af9-uuid"), &e), &i);
    assert_string_equal(i.id, a);
    assert_non_null(i.aliases->next);
    assert_null(sandbox_find(f->all, &principal_system, STR("SBX-1"), &e));
    assert_int_equal(e.code, ERR_CONFLICT);
    sandbox_info(sandbox_find_as(f->all, &principal_system, STR("sbx"), STR("SBX-1"), &e), &i);
    assert_string_equal(i.id, a);
    sandbox_info(sandbox_find_as(f->all, &principal_system, STR("fluid"), STR("SBX-1"), &e), &i);
    assert_string_equal(i.id, b);
    sandbox_destroy(sandbox_find(f->all, &principal_system, str_of(a), &e), &tester, on_sandbox, f);
    await(f);
    assert_null(sandbox_find(f->all, &principal_system, STR("0af9-uuid"), &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    sandbox_info(sandbox_find(f->all, &principal_system, STR("SBX-1"), &e),
                 &i); /* one of the two is left */
    assert_string_equal(i.id, b);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(create_commits_confirms_and_tells),
        TEST(a_run_is_confirmed_only_when_it_lasts),
        TEST(a_create_that_fails_leaves_nothing),
        TEST(an_init_that_never_answers_fails_the_create),
        TEST(destroy_while_it_is_made),
        TEST(there_is_a_bound),
        TEST(destroy_twice_and_a_remove_that_fails),
        TEST(what_was_to_go_goes_after_a_restart),
        TEST(pause_that_fails_leaves_it_running),
        TEST(init_ends_during_a_pause),
        TEST(destroy_waits_for_the_step_under_way),
        TEST(lifetimes_by_the_clock),
        TEST(what_lives_is_adopted_and_what_nobody_knows_is_not),
        TEST(a_runtime_that_cannot_list_is_asked_again),
        TEST(requests_come_before_the_list),
        TEST(a_kill_that_is_not_reported_is_the_runtimes_turn),
        TEST(a_lost_connection_is_made_again),
        TEST(another_epoch_is_another_init),
        TEST(output_is_acknowledged_when_it_is_written),
        TEST(the_oldest_commands_go),
        TEST(a_command_nobody_knows_is_ended),
        TEST(a_start_waits_for_the_connection),
        TEST(init_ends_and_its_commands_are_lost),
        TEST(a_create_that_cannot_be_written_leaves_nothing),
        TEST(an_end_is_told_when_it_is_written),
        TEST(a_late_acknowledgement_of_input_is_harmless),
        TEST(a_command_under_a_key_waits_for_its_row),
        TEST(a_command_that_never_began_is_not_there),
        TEST(a_key_is_there_when_the_row_is),
        TEST(aliases_lead_to_one_sandbox_across_a_restart),
        TEST(moments_grow_when_the_clock_is_set_back),
        TEST(a_thousand_are_read_in_a_moment),
    };

    (void)signal(SIGPIPE, SIG_IGN); /* as holtd does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
