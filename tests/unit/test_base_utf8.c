#include "base/utf8.h"

#include "unit.h"

static void replaced(const char *in, bool last, const char *want, size_t want_taken)
{
    AUTO(buf_done) struct buf b = {0};

    assert_int_equal(utf8_replace(&b, str_of(in), last), want_taken);
    assert_string_equal(buf_cstr(&b), want);
}

#define BAD "\xef\xbf\xbd"

/* As Python's bytes.decode('utf-8', 'replace') has it. */
static void what_is_no_character_is_replaced(void **state)
{
    (void)state;
    replaced("plain", true, "plain", 5);
    replaced("\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\xa6", true, "\xc3\xa9\xe2\x82\xac\xf0\x9f\xa6\xa6",
             9);
    replaced("a\xff"
             "b",
             true, "a" BAD "b", 3);
    replaced("\x80\x80", true, BAD BAD, 2);
    replaced("\xe2\x82"
             "x",
             true, BAD "x", 3);                             /* one for the part that fits */
    replaced("\xe0\x80\x80", true, BAD BAD BAD, 3);         /* overlong: none fits */
    replaced("\xed\xa0\x80", true, BAD BAD BAD, 3);         /* a surrogate */
    replaced("\xf4\x90\x80\x80", true, BAD BAD BAD BAD, 4); /* past U+10FFFF */
    replaced("\xc0\xaf", true, BAD BAD, 2);
}

static void an_unfinished_character_waits(void **state)
{
    (void)state;
    replaced("a\xe2\x82", false, "a", 1);
    replaced("a\xe2\x82", true, "a" BAD, 3);
    replaced("\xf0\x9f\xa6", false, "", 0);
    replaced("\xf0\x9f\xff", false, BAD BAD, 3);
    replaced("", true, "", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_character_is_replaced),
        cmocka_unit_test(an_unfinished_character_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
