#include "link/timers.h"

#include "base/clock.h"
#include "unit.h"

#include <unistd.h>

struct ground {
    uv_loop_t loop;
    struct timers *timers;
    uv_poll_t poll;
    int pipe[2];
    struct timer wait, other;
    int fired, heard;
};

static void on_answer(uv_poll_t *p, int status, int events)
{
    struct ground *g = p->data;

    (void)status, (void)events;
    g->heard++;
    timer_stop(&g->wait);
    (void)uv_poll_stop(p);
}

static void on_late(struct timer *t)
{
    CONTAINER_OF(t, struct ground, wait)->fired++;
}

static void on_other(struct timer *t)
{
    CONTAINER_OF(t, struct ground, other)->fired += 100;
}

static int set_up(void **state)
{
    static struct ground g;

    g = (struct ground){0};
    if (uv_loop_init(&g.loop) < 0 || pipe(g.pipe) < 0 ||
        uv_poll_init(&g.loop, &g.poll, g.pipe[0]) < 0)
        return -1;
    g.timers = timers_new(&g.loop);
    g.poll.data = &g;
    *state = &g;
    return uv_poll_start(&g.poll, UV_READABLE, on_answer);
}

static int tear_down(void **state)
{
    struct ground *g = *state;

    timers_free(g->timers);
    uv_close((uv_handle_t *)&g->poll, NULL);
    while (uv_run(&g->loop, UV_RUN_DEFAULT))
        ;
    (void)close(g->pipe[0]);
    (void)close(g->pipe[1]);
    return uv_loop_close(&g->loop);
}

/* As SIGSTOP and SIGCONT do: meanwhile nothing of ours runs. */
static void stand_still(struct ground *g, useconds_t us)
{
    (void)uv_run(&g->loop, UV_RUN_NOWAIT);
    (void)usleep(us);
}

static void an_answer_that_lay_unread_was_in_time(void **state)
{
    struct ground *g = *state;

    timer_set(g->timers, &g->wait, clock_mono_ms() + 50, on_late);
    timer_set(g->timers, &g->other, clock_mono_ms() + 60, on_other);
    stand_still(g, 700000);
    assert_int_equal(write(g->pipe[1], "x", 1), 1);
    while (g->fired == 0)
        (void)uv_run(&g->loop, UV_RUN_ONCE);
    assert_int_equal(g->heard, 1);
    assert_int_equal(g->fired, 100); /* what nobody answered is late, and called */
}

/* Also when it is found by another clock of the daemon than its own. */
static void a_tick_finds_it_too(void **state)
{
    struct ground *g = *state;

    timer_set(g->timers, &g->wait, clock_mono_ms() + 50, on_late);
    stand_still(g, 700000);
    timers_run(g->timers);
    assert_int_equal(g->fired, 0);
}

static void one_that_is_never_in_time_is_called(void **state)
{
    struct ground *g = *state;
    int turns = 0;

    timer_set(g->timers, &g->wait, clock_mono_ms() + 50, on_late);
    for (; g->fired == 0 && turns < 10; turns++)
        stand_still(g, 700000);
    assert_in_range(turns, 2, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_answer_that_lay_unread_was_in_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tick_finds_it_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_that_is_never_in_time_is_called, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
