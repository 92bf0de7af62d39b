#include "wire/change.h"

#include "unit.h"

static const struct change_xattr xattrs[] = {{STR("user.a"), {"\0\1", 2}}, {STR("user.b"), {0}}};
static const struct change_attr attrs[] = {{STR("home"), STR("/a"), STR("/b")}};

static struct change sample(void)
{
    return (struct change){
        .kind = CHANGE_FILE,
        .what = CHANGE_CHANGED,
        .by = CHANGE_BY_CONTENT | CHANGE_BY_LINK,
        .flags = CHANGE_CONTENT,
        .path = STR("etc/\xff\nname"),
        .before = {.type = CHANGE_SYMLINK, .target = STR("../x")},
        .after = {.type = CHANGE_REGULAR,
                  .mode = 04755,
                  .uid = 1000,
                  .gid = UINT32_MAX,
                  .size = 12,
                  .mtime_ns = 5,
                  .hash = STR("0123456789abcdef0123456789abcdef"),
                  .link = STR("etc/other"),
                  .xattrs = {.count = ARRAY_LEN(xattrs), .items = xattrs}},
        .text = STR("@@ -1 +1 @@\n-a\n+b\n"),
        .content = {"b\0c", 3},
        .manager = STR("dpkg"),
        .name = STR("nginx"),
        .old_value = STR("1"),
        .new_value = STR("2"),
        .attrs = {.count = ARRAY_LEN(attrs), .items = attrs},
        .size = 99,
    };
}

static void a_record_survives_the_round_trip(void **state)
{
    AUTO(buf_done) struct buf one = {0}, two = {0};
    struct change c = sample(), back = {0};
    struct change_xattr x = {0};
    struct wire_rows rows;
    struct err e = {0};
    struct str in;

    (void)state;
    assert_int_equal(change_put(&one, &c, &e), 0);
    in = buf_str(&one);
    assert_int_equal(change_get(&in, &back, &e), 1);
    assert_int_equal(in.n, 0);
    assert_true(str_eq(back.path, c.path));
    assert_true(str_eq(back.after.link, c.after.link));
    assert_true(str_eq(back.before.target, STR("../x")));
    assert_true(str_eq(back.content, c.content));
    assert_int_equal(back.after.gid, UINT32_MAX);
    rows = back.after.xattrs;
    assert_true(wire_rows_next(&change_xattr_row, &rows, &x));
    assert_int_equal(x.value.n, 2);
    assert_int_equal(change_put(&two, &back, &e), 0);
    assert_int_equal(buf_len(&one), buf_len(&two));
    assert_memory_equal(buf_data(&one), buf_data(&two), buf_len(&one));
}

static void a_part_of_a_record_waits_for_the_rest(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    struct change c = sample(), back = {0};
    struct err e = {0};

    (void)state;
    assert_int_equal(change_put(&b, &c, &e), 0);
    for (size_t n = 0; n < buf_len(&b); n++) {
        struct str in = str_make(buf_data(&b), n);

        assert_int_equal(change_get(&in, &back, &e), 0);
        assert_int_equal(in.n, n);
    }
}

static void hostile_bytes_are_refused(void **state)
{
    struct change c = sample(), back;
    struct err e = {0};

    (void)state;
    for (size_t at = 0; at < 64; at++) {
        AUTO(buf_done) struct buf b = {0};
        struct str in;

        assert_int_equal(change_put(&b, &c, &e), 0);
        buf_data(&b)[at] = (char)0xff;
        in = buf_str(&b);
        if (at == 3 || at == 4 || at == 5) /* the length, the kind, what */
            assert_int_equal(change_get(&in, &back, &e), -1);
        else
            (void)!change_get(&in, &back, &e); /* no fault, whatever it says */
    }
    c.path = str_make(NULL, 0);
    c.kind = CHANGE_KIND_COUNT;
    {
        AUTO(buf_done) struct buf b = {0};

        assert_int_equal(change_put(&b, &c, &e), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_survives_the_round_trip),
        cmocka_unit_test(a_part_of_a_record_waits_for_the_rest),
        cmocka_unit_test(hostile_bytes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
