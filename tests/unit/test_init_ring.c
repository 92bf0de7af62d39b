#include "init/ring.h"

#include "unit.h"

static unsigned rnd(unsigned n)
{
    static unsigned seed = 7;

    seed = seed * 1103515245U + 12345U;
    return (seed >> 8) % n;
}

static char byte_at(uint64_t offset)
{
    return (char)(offset * 2654435761U >> 13);
}

static void add(struct ring *r, size_t n)
{
    char bytes[5000];
    char *to;

    if (rnd(2)) { /* as read(2) does */
        n = ring_room(r, n, &to);
        for (size_t i = 0; i < n; i++)
            to[i] = byte_at(r->end + i);
        ring_added(r, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_at(r->end + i);
    ring_add(r, bytes, n);
}

static void check(const struct ring *r)
{
    uint64_t at = r->from;

    while (at < r->end) {
        struct str piece = ring_piece(r, at);

        assert_true(piece.n > 0);
        for (size_t i = 0; i < piece.n; i++)
            assert_int_equal(piece.p[i], byte_at(at + i));
        at += piece.n;
    }
    assert_int_equal(at, r->end);
    assert_int_equal(ring_piece(r, r->end).n, 0);
}

static void bytes_stay_in_order(void **state)
{
    struct ring r = {0};

    (void)state;
    for (int i = 0; i < 2000; i++) {
        add(&r, 1 + rnd(5000));
        ring_drop(&r, r.from + rnd((unsigned)ring_len(&r) + 1));
        check(&r);
        if (i % 100 == 99) { /* also from an offset that is no multiple of any size */
            ring_drop(&r, r.end);
            ring_shrink(&r, 0);
            assert_int_equal(r.size, 0);
        }
    }
    ring_done(&r);
}

static void little_output_takes_little_memory(void **state)
{
    struct ring r = {0};

    (void)state;
    ring_add(&r, "hello\n", 6);
    assert_int_equal(r.size, 64);
    ring_shrink(&r, 0);
    assert_int_equal(r.size, 64); /* it is not empty */
    ring_done(&r);
    assert_int_equal(ring_len(&r), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_stay_in_order),
        cmocka_unit_test(little_output_takes_little_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
