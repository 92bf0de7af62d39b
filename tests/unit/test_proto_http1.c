#include "proto/http1.h"

#include "unit.h"

static const struct http1_limits limits = {.head_max = 512, .count_max = 8};

/* Feeds the text in pieces of `step` bytes, as a connection would; returns 1, 0 or -status. */
static int feed(struct str in, size_t step, struct arena *a, struct http1_request *r,
                struct http1_scan *s)
{
    struct err e = {0};
    int st = 0;

    *s = (struct http1_scan){0};
    for (size_t n = step; st == 0; n += step) {
        st = http1_scan(s, str_make(in.p, size_min(n, in.n)), &limits, &e);
        if (n >= in.n)
            break;
    }
    if (st == 1)
        st = http1_request(s, in, a, r, &e);
    if (st < 0)
        assert_true(e.code != ERR_NONE && e.msg[0] != '\0');
    return st;
}

struct row {
    const char *what;
    int want; /* 1, 0 or -status */
    struct str text;
};
#define ROW(what, want, text) {what, want, STR(text)}
#define H "Host: a\r\n"

/* clang-format off */
static const struct row rows[] = {
    ROW("plain",                      1, "GET / HTTP/1.1\r\n" H "\r\n"),
    ROW("HTTP/1.0 without Host",      1, "GET / HTTP/1.0\r\n\r\n"),
    ROW("one empty line before",      1, "\r\nGET / HTTP/1.1\r\n" H "\r\n"),
    ROW("empty Host",                 1, "GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    ROW("absolute target",            1, "GET http://a/x?y HTTP/1.1\r\n" H "\r\n"),
    ROW("absolute target, no path",   1, "GET http://a HTTP/1.1\r\n" H "\r\n"),
    ROW("asterisk",                   1, "OPTIONS * HTTP/1.1\r\n" H "\r\n"),
    ROW("body by length",             1, "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc"),
    ROW("chunked",                    1, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n"),
    ROW("high bytes in a value",      1, "GET / HTTP/1.1\r\n" H "X: \xc3\xa4\r\n\r\n"),
    ROW("browser's target",           1, "GET /a|b?{x}=[1]&y=%41 HTTP/1.1\r\n" H "\r\n"),
    ROW("Expect in HTTP/1.0",         1, "POST / HTTP/1.0\r\nExpect: x\r\nContent-Length: 1\r\n\r\n"),
    ROW("incomplete",                 0, "GET / HTTP/1.1\r\nHost: a\r\n"),
    ROW("nothing",                    0, ""),
    ROW("CL and TE",               -400, "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ROW("TE and CL",               -400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"),
    ROW("two CL",                  -400, "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nContent-Length: 4\r\n\r\n"),
    ROW("two equal CL",            -400, "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nContent-Length: 3\r\n\r\n"),
    ROW("list CL",                 -400, "POST / HTTP/1.1\r\n" H "Content-Length: 3, 3\r\n\r\n"),
    ROW("negative CL",             -400, "POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n"),
    ROW("plus CL",                 -400, "POST / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n"),
    ROW("hex CL",                  -400, "POST / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n"),
    ROW("empty CL",                -400, "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n"),
    ROW("huge CL",                 -400, "POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n"),
    ROW("obs-fold",                -400, "GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n"),
    ROW("first field folded",      -400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    ROW("bare LF after line",      -400, "GET / HTTP/1.1\n" H "\r\n"),
    ROW("bare LF after field",     -400, "GET / HTTP/1.1\r\nHost: a\n\r\n"),
    ROW("bare LF at the end",      -400, "GET / HTTP/1.1\r\n" H "\n"),
    ROW("bare CR in a value",      -400, "GET / HTTP/1.1\r\n" H "X: a\rb\r\n\r\n"),
    ROW("bare CR in the line",     -400, "GET /\r HTTP/1.1\r\n" H "\r\n"),
    ROW("CR CR LF",                -400, "GET / HTTP/1.1\r\n" H "X: a\r\r\n\r\n"),
    ROW("NUL in a value",          -400, "GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n"),
    ROW("NUL in a name",           -400, "GET / HTTP/1.1\r\n" H "X\0: a\r\n\r\n"),
    ROW("NUL in the target",       -400, "GET /\0 HTTP/1.1\r\n" H "\r\n"),
    ROW("space before colon",      -400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
    ROW("no colon",                -400, "GET / HTTP/1.1\r\n" H "X\r\n\r\n"),
    ROW("empty name",              -400, "GET / HTTP/1.1\r\n" H ": x\r\n\r\n"),
    ROW("two Hosts",               -400, "GET / HTTP/1.1\r\n" H H "\r\n"),
    ROW("no Host",                 -400, "GET / HTTP/1.1\r\n\r\n"),
    ROW("bad Host",                -400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"),
    ROW("user in Host",            -400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"),
    ROW("other host in target",    -400, "GET http://b/ HTTP/1.1\r\n" H "\r\n"),
    ROW("no host in target",       -400, "GET http:///x HTTP/1.1\r\n" H "\r\n"),
    ROW("user in target",          -400, "GET http://u@a/ HTTP/1.1\r\n" H "\r\n"),
    ROW("relative target",         -400, "GET x HTTP/1.1\r\n" H "\r\n"),
    ROW("asterisk with GET",       -400, "GET * HTTP/1.1\r\n" H "\r\n"),
    ROW("fragment",                -400, "GET /#a HTTP/1.1\r\n" H "\r\n"),
    ROW("quote in the target",     -400, "GET /\" HTTP/1.1\r\n" H "\r\n"),
    ROW("high byte in the target", -400, "GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n"),
    ROW("space in the target",     -400, "GET /a b HTTP/1.1\r\n" H "\r\n"),
    ROW("two spaces",              -400, "GET  / HTTP/1.1\r\n" H "\r\n"),
    ROW("bad method",              -400, "G@T / HTTP/1.1\r\n" H "\r\n"),
    ROW("HTTP/0.9",                -400, "GET /\r\n" H "\r\n"),
    ROW("no version",              -400, "GET / \r\n" H "\r\n"),
    ROW("lower-case version",      -400, "GET / http/1.1\r\n" H "\r\n"),
    ROW("space after version",     -400, "GET / HTTP/1.1 \r\n" H "\r\n"),
    ROW("two empty lines before",  -400, "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n"),
    ROW("TE in HTTP/1.0",          -400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ROW("two TE",                  -400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ROW("empty TE",                -400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n"),
    ROW("unknown TE",              -501, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n"),
    ROW("TE list",                 -501, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n"),
    ROW("TE twice in one",         -501, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n"),
    ROW("TE with vertical tab",    -400, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \vchunked\r\n\r\n"),
    ROW("TE in quotes",            -501, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n"),
    ROW("identity",                -501, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n"),
    ROW("CONNECT",                 -501, "CONNECT a:1 HTTP/1.1\r\n" H "\r\n"),
    ROW("HTTP/2.0",                -505, "GET / HTTP/2.0\r\n" H "\r\n"),
    ROW("HTTP/1.2",                -505, "GET / HTTP/1.2\r\n" H "\r\n"),
    ROW("other expectation",       -417, "POST / HTTP/1.1\r\n" H "Expect: tea\r\nContent-Length: 1\r\n\r\n"),
    ROW("too many fields",         -431, "GET / HTTP/1.1\r\n" H "a:\r\na:\r\na:\r\na:\r\na:\r\na:\r\na:\r\na:\r\n\r\n"),
};
/* clang-format on */

static void requests_are_judged_whole_and_in_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t step = 1; step <= rows[i].text.n + 1; step += step < 4 ? 1 : rows[i].text.n) {
            AUTO(arena_done) struct arena a = {0};
            struct http1_request r;
            struct http1_scan s;
            int st = feed(rows[i].text, step, &a, &r, &s);

            if (st != rows[i].want)
                fail_msg("%s, by %zu: %d, not %d", rows[i].what, step, st, rows[i].want);
        }
    }
}

static void oversized_heads_have_their_status(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    AUTO(buf_done) struct buf b = {0};
    struct http1_request r;
    struct http1_scan s;

    (void)state;
    buf_add_c(&b, "GET /");
    while (buf_len(&b) < limits.head_max)
        buf_add_char(&b, 'a');
    assert_int_equal(feed(buf_str(&b), 7, &a, &r, &s), -414);
    assert_int_equal(feed(buf_str(&b), 4096, &a, &r, &s), -414);
    buf_clear(&b);
    buf_add_c(&b, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    while (buf_len(&b) < limits.head_max - 4)
        buf_add_char(&b, 'a');
    buf_add_c(&b, "\r\n\r\n");
    assert_int_equal(feed(buf_str(&b), 5, &a, &r, &s), 1); /* exactly the limit */
    buf_truncate(&b, limits.head_max - 4);
    buf_add_c(&b, "a\r\n\r\n");
    assert_int_equal(feed(buf_str(&b), 5, &a, &r, &s), -431);
    assert_int_equal(feed(buf_str(&b), 4096, &a, &r, &s), -431);
}

static void a_head_is_taken_apart(void **state)
{
    const struct str text = STR("\r\nPOST http://Ex:80/a/b?q=1?2 HTTP/1.1\r\nHOST: \t ex:80 \r\n"
                                "Content-Length: 12\r\nConnection: foo, Upgrade\r\n"
                                "Expect: 100-Continue\r\nX-Y:\r\n\r\nGET");
    AUTO(arena_done) struct arena a = {0};
    struct http1_request r;
    struct http1_scan s;

    (void)state;
    assert_int_equal(feed(text, 1, &a, &r, &s), 1);
    assert_int_equal(s.at, text.n - 3);
    assert_true(str_eq_c(r.req.method, "POST"));
    assert_true(str_eq_c(r.req.target, "http://Ex:80/a/b?q=1?2"));
    assert_true(str_eq_c(r.req.path, "/a/b"));
    assert_true(str_eq_c(r.req.query, "q=1?2"));
    assert_true(str_eq_c(r.req.authority, "ex:80"));
    assert_int_equal(r.req.header_count, 5);
    assert_true(str_eq_c(http_req_header(&r.req, "x-y"), ""));
    assert_null(http_req_header(&r.req, "x").p);
    assert_int_equal(r.req.content_length, 12);
    assert_int_equal(r.framing, HTTP1_LENGTH);
    assert_true(r.keep_alive && r.expect_continue && r.wants_upgrade);
    assert_int_equal(feed(STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 9, &a, &r, &s),
                     1);
    assert_true(r.keep_alive && !r.wants_upgrade && r.framing == HTTP1_NO_BODY && !r.req.query.p);
    assert_int_equal(feed(STR("GET / HTTP/1.0\r\n\r\n"), 9, &a, &r, &s), 1);
    assert_false(r.keep_alive);
    assert_int_equal(feed(STR("GET / HTTP/1.1\r\n" H "Connection: x,CLOSE\r\n\r\n"), 9, &a, &r, &s),
                     1);
    assert_false(r.keep_alive);
}

static void responses_are_read_for_our_client(void **state)
{
    static const struct {
        struct str text;
        bool head_only;
        int want, status;
        enum http1_framing framing;
    } cases[] = {
        {STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), false, 1, 200, HTTP1_LENGTH},
        {STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), false, 1, 200, HTTP1_NO_BODY},
        {STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), true, 1, 200, HTTP1_NO_BODY},
        {STR("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n"), false, 1, 200, HTTP1_CHUNKED},
        {STR("HTTP/1.0 404 Not Found\r\n\r\n"), false, 1, 404, HTTP1_UNTIL_CLOSE},
        {STR("HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n"), false, 1, 304, HTTP1_NO_BODY},
        {STR("HTTP/1.1 20 x\r\n\r\n"), false, -400, 0, HTTP1_NO_BODY},
        {STR("HTTP/1.1 999 x\r\n\r\n"), false, -400, 0, HTTP1_NO_BODY},
        {STR("HTTP/1.1 200 x\r\nA : b\r\n\r\n"), false, -400, 0, HTTP1_NO_BODY},
        {STR("HTTP/1.1 200 x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), false,
         -400, 0, HTTP1_NO_BODY},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(arena_done) struct arena a = {0};
        struct http1_scan s = {0};
        struct http1_response r;
        struct err e;

        assert_int_equal(http1_scan(&s, cases[i].text, &limits, &e), 1);
        assert_int_equal(http1_response(&s, cases[i].text, cases[i].head_only, &a, &r, &e),
                         cases[i].want);
        if (cases[i].want == 1) {
            assert_int_equal(r.status, cases[i].status);
            assert_int_equal(r.framing, cases[i].framing);
        }
    }
}

/* Decodes; *left gets what stands behind the body. */
static int decode(struct http1_body *b, struct str in, size_t step, struct buf *out, size_t *left)
{
    struct err e = {0};
    size_t at = 0;

    while (!http1_body_is_complete(b)) {
        size_t used = 0;
        struct str part;
        int st =
            http1_body_next(b, str_make(in.p + at, size_min(step, in.n - at)), &used, &part, &e);

        if (st < 0)
            return st;
        buf_add_str(out, part);
        at += used;
        if (st == 0 && at == in.n)
            return 0;
    }
    *left = in.n - at;
    return 1;
}

/* clang-format off */
static const struct {
    const char *what;
    int want;
    struct str text;
    const char *body;
} bodies[] = {
    {"plain",             1, STR("3\r\nabc\r\n0\r\n\r\nrest"), "abc"},
    {"two chunks",        1, STR("3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\nrest"), "abc0123456789"},
    {"extension",         1, STR("3;a=b;c=\"d\"\r\nabc\r\n0;x\r\n\r\nrest"), "abc"},
    {"trailers",          1, STR("1\r\na\r\n0\r\nX: 1\r\nY: 2\r\n\r\nrest"), "a"},
    {"empty",             1, STR("0\r\n\r\nrest"), ""},
    {"incomplete",        0, STR("5\r\nabc"), "abc"},
    {"no end",            0, STR("1\r\na\r\n0\r\n"), "a"},
    {"no size",        -400, STR("\r\nabc"), ""},
    {"not hex",        -400, STR("x\r\n"), ""},
    {"0x",             -400, STR("0x3\r\nabc\r\n"), ""},
    {"negative",       -400, STR("-1\r\n"), ""},
    {"space first",    -400, STR(" 3\r\nabc\r\n"), ""},
    {"space after",    -400, STR("3 \r\nabc\r\n"), ""},
    {"bare LF",        -400, STR("3\nabc\r\n"), ""},
    {"bare CR",        -400, STR("3\rabc"), ""},
    {"LF in extension",-400, STR("3;a\nabc"), ""},
    {"too large",      -400, STR("FFFFFFFFFFFFFFFFF\r\n"), ""},
    {"overflow",       -400, STR("10000000000000003\r\nabc\r\n"), ""},
    {"longer",         -400, STR("3\r\nabcd\r\n"), "abc"},
    {"LF after data",  -400, STR("3\r\nabc\n0\r\n\r\n"), "abc"},
    {"bare LF in trailers", -400, STR("0\r\nX: 1\n\r\n"), ""},
    {"bare LF at end", -400, STR("0\r\n\n"), ""},
};
/* clang-format on */

static void chunked_bodies_are_judged_whole_and_in_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        for (size_t step = 1; step < 64; step += step < 5 ? 1 : 50) {
            AUTO(buf_done) struct buf out = {0};
            AUTO(http1_body_done) struct http1_body b;
            size_t left = 0;
            int st;

            http1_body_init(&b, HTTP1_CHUNKED, HTTP_LENGTH_UNKNOWN);
            st = decode(&b, bodies[i].text, step, &out, &left);
            if (st != bodies[i].want || !str_eq_c(buf_str(&out), bodies[i].body))
                fail_msg("%s, by %zu: %d, '%s'", bodies[i].what, step, st, buf_cstr(&out));
            assert_int_equal(left, st == 1 ? 4 : 0);
        }
    }
}

static void chunk_lines_and_trailers_are_bounded(void **state)
{
    AUTO(buf_done) struct buf in = {0}, out = {0};
    AUTO(http1_body_done) struct http1_body b, c;
    size_t left;

    (void)state;
    buf_add_c(&in, "1;");
    for (int i = 0; i < HTTP1_CHUNK_LINE_MAX; i++)
        buf_add_char(&in, 'x');
    http1_body_init(&b, HTTP1_CHUNKED, HTTP_LENGTH_UNKNOWN);
    assert_int_equal(decode(&b, buf_str(&in), 64, &out, &left), -400);
    buf_clear(&in);
    buf_add_c(&in, "0\r\nX: ");
    for (int i = 0; i < HTTP1_TRAILERS_MAX; i++)
        buf_add_char(&in, 'x');
    http1_body_init(&c, HTTP1_CHUNKED, HTTP_LENGTH_UNKNOWN);
    assert_int_equal(decode(&c, buf_str(&in), 64, &out, &left), -431);
}

static int trailers_of(const char *text, struct arena *a, struct http_header **h, size_t *n)
{
    AUTO(buf_done) struct buf out = {0};
    AUTO(http1_body_done) struct http1_body b;
    struct err e;
    size_t left;

    http1_body_init(&b, HTTP1_CHUNKED, HTTP_LENGTH_UNKNOWN);
    assert_int_equal(decode(&b, str_of(text), 3, &out, &left), 1);
    return http1_body_trailers(&b, a, h, n, &e);
}

static void trailers_are_read_and_some_refused(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    struct http_header *h;
    size_t n;

    (void)state;
    assert_int_equal(trailers_of("0\r\nX-Sum: 7\r\nB: \r\n\r\n", &a, &h, &n), 0);
    assert_int_equal(n, 2);
    assert_true(str_eq_c(h[0].name, "x-sum") && str_eq_c(h[0].value, "7"));
    assert_int_equal(trailers_of("0\r\nContent-Length: 7\r\n\r\n", &a, &h, &n), -400);
    assert_int_equal(trailers_of("0\r\nTransfer-Encoding: chunked\r\n\r\n", &a, &h, &n), -400);
    assert_int_equal(trailers_of("0\r\nHost: x\r\n\r\n", &a, &h, &n), -400);
    assert_int_equal(trailers_of("0\r\nX : x\r\n\r\n", &a, &h, &n), -400);
    assert_int_equal(trailers_of("0\r\n X: x\r\n\r\n", &a, &h, &n), -400);
    assert_int_equal(trailers_of("0\r\nX: a\rb\r\n\r\n", &a, &h, &n), -400);
}

static void a_body_by_length_ends_where_it_should(void **state)
{
    AUTO(buf_done) struct buf out = {0};
    AUTO(http1_body_done) struct http1_body b;
    size_t left;

    (void)state;
    http1_body_init(&b, HTTP1_LENGTH, 5);
    assert_int_equal(decode(&b, STR("abcdeGET /"), 3, &out, &left), 1);
    assert_int_equal(left, 5);
    assert_true(str_eq_c(buf_str(&out), "abcde"));
    http1_body_init(&b, HTTP1_NO_BODY, 0);
    assert_true(http1_body_is_complete(&b));
}

static int proxy_request(const char *text, struct arena *a, struct http1_request *r)
{
    const struct http1_limits l = {.head_max = 4096, .count_max = 16};
    struct http1_scan s = {0};
    struct err e;

    assert_int_equal(http1_scan(&s, str_of(text), &l, &e), 1);
    return http1_proxy_request(&s, str_of(text), a, r, &e);
}

static void requests_of_a_proxy(void **state)
{
    AUTO(arena_done) struct arena a = {0};
    struct http1_request r;

    (void)state;
    assert_int_equal(proxy_request("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n", &a, &r), 1);
    assert_true(str_eq_c(r.req.authority, "a.b:443"));
    assert_int_equal(proxy_request("CONNECT a.b:443 HTTP/1.1\r\nHost: A.B\r\n\r\n", &a, &r), 1);
    assert_true(str_eq_c(r.req.authority, "a.b:443"));
    assert_int_equal(proxy_request("CONNECT [::1]:443 HTTP/1.0\r\n\r\n", &a, &r), 1);
    assert_int_equal(proxy_request("GET http://a.b/c HTTP/1.1\r\nHost: a.b\r\n\r\n", &a, &r), 1);
    assert_true(str_eq_c(r.req.path, "/c"));
    assert_int_equal(proxy_request("CONNECT a.b:443 HTTP/1.1\r\nHost: c.d\r\n\r\n", &a, &r), -400);
    assert_int_equal(proxy_request("CONNECT /x HTTP/1.1\r\nHost: /x\r\n\r\n", &a, &r), -400);
    assert_int_equal(proxy_request("GET / HTTP/1.1\r\nHost: a.b\r\n\r\n", &a, &r), -400);
    assert_int_equal(proxy_request("GET https://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", &a, &r), -400);
    assert_int_equal(proxy_request("GET http://a.b/ HTTP/1.1\r\nHost: c\r\n\r\n", &a, &r), -400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_a_proxy),
        cmocka_unit_test(requests_are_judged_whole_and_in_pieces),
        cmocka_unit_test(oversized_heads_have_their_status),
        cmocka_unit_test(a_head_is_taken_apart),
        cmocka_unit_test(responses_are_read_for_our_client),
        cmocka_unit_test(chunked_bodies_are_judged_whole_and_in_pieces),
        cmocka_unit_test(chunk_lines_and_trailers_are_bounded),
        cmocka_unit_test(trailers_are_read_and_some_refused),
        cmocka_unit_test(a_body_by_length_ends_where_it_should),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
