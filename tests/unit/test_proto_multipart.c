#include "proto/multipart.h"

#include "unit.h"

#define TYPE "multipart/form-data; boundary=b0"
#define PART(head) "--b0\r\n" head "\r\n\r\n"
#define FILE_HEAD "Content-Disposition: form-data; name=\"file\"; filename=\"a.txt\""

/* What a body holds, as text: "name[=filename]:data;" for each part and "." at the end. */
static int read_body(const char *type, struct str body, size_t step, struct buf *to, struct err *e)
{
    struct multipart m;
    enum multipart_event ev;
    int r = 0;

    if (multipart_init(&m, str_of(type), e) < 0)
        return -1;
    while (body.n > 0 && r == 0) {
        multipart_feed(&m, str_make(body.p, size_min(step, body.n)));
        body = str_skip(body, size_min(step, body.n));
        while ((r = multipart_next(&m, &ev, e)) == 0 && ev != MULTIPART_MORE) {
            if (ev == MULTIPART_PART && m.filename.p)
                buf_printf(to, STR_FMT "=" STR_FMT ":", STR_ARG(m.name), STR_ARG(m.filename));
            else if (ev == MULTIPART_PART)
                buf_printf(to, STR_FMT ":", STR_ARG(m.name));
            else if (ev == MULTIPART_DATA)
                buf_add_str(to, m.data);
            else
                buf_add_c(to, ev == MULTIPART_END ? "." : ";");
        }
    }
    multipart_done(&m);
    return r;
}

static void check(const char *type, const char *body, const char *want)
{
    for (size_t step = 1; step < 64; step += 1 + step / 4) {
        AUTO(buf_done) struct buf got = {0};
        struct err e = {0};

        assert_int_equal(read_body(type, str_of(body), step, &got, &e), 0);
        assert_string_equal(buf_cstr(&got), want);
    }
}

static void refuse(const char *type, const char *body, const char *why)
{
    for (size_t step = 1; step < 64; step += 1 + step / 4) {
        AUTO(buf_done) struct buf got = {0};
        struct err e = {0};

        assert_int_equal(read_body(type, str_of(body), step, &got, &e), -1);
        assert_non_null(strstr(e.msg, why));
    }
}

static void parts_come_out_however_the_bytes_are_split(void **state)
{
    (void)state;
    check(TYPE,
          PART(FILE_HEAD "\r\nContent-Type: text/plain") "hello\r\n" PART(
              "Content-Disposition: form-data; name=uploader") "me\r\n--b0--\r\nrest",
          "file=a.txt:hello;uploader:me;.");
    check(TYPE, PART(FILE_HEAD) "\r\n--b0--", "file=a.txt:;.");
    check(TYPE, "--b0--", ".");
    check(TYPE, "preamble\r\n" PART(FILE_HEAD) "x\r\n--b0--", "file=a.txt:x;.");
    check(TYPE, PART(FILE_HEAD) "x\r\n--b", "file=a.txt:x"); /* no end: the caller sees that */
}

static void what_looks_like_a_boundary_is_content(void **state)
{
    (void)state;
    check(TYPE, PART(FILE_HEAD) "\r\n--b\r\n-b0\r\r\n\r\n--c0 --b0\r\n--b0--",
          "file=a.txt:\r\n--b\r\n-b0\r\r\n\r\n--c0 --b0;.");
}

static void parameters_are_unquoted(void **state)
{
    (void)state;
    check("Multipart/Form-Data; charset=utf-8; Boundary=\"b0\"",
          PART("content-disposition: Form-Data ; name=\"a\\\"\\\\;\" ; filename=\"\"") "\r\n--b0--",
          "a\"\\;=:;.");
    check(TYPE, PART("Content-Disposition: form-data; name=a; filename*=UTF-8''x") "1\r\n--b0--",
          "a:1;.");
}

static void other_forms_are_refused(void **state)
{
    (void)state;
    refuse("application/json", "x", "must be multipart/form-data");
    refuse("multipart/form-data", "x", "boundary");
    refuse("multipart/form-data; boundary=", "x", "boundary");
    refuse("multipart/form-data; boundary=\"a b\"", "x", "boundary");
    refuse("multipart/form-data; boundary=" /* 71 */
           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
           "x", "boundary");
    refuse(TYPE, "--b0xy", "line end");
    refuse(TYPE, "--b0\r\n\r\nx", "no head");
    refuse(TYPE, PART("Content-Type: text/plain"), "no name");
    refuse(TYPE, PART("Content-Disposition: attachment; name=a"), "not form-data");
    refuse(TYPE, PART("Content-Disposition: form-data; name=a; name=b"), "twice");
    refuse(TYPE, PART("Content-Disposition: form-data; name=\"a"), "malformed");
    refuse(TYPE,
           PART("Content-Disposition: form-data; name=a") "x\r\n" PART(
               FILE_HEAD "\r\nContent-Disposition: form-data; name=x"),
           "more than one");
    refuse(TYPE, PART("Content-Disposition: form-data; name=a\r\n folded"), "malformed line");
    refuse(TYPE, PART("Content-Disposition: form-data; name=a\nX: y"), "CRLF");
    refuse(TYPE, PART(FILE_HEAD "\r\nContent-Transfer-Encoding: base64"), "encoded");
}

static void heads_and_their_number_are_bounded(void **state)
{
    AUTO(buf_done) struct buf body = {0}, got = {0};
    struct err e = {0};

    (void)state;
    buf_add_c(&body, "--b0\r\nX: ");
    for (int i = 0; i < MULTIPART_HEAD_MAX; i++)
        buf_add_char(&body, 'x');
    assert_int_equal(read_body(TYPE, buf_str(&body), 1000, &got, &e), -1);
    assert_int_equal(e.code, ERR_TOO_LARGE);
    buf_clear(&body);
    for (int i = 0; i <= MULTIPART_PARTS_MAX; i++)
        buf_add_c(&body, PART("Content-Disposition: form-data; name=a") "\r\n");
    assert_int_equal(read_body(TYPE, buf_str(&body), 1000, &got, &e), -1);
    assert_non_null(strstr(e.msg, "parts"));
    buf_clear(&body);
    for (int i = 0; i < 2 * MULTIPART_HEAD_MAX; i++)
        buf_add_char(&body, 'x');
    assert_int_equal(read_body(TYPE, buf_str(&body), 1000, &got, &e), -1);
    assert_non_null(strstr(e.msg, "does not begin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_come_out_however_the_bytes_are_split),
        cmocka_unit_test(what_looks_like_a_boundary_is_content),
        cmocka_unit_test(parameters_are_unquoted),
        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(heads_and_their_number_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
