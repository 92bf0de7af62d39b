#include "proto/trace.h"

#include "unit.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

static void a_place_is_read_and_written(void **state)
{
    struct trace_place p = {0};
    char text[TRACE_TEXT];

    (void)state;
    assert_true(trace_parse(STR("00-" TRACE "-" SPAN "-01"), &p));
    assert_int_equal(p.trace[0], 0x4b);
    assert_int_equal(p.span[7], 0xb7);
    assert_true(p.sampled);
    assert_string_equal(trace_print(&p, text), "00-" TRACE "-" SPAN "-01");
    assert_true(trace_parse(STR("00-" TRACE "-" SPAN "-02"), &p));
    assert_false(p.sampled);
    assert_string_equal(trace_print(&p, text), "00-" TRACE "-" SPAN "-00");
}

/* A later version may have more after its flags. */
static void a_later_version_is_read(void **state)
{
    struct trace_place p;

    (void)state;
    assert_true(trace_parse(STR("cc-" TRACE "-" SPAN "-01-what-the-future-adds"), &p));
    assert_true(p.sampled);
}

static void others_are_no_place(void **state)
{
    static const char *const wrong[] = {
        "",
        "00",
        "00-" TRACE,
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-1",
        "00-" TRACE "-" SPAN "-01-",
        "00-" TRACE "-" SPAN "-01-more",
        "0-" TRACE "-" SPAN "-01",
        "ff-" TRACE "-" SPAN "-01",
        "0G-" TRACE "-" SPAN "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00_" TRACE "_" SPAN "_01",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct trace_place p;

        assert_false(trace_parse(str_of(wrong[i]), &p));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_place_is_read_and_written),
        cmocka_unit_test(a_later_version_is_read),
        cmocka_unit_test(others_are_no_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
