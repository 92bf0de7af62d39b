#include "base/loop.h"

#include "unit.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct pair {
    struct watch w;
    int other;
    int calls;
    uint32_t events;
    struct pair *removes; /* in its callback */
};

static void on(struct watch *w, uint32_t events)
{
    struct pair *p = CONTAINER_OF(w, struct pair, w);
    char byte;

    p->calls++;
    p->events = events;
    if (events & EPOLLIN)
        (void)!read(w->fd, &byte, 1);
    if (p->removes)
        loop_remove(&p->removes->w);
}

static void open_pair(struct pair *p)
{
    int ends[2];

    *p = (struct pair){0};
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    p->other = ends[1];
    loop_add(&p->w, ends[0], on);
}

static void close_pair(struct pair *p)
{
    loop_remove(&p->w);
    fd_close(p->other);
}

static void nothing_is_told_until_it_is_wanted(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p);
    assert_int_equal(write(p.other, "xy", 2), 2);
    loop_turn(0);
    assert_int_equal(p.calls, 0);
    assert_true(loop_was_idle());
    loop_want(&p.w, EPOLLIN);
    loop_turn(0);
    assert_int_equal(p.calls, 1);
    assert_false(loop_was_idle());
    loop_want(&p.w, 0);
    loop_turn(0);
    assert_int_equal(p.calls, 1);
    close_pair(&p);
}

static void one_removed_by_another_is_not_called(void **state)
{
    struct pair a, b;

    (void)state;
    open_pair(&a);
    open_pair(&b);
    a.removes = &b;
    b.removes = &a;
    loop_want(&a.w, EPOLLIN);
    loop_want(&b.w, EPOLLIN);
    assert_int_equal(write(a.other, "x", 1), 1);
    assert_int_equal(write(b.other, "x", 1), 1);
    loop_turn(0);
    assert_int_equal(a.calls + b.calls, 1); /* whoever came first */
    loop_turn(0);
    assert_int_equal(a.calls + b.calls, 1);
    close_pair(&a);
    close_pair(&b);
}

static void removing_twice_is_harmless(void **state)
{
    struct pair p;
    int fd;

    (void)state;
    open_pair(&p);
    fd = p.w.fd;
    loop_remove(&p.w);
    assert_int_equal(p.w.fd, -1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    loop_remove(&p.w);
    loop_want(&p.w, EPOLLIN);
    close_pair(&p);
}

static void what_cannot_be_watched_is_closed(void **state)
{
    struct watch w;
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(loop_try_add(&w, fd, on), -EPERM);
    assert_int_equal(w.fd, -1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_told_until_it_is_wanted),
        cmocka_unit_test(one_removed_by_another_is_not_called),
        cmocka_unit_test(removing_twice_is_harmless),
        cmocka_unit_test(what_cannot_be_watched_is_closed),
    };

    loop_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
