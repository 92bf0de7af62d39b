#include "base/id.h"

#include "base/clock.h"
#include "unit.h"

static void ids_sort_in_the_order_of_making(void **state)
{
    char last[ID_SIZE] = "", id[ID_SIZE];

    (void)state;
    for (int i = 0; i < 10000; i++) {
        id_make("sb", id);
        assert_true(strcmp(last, id) < 0);
        memcpy(last, id, sizeof last);
    }
}

static void only_ids_are_valid(void **state)
{
    char id[ID_SIZE];

    (void)state;
    id_make("tk", id);
    assert_true(id_is_valid("tk", str_of(id)));
    assert_false(id_is_valid("sb", str_of(id)));
    assert_false(id_is_valid("tk", str_make(id, strlen(id) - 1)));
    id[5] = 'u'; /* not in the alphabet */
    assert_false(id_is_valid("tk", str_of(id)));
    id[5] = '\0';
    assert_false(id_is_valid("tk", str_make(id, 23)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_sort_in_the_order_of_making),
        cmocka_unit_test(only_ids_are_valid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
