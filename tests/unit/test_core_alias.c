#include "core/sandbox/alias.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

static struct alias_name name(const char *dialect, const char *alias)
{
    return (struct alias_name){str_of(dialect), str_of(alias)};
}

static enum err_code add(struct aliases *t, const char *dialect, const char *alias,
                         const char *object)
{
    struct err e = {0};

    return alias_add(t, name(dialect, alias), str_of(object), &e) < 0 ? e.code : ERR_NONE;
}

/* Who goes by this text in this dialect ("": in any), joined. */
static const char *who(const struct aliases *t, const char *dialect, const char *text)
{
    static char all[128];
    size_t n = 0;

    all[0] = '\0';
    for (const struct alias *a = alias_named(t, str_of(text)); a; a = alias_same(a))
        if (!*dialect || str_eq_c(a->name.dialect, dialect))
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? " " : "", a->object);
    return all;
}

static void shared_by_objects_and_dropped_with_each(void **state)
{
    struct aliases *t = aliases_new();

    (void)state;
    assert_int_equal(add(t, "sbx", "sbx-1", "sb_a"), ERR_NONE);
    assert_int_equal(add(t, "sbx", "SBX-1", "sb_a"), ERR_NONE);
    assert_int_equal(add(t, "agentbox", "u-u-i-d", "sb_a"), ERR_NONE);
    assert_int_equal(add(t, "sbx", "sbx-1", "sb_a"), ERR_NONE); /* it has it */
    assert_int_equal(add(t, "sbx", "sbx-1", "sb_b"), ERR_NONE); /* another owner's, say */
    assert_int_equal(add(t, "fluid", "sbx-1", "sb_b"), ERR_NONE);
    assert_string_equal(who(t, "sbx", "sbx-1"), "sb_b sb_a");
    assert_string_equal(who(t, "fluid", "sbx-1"), "sb_b");
    assert_string_equal(who(t, "hub", "sbx-1"), "");
    assert_string_equal(who(t, "", "u-u-i-d"), "sb_a");
    alias_drop(t, STR("sb_a"));
    assert_null(alias_first(t, STR("sb_a")));
    assert_string_equal(who(t, "", "SBX-1"), "");
    assert_string_equal(who(t, "sbx", "sbx-1"), "sb_b");
    alias_drop(t, STR("sb_nobody"));
    aliases_free(t);
    aliases_free(NULL);
}

/* The middle of a chain of equal texts goes. */
static void equal_texts_of_many_dialects(void **state)
{
    static const char *const order[] = {"sb_1", "sb_0", "sb_3", "sb_2"};
    static const char *const left[] = {"sb_3 sb_2 sb_0", "sb_3 sb_2", "sb_2", ""};
    struct aliases *t = aliases_new();
    char dialect[8], object[8];

    (void)state;
    for (int i = 0; i < 4; i++) {
        (void)snprintf(dialect, sizeof dialect, "d%d", i);
        (void)snprintf(object, sizeof object, "sb_%d", i);
        assert_int_equal(add(t, dialect, "vm", object), ERR_NONE);
    }
    for (int i = 0; i < 4; i++) {
        alias_drop(t, str_of(order[i]));
        assert_string_equal(who(t, "", "vm"), left[i]);
    }
    aliases_free(t);
}

static void bounds(void **state)
{
    struct aliases *t = aliases_new();
    char text[ALIAS_MAX + 2] = {0};

    (void)state;
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(add(t, "sbx", text, "sb_a"), ERR_INVALID);
    assert_int_equal(add(t, "sbx", text + 1, "sb_a"), ERR_NONE);
    assert_int_equal(add(t, "sbx", "", "sb_a"), ERR_INVALID);
    assert_int_equal(add(t, "", "x", "sb_a"), ERR_INVALID);
    assert_int_equal(add(t, "sbx", "a\tb", "sb_a"), ERR_INVALID);
    assert_int_equal(add(t, "sbx", "a\n", "sb_a"), ERR_INVALID);
    for (int i = 1; i < ALIASES_PER_OBJECT; i++) {
        (void)snprintf(text, sizeof text, "n%d", i);
        assert_int_equal(add(t, "sbx", text, "sb_a"), ERR_NONE);
    }
    assert_int_equal(add(t, "sbx", "one-more", "sb_a"), ERR_LIMIT);
    assert_int_equal(add(t, "sbx", "n1", "sb_a"), ERR_NONE);
    aliases_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_by_objects_and_dropped_with_each),
        cmocka_unit_test(equal_texts_of_many_dialects),
        cmocka_unit_test(bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
