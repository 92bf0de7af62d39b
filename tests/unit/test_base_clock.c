#include "base/clock.h"

#include "unit.h"

#include <errno.h>

static void times_are_written_and_read(void **state)
{
    char text[CLOCK_TEXT];
    int64_t ms;

    (void)state;
    assert_string_equal(clock_text(0, text), "1970-01-01T00:00:00.000Z");
    assert_string_equal(clock_text(-1, text), "1969-12-31T23:59:59.999Z");
    assert_string_equal(clock_text(1767323045678, text), "2026-01-02T03:04:05.678Z");
    assert_int_equal(clock_parse(STR("2026-01-02T03:04:05.678Z"), &ms), 0);
    assert_true(ms == 1767323045678);
    assert_int_equal(clock_parse(STR("2026-01-02T05:34:05.6789+02:30"), &ms), 0);
    assert_true(ms == 1767323045678);
    assert_int_equal(clock_parse(STR("2024-02-29T00:00:00Z"), &ms), 0);
}

static void bad_times_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "2026-01-02",
        "2026-13-02T03:04:05Z",
        "2025-02-29T00:00:00Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05Zx",
        "2026-01-02T03:04:05+25:00",
        "2026-1-02T03:04:05Z",
        "2026-00-10T03:04:05Z",
        "2026-01-00T03:04:05Z",
    };
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(clock_parse(str_of(bad[i]), &ms), -EINVAL);
}

static void a_test_may_set_the_clock(void **state)
{
    struct clock_fake f = {.wall_ms = 42, .mono_ns = 7000000};

    (void)state;
    clock_set_fake(&f);
    assert_int_equal(clock_wall_ms(), 42);
    assert_int_equal(clock_mono_ms(), 7);
    clock_set_fake(NULL);
    assert_true(clock_wall_ms() > 1700000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_written_and_read),
        cmocka_unit_test(bad_times_are_refused),
        cmocka_unit_test(a_test_may_set_the_clock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
