#include "wire/tar.h"

#include "base/mem.h"
#include "unit.h"

/* What a reader says, in parts of `step` bytes. */
static int read_all(struct str in, size_t step, struct buf *notes)
{
    struct tar_reader r = {0};
    int n = 0;

    while (in.n > 0 && n >= 0) {
        struct str part = str_make(in.p, size_min(step, in.n));

        in = str_skip(in, part.n);
        while ((n = tar_reader_next(&r, &part)) > 0) {
            if (n == TAR_ENTRY)
                buf_printf(notes, "{%d " STR_FMT ">" STR_FMT " %o %u:%u %lld @%lld|",
                           (int)r.entry.kind, STR_ARG(r.entry.name), STR_ARG(r.entry.link),
                           r.entry.mode, r.entry.uid, r.entry.gid, (long long)r.entry.size,
                           (long long)r.entry.mtime_s);
            else if (n == TAR_DATA)
                buf_add_str(notes, r.data);
            else
                buf_add_c(notes, n == TAR_END ? "." : "}");
        }
    }
    if (n < 0)
        buf_printf(notes, "!%s", r.fault);
    tar_reader_done(&r);
    return n;
}

static void add_file(struct buf *to, const char *name, const char *data)
{
    tar_write(
        to, &(struct tar_entry){.name = str_of(name), .mode = 0644, .size = (int64_t)strlen(data)});
    buf_add_c(to, data);
    tar_write_pad(to, (int64_t)strlen(data));
}

static void what_is_written_is_read(void **state)
{
    AUTO(buf_done) struct buf tar = {0};
    char name[301], link[201];

    (void)state;
    memset(name, 'n', 300);
    memset(link, 'l', 200);
    name[300] = link[200] = '\0';
    tar_write(&tar, &(struct tar_entry){.kind = TAR_DIR,
                                        .name = STR("d/"),
                                        .mode = 0750,
                                        .uid = 7,
                                        .gid = 8,
                                        .mtime_s = 1600000000});
    add_file(&tar, "d/f", "hello");
    add_file(&tar, name, "");
    tar_write(&tar, &(struct tar_entry){.kind = TAR_SYMLINK,
                                        .name = STR("s"),
                                        .link = str_of(link),
                                        .uid = 3000000,
                                        .mtime_s = -5});
    tar_write(&tar,
              &(struct tar_entry){.kind = TAR_HARDLINK, .name = STR("h"), .link = STR("d/f")});
    tar_write_end(&tar);
    assert_int_equal(buf_len(&tar) % TAR_BLOCK, 0);
    for (size_t step = 1; step < 2000; step = step * 2 + 1) {
        AUTO(buf_done) struct buf notes = {0}, want = {0};

        buf_printf(&want,
                   "{1 d/> 750 7:8 0 @1600000000|}{0 d/f> 644 0:0 5 @0|hello}{0 %s> 644 0:0 0 @0|}"
                   "{2 s>%s 0 2097151:0 0 @-5|}{3 h>d/f 0 0:0 0 @0|}.",
                   name, link);
        assert_int_equal(read_all(buf_str(&tar), step, &notes), 0);
        if (step > 0)
            assert_non_null(strstr(buf_cstr(&notes), "{0 d/f> 644 0:0 5 @0|hello}"));
        assert_string_equal(buf_cstr(&notes), buf_cstr(&want));
    }
}

static void put(struct buf *tar, size_t at, const void *bytes, size_t n)
{
    memcpy(buf_data(tar) + at, bytes, n);
}

static void fix_sum(struct buf *tar)
{
    unsigned sum = 0;
    char text[8];

    memset(buf_data(tar) + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)buf_data(tar)[i];
    (void)snprintf(text, sizeof text, "%06o", sum);
    memcpy(buf_data(tar) + 148, text, 7);
}

static void lies_are_noticed(void **state)
{
    static const struct {
        size_t at;
        struct str bytes;
        bool sum; /* is mended afterwards */
        const char *said;
    } t[] = {
        {0, STR("g"), false, "!a header's checksum does not fit"},
        {124, STR("99999999999"), true, "!a header holds a size that is none"},
        {124, STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), true,
         "!a header holds a size that is none"},
        {124, STR("\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), true,
         "!a header holds a size that is none"},
        {100, STR("xyz"), true, "!a header holds a number that is none"},
        {148, STR("zzzzzzzz"), false, "!a header's checksum does not fit"},
        {156, STR("x"), true, "!an extended header is malformed"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        AUTO(buf_done) struct buf tar = {0}, notes = {0};

        add_file(&tar, "f", "hello");
        tar_write_end(&tar);
        put(&tar, t[i].at, t[i].bytes.p, t[i].bytes.n);
        if (t[i].sum)
            fix_sum(&tar);
        assert_int_equal(read_all(buf_str(&tar), 512, &notes), -1);
        assert_string_equal(buf_cstr(&notes), t[i].said);
    }
}

static void pax_records(void **state)
{
    static const struct {
        const char *records, *said;
    } t[] = {
        {"12 path=abc\n", "{0 abc> 644 0:0 1 @0|x}."},
        {"20 linkpath=/abc/de\n19 mtime=1234.5678\n", "{0 f>/abc/de 644 0:0 1 @1234|x}."},
        {"15 comment=yes\n", "{0 f> 644 0:0 1 @0|x}."},
        {"12 path=ab\n", "!an extended header is malformed"},
        {"99 path=abc\n", "!an extended header is malformed"},
        {"0 path=abc\n", "!an extended header is malformed"},
        {"x path=abc\n", "!an extended header is malformed"},
        {"8 path=\n", "!an extended header holds a name that is none"},
        {"11 size=-1\n", "!an extended header holds a size that is none"},
        {"8 abcde\n", "!an extended header is malformed"},
        {"99999999999999999999 a=b\n", "!an extended header is malformed"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        AUTO(buf_done) struct buf tar = {0}, notes = {0};

        add_file(&tar, "x", t[i].records);
        put(&tar, 156, "x", 1);
        fix_sum(&tar);
        add_file(&tar, "f", "x");
        tar_write_end(&tar);
        (void)read_all(buf_str(&tar), 700, &notes);
        assert_string_equal(buf_cstr(&notes), t[i].said);
    }
}

static void long_headers_are_bounded(void **state)
{
    AUTO(buf_done) struct buf tar = {0}, notes = {0};

    (void)state;
    add_file(&tar, "x", "");
    put(&tar, 124, "00001000000", 11); /* 256 KiB */
    put(&tar, 156, "x", 1);
    fix_sum(&tar);
    assert_int_equal(read_all(buf_str(&tar), 512, &notes), -1);
    assert_string_equal(buf_cstr(&notes), "!an extended header is too long");
}

static void names(void **state)
{
    static const char *const good[] = {"a", "a/b", "a/", "...", "a/..b", ".a"};
    static const char *const bad[] = {"",     "/",    "/a",    "..", "a/..",
                                      "../a", "a//b", "a/./b", ".",  "a//"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(tar_name_is_safe(str_of(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(tar_name_is_safe(str_of(bad[i])));
    assert_false(tar_name_is_safe(str_make("a\0b", 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(lies_are_noticed),
        cmocka_unit_test(pax_records),
        cmocka_unit_test(long_headers_are_bounded),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
