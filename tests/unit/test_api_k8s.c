/* Selections, names, patches, words and ages of the k8s dialect: without a daemon. */
#include "api/dialects/k8s/file.h"

#include "unit.h"

static bool fits(const char *selector, const char *labels)
{
    struct k8s_selector s = {0};
    struct err e = {0};
    json_t *o = json_pack("{s:{s:o}}", "metadata", "labels", json_loads(labels, 0, NULL));
    bool r;

    assert_int_equal(k8s_select_labels(&s, str_of(selector), &e), 0);
    r = k8s_selects(&s, o);
    json_decref(o);
    return r;
}

static void labels_are_selected(void **state)
{
    (void)state;
    assert_true(fits("", "{}"));
    assert_true(fits("a=b", "{\"a\":\"b\"}") && fits("a==b", "{\"a\":\"b\"}"));
    assert_false(fits("a=b", "{\"a\":\"c\"}") || fits("a=b", "{}"));
    assert_true(fits("a!=b", "{}") && fits("a!=b", "{\"a\":\"c\"}"));
    assert_false(fits("a!=b", "{\"a\":\"b\"}"));
    assert_true(fits("a", "{\"a\":\"\"}") && fits("!a", "{}"));
    assert_false(fits("a", "{}") || fits("!a", "{\"a\":\"\"}"));
    assert_true(fits("a in (x, y), b notin (z)", "{\"a\":\"y\"}"));
    assert_false(fits("a in (x,y)", "{\"a\":\"z\"}") || fits("a in (x,y)", "{}"));
    assert_false(fits("a notin (x,y),c", "{\"a\":\"y\",\"c\":\"\"}"));
    assert_true(fits("a in ()", "{\"a\":\"\"}") && fits("p/a=b", "{\"p/a\":\"b\"}"));
}

static void malformed_selectors_are_refused(void **state)
{
    static const char *const wrong[] = {"=b", "a b", "a in b", "a in (b", "a of (b)", ",", "!"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct k8s_selector s = {0};
        struct err e = {0};

        assert_true(k8s_select_labels(&s, str_of(wrong[i]), &e) < 0);
        assert_int_equal(e.code, ERR_INVALID);
    }
}

static void fields_are_selected(void **state)
{
    struct k8s_selector s = {0}, other = {0}, unknown = {0};
    struct err e = {0};
    json_t *o = json_pack("{s:{s:s,s:s}}", "metadata", "name", "n", "namespace", "s");

    (void)state;
    assert_int_equal(k8s_select_fields(&s, STR("metadata.name=n,metadata.namespace!=x"), &e), 0);
    assert_true(k8s_selects(&s, o));
    assert_int_equal(k8s_select_fields(&other, STR("metadata.name=m"), &e), 0);
    assert_false(k8s_selects(&other, o));
    assert_true(k8s_select_fields(&unknown, STR("spec.a=b"), &e) < 0);
    json_decref(o);
}

static void too_many_terms_are_refused(void **state)
{
    struct k8s_selector s = {0};
    struct err e = {0};
    char text[3 * K8S_TERMS_MAX + 3] = "";

    (void)state;
    for (size_t i = 0; i <= K8S_TERMS_MAX; i++)
        memcpy(text + 2 * i, "a,", 2);
    assert_true(k8s_select_labels(&s, str_of(text), &e) < 0);
}

static void names_have_a_form(void **state)
{
    static const char *const labels[] = {"", "-a", "a-", "A", "a.b", "a/b", "a_b"};
    static const char *const subdomains[] = {"", "a..b", ".a", "a.", "a/b", "A", "a.-b"};
    char longest[65];

    (void)state;
    assert_true(k8s_is_label(STR("a-1")) && k8s_is_subdomain(STR("a.b-c.1")));
    assert_false(k8s_is_label(STR("a\0b")));
    for (size_t i = 0; i < ARRAY_LEN(labels); i++)
        assert_false(k8s_is_label(str_of(labels[i])));
    for (size_t i = 0; i < ARRAY_LEN(subdomains); i++)
        assert_false(k8s_is_subdomain(str_of(subdomains[i])));
    memset(longest, 'a', sizeof longest);
    assert_true(k8s_is_label(str_make(longest, 63)));
    assert_false(k8s_is_label(str_make(longest, 64)));
}

/* want NULL: refused */
static void check_patch(const char *from, const char *patch, const char *want)
{
    json_t *o = json_loads(from, 0, NULL), *p = json_loads(patch, 0, NULL),
           *w = want ? json_loads(want, 0, NULL) : NULL;
    struct err e = {0};

    assert_non_null(p);
    if (json_is_array(p))
        assert_int_equal(k8s_json_patch(&o, p, &e), want ? 0 : -1);
    else
        k8s_merge(o, p);
    if (want)
        assert_true(json_equal(o, w));
    json_decref(o);
    json_decref(p);
    json_decref(w);
}

