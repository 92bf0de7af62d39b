#include "core/space.h"

#include "unit.h"

#include <string.h>
#include <sys/statvfs.h>

static void what_is_kept_free(void **state)
{
    struct statvfs v;
    struct space *s;
    struct err e = {0};

    (void)state;
    assert_int_equal(space_ask(NULL, 1, &e), 0);
    s = space_new("/tmp", 0);
    assert_int_equal(space_ask(s, SIZE_MAX / 4, &e), 0); /* nothing is kept */
    space_free(s);
    assert_int_equal(statvfs("/tmp", &v), 0);
    s = space_new("/tmp", 1);
    assert_int_equal(space_ask(s, 1, &e), 0);
    assert_int_equal(space_ask(s, (size_t)v.f_blocks * v.f_frsize, &e),
                     -1); /* more than there is */
    assert_int_equal(e.code, ERR_FULL);
    assert_non_null(strstr(e.msg, "'/tmp'"));
    assert_non_null(strstr(e.hint, "disk_reserve"));
    assert_int_equal(space_ask(s, 1 << 20, &e), 0); /* what was refused is not counted for long */
    space_free(s);
    s = space_new("/no/such/place", 1 << 20);
    assert_int_equal(space_ask(s, 1, &e), 0); /* the write itself will fail */
    space_free(s);
    space_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_kept_free)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
