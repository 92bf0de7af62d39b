#include "egress/pollset.h"

#include "base/fd.h"
#include "base/mem.h"

#include "unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static uv_loop_t loop;

struct watched {
    struct polled io;
    int peer, calls;
    uint32_t last;
    struct watched **closes; /* from within its callback: that one, which is freed */
    struct watched *hushes;  /* that one wants nothing any more */
};

static void watched_free(struct watched *w)
{
    polled_close(&w->io);
    fd_close(w->peer);
    mem_free(w);
}

static void on_ready(struct polled *p, uint32_t events)
{
    struct watched *w = CONTAINER_OF(p, struct watched, io);

    w->calls++;
    w->last = events;
    if (w->closes && *w->closes)
        watched_free(TAKE(*w->closes));
    if (w->hushes)
        polled_want(&w->hushes->io, 0);
}

static struct watched *watched_new(void)
{
    struct watched *w = xzalloc(sizeof *w);
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    polled_init(&w->io, on_ready);
    polled_open(&w->io, ends[0]);
    w->peer = ends[1];
    return w;
}

static void turn(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static int setup(void **state)
{
    struct err e;

    (void)state;
    return uv_loop_init(&loop) < 0 || pollset_open(&loop, &e) < 0;
}

static void what_is_wanted_is_told(void **state)
{
    struct watched *w = watched_new();

    (void)state;
    turn();
    assert_int_equal(w->calls, 0);
    polled_want(&w->io, EPOLLIN);
    turn();
    assert_int_equal(w->calls, 0);
    assert_int_equal(write(w->peer, "x", 1), 1);
    turn();
    turn();
    assert_int_equal(w->calls, 2); /* until it is read */
    assert_int_equal(w->last, EPOLLIN);
    polled_want(&w->io, EPOLLOUT);
    turn();
    assert_int_equal(w->last, EPOLLOUT);
    polled_want(&w->io, 0);
    polled_want(&w->io, EPOLLIN | EPOLLOUT);
    turn();
    assert_int_equal(w->last, EPOLLIN | EPOLLOUT);
    watched_free(w);
    turn();
}

static void who_wants_nothing_hears_of_no_end(void **state)
{
    struct watched *w = watched_new();

    (void)state;
    polled_want(&w->io, EPOLLIN);
    turn();
    polled_want(&w->io, 0);
    fd_close(TAKE_FD(w->peer));
    turn();
    turn();
    assert_int_equal(w->calls, 0);
    polled_want(&w->io, EPOLLRDHUP);
    turn();
    assert_int_equal(w->last, EPOLLRDHUP);
    watched_free(w);
}

/* Both are ready in one turn: whoever comes first ends the other, or makes it want nothing. */
static void a_turn_is_not_about_who_is_gone(void **state)
{
    struct watched *a = watched_new(), *b = watched_new(), *was[2] = {a, b};

    (void)state;
    a->closes = &was[1];
    b->closes = &was[0];
    for (int i = 0; i < 2; i++) {
        polled_want(&was[i]->io, EPOLLIN);
        assert_int_equal(write(was[i]->peer, "x", 1), 1);
    }
    turn();
    assert_true(!was[0] != !was[1]);
    watched_free(was[0] ? was[0] : was[1]);
    a = watched_new();
    b = watched_new();
    a->hushes = b;
    b->hushes = a;
    assert_int_equal(write(a->peer, "x", 1), 1);
    assert_int_equal(write(b->peer, "x", 1), 1);
    polled_want(&a->io, EPOLLIN);
    polled_want(&b->io, EPOLLIN);
    turn();
    assert_int_equal(a->calls + b->calls, 1);
    watched_free(a);
    watched_free(b);
}

static void another_descriptor_is_watched_anew(void **state)
{
    struct watched *w = watched_new();
    int ends[2], old = w->io.fd;

    (void)state;
    polled_want(&w->io, EPOLLIN);
    turn();
    polled_close(&w->io);
    polled_close(&w->io);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(ends[0], old);
    polled_open(&w->io, ends[0]);
    polled_want(&w->io, EPOLLIN);
    assert_int_equal(write(ends[1], "x", 1), 1);
    turn();
    assert_int_equal(w->calls, 1);
    fd_close(ends[1]);
    watched_free(w);
}

static void what_cannot_be_watched_is_said(void **state)
{
    struct watched *w = watched_new();
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC); /* epoll_ctl(2): EPERM */

    (void)state;
    polled_close(&w->io);
    polled_open(&w->io, file);
    polled_want(&w->io, EPOLLIN);
    w->last = EPOLLIN;
    turn();
    assert_int_equal(w->calls, 1);
    assert_int_equal(w->last, 0);
    watched_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wanted_is_told),
        cmocka_unit_test(who_wants_nothing_hears_of_no_end),
        cmocka_unit_test(a_turn_is_not_about_who_is_gone),
        cmocka_unit_test(another_descriptor_is_watched_anew),
        cmocka_unit_test(what_cannot_be_watched_is_said),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
