#include "base/err.h"
#include "base/str.h"

#include "unit.h"

#include <errno.h>
#include <string.h>

static void an_error_carries_its_context(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(err_set(&e, ERR_FULL, ENOSPC, "write '%s'", "a"), -1);
    assert_string_equal(e.msg, "write 'a': No space left on device");
    assert_int_equal(err_wrap(&e, "store token '%s'", "t"), -1);
    assert_string_equal(e.msg, "store token 't': write 'a': No space left on device");
    assert_int_equal(err_object(&e, "token", "tk_1"), -1);
    assert_int_equal(err_hint(&e, "free %d bytes", 7), -1);
    assert_string_equal(e.object, "token/tk_1");
    assert_string_equal(e.hint, "free 7 bytes");
    assert_int_equal(e.code, ERR_FULL);
    assert_int_equal(e.sys, ENOSPC);
}

static void a_long_error_is_cut_not_overrun(void **state)
{
    char text[1000];
    struct err e = {0};

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)err_set(&e, ERR_INVALID, EIO, "%s", text);
    (void)err_wrap(&e, "%s", text);
    (void)err_hint(&e, "%s", text);
    (void)err_object(&e, text, text);
    assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
    assert_int_equal(strlen(e.hint), sizeof e.hint - 1);
    assert_int_equal(strlen(e.object), sizeof e.object - 1);
    assert_true(str_ends(str_of(e.msg), STR("xx…")));
    assert_true(str_ends(str_of(e.hint), STR("xx…")));
}

static void a_cut_text_ends_in_a_whole_word_or_character(void **state)
{
    struct err e = {0};

    (void)state;
    for (int n = 100; n < 180; n++) {
        (void)err_hint(&e, "%0*d alpha, bravo, charlie", n, 0);
        assert_true(strlen(e.hint) < sizeof e.hint);
        assert_true(str_ends(str_of(e.hint), STR(" alpha, bravo, charlie")) ||
                    str_ends(str_of(e.hint), STR(" alpha, bravo, …")) ||
                    str_ends(str_of(e.hint), STR(" alpha, …")) ||
                    str_ends(str_of(e.hint), STR("0 …")) || str_ends(str_of(e.hint), STR("00…")));
    }
    for (int n = 0; n < 4; n++) {
        (void)err_set(&e, ERR_FULL, ENOSPC, "%0*d%s%s", 150 + n, 0, "éééééééééééééééééééééé",
                      "éééééééééééééééééééééééééééééééé");
        assert_true(str_is_utf8(str_of(e.msg)));
        assert_true(str_ends(str_of(e.msg), STR("é…")));
    }
    (void)err_set(&e, ERR_FULL, ENOSPC, "write '%0205d'", 0);
    (void)err_wrap(&e, "store what was sent");
    assert_true(str_ends(str_of(e.msg), STR("': No space left …")));
}

static void a_limit_names_its_setting_and_value(void **state)
{
    struct err e;

    (void)state;
    (void)err_set(&e, ERR_LIMIT, 0, "there are 5 already");
    assert_int_equal(err_limit(&e, "agents_max", 5, "remove some of '%s'", "x"), -1);
    assert_string_equal(e.hint, "remove some of 'x'; the setting 'agents_max' (5) is the limit");
    assert_int_equal(err_private(&e), -1);
    assert_int_equal(err_wrap(&e, "more"), -1);
    assert_true(e.is_private);
    assert_int_equal(err_set(&e, ERR_LIMIT, 0, "another"), -1);
    assert_false(e.is_private);
    assert_int_equal(err_limit_fixed(&e, 7, "wait"), -1);
    assert_string_equal(e.hint, "wait; the limit of 7 is fixed");
}

static void every_code_has_a_row_and_crosses_the_wire(void **state)
{
    (void)state;
    for (int i = ERR_NONE + 1; i < ERR_CODE_COUNT; i++) {
        assert_non_null(err_table[i].name);
        assert_true(err_table[i].http >= 400 && err_table[i].http < 600);
        assert_true(err_table[i].grpc > 0 && err_table[i].grpc <= 16);
        assert_true(err_table[i].exit > 0 && err_table[i].exit <= 5);
        assert_int_equal(err_code_from_name(err_table[i].name), i);
        assert_int_equal(err_code_from_http(err_table[i].http), i);
    }
    assert_int_equal(ERR_INTERNAL, 21); /* by number in the guest protocol: add at the end */
    assert_int_equal(err_code_from_name("no such code"), ERR_INTERNAL);
    assert_int_equal(err_code_from_http(418), ERR_INVALID);
    assert_int_equal(err_code_from_http(599), ERR_INTERNAL);
    assert_int_equal(err_code_from_errno(EDQUOT), ERR_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_carries_its_context),
        cmocka_unit_test(a_long_error_is_cut_not_overrun),
        cmocka_unit_test(a_cut_text_ends_in_a_whole_word_or_character),
        cmocka_unit_test(a_limit_names_its_setting_and_value),
        cmocka_unit_test(every_code_has_a_row_and_crosses_the_wire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
