#include "base/sm.h"

#include "base/list.h"
#include "unit.h"

enum { IDLE, BUSY, GONE };

static const struct sm_state states[] = {
    [IDLE] = {"idle", SM_TO(BUSY) | SM_TO(GONE)},
    [BUSY] = {"busy", SM_TO(IDLE)},
    [GONE] = {"gone", 0},
};

static int moves, last_from;

static void moved(struct sm *m, int from)
{
    (void)m;
    moves++;
    last_from = from;
}

static void only_the_table_s_moves_are_made(void **state)
{
    struct sm m = {.table = states, .on_move = moved, .state = IDLE};

    (void)state;
    sm_move(&m, BUSY);
    assert_int_equal(last_from, IDLE);
    assert_false(sm_may(&m, GONE));
    assert_false(sm_try(&m, GONE));
    assert_string_equal(sm_name(&m), "busy");
    assert_true(sm_try(&m, IDLE));
    sm_move(&m, GONE);
    assert_false(sm_try(&m, IDLE));
    assert_int_equal(moves, 3);
}

static void a_state_is_found_by_its_name(void **state)
{
    int s = -1;

    (void)state;
    assert_true(sm_find(states, ARRAY_LEN(states), STR("gone"), &s));
    assert_int_equal(s, GONE);
    assert_false(sm_find(states, ARRAY_LEN(states), STR("gon"), &s));
    assert_false(sm_find(states, GONE, STR("gone"), &s));
    assert_false(sm_find(states, ARRAY_LEN(states), (struct str){0}, &s));
    assert_int_equal(s, GONE);
}

static void a_list_keeps_its_order(void **state)
{
    struct item {
        int n;
        struct list link;
    } items[5];
    struct list head;
    int expect = 0;

    (void)state;
    list_init(&head);
    assert_null(list_pop(&head));
    for (int i = 0; i < 5; i++) {
        items[i].n = i;
        list_push(&head, &items[i].link);
    }
    list_unlink(&items[2].link);
    list_unlink(&items[2].link);
    LIST_EACH (&head, at) {
        expect += expect == 2;
        assert_int_equal(LIST_ENTRY(at, struct item, link)->n, expect++);
        list_unlink(at);
    }
    assert_int_equal(expect, 5);
    assert_true(list_is_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_table_s_moves_are_made),
        cmocka_unit_test(a_state_is_found_by_its_name),
        cmocka_unit_test(a_list_keeps_its_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
