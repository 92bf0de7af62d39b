#include "core/team/board_file.h"

#include "team_fixture.h"

static int make_project(struct team *t, void *arg, struct err *e)
{
    struct project p;

    if (project_create(t, STR("p"), STR("human"), &p, e) < 0)
        return -1;
    *(struct str *)arg = p.id;
    return 0;
}

static int put(struct team *t, void *arg, struct err *e)
{
    t->unused_count = 0;
    return file_put(t, arg, e);
}

static int count(struct team *t, void *arg, struct err *e)
{
    struct board_file *f = arg;
    struct board_file_list all;

    if (file_all(t, f->project, f->name, &all, e) < 0)
        return -1;
    f->size = (int64_t)all.n;
    f->version = all.n > 0 ? all.v[0].version : 0;
    return 0;
}

static int drop_project(struct team *t, void *arg, struct err *e)
{
    const struct str *id = arg;

    t->unused_count = 0;
    return project_remove(t, *id, e);
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    static const char *const bad[] = {"",     "/a",    "a/",       "a//b", ".",    "..",
                                      "./a",  "a/./b", "../a",     "a/..", "a..b", "a b",
                                      "a\\b", "a\nb",  "\xc3\xa4", "~a"};
    static const char *const good[] = {"a", ".a", "a.b", "A-1_2/b.c/d", "a."};
    char longest[257];
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(file_check_name(str_of(bad[i]), &e), -1);
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(file_check_name(str_of(good[i]), &e), 0);
    memset(longest, 'x', sizeof longest);
    assert_int_equal(file_check_name(str_make(longest, 255), &e), 0);
    assert_int_equal(file_check_name(str_make(longest, 256), &e), -1);
    assert_int_equal(file_check_name(str_make("a\0b", 3), &e), -1);
}

static void the_oldest_version_goes_and_its_blob_if_nobody_else_has_it(void **state)
{
    struct fixture *f = *state;
    struct str project;
    struct board_file w = {.name = STR("f"), .size = 10};

    assert_int_equal(run(f, make_project, &project), ERR_NONE);
    w.project = project;
    for (int i = 0; i < 3; i++) {
        w.hash = i == 0 ? STR("h0") : STR("h1");
        assert_int_equal(run(f, put, &w), ERR_NONE);
        assert_int_equal(w.version, i + 1);
        assert_int_equal(f->t.unused_count, i == 2);
    }
    assert_true(str_eq_c(f->t.unused[0], "h0"));
    assert_int_equal(run(f, put, &w), ERR_NONE); /* version 2 goes: 3 and 4 have its blob */
    assert_int_equal(f->t.unused_count, 0);
    assert_int_equal(run(f, count, &w), ERR_NONE);
    assert_int_equal(w.size, 2);
    assert_int_equal(w.version, 4);
    assert_int_equal(run(f, drop_project, &project), ERR_NONE);
    assert_int_equal(f->t.unused_count, 2); /* twice the same: removing it twice is harmless */
    assert_int_equal(run(f, count, &w), ERR_NOT_FOUND);
}

static void a_project_holds_so_much(void **state)
{
    struct fixture *f = *state;
    struct str project;
    struct board_file w = {.name = STR("a"), .hash = STR("h"), .size = 60};

    assert_int_equal(run(f, make_project, &project), ERR_NONE);
    w.project = project;
    assert_int_equal(run(f, put, &w), ERR_NONE);
    w.name = STR("b");
    assert_int_equal(run(f, put, &w), ERR_FULL);
    w.size = 40;
    assert_int_equal(run(f, put, &w), ERR_NONE);
    w.size = 0;
    for (int i = 0; i < 3; i++) {
        w.name = i == 0 ? STR("c") : i == 1 ? STR("d") : STR("e");
        assert_int_equal(run(f, put, &w), ERR_NONE);
    }
    w.name = STR("g"); /* the sixth of five */
    assert_int_equal(run(f, put, &w), ERR_FULL);
    w.project = STR("pj_none");
    assert_int_equal(run(f, put, &w), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_lead_elsewhere_are_refused),
        cmocka_unit_test_setup_teardown(the_oldest_version_goes_and_its_blob_if_nobody_else_has_it,
                                        team_setup, team_teardown),
        cmocka_unit_test_setup_teardown(a_project_holds_so_much, team_setup, team_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
