/* The link to a helper program, with a toy that repeats numbers, keeps silent, dies. */
#include "link/helper.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/starter.h"
#include "toy_wire.h"
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char toy_dir[256]; /* where the program is */

struct world {
    uv_loop_t loop;
    char dir[64];
    struct helper *h;
    int ups, downs, ended;
    pid_t pid;       /* of the toy that said welcome last */
    uint32_t got[8]; /* replies and events, in order */
    size_t got_n;
    struct err err; /* of the last call that failed; of the last down */
    struct err down;
};

struct toy_call {
    struct helper_call h;
    struct world *w;
};

static void got(struct world *w, uint32_t n)
{
    if (w->got_n < ARRAY_LEN(w->got))
        w->got[w->got_n] = n;
    w->got_n++;
}

static void on_hello(void *arg, void *msg)
{
    (void)arg;
    ((struct toy_msg *)msg)->u.number = (struct toy_number){3, 0};
}

static void on_welcomed(void *arg, const void *msg)
{
    ((struct world *)arg)->pid = (pid_t)((const struct toy_msg *)msg)->u.number.n;
}

static void on_up(void *arg)
{
    ((struct world *)arg)->ups++;
}

static void on_event(void *arg, const void *msg, struct helper_fds *fds)
{
    (void)fds;
    got(arg, ((const struct toy_msg *)msg)->u.number.n + 1000);
}

static void on_down(void *arg, const struct err *e)
{
    struct world *w = arg;

    w->downs++;
    w->down = *e;
}

static void call_over(struct helper_call *c, const void *msg)
{
    struct world *w = CONTAINER_OF(c, struct toy_call, h)->w;
    const struct toy_msg *m = msg;

    w->ended++;
    if (m)
        got(w, m->u.number.n);
    else
        w->err = c->err;
}

static struct helper_call *ask(struct world *w, unsigned type, uint32_t n, unsigned flags,
                               int64_t ms)
{
    struct toy_call *c = helper_call_new(w->h, sizeof *c, flags);
    struct toy_msg m = {.type = type, .u.number = {0, n}};

    c->w = w;
    c->h.end = call_over;
    if (ms > 0)
        helper_call_deadline(&c->h, ms);
    helper_call_send(&c->h, &m);
    return &c->h;
}

static void run_until(struct world *w, const int *what, int is)
{
    int64_t until = clock_mono_ms() + 20000;

    while (*what < is && clock_mono_ms() < until)
        if (uv_run(&w->loop, UV_RUN_NOWAIT) >= 0 && *what < is)
            (void)usleep(1000);
    assert_true(*what >= is);
}

static void define(struct world *w, const char *version)
{
    static char name[] = "toy_helper";
    char path[96], v[8];
    char *argv[] = {name, path, v, NULL};
    struct err e;

    (void)snprintf(path, sizeof path, "%s/toy.sock", w->dir);
    (void)snprintf(v, sizeof v, "%s", version);
    assert_int_equal(helper_define(w->h, argv, &e), 0);
}

static void begin(struct world *w, int64_t lack_ms)
{
    static const struct helper_ops ops = {on_hello, on_welcomed, on_up, on_event, on_down};
    struct helper_config c = {.loop = &w->loop,
                              .protocol = &toy_protocol,
                              .state = w->dir,
                              .bindir = toy_dir,
                              .name = "toy",
                              .calls_max = 4,
                              .lack_ms = lack_ms,
                              .ops = &ops,
                              .arg = w};

    w->h = helper_new(&c);
}

static int set_up(void **state)
{
    struct world *w = xzalloc(sizeof *w);

    (void)snprintf(w->dir, sizeof w->dir, "/tmp/holt-helper-XXXXXX");
    *state = w;
    return uv_loop_init(&w->loop) < 0 || !mkdtemp(w->dir) ? -1 : 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    char path[96];

    helper_free(w->h);
    while (uv_run(&w->loop, UV_RUN_DEFAULT))
        ;
    assert_int_equal(uv_loop_close(&w->loop), 0);
    if (w->pid > 0)
        (void)kill(w->pid, SIGKILL);
    (void)snprintf(path, sizeof path, "%s/toy.sock", w->dir);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/toy.log", w->dir);
    (void)unlink(path);
    assert_int_equal(rmdir(w->dir), 0);
    mem_free(w);
    return 0;
}

/* ---- */

