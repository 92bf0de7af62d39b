#include "init/order.h"

#include "unit.h"

/* Sends all, and writes it as "0:5 1:3 …": stream and end. */
static const char *sent_as(const struct order *o, uint64_t at0, uint64_t at1)
{
    static char text[256];
    uint64_t at[2] = {at0, at1}, end;
    size_t n = 0;
    int stream;

    text[0] = '\0';
    while ((stream = order_next(o, at[0], at[1], &end)) >= 0) {
        assert_true(end > at[stream]);
        at[stream] = end;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d:%d", n ? " " : "", stream, (int)end);
    }
    return text;
}

static void bytes_go_in_the_order_of_arrival(void **state)
{
    struct order o = {0};

    (void)state;
    assert_string_equal(sent_as(&o, 0, 0), "");
    order_add(&o, 0, 5);
    order_add(&o, 0, 9);
    order_add(&o, 1, 3);
    order_add(&o, 0, 10);
    assert_string_equal(sent_as(&o, 0, 0), "0:9 1:3 0:10");
    assert_string_equal(sent_as(&o, 7, 0), "0:9 1:3 0:10");
    assert_string_equal(sent_as(&o, 9, 3), "0:10");
    order_done(&o);
}

static void what_is_acknowledged_is_forgotten_and_the_rest_sent_again(void **state)
{
    struct order o = {0};

    (void)state;
    order_add(&o, 1, 4);
    order_add(&o, 0, 2);
    order_add(&o, 1, 6);
    order_drop(&o, 0, 3); /* a part: the run stays */
    assert_string_equal(sent_as(&o, 0, 3), "1:4 0:2 1:6");
    order_drop(&o, 0, 4);
    assert_int_equal(o.n, 2);
    assert_string_equal(sent_as(&o, 0, 4), "0:2 1:6");
    order_drop(&o, 2, 6);
    assert_int_equal(o.n, 0);
    order_add(&o, 0, 3);
    assert_string_equal(sent_as(&o, 2, 6), "0:3");
    order_done(&o);
}

static void streams_that_alternate_without_end_take_little_memory(void **state)
{
    struct order o = {0};
    uint64_t at[2] = {0, 0}, end;
    int stream;

    (void)state;
    for (uint64_t i = 1; i <= 10 * ORDER_MAX; i++) {
        order_add(&o, 0, i);
        order_add(&o, 1, i);
    }
    assert_int_equal(o.n, ORDER_MAX);
    while ((stream = order_next(&o, at[0], at[1], &end)) >= 0)
        at[stream] = end;
    assert_int_equal(at[0], 10 * ORDER_MAX);
    assert_int_equal(at[1], 10 * ORDER_MAX);
    order_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_in_the_order_of_arrival),
        cmocka_unit_test(what_is_acknowledged_is_forgotten_and_the_rest_sent_again),
        cmocka_unit_test(streams_that_alternate_without_end_take_little_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
