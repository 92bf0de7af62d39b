#include "wire/flow.h"

#include "unit.h"

static void a_sender_keeps_within_its_limit(void **state)
{
    struct flow_out f;
    struct err e = {0};

    (void)state;
    flow_out_init(&f, 1000, 100);
    assert_int_equal(flow_room(&f), 100);
    flow_sent(&f, 100);
    assert_int_equal(flow_room(&f), 0);
    assert_int_equal(flow_on_ack(&f, &(struct guest_ack){1050, 1150}, &e), 0);
    assert_int_equal(flow_room(&f), 50);
    assert_int_equal(f.acked, 1050);
}

static void acks_that_lie_are_refused(void **state)
{
    struct flow_out f;
    struct err e = {0};

    (void)state;
    flow_out_init(&f, 0, 100);
    flow_sent(&f, 60);
    assert_int_equal(flow_on_ack(&f, &(struct guest_ack){61, 200}, &e), -1); /* never sent */
    assert_int_equal(flow_on_ack(&f, &(struct guest_ack){60, 99}, &e), -1);  /* takes back */
    assert_int_equal(flow_on_ack(&f, &(struct guest_ack){60, 160}, &e), 0);
    assert_int_equal(flow_on_ack(&f, &(struct guest_ack){59, 160}, &e), -1); /* goes back */
    assert_int_equal(flow_on_ack(&f, &(struct guest_ack){60, 160}, &e), 0);  /* a repetition */
}

static void repeated_bytes_are_trimmed_and_gaps_refused(void **state)
{
    struct flow_in f;
    struct err e = {0};
    struct str fresh;

    (void)state;
    flow_in_init(&f, 10, 100);
    assert_int_equal(flow_on_data(&f, &(struct guest_data){10, STR("abcd")}, &fresh, &e), 0);
    assert_true(str_eq_c(fresh, "abcd"));
    assert_int_equal(flow_on_data(&f, &(struct guest_data){12, STR("cdef")}, &fresh, &e), 0);
    assert_true(str_eq_c(fresh, "ef"));
    assert_int_equal(flow_on_data(&f, &(struct guest_data){0, STR("old")}, &fresh, &e), 0);
    assert_int_equal(fresh.n, 0);
    assert_int_equal(f.got, 16);
    assert_int_equal(flow_on_data(&f, &(struct guest_data){17, STR("x")}, &fresh, &e), -1);
    assert_non_null(strstr(e.msg, "gap"));
}

static void data_past_the_limit_is_refused(void **state)
{
    struct flow_in f;
    struct err e = {0};
    struct guest_ack a;
    struct str fresh;

    (void)state;
    flow_in_init(&f, 0, 8);
    assert_int_equal(flow_on_data(&f, &(struct guest_data){0, STR("12345678")}, &fresh, &e), 0);
    assert_int_equal(flow_on_data(&f, &(struct guest_data){8, STR("9")}, &fresh, &e), -1);
    assert_true(flow_ack(&f, 4, false, &a));
    assert_int_equal(a.limit, 12);
    assert_int_equal(flow_on_data(&f, &(struct guest_data){8, STR("9abc")}, &fresh, &e), 0);
}

static void small_acks_are_saved_up(void **state)
{
    struct flow_in f;
    struct err e = {0};
    struct guest_ack a;
    struct str fresh;

    (void)state;
    flow_in_init(&f, 0, 100);
    assert_int_equal(flow_on_data(&f, &(struct guest_data){0, STR("123456789")}, &fresh, &e), 0);
    assert_false(flow_ack(&f, 9, false, &a));
    assert_true(flow_ack(&f, 9, true, &a));
    assert_int_equal(a.acked, 9);
    assert_int_equal(a.limit, 109);
    assert_false(flow_ack(&f, 9, true, &a)); /* nothing new */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sender_keeps_within_its_limit),
        cmocka_unit_test(acks_that_lie_are_refused),
        cmocka_unit_test(repeated_bytes_are_trimmed_and_gaps_refused),
        cmocka_unit_test(data_past_the_limit_is_refused),
        cmocka_unit_test(small_acks_are_saved_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