static void a_call_starts_it_and_is_answered(void **state)
{
    struct world *w = *state;

    begin(w, 0);
    define(w, "3");
    assert_false(helper_is_up(w->h));
    (void)ask(w, TOY_ASK, 7, 0, 0);
    (void)ask(w, TOY_TELL, 8, 0, 0); /* has no answer; the toy makes an event of it */
    (void)ask(w, TOY_ASK, 9, 0, 0);
    assert_int_equal(w->ended, 0); /* never from within a call */
    run_until(w, &w->ended, 3);
    while (w->got_n < 3)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    assert_true(helper_is_up(w->h) && w->ups == 1);
    assert_int_equal(w->got[0], 7);
    assert_int_equal(w->got[1], 1008);
    assert_int_equal(w->got[2], 9);
}

static void its_death_fails_what_is_asked_once(void **state)
{
    struct world *w = *state;
    pid_t first;

    begin(w, 0);
    define(w, "3");
    (void)ask(w, TOY_ASK, 1, 0, 0);
    run_until(w, &w->ended, 1);
    first = w->pid;
    (void)ask(w, TOY_ASK, TOY_SILENT, HELPER_ONCE, 0);
    (void)ask(w, TOY_ASK, TOY_DIE, HELPER_ONCE, 0);
    (void)ask(w, TOY_ASK, 5, 0, 0); /* sent again to the next one */
    run_until(w, &w->ended, 4);
    assert_int_equal(w->err.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(w->err.msg, "toy_helper closed its connection"));
    assert_int_equal(w->downs, 1);
    assert_int_equal(w->ups, 2);
    assert_true(w->pid != first);
    assert_int_equal(w->got_n, 2);
    assert_int_equal(w->got[1], 5);
}

static void a_deadline_ends_a_call_and_not_the_link(void **state)
{
    struct world *w = *state;

    begin(w, 0);
    define(w, "3");
    (void)ask(w, TOY_ASK, TOY_SILENT, 0, 300);
    (void)ask(w, TOY_ASK, 2, 0, 10000);
    run_until(w, &w->ended, 2);
    assert_int_equal(w->err.code, ERR_TIMEOUT);
    assert_string_equal(w->err.msg, "toy_helper did not answer in time");
    assert_int_equal(w->got[0], 2);
    assert_int_equal(w->downs, 0);
}

static void the_queue_has_a_bound(void **state)
{
    struct world *w = *state;

    begin(w, 0);
    define(w, "3");
    for (int i = 0; i < 4; i++)
        (void)ask(w, TOY_ASK, TOY_SILENT, 0, 0);
    (void)ask(w, TOY_ASK, 1, 0, 0);
    assert_int_equal(w->ended, 0);
    run_until(w, &w->ended, 1);
    assert_int_equal(w->err.code, ERR_LIMIT);
    assert_non_null(strstr(w->err.msg, "4 requests wait for toy_helper"));
    assert_int_equal(w->ended, 1);
}

static void another_version_is_refused(void **state)
{
    struct world *w = *state;
    struct err e = {0};

    begin(w, 300);
    define(w, "4");
    assert_int_equal(helper_start_now(w->h, &e), -1);
    assert_string_equal(e.msg, "toy_helper is of another release");
    (void)ask(w, TOY_ASK, 1, 0, 0);
    (void)ask(w, TOY_ASK, 2, HELPER_PATIENT, 0);
    run_until(w, &w->ended, 1);
    assert_string_equal(w->err.msg, "toy_helper is not running");
    assert_int_equal(w->ended, 1); /* the patient one waits */
    assert_int_equal(w->ups, 0);
}

static void what_ends_at_its_start_says_why(void **state)
{
    struct world *w = *state;
    struct err e = {0};

    begin(w, 0);
    define(w, "0");
    assert_int_equal(helper_start_now(w->h, &e), -1);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_string_equal(e.msg, "toy_helper ended at its start: the toy is broken");
}

static void one_that_is_there_is_not_started_again(void **state)
{
    struct world *w = *state;
    struct err e = {0};
    pid_t first;

    begin(w, 0);
    define(w, "3");
    assert_int_equal(helper_start_now(w->h, &e), 0);
    first = w->pid;
    w->h = helper_free(w->h);
    begin(w, 0);
    assert_int_equal(helper_start_now(w->h, &e), 0);
    assert_int_equal(w->pid, first);
    (void)ask(w, TOY_ASK, TOY_SILENT, 0, 0);
    w->h = helper_free(w->h);
    assert_int_equal(w->ended, 1);
    assert_int_equal(w->err.code, ERR_CANCELLED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_starts_it_and_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(its_death_fails_what_is_asked_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deadline_ends_a_call_and_not_the_link, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_queue_has_a_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_version_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_ends_at_its_start_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_there_is_not_started_again, set_up, tear_down),
    };

    if (argc < 2)
        return 77;
    (void)snprintf(toy_dir, sizeof toy_dir, "%.*s", (int)(strrchr(argv[1], '/') - argv[1]),
                   argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
