#include "wire/tar.h"

#include "unit.h"

static int next(struct tar_reader *r, struct str *in, struct str *data)
{
    struct err e = {0};

    *data = (struct str){0};
    return tar_read(r, in, data, &e);
}

static void a_written_entry_is_read_back(void **state)
{
    static const char value[] = "line\nwith=everything";
    char name[301];
    AUTO(buf_done) struct buf b = {0};
    AUTO(tar_reader_done) struct tar_reader r = {0};
    struct tar_entry t = {.kind = TAR_FILE,
                          .mode = 0751,
                          .uid = 5000000,
                          .gid = 7,
                          .size = 5,
                          .mtime_s = 1700000000,
                          .xattr_count = 1};
    struct err e = {0};
    struct str in, data;

    (void)state;
    memset(name, 'n', 300);
    name[300] = '\0';
    t.name = str_of(name);
    t.xattrs[0] = (struct tar_xattr){STR("user.a"), str_of(value)};
    assert_int_equal(tar_write_head(&b, &t, &e), 0);
    buf_add_c(&b, "hello");
    tar_write_pad(&b, 5);
    tar_write_end(&b);
    assert_int_equal(buf_len(&b) % TAR_BLOCK, 0);

    in = buf_str(&b);
    assert_int_equal(next(&r, &in, &data), TAR_ENTRY);
    assert_true(str_eq(r.entry.name, t.name));
    assert_int_equal(r.entry.mode, 0751);
    assert_int_equal(r.entry.uid, 5000000);
    assert_int_equal(r.entry.gid, 7);
    assert_int_equal(r.entry.mtime_s, 1700000000);
    assert_int_equal(r.entry.xattr_count, 1);
    assert_true(str_eq_c(r.entry.xattrs[0].value, value));
    assert_int_equal(next(&r, &in, &data), TAR_DATA);
    assert_true(str_eq(data, STR("hello")));
    assert_int_equal(next(&r, &in, &data), TAR_ENTRY_END);
    assert_int_equal(next(&r, &in, &data), TAR_END);
    assert_true(tar_may_end(&r));
}

/* Whatever the parts, the same is told. */
static void parts_of_any_size_are_the_same(void **state)
{
    AUTO(buf_done) struct buf b = {0};
    struct err e = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[200];

        (void)snprintf(name, sizeof name, "%0*d", i == 1 ? 150 : 3, i);
        assert_int_equal(tar_write_head(&b,
                                        &(struct tar_entry){.kind = i == 2 ? TAR_SYMLINK : TAR_FILE,
                                                            .name = str_of(name),
                                                            .link = i == 2 ? STR("to") : STR(""),
                                                            .size = i == 0 ? 512 : 0},
                                        &e),
                         0);
        for (int k = 0; i == 0 && k < 512; k++)
            buf_add_char(&b, 'x');
    }
    tar_write_end(&b);
    for (size_t step = 1; step < 1500; step += 97) {
        AUTO(tar_reader_done) struct tar_reader r = {0};
        size_t entries = 0, bytes = 0, ends = 0;

        for (size_t at = 0; at < buf_len(&b); at += step) {
            struct str in = str_make(buf_data(&b) + at, size_min(step, buf_len(&b) - at)), data;
            int told;

            while ((told = next(&r, &in, &data)) != TAR_MORE && told != TAR_END) {
                assert_true(told > 0);
                entries += told == TAR_ENTRY;
                ends += told == TAR_ENTRY_END;
                bytes += data.n;
            }
        }
        assert_int_equal(entries, 3);
        assert_int_equal(ends, 3);
        assert_int_equal(bytes, 512);
        assert_true(tar_may_end(&r));
    }
}

static void a_failed_reader_stays_failed(void **state)
{
    AUTO(tar_reader_done) struct tar_reader r = {0};
    char block[TAR_BLOCK];
    struct str in = {block, sizeof block}, data;

    (void)state;
    memset(block, 'a', sizeof block);
    assert_int_equal(next(&r, &in, &data), -1);
    in = str_make(block, sizeof block);
    assert_int_equal(next(&r, &in, &data), -1);
    assert_false(tar_may_end(&r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_entry_is_read_back),
        cmocka_unit_test(parts_of_any_size_are_the_same),
        cmocka_unit_test(a_failed_reader_stays_failed),
    };

    return cmocka_run_group_tests_name("wire_tar", tests, NULL, NULL);
}
