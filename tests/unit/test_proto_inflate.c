#include "proto/inflate.h"

#include "unit.h"

#include <errno.h>

/* "an otter", by gzip and by zlib; 70,000 zeros. */
#define GZIP                                                                                       \
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xcc\x53\xc8\x2f\x29\x49\x2d\x02\x00\xeb\xd5\x00" \
    "\xaf\x08\x00\x00\x00"
#define ZLIB "\x78\x9c\x4b\xcc\x53\xc8\x2f\x29\x49\x2d\x02\x00\x0d\x65\x03\x1e"
#define BYTES(text) str_make(text, sizeof(text) - 1)

static const char zeros[] =
    "\170\332\355\301\061\001\000\000\000\302\240\365\117\155\011\117\240\000\000\000"
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
    "\000\000\000\000\200\267\001\021\177\000\001";

static int inflated(struct str in, size_t max, const char *want)
{
    AUTO(buf_done) struct buf to = {0};
    int r;

    buf_add_c(&to, "before ");
    r = inflate_all(in, max, &to);
    if (r == 0 && want)
        assert_string_equal(buf_cstr(&to), want);
    return r;
}

static void both_forms(void **state)
{
    (void)state;
    assert_int_equal(inflated(BYTES(GZIP), 8, "before an otter"), 0);
    assert_int_equal(inflated(BYTES(ZLIB), 100, "before an otter"), 0);
}

static void what_is_broken(void **state)
{
    (void)state;
    assert_int_equal(inflated(STR(""), 100, NULL), -EPROTO);
    assert_int_equal(inflated(STR("an otter"), 100, NULL), -EPROTO);
    for (size_t i = 0; i < sizeof GZIP - 1; i++)
        assert_int_equal(inflated(str_make(GZIP, i), 100, NULL), -EPROTO);
    assert_int_equal(inflated(BYTES(GZIP "x"), 100, NULL), -EPROTO);
}

static void no_more_than_the_limit(void **state)
{
    (void)state;
    assert_int_equal(inflated(BYTES(GZIP), 7, NULL), -EMSGSIZE);
    assert_int_equal(inflated(BYTES(zeros), 70000, NULL), 0);
    assert_int_equal(inflated(BYTES(zeros), 69999, NULL), -EMSGSIZE);
    assert_int_equal(inflated(BYTES(zeros), 100, NULL), -EMSGSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms),
        cmocka_unit_test(what_is_broken),
        cmocka_unit_test(no_more_than_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
