#include "conf/dialects/agentbox/runtime.h"

#include "unit.h"

static const char *installed;

static bool has_program(const char *name)
{
    return installed && strcmp(name, installed) == 0;
}

static int choose(const char *asked, const char *program, struct agentbox_runtime *ret)
{
    const struct agentbox_host h = {.usual = "native", .has_program = has_program};
    struct err e = {0};
    int r;

    installed = program;
    r = agentbox_runtime_choose(asked, &h, ret, &e);
    if (r < 0)
        assert_true(e.code == ERR_UNSUPPORTED && e.msg[0]);
    return r;
}

static void unset_is_gvisor_where_there_is_one(void **state)
{
    struct agentbox_runtime r;

    (void)state;
    assert_int_equal(choose("auto", "runsc", &r), 0);
    assert_string_equal(r.runtime, "runsc");
    assert_string_equal(r.weaker, "native"); /* should it not work */
    assert_int_equal(choose("auto", NULL, &r), 0);
    assert_string_equal(r.runtime, "native");
    assert_null(r.program);
    assert_null(r.weaker);
    assert_int_equal(choose("auto", "runc", &r), 0);
    assert_string_equal(r.runtime, "native"); /* it isolates no better */
}

static void what_is_named_works_or_is_an_error(void **state)
{
    struct agentbox_runtime r;

    (void)state;
    assert_int_equal(choose("runsc", "runsc", &r), 0);
    assert_string_equal(r.program, "runsc");
    assert_null(r.weaker); /* what is named is never replaced by less */
    assert_int_equal(choose("runc", "runc", &r), 0);
    assert_string_equal(r.runtime, "runc");
    assert_string_equal(r.program, "runc");
    assert_int_equal(choose("native", NULL, &r), 0);
    assert_string_equal(r.runtime, "native");
    assert_int_equal(choose("runsc", "runc", &r), -1);
    assert_int_equal(choose("runc", NULL, &r), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unset_is_gvisor_where_there_is_one),
        cmocka_unit_test(what_is_named_works_or_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