static void patches_apply(void **state)
{
    (void)state;
    check_patch("{\"a\":1,\"b\":{\"c\":2}}", "{\"a\":null,\"b\":{\"d\":3}}",
                "{\"b\":{\"c\":2,\"d\":3}}");
    check_patch("{\"a\":1}", "{\"a\":{\"b\":null,\"c\":1}}", "{\"a\":{\"c\":1}}");
    check_patch("{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}");
    check_patch("{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":2}]", "{\"a\":[2,1]}");
    check_patch("{\"a/b\":1,\"~\":2}",
                "[{\"op\":\"remove\",\"path\":\"/a~1b\"},"
                "{\"op\":\"replace\",\"path\":\"/~0\",\"value\":3}]",
                "{\"~\":3}");
    check_patch("{}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1}]", NULL);
    check_patch("{}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", NULL);
    check_patch("{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/7\",\"value\":1}]", NULL);
    check_patch("{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a/b\"}]", NULL);
    check_patch("{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL);
    check_patch("{\"a\":1}", "[{\"op\":\"move\",\"path\":\"/a\",\"value\":2}]", NULL);
    check_patch("{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"\"}]", NULL);
    check_patch("{\"a\":1}", "[1]", NULL);
}

static void words_are_split(void **state)
{
    static const struct {
        const char *line, *want; /* each word and a '|'; NULL: refused */
    } cases[] = {
        {"", ""},
        {"  a  b\t", "a|b|"},
        {"'a b' c", "a b|c|"},
        {"\"a \\\" b\"", "a \" b|"},
        {"a\\ b", "a b|"},
        {"''", "|"},
        {"a''b", "ab|"},
        {"'\\n'", "\\n|"},
        {"\"\\n\"", "\\n|"},
        {"'open", NULL},
        {"\"open", NULL},
        {"a\\", NULL},
        {"a b c d", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = {0};
        AUTO(buf_done) struct buf all = {0};
        struct str v[3];
        struct err e = {0};
        int n = k8s_split_words(str_of(cases[i].line), &a, v, ARRAY_LEN(v), &e);

        assert_int_equal(n < 0, !cases[i].want);
        for (int k = 0; k < n; k++)
            buf_printf(&all, STR_FMT "|", STR_ARG(v[k]));
        if (cases[i].want)
            assert_string_equal(buf_cstr(&all), cases[i].want);
        arena_done(&a);
    }
}

static void ages_are_those_of_kubectl(void **state)
{
    static const struct {
        int64_t seconds;
        const char *want;
    } cases[] = {
        {-1, "0s"},     {119, "119s"},    {120, "2m"},     {301, "5m1s"},
        {605, "10m"},   {10799, "179m"},  {10800, "3h"},   {11000, "3h3m"},
        {90000, "25h"}, {176400, "2d1h"}, {864000, "10d"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_done) struct buf b = {0};

        k8s_age(cases[i].seconds * 1000, &b);
        assert_string_equal(buf_cstr(&b), cases[i].want);
    }
}

static void labels_have_a_form(void **state)
{
    static const char *const good[] = {"{\"a\":\"b\"}", "{\"p.q/a_B.c\":\"\"}", "null"};
    static const char *const bad[] = {"[]",
                                      "{\"a\":1}",
                                      "{\"-a\":\"b\"}",
                                      "{\"/a\":\"b\"}",
                                      "{\"p/\":\"b\"}",
                                      "{\"a\":\"b c\"}",
                                      "{\"P/a\":\"b\"}"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good) + ARRAY_LEN(bad); i++) {
        bool is_good = i < ARRAY_LEN(good);
        json_t *o = json_loads(is_good ? good[i] : bad[i - ARRAY_LEN(good)], JSON_DECODE_ANY, NULL);
        struct err e = {0};

        assert_int_equal(k8s_check_map(o, "labels", true, &e), is_good ? 0 : -1);
        json_decref(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_selected), cmocka_unit_test(malformed_selectors_are_refused),
        cmocka_unit_test(fields_are_selected), cmocka_unit_test(too_many_terms_are_refused),
        cmocka_unit_test(names_have_a_form),   cmocka_unit_test(patches_apply),
        cmocka_unit_test(words_are_split),     cmocka_unit_test(ages_are_those_of_kubectl),
        cmocka_unit_test(labels_have_a_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
