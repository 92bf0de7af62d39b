#include "api/share/port_head.h"

#include "unit.h"

#define H(n, v) {STR(n), STR(v)}

static struct str head(const struct http_req *req, bool upgrade, struct buf *to, bool *chunked)
{
    struct port_request q = {.req = req,
                             .path = STR("a%20b"),
                             .prefix = STR("/p/8000"),
                             .port = 8000,
                             .upgrade = upgrade};

    buf_clear(to);
    port_write_head(&q, to, chunked);
    return str_of(buf_cstr(to));
}

static bool has(struct str text, const char *part)
{
    return strstr(text.p, part) != NULL;
}

static void credentials_and_hops_do_not_go_in(void **state)
{
    AUTO(buf_done) struct buf to = {0};
    struct http_header h[] = {H("authorization", "Bearer holt_secret"),
                              H("cookie", "holt_session=x"),
                              H("proxy-authorization", "x"),
                              H("connection", "keep-alive, x-hop"),
                              H("x-hop", "1"),
                              H("te", "trailers"),
                              H("x-forwarded-for", "1.2.3.4"),
                              H("accept", "text/html"),
                              H("expect", "100-continue"),
                              H("transfer-encoding", "chunked")};
    struct http_req req = {.method = STR("GET"),
                           .query = STR("q=1"),
                           .scheme = STR("http"),
                           .authority = STR("127.0.0.1:8122"),
                           .headers = h,
                           .header_count = ARRAY_LEN(h)};
    bool chunked;
    struct str text = head(&req, false, &to, &chunked);

    (void)state;
    assert_true(str_starts(text, STR("GET /a%20b?q=1 HTTP/1.1\r\nhost: localhost:8000\r\n")));
    assert_true(has(text, "accept: text/html\r\n"));
    assert_true(has(text, "x-forwarded-prefix: /p/8000\r\n"));
    assert_true(has(text, "connection: close\r\n\r\n"));
    for (size_t i = 0; i < ARRAY_LEN(h); i++) {
        char line[64];

        (void)snprintf(line, sizeof line, "\n%s: %s", h[i].name.p, h[i].value.p);
        if (has(text, line) != str_eq_c(h[i].name, "accept"))
            fail_msg("'%s' went in", h[i].name.p);
    }
    assert_false(has(text, "holt_") || has(text, "x-hop") || has(text, "content-length"));
    assert_false(chunked);
}

static void the_body_keeps_its_framing(void **state)
{
    AUTO(buf_done) struct buf to = {0};
    struct http_req req = {.method = STR("POST"),
                           .scheme = STR("http"),
                           .authority = STR("h"),
                           .content_length = HTTP_LENGTH_UNKNOWN};
    bool chunked;

    (void)state;
    assert_true(has(head(&req, false, &to, &chunked), "transfer-encoding: chunked\r\n"));
    assert_true(chunked);
    req.content_length = 5;
    assert_true(has(head(&req, false, &to, &chunked), "content-length: 5\r\n"));
    req.content_length = 0;
    assert_true(has(head(&req, false, &to, &chunked), "content-length: 0\r\n"));
    assert_false(chunked);
}

static void an_upgrade_is_asked_for(void **state)
{
    AUTO(buf_done) struct buf to = {0};
    struct http_header h[] = {H("upgrade", "websocket"), H("connection", "Upgrade"),
                              H("sec-websocket-key", "abc")};
    struct http_req req = {.method = STR("GET"),
                           .scheme = STR("http"),
                           .authority = STR("h"),
                           .headers = h,
                           .header_count = ARRAY_LEN(h)};
    bool chunked;
    struct str text = head(&req, true, &to, &chunked);

    (void)state;
    assert_true(has(text, "connection: Upgrade\r\nupgrade: websocket\r\n\r\n"));
    assert_true(has(text, "sec-websocket-key: abc\r\n"));
    assert_false(has(text, "connection: close"));
}

static void a_preview_keeps_its_own_cookies_only(void **state)
{
    AUTO(buf_done) struct buf to = {0};
    struct http_header h[] = {H("cookie", "a=1; holt_preview=x; b=2; holt_session=y"),
                              H("cookie", "holt_preview=z; nameless; c=3"),
                              H("origin", "http://8000-sb-x.localhost:8123"),
                              H("authorization", "Bearer holt_secret")};
    struct http_req req = {.method = STR("GET"),
                           .scheme = STR("http"),
                           .authority = STR("8000-sb-x.localhost:8123"),
                           .headers = h,
                           .header_count = ARRAY_LEN(h)};
    struct port_request q = {.req = &req, .path = STR("x"), .port = 8000, .preview = true};
    bool chunked;
    struct str text;

    (void)state;
    port_write_head(&q, &to, &chunked);
    text = str_of(buf_cstr(&to));
    assert_true(has(text, "\r\ncookie: a=1; b=2; c=3\r\n"));
    assert_true(has(text, "\r\norigin: http://localhost:8000\r\n"));
    assert_true(has(text, "\r\nx-forwarded-host: 8000-sb-x.localhost:8123\r\n"));
    assert_false(has(text, "holt_") || has(text, "nameless") || has(text, "prefix"));
    req.header_count = 0;
    buf_clear(&to);
    port_write_head(&q, &to, &chunked);
    assert_false(has(str_of(buf_cstr(&to)), "cookie"));
}

