#include "base/suggest.h"

#include "unit.h"

static const char *nearest(const char *word)
{
    static const char *const known[] = {"limit", "listen",       "cursor",           "log_level",
                                        "db",    "memory_bytes", "memory_swap_bytes"};
    struct suggest n = {.word = str_of(word)};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        suggest_try(&n, known[i]);
    return n.best;
}

static void small_mistakes_are_understood(void **state)
{
    (void)state;
    assert_string_equal(nearest("limt"), "limit");
    assert_string_equal(nearest("lmiit"), "limit");
    assert_string_equal(nearest("listne"), "listen");
    assert_string_equal(nearest("curser"), "cursor");
    assert_string_equal(nearest("loglevel"), "log_level");
    assert_string_equal(nearest("bd"), "db");
    assert_string_equal(nearest("limit"), "limit");
}

static void a_start_or_the_same_first_word_is_understood(void **state)
{
    (void)state;
    assert_string_equal(nearest("memory"), "memory_bytes");
    assert_string_equal(nearest("mem"), "memory_bytes");
    assert_string_equal(nearest("memory_mb"), "memory_bytes");
    assert_string_equal(nearest("memory_swap"), "memory_swap_bytes");
    assert_string_equal(nearest("log"), "log_level");
    assert_string_equal(nearest("lim"), "limit");
    assert_null(nearest("me"));
    assert_null(nearest("memorable"));
}

static void other_words_have_no_neighbour(void **state)
{
    char lots[200];

    (void)state;
    memset(lots, 'l', sizeof lots - 1);
    lots[sizeof lots - 1] = '\0';
    assert_null(nearest(""));
    assert_null(nearest("x"));
    assert_null(nearest("banana"));
    assert_null(nearest(lots));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_mistakes_are_understood),
        cmocka_unit_test(a_start_or_the_same_first_word_is_understood),
        cmocka_unit_test(other_words_have_no_neighbour),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
