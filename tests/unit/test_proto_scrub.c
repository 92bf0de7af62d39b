#include "proto/scrub.h"

#include "base/enc.h"
#include "base/mem.h"
#include "unit.h"

static char *scrubbed(struct scrub *s, struct str in, size_t step)
{
    struct buf out = {0};

    for (size_t at = 0; at < in.n; at += step)
        scrub_feed(s, str_make(in.p + at, size_min(step, in.n - at)), &out);
    scrub_end(s, &out);
    buf_add_char(&out, '\0');
    return buf_steal(&out);
}

/* In pieces of every size the outcome is the same. */
static void check(struct scrub *s, struct str in, const char *want)
{
    for (size_t step = 1; step <= in.n + 1; step++) {
        AUTO(mem_free) char *got = scrubbed(s, in, step);

        assert_string_equal(got, want);
    }
}

static void put_back(void **state)
{
    AUTO(scrub_done) struct scrub s = {0};

    (void)state;
    check(&s, STR("nothing is known: topsecret"), "nothing is known: topsecret");
    scrub_add(&s, STR("topsecret"), STR("PLACE"));
    scrub_add(&s, STR("top"), STR("T"));
    scrub_add(&s, STR("topsecretive"), STR("LONG"));
    check(&s, STR("a topsecret b"), "a PLACE b");
    check(&s, STR("topsecret"), "PLACE");
    check(&s, STR("topsecretive"), "LONG"); /* the longest that fits */
    check(&s, STR("topsecretiv"), "PLACEiv");
    check(&s, STR("topsecre"), "Tsecre"); /* and what could have been one is what it is */
    check(&s, STR("ttoptoptopsecrettops"), "tTTPLACETs");
    check(&s, STR(""), "");
}

static void every_form(void **state)
{
    static const char value[] = "s3cr3t/Value+\"for\"&it's";
    AUTO(scrub_done) struct scrub s = {0};
    AUTO(buf_done) struct buf b = {0};
    const struct str v = str_of(value);

    (void)state;
    scrub_add(&s, v, STR("PLACE"));
    for (size_t before = 0; before < 6; before++)
        for (size_t behind = 0; behind < 4; behind++) {
            AUTO(buf_done) struct buf plain = {0};
            AUTO(mem_free) char *got = NULL;

            buf_clear(&b);
            buf_add(&plain, "abcdef", before);
            buf_add_str(&plain, v);
            buf_add(&plain, "wxyz", behind);
            enc_base64(&b, buf_data(&plain), buf_len(&plain));
            got = scrubbed(&s, buf_str(&b), 3);
            assert_non_null(strstr(got, "PLACE"));
            assert_true(strlen(got) < buf_len(&b) - v.n); /* nearly all of it is gone */
        }
    buf_clear(&b);
    enc_percent(&b, v);
    check(&s, buf_str(&b), "PLACE");
    check(&s, STR("s3cr3t%2fValue%2b%22for%22%26it%27s"), "PLACE");
    check(&s, STR("s3cr3t/Value+\\\"for\\\"&it's"), "PLACE");
    check(&s, STR("s3cr3t\\/Value+\\\"for\\\"&it's"), "PLACE");
    check(&s, STR("s3cr3t/Value+&quot;for&quot;&amp;it&#39;s"), "PLACE");
    check(&s, STR("s3cr3t/Value+&quot;for&quot;&amp;it&#x27;s"), "PLACE");
    check(&s, STR("7333637233742f56616c75652b22666f722226697427730a"), "PLACE0a");
    check(&s, STR("7333637233742F56616c75652B22666F722226697427730a"), "PLACE0a");
}

/* Encoders differ in what they leave as it is: each character may be escaped or not. */
static void what_encoders_make_of_it(void **state)
{
    static const char *const same[] = {
        "a+/=<>&'\" b%41\\\xc3\xa9.-_",
        "a%2B%2F%3d%3C%3E%26%27%22%20b%2541%5C%c3%A9.-_",     /* encodeURIComponent */
        "a%2B/%3D%3C%3E%26%27%22+b%2541%5C%C3%A9.-_",         /* forms; Python's quote */
        "a+/=%3C%3E&'%22%20b%2541%5C%C3%A9.-_",               /* encodeURI */
        "a+/=\\u003c\\u003e\\u0026'\\\" b%41\\\\\xc3\xa9.-_", /* Go */
        "a+/\\u003d\\u003c\\u003e\\u0026\\u0027\\\" b%41\\\\\xc3\xa9.-_",   /* Gson */
        "a\\u002B/=\\u003C\\u003E\\u0026\\u0027\\u0022 b%41\\\\\\u00E9.-_", /* .NET */
        "a+\\/=<>&'\\\" b%41\\\\\\u00e9.-_",                                /* PHP */
        "a+\\x2f=<>&\\'\\x22 b%41\\\\\\xc3\\xa9.-_",
        "a&#43;/=&lt;&gt;&amp;&#039;&#34; b%41\\\xc3\xa9.-_", /* templates */
        "a&#x2B;&#x2F;&#x3D;&lt;&gt;&amp;&apos;&quot; b%41\\&#233;.&#45;&#x005f;",
    };
    AUTO(scrub_done) struct scrub s = {0};

    (void)state;
    scrub_add(&s, str_of(same[0]), STR("PLACE"));
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        AUTO(mem_free) char *around = xasprintf("<%%%s\\&", same[i]);

        check(&s, str_of(around), "<%PLACE\\&");
    }
    check(&s, STR("a+/=<>&'\" b%41\\\xc3\xa9.-"), "a+/=<>&'\" b%41\\\xc3\xa9.-");
    check(&s, STR("%&\\+&#x;&#;&;%4&amp"), "%&\\+&#x;&#;&;%4&amp");
}

/* How much waits must not tell how much of a value was said. */
static void what_waits_says_nothing(void **state)
{
    static const char *const ends[] = {"topsecre", "xxxxxxxx", "ttttttop", "xxxxxxxt"};
    AUTO(scrub_done) struct scrub s = {0};
    AUTO(buf_done) struct buf to = {0};

    (void)state;
    scrub_add(&s, STR("topsecret"), STR("PLACE"));
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        buf_clear(&to);
        scrub_feed(&s, STR("0123456789012345678901234567890123456789"), &to);
        scrub_feed(&s, str_of(ends[i]), &to);
        assert_int_equal(buf_len(&to), 48 - 17); /* of 18 hexadecimal digits all but one */
        scrub_feed(&s, STR("\n"), &to);
        assert_int_equal(buf_len(&to), 49); /* a line that has ended goes at once */
        scrub_end(&s, &to);
    }
}

static void names_without_capitals(void **state)
{
    AUTO(scrub_done) struct scrub s = {0};

    (void)state;
    scrub_add(&s, STR("Secret-Value"), STR("<p>"));
    assert_true(scrub_finds_any_case(&s, STR("x-secret-value")));
    assert_true(scrub_finds_any_case(&s, STR("u2vjcmv0lvzhbhvl")));
    assert_false(scrub_finds_any_case(&s, STR("x-secret-valu")));
    assert_false(scrub_finds_any_case(&s, STR("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_back),
        cmocka_unit_test(every_form),
        cmocka_unit_test(what_encoders_make_of_it),
        cmocka_unit_test(what_waits_says_nothing),
        cmocka_unit_test(names_without_capitals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
