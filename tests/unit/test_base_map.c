#include "base/map.h"

#include "unit.h"

#include <stdio.h>

#define KEYS 5000

static struct str key_of(int i, char *text)
{
    int n = snprintf(text, 16, "key-%d", i);

    return str_make(text, (size_t)n);
}

static void a_map_holds_what_was_set(void **state)
{
    static int values[KEYS];
    AUTO(map_done) struct map m = {0};
    char text[16];

    (void)state;
    for (int i = 0; i < KEYS; i++)
        assert_null(map_set(&m, key_of(i, text), &values[i]));
    for (int i = 0; i < KEYS; i += 3)
        assert_ptr_equal(map_remove(&m, key_of(i, text)), &values[i]);
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(map_get(&m, key_of(i, text)), i % 3 == 0 ? NULL : &values[i]);
    assert_int_equal(m.count, KEYS - (KEYS + 2) / 3);
    assert_ptr_equal(map_set(&m, key_of(1, text), &values[2]), &values[1]);
    assert_ptr_equal(map_get(&m, key_of(1, text)), &values[2]);
}

static void churn_does_not_fill_it_with_tombstones(void **state)
{
    AUTO(map_done) struct map m = {0};
    char text[16];

    (void)state;
    for (int i = 0; i < 100000; i++) {
        assert_null(map_set(&m, key_of(i, text), &m));
        if (i >= 10)
            assert_ptr_equal(map_remove(&m, key_of(i - 10, text)), &m);
    }
    assert_int_equal(m.count, 10);
    assert_true(m.size <= 64);
}

static void a_walk_meets_each_once_and_may_remove(void **state)
{
    static int seen[KEYS];
    AUTO(map_done) struct map m = {0};
    char text[16];
    struct str key;
    size_t at = 0;
    void *value;

    (void)state;
    for (int i = 0; i < KEYS; i++)
        assert_null(map_set(&m, key_of(i, text), &seen[i]));
    while (map_next(&m, &at, &key, &value)) {
        ++*(int *)value;
        assert_ptr_equal(map_remove(&m, key), value);
    }
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(m.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_holds_what_was_set),
        cmocka_unit_test(churn_does_not_fill_it_with_tombstones),
        cmocka_unit_test(a_walk_meets_each_once_and_may_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
