#include "core/sandbox/ceiling.h"

#include "unit.h"

#include <string.h>

static const struct principal agent = {.role = ROLE_AGENT, .actor = "token/tk_a"},
                              inside = {.role = ROLE_AGENT, .actor = "sandbox/sb_1"},
                              person = {.role = ROLE_OPERATOR, .actor = "token/tk_p"};
static const struct ceilings some = {.agent_memory = 100,
                                     .agent_memory_max = 200,
                                     .agent_pids_max = 50,
                                     .agent_cpu = 900,
                                     .agent_cpu_max = 500,
                                     .agent_sandboxes = 2,
                                     .owner_sandboxes = 3};

static void absent_limits_are_filled_in(void **state)
{
    struct sandbox_limits l = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(ceiling_limits(&some, &agent, &l, &e), 0);
    assert_int_equal(l.memory_bytes, 100);
    assert_int_equal(l.pids, 50);        /* no preset: the most */
    assert_int_equal(l.cpu_millis, 500); /* a preset beyond it: the most */
    assert_int_equal(l.disk_bytes, 0);   /* neither: none */
    l = (struct sandbox_limits){.memory_bytes = 200};
    assert_int_equal(ceiling_limits(&some, &inside, &l, &e), 0);
    assert_int_equal(l.memory_bytes, 200);
    l = (struct sandbox_limits){.memory_bytes = 1000};
    assert_int_equal(ceiling_limits(&some, &person, &l, &e), 0);
    assert_int_equal(l.memory_bytes, 1000);
    assert_int_equal(l.pids, 0);
}

static void what_is_too_much_is_said_with_its_setting(void **state)
{
    struct sandbox_limits l = {.memory_bytes = 201};
    struct err e = {0};

    (void)state;
    assert_int_equal(ceiling_limits(&some, &agent, &l, &e), -1);
    assert_int_equal(e.code, ERR_FORBIDDEN);
    assert_non_null(strstr(e.msg, "limits.memory_bytes"));
    assert_non_null(strstr(e.hint, "'agent_memory_max'"));
    assert_int_equal(ceiling_memory(&some, &agent, "size_bytes", 201, &e), -1);
    assert_int_equal(ceiling_memory(&some, &person, "size_bytes", 201, &e), 0);
    assert_int_equal(ceiling_disk(&some, &agent, "mounts", 1LL << 50, &e), 0); /* no limit is set */
}

static void numbers_are_per_owner(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(ceiling_count(&some, &agent, CEILING_SANDBOXES, 1, &e), 0);
    assert_int_equal(ceiling_count(&some, &agent, CEILING_SANDBOXES, 2, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    assert_non_null(strstr(e.hint, "'agent_sandboxes'"));
    assert_int_equal(ceiling_count(&some, &person, CEILING_SANDBOXES, 2, &e), 0);
    assert_int_equal(ceiling_count(&some, &person, CEILING_SANDBOXES, 3, &e), -1);
    assert_non_null(strstr(e.hint, "'owner_sandboxes'"));
    assert_false(ceiling_counts(&some, &person, CEILING_COMMANDS));
    assert_int_equal(ceiling_count(&some, &person, CEILING_COMMANDS, 100000, &e), 0);
    assert_false(ceiling_counts(&some, &agent, CEILING_VOLUMES)); /* 0 is no limit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_limits_are_filled_in),
        cmocka_unit_test(what_is_too_much_is_said_with_its_setting),
        cmocka_unit_test(numbers_are_per_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
