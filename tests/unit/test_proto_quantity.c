#include "proto/quantity.h"

#include "unit.h"

static void numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t scale, want;
    } rows[] = {
        {"0", 1, 0},
        {"2", 1, 2},
        {"2", 1000, 2000},
        {"500m", 1000, 500},
        {"0.5", 1000, 500},
        {"1500m", 1, 2}, /* up */
        {"100u", 1000, 1},
        {"1n", 1000, 1},
        {"512Mi", 1, 512LL << 20},
        {"0.5Gi", 1, 512LL << 20},
        {"10Ki", 1, 10240},
        {"3Ti", 1, 3LL << 40},
        {"5G", 1, 5000000000LL},
        {"7k", 1, 7000},
        {"1e3", 1, 1000},
        {"1E3", 1, 1000},
        {"1Pi", 1, 1LL << 50},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t n = -1;
        struct err e;

        if (quantity_parse(str_of(rows[i].text), rows[i].scale, &n, &e) < 0 || n != rows[i].want)
            fail_msg("'%s' is %lld", rows[i].text, (long long)n);
    }
}

static void what_is_none(void **state)
{
    static const char *const bad[] = {"",      "Mi",   "m",    "-1",   "5Q",   "5 Gi", "5gi",
                                      "1.2.3", "0x10", "inf",  "nan",  "2Pi",  "1E",   "1Ei",
                                      "1e30",  "Gi5",  " 5",   "5GiB", "m5",   "+",    "1e",
                                      "--1",   "1,5",  "\xff", "1e3m", "1e3Ki"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t n = -1;
        struct err e;

        if (quantity_parse(str_of(bad[i]), 1, &n, &e) == 0)
            fail_msg("'%s' is %lld", bad[i], (long long)n);
        assert_int_equal(n, -1);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(what_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