static struct str field(const struct http_header *h, size_t n, const char *name)
{
    const struct http_header *f = http_get(h, n, name);

    return f ? f->value : (struct str){0};
}

static void what_speaks_for_the_origin_does_not_come_out(void **state)
{
    struct arena a = {0};
    struct http_header in[] = {
        H("set-cookie", "a=1"), H("service-worker-allowed", "/"), H("clear-site-data", "\"*\""),
        H("alt-svc", "h3"),     H("content-type", "text/html"),   H("connection", "close, x-hop"),
        H("x-hop", "1"),        H("content-length", "7"),         H("location", "/login")};
    struct http1_response res = {.status = 200,
                                 .headers = in,
                                 .header_count = ARRAY_LEN(in),
                                 .content_length = 7,
                                 .framing = HTTP1_LENGTH};
    struct port_request q = {.prefix = STR("/p/8000"), .port = 8000};
    struct http_header out[PORT_HEADERS_MAX];
    size_t n = port_reply_headers(&q, &res, &a, out);

    (void)state;
    assert_int_equal(n, 4);
    assert_true(str_eq_c(field(out, n, "content-type"), "text/html"));
    assert_true(str_eq_c(field(out, n, "content-security-policy"), "sandbox"));
    assert_true(str_eq_c(field(out, n, "content-length"), "7"));
    assert_true(str_eq_c(field(out, n, "location"), "/p/8000/login"));
    arena_done(&a);
}

static void redirects_stay_inside_when_they_lead_there(void **state)
{
    static const char *const cases[][2] = {
        {"/", "/p/8000/"},
        {"http://localhost:8000/x", "/p/8000/x"},
        {"http://127.0.0.1:8000", "/p/8000/"},
        {"http://localhost:80001/x", "http://localhost:80001/x"},
        {"//evil/x", "//evil/x"},
        {"http://localhost:8000//evil", "//evil"},
        {"rel", "rel"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = {0};
        struct http_header in[] = {{STR("location"), str_of(cases[i][0])}};
        struct http1_response res = {.status = 302, .headers = in, .header_count = 1};
        struct port_request q = {.prefix = STR("/p/8000"), .port = 8000};
        struct http_header out[PORT_HEADERS_MAX];
        size_t n = port_reply_headers(&q, &res, &a, out);

        if (!str_eq_c(field(out, n, "location"), cases[i][1]))
            fail_msg("%s became " STR_FMT, cases[i][0], STR_ARG(field(out, n, "location")));
        arena_done(&a);
    }
}

static void a_previews_cookies_are_its_hosts(void **state)
{
    static const char *const cases[][2] = {
        {"a=1", "a=1"},
        {"a=1; Path=/; HttpOnly", "a=1; Path=/; HttpOnly"},
        {"a=1; Domain=localhost; Path=/", "a=1; Path=/"},
        {"a=1;domain = .localhost;Secure;DOMAIN", "a=1;Secure"},
        {"a=b=c; Max-Age=5", "a=b=c; Max-Age=5"},
        {"holt_session=x; Path=/", NULL},
        {" holt_preview =x", NULL},
        {"Holt_Session=x", NULL},
        {"=holt_session=x", NULL}, /* sent back as "holt_session=x" */
        {"holt_session", NULL},
        {"", NULL},
        {";", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = {0};
        struct http_header in[] = {{STR("set-cookie"), str_of(cases[i][0])},
                                   H("set-cookie", "last=1"),
                                   H("service-worker-allowed", "/")};
        struct http1_response res = {.status = 200, .headers = in, .header_count = ARRAY_LEN(in)};
        struct port_request q = {.port = 8000, .preview = true};
        struct http_header out[PORT_HEADERS_MAX];
        size_t n = port_reply_headers(&q, &res, &a, out);

        if (n != (cases[i][1] ? 2 : 1) ||
            !str_eq_c(out[0].value, cases[i][1] ? cases[i][1] : "last=1"))
            fail_msg("'%s' became %zu: '" STR_FMT "'", cases[i][0], n, STR_ARG(out[0].value));
        arena_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials_and_hops_do_not_go_in),
        cmocka_unit_test(the_body_keeps_its_framing),
        cmocka_unit_test(an_upgrade_is_asked_for),
        cmocka_unit_test(what_speaks_for_the_origin_does_not_come_out),
        cmocka_unit_test(redirects_stay_inside_when_they_lead_there),
        cmocka_unit_test(a_preview_keeps_its_own_cookies_only),
        cmocka_unit_test(a_previews_cookies_are_its_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
