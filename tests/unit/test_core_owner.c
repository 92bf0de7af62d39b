#include "core/identity/owner.h"

#include "unit.h"

#include <string.h>

#define AGENT(name, of) {.role = ROLE_AGENT, .actor = "token/" name, .tenant = of, .agent = "x"}
#define PERSON(r, name, of) {.role = r, .actor = "token/" name, .tenant = of}

static const struct principal agent = AGENT("tk_a", ""), bound = AGENT("tk_b", "acme"),
                              person = PERSON(ROLE_OPERATOR, "tk_p", ""),
                              tenant = PERSON(ROLE_OPERATOR, "tk_t", "acme"),
                              other = PERSON(ROLE_OBSERVER, "tk_o", "beta"),
                              nobody = {.role = ROLE_NONE, .actor = "anonymous"},
                              inside = {.role = ROLE_AGENT, .actor = "sandbox/sb_1"};
static const struct principal *const all[] = {&agent, &bound,  &person, &tenant,
                                              &other, &nobody, &inside};

/* Written out by hand: who may see and who may change what; in the order of `all`. */
static const struct {
    struct owned o;
    const char *see, *change;
} rule[] = {
    {{.owner = STR("token/tk_a")}, "y.y....", "y.y...."},
    {{.owner = STR("token/tk_b"), .tenant = STR("acme")}, ".yyy...", ".yyy..."},
    {{.owner = STR("token/tk_b")}, "..y....", "..y...."}, /* before it got its tenant */
    {{.owner = STR("token/tk_p")}, "..y....", "..y...."},
    {{.owner = STR("token/tk_p"), .shared = true}, "yyyyy.y", "..y...."},
    {{.owner = STR("token/tk_t"), .tenant = STR("acme")}, "..yy...", "..yy..."},
    {{.owner = STR("token/tk_t"), .tenant = STR("acme"), .shared = true}, ".yyy...", "..yy..."},
    {{.owner = STR("token/tk_p"), .tenant = STR("beta")}, "..y.y..", "..y.y.."},
    {{.owner = STR("token/tk_p"), .sandbox = STR("sb_1")}, "..y...y", "..y...y"},
    {{.owner = STR("token/tk_p"), .sandbox = STR("sb_2")}, "..y....", "..y...."},
};

static void who_may_what(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rule); i++)
        for (size_t k = 0; k < ARRAY_LEN(all); k++) {
            struct err e = {0};

            if (owner_may(all[k], &rule[i].o, OWNER_SEE) != (rule[i].see[k] == 'y') ||
                owner_may(all[k], &rule[i].o, OWNER_CHANGE) != (rule[i].change[k] == 'y'))
                fail_msg("row %zu, %s", i, all[k]->actor);
            assert_int_equal(owner_check(all[k], &rule[i].o, OWNER_CHANGE, "volume", "vl_1", &e) ==
                                 0,
                             rule[i].change[k] == 'y');
        }
}

static void sessions_of_a_token_are_one_owner(void **state)
{
    struct token t = {.id = "tk_session", .root = "tk_root", .role = ROLE_OPERATOR};
    struct principal p = principal_of(&t);

    (void)state;
    assert_string_equal(principal_owner(&p), "token/tk_root");
    assert_string_equal(p.actor, "token/tk_session");
    assert_string_equal(principal_owner(&agent), "token/tk_a");
}

/* --- names --- */

static const struct {
    const char *id;
    struct owned o;
} things[] = {
    {"o_1", {.owner = STR("token/tk_a")}},
    {"o_2", {.owner = STR("token/tk_p")}},
    {"o_3", {.owner = STR("token/tk_x")}},
    {"o_4", {.owner = STR("token/tk_t"), .tenant = STR("acme")}},
};

/* All are called "name". */
static const char *found(const struct principal *by, const char *text, bool own_only, size_t n,
                         struct err *e)
{
    struct owner_look l = {
        .by = by, .text = str_of(text), .name = str_of(text), .own_only = own_only};

    for (int split = 0; split < 2 && !l.found; split++) {
        if (split && !owner_look_split(&l))
            break;
        for (size_t i = 0; i < n && str_eq_c(l.name, "name"); i++)
            owner_offer(&l, (void *)(uintptr_t)things[i].id, things[i].id, &things[i].o, 0);
    }
    return owner_found(&l, "thing", e);
}

static void a_name_means_ones_own_and_else_must_be_said(void **state)
{
    const struct principal admin = PERSON(ROLE_ADMIN, "tk_z", "");
    struct err e = {0};

    (void)state;
    assert_string_equal(found(&agent, "name", false, 4, &e), "o_1");
    assert_string_equal(found(&person, "name", false, 4, &e), "o_2");
    assert_string_equal(found(&tenant, "name", false, 4, &e), "o_4");
    assert_null(found(&other, "name", false, 4, &e));
    assert_int_equal(e.code, ERR_NONE);
    assert_string_equal(found(&admin, "name", false, 1, &e), "o_1"); /* the only one */
    assert_null(found(&admin, "name", false, 2, &e));
    assert_int_equal(e.code, ERR_CONFLICT);
    assert_non_null(strstr(e.msg, "o_1"));
    assert_non_null(strstr(e.msg, "o_2"));
    assert_non_null(strstr(e.hint, "token/tk_a/name"));
    assert_string_equal(found(&admin, "token/tk_p/name", false, 4, &e), "o_2");
    assert_string_equal(found(&admin, "tk_x/name", false, 4, &e), "o_3");
    assert_string_equal(found(&admin, "acme/name", false, 4, &e), "o_4");
    e = (struct err){0};
    assert_null(found(&agent, "tk_p/name", false, 4, &e)); /* saying so gives no right */
    assert_null(found(&admin, "/name", false, 4, &e));
    assert_null(found(&admin, "tk_p/", false, 4, &e));
    assert_int_equal(e.code, ERR_NONE);
}

static void who_creates_by_a_name_gets_no_others(void **state)
{
    const struct principal admin = PERSON(ROLE_ADMIN, "tk_z", "");
    struct err e = {0};

    (void)state;
    assert_null(found(&admin, "name", true, 1, &e));
    assert_string_equal(found(&admin, "tk_a/name", true, 1, &e), "o_1"); /* said on purpose */
    assert_string_equal(found(&person, "name", true, 4, &e), "o_2");
    assert_int_equal(e.code, ERR_NONE);
}

static void tenants_are_their_own(void **state)
{
    static const struct {
        const struct principal *by;
        const char *asked, *is; /* NULL: refused */
    } cases[] = {
        {&person, "", ""},       {&person, "acme", "acme"}, {&agent, "", ""},
        {&agent, "acme", NULL},  {&bound, "", "acme"},      {&bound, "acme", "acme"},
        {&bound, "beta", NULL},  {&tenant, "", "acme"},     {&tenant, "beta", NULL},
        {&inside, "acme", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = {0};
        struct str is = {0};
        int r = owner_tenant(cases[i].by, str_of(cases[i].asked), &is, &e);

        assert_int_equal(r == 0, cases[i].is != NULL);
        if (r == 0)
            assert_true(str_eq_c(is, cases[i].is));
        else
            assert_int_equal(e.code, ERR_FORBIDDEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_what),
        cmocka_unit_test(sessions_of_a_token_are_one_owner),
        cmocka_unit_test(a_name_means_ones_own_and_else_must_be_said),
        cmocka_unit_test(who_creates_by_a_name_gets_no_others),
        cmocka_unit_test(tenants_are_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
