#include "base/arena.h"

#include "unit.h"

#include <stdint.h>

static void pieces_are_aligned_and_apart(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    char *pieces[500];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        size_t n = i * 7 % 900 + (i % 100 == 0 ? 20000 : 1);

        pieces[i] = arena_zalloc(&a, n);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        assert_int_equal(pieces[i][n - 1], 0);
        memset(pieces[i], (int)(i % 250) + 1, n);
    }
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
        assert_int_equal((unsigned char)pieces[i][0], i % 250 + 1);
}

static void texts_end_with_nul(void **state)
{
    AUTO(arena_done) struct arena a = {0};

    (void)state;
    assert_string_equal(arena_cstr(&a, str_make("abcdef", 3)), "abc");
    assert_int_equal(arena_str(&a, str_make("abcdef", 3)).n, 3);
    assert_string_equal(arena_printf(&a, "%d-%s", 5, "x"), "5-x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(texts_end_with_nul),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
