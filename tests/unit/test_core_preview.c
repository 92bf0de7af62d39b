#include "core/identity/preview.h"

#include "base/clock.h"
#include "unit.h"

static struct clock_fake now = {.wall_ms = 1, .mono_ns = 1};
static const struct preview_grant grant = {
    .sandbox = "sb_a", .port = 80, .who = {.role = ROLE_OPERATOR, .actor = "token/tk_x"}};

static void a_code_works_once_and_for_its_preview(void **state)
{
    struct previews *p = previews_new();
    char code[TOKEN_TEXT], cookie[TOKEN_TEXT], again[TOKEN_TEXT];
    const struct preview_grant *g;

    (void)state;
    preview_code(p, &grant, code);
    assert_null(preview_redeem(p, str_of(code), "sb_b", 80, cookie));
    assert_null(preview_redeem(p, str_of(code), "sb_a", 81, cookie));
    assert_null(preview_redeem(p, STR(""), "sb_a", 80, cookie));
    assert_null(preview_check(p, str_of(code), "sb_a", 80)); /* a code is no cookie */
    assert_non_null(preview_redeem(p, str_of(code), "sb_a", 80, cookie));
    assert_null(preview_redeem(p, str_of(code), "sb_a", 80, again));
    assert_null(preview_redeem(p, str_of(cookie), "sb_a", 80, again));
    g = preview_check(p, str_of(cookie), "sb_a", 80);
    assert_non_null(g);
    assert_string_equal(g->who.actor, "token/tk_x");
    assert_int_equal(g->who.role, ROLE_OPERATOR);
    assert_null(preview_check(p, str_of(cookie), "sb_a", 81));
    assert_null(preview_check(p, str_of(cookie), "sb_ab", 80));
    assert_null(preview_check(p, STR(""), "sb_a", 80));
    previews_free(p);
}

static void both_end_in_time(void **state)
{
    struct previews *p = previews_new();
    char code[TOKEN_TEXT], late[TOKEN_TEXT], cookie[TOKEN_TEXT];

    (void)state;
    clock_set_fake(&now);
    preview_code(p, &grant, code);
    preview_code(p, &grant, late);
    now.mono_ns += (PREVIEW_CODE_MS - 1) * 1000000LL;
    assert_non_null(preview_redeem(p, str_of(code), "sb_a", 80, cookie));
    now.mono_ns += 1000000LL;
    assert_null(preview_redeem(p, str_of(late), "sb_a", 80, late));
    assert_non_null(preview_check(p, str_of(cookie), "sb_a", 80));
    now.mono_ns += SESSION_MS * 1000000LL;
    assert_null(preview_check(p, str_of(cookie), "sb_a", 80));
    clock_set_fake(NULL);
    previews_free(p);
}

static void of_too_many_the_oldest_go(void **state)
{
    struct previews *p = previews_new();
    char first[TOKEN_TEXT], cookie[TOKEN_TEXT], code[TOKEN_TEXT], last[TOKEN_TEXT];

    (void)state;
    preview_code(p, &grant, first);
    for (int i = 0; i < 64; i++)
        preview_code(p, &grant, code);
    assert_null(preview_redeem(p, str_of(first), "sb_a", 80, cookie));
    assert_non_null(preview_redeem(p, str_of(code), "sb_a", 80, cookie));
    for (int i = 0; i < 1024; i++) {
        preview_code(p, &grant, code);
        assert_non_null(preview_redeem(p, str_of(code), "sb_a", 80, last));
    }
    assert_null(preview_check(p, str_of(cookie), "sb_a", 80));
    assert_non_null(preview_check(p, str_of(last), "sb_a", 80));
    previews_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_works_once_and_for_its_preview),
        cmocka_unit_test(both_end_in_time),
        cmocka_unit_test(of_too_many_the_oldest_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
