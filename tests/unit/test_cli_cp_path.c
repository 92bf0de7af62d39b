#include "cli/cp_path.h"

#include "base/mem.h"
#include "unit.h"

static void places(void **state)
{
    static const struct {
        const char *text, *sandbox, *path;
    } t[] = {{"a", NULL, "a"},
             {"b:/x", "b", "/x"},
             {"./a:b", NULL, "./a:b"},
             {"/a:b", NULL, "/a:b"},
             {"b:c:d", "b", "c:d"},
             {"-", NULL, "-"},
             {"b:rel/x", "b", "rel/x"},
             {"tk_1/b:/x", "tk_1/b", "/x"},
             {"token/tk_1/b:/x", "token/tk_1/b", "/x"},
             {"./tk_1/b:x", NULL, "./tk_1/b:x"},
             {"dir/b:/x", NULL, "dir/b:/x"}};
    static const char *const bad[] = {"", ":", ":/x", "b:"};
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        AUTO(cp_path_done) struct cp_path p = {0};

        assert_int_equal(cp_path_parse(t[i].text, &p, &e), 0);
        assert_string_equal(p.path, t[i].path);
        assert_string_equal(p.sandbox ? p.sandbox : "-", t[i].sandbox ? t[i].sandbox : "-");
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct cp_path p;

        assert_int_equal(cp_path_parse(bad[i], &p, &e), -1);
    }
}

static void paths(void **state)
{
    static const struct {
        const char *path, *name, *parent;
        bool content;
    } t[] = {{"/a/b", "b", "/a", false}, {"/a/b/", "b", "/a", false}, {"a", "a", ".", false},
             {"/a", "a", "/", false},    {"/", "", "/", false},       {".", "", ".", true},
             {"a/.", "", "a", true},     {"a/..", "", "a", false},    {"a//b", "b", "a", false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        AUTO(mem_free) char *name = path_name(t[i].path), *parent = path_parent(t[i].path);

        assert_string_equal(name, t[i].name);
        assert_string_equal(parent, t[i].parent);
        assert_int_equal(path_means_content(t[i].path), t[i].content);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places), cmocka_unit_test(paths)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
