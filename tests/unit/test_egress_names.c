#include "egress/names.h"

#include "unit.h"

#include <stdio.h>

static void a_name_keeps_its_address(void **state)
{
    struct names *n = names_new();
    uint32_t a = names_address(n, "a.test"), b = names_address(n, "b.test");

    (void)state;
    assert_int_not_equal(a, b);
    assert_int_equal(names_address(n, "a.test"), a);
    assert_string_equal(names_find(n, a), "a.test");
    assert_string_equal(names_find(n, b), "b.test");
    assert_null(names_find(n, b + 1));
    assert_true(names_is_made_up(a));
    assert_true(names_is_made_up(0xc613ffff));
    assert_false(names_is_made_up(0xc6140000));
    assert_false(names_is_made_up(0xc611ffff));
    names_free(n);
}

/* What is in use stays; an address is not given to another name soon. */
static void the_longest_unused_gives_way(void **state)
{
    struct names *n = names_new();
    uint32_t kept = names_address(n, "kept.test"), first = names_address(n, "first.test");
    char name[32];

    (void)state;
    for (unsigned i = 0; i < 3 * NAMES_MAX; i++) {
        uint32_t a;

        (void)snprintf(name, sizeof name, "n%u.test", i);
        a = names_address(n, name);
        assert_true(names_is_made_up(a));
        assert_int_not_equal(a, first);
        assert_int_equal(names_address(n, "kept.test"), kept);
    }
    assert_null(names_find(n, first));
    assert_string_equal(names_find(n, kept), "kept.test");
    for (unsigned i = 0; i < 140000; i++) { /* past the range's end */
        (void)snprintf(name, sizeof name, "m%u.test", i);
        assert_true(names_is_made_up(names_address(n, name)));
    }
    names_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_keeps_its_address),
        cmocka_unit_test(the_longest_unused_gives_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
