#include "base/sorted.h"

#include "base/mem.h"
#include "unit.h"

#define MANY 1000

struct thing {
    int number;
    struct {
        char id[8];
    } in;
};

struct owner {
    struct thing **sorted;
    size_t count, size;
    struct thing things[MANY];
};
static struct owner o;

/* 7 and MANY have no common factor: every number once, in no order. */
static int setup(void **state)
{
    (void)state;
    o = (struct owner){0};
    for (int i = 0; i < MANY; i++) {
        struct thing *t = &o.things[i];

        t->number = i * 7 % MANY;
        (void)snprintf(t->in.id, sizeof t->in.id, "a%03d", t->number);
        sorted_add(SORTED(&o, in.id), t);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mem_free(o.sorted);
    return 0;
}

static void they_stand_in_the_order_of_their_ids(void **state)
{
    (void)state;
    assert_int_equal(o.count, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(o.sorted[i]->number, i);
}

static void one_is_found_by_its_whole_id(void **state)
{
    struct thing *t = sorted_find(SORTED(&o, in.id), STR("a042"));

    (void)state;
    assert_int_equal(t->number, 42);
    assert_null(sorted_find(SORTED(&o, in.id), STR("a04")));
    assert_null(sorted_find(SORTED(&o, in.id), STR("a0422")));
    assert_null(sorted_find(SORTED(&o, in.id), STR("")));
    assert_null(sorted_find(SORTED(&o, in.id), (struct str){0}));
}

static void a_page_goes_on_behind_an_id(void **state)
{
    (void)state;
    assert_int_equal(sorted_after(SORTED(&o, in.id), (struct str){0}), 0);
    assert_int_equal(sorted_after(SORTED(&o, in.id), STR("a041")), 42);
    assert_int_equal(sorted_after(SORTED(&o, in.id), STR("a04")), 40); /* is before a040 */
    assert_int_equal(sorted_after(SORTED(&o, in.id), STR("a0411")), 42);
    assert_int_equal(sorted_after(SORTED(&o, in.id), STR("a999")), MANY);
    assert_int_equal(sorted_after(SORTED(&o, in.id), STR("b")), MANY);
}

static void what_is_removed_is_gone_and_the_rest_stays(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        if (o.things[i].number % 2 == 0)
            sorted_remove(SORTED(&o, in.id), &o.things[i]);
    assert_int_equal(o.count, MANY / 2);
    for (size_t i = 0; i < o.count; i++)
        assert_int_equal(o.sorted[i]->number, 2 * i + 1);
    assert_null(sorted_find(SORTED(&o, in.id), STR("a042")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_stand_in_the_order_of_their_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(one_is_found_by_its_whole_id, setup, teardown),
        cmocka_unit_test_setup_teardown(a_page_goes_on_behind_an_id, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_removed_is_gone_and_the_rest_stays, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
