#include "base/mem.h"
#include "egress/exchange.h"
#include "proto/http1.h"
#include "proto/scrub.h"

#define VALUE "the-real-value-of-it"
#define PLACE "holt_placeholder"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char secrets[] =
    "[{\"placeholder\":\"" PLACE "\",\"value\":\"" VALUE "\",\"hosts\":[\"a.test\"]}]";

static bool has(struct str s, const char *what)
{
    return s.n > 0 && memmem(s.p, s.n, what, strlen(what)) != NULL;
}

/* Wherever the input is cut the outcome is the same, and it has no value in it. */
static void scrubber(struct str in)
{
    AUTO(scrub_done) struct scrub s = {0};
    AUTO(buf_done) struct buf whole = {0}, cut = {0};
    size_t step = 1 + in.n / 7;

    scrub_add(&s, STR(VALUE), STR(PLACE));
    scrub_add(&s, STR("the-"), STR("THE_PLACE"));
    scrub_all(&s, in, &whole);
    for (size_t at = 0; at < in.n; at += step)
        scrub_feed(&s, str_make(in.p + at, size_min(step, in.n - at)), &cut);
    scrub_end(&s, &cut);
    assert(str_eq(buf_str(&whole), buf_str(&cut)));
    assert(!has(buf_str(&whole), VALUE));
}

/* A list that was taken fills in, and what it filled in is found again. */
static void list(struct str in)
{
    AUTO(bindings_free) struct bindings *b = NULL;
    AUTO(buf_done) struct buf out = {0};
    struct http_header h = {STR("authorization"), in};
    struct binding_query q = {.tls = true, .method = STR("GET"), .path = STR("/")};
    struct host host;
    struct err e;

    if (host_parse(STR("a.test"), &host, &e) < 0 || bindings_parse(in, &b, &e) < 0)
        return;
    q.host = &host;
    (void)bindings_know(b, &q);
    (void)bindings_fill_header(b, &q, &h, &out);
    (void)bindings_fill_query(b, &q, in, &out);
}

static bool judge(void *arg, struct str method, struct str path, char why_not[static EXCHANGE_RULE])
{
    (void)arg;
    (void)path;
    why_not[0] = '\0';
    return !str_eq_c(method, "DELETE");
}

static void refused(void *arg, const char *why)
{
    (void)arg;
    (void)why;
}

static const struct bindings *bindings(void *arg)
{
    return arg;
}

/* Whatever the server gets, our own strict reader takes it, and reads no other host in it. */
static void check_requests(struct str out)
{
    static const struct http1_limits limits = {.head_max = 256 * 1024, .count_max = 300};

    while (out.n > 0) {
        AUTO(arena_done) struct arena a = {0};
        AUTO(http1_body_done) struct http1_body body = {0};
        struct http1_scan scan = {0};
        struct http1_request r;
        struct str part;
        struct err e;
        size_t used = 0;
        int st = http1_scan(&scan, out, &limits, &e);

        assert(st == 1);
        st = http1_request(&scan, out, &a, &r, &e);
        assert(st == 1 && str_eq_c(r.req.authority, "a.test") && !str_eq_c(r.req.method, "DELETE"));
        out = str_skip(out, scan.at);
        http1_body_init(&body, r.framing, r.req.content_length);
        for (st = http1_body_is_complete(&body); st == 0 && out.n > 0;) {
            st = http1_body_next(&body, out, &used, &part, &e);
            assert(st >= 0);
            out = str_skip(out, used);
        }
    }
}

/* Client's and server's bytes take turns, a NUL between them. */
static void talk(struct str in)
{
    static const struct exchange_ops ops = {judge, refused, bindings};
    AUTO(bindings_free) struct bindings *b = NULL;
    AUTO(buf_done) struct buf to_server = {0};
    struct host host;
    struct err e;
    struct exchange *x;
    bool own = has(in, "upgrade") || has(in, "Upgrade") || has(in, "UPGRADE");
    int turn = 0;

    if (host_parse(STR("a.test"), &host, &e) < 0 || bindings_parse(str_of(secrets), &b, &e) < 0)
        return;
    x = exchange_new(
        &(struct exchange_config){.host = &host, .port = 443, .tls = true, .ops = &ops, .arg = b});
    while (in.n > 0) {
        struct str piece = str_cut(in, '\0', &in);

        own |= turn == 0 && has(piece, "the-");
        if (turn++ % 2)
            exchange_from_server(x, piece);
        else
            exchange_from_client(x, piece);
        buf_add_str(&to_server, buf_str(exchange_to_server(x)));
        buf_clear(exchange_to_server(x));
    }
    exchange_server_ended(x, true);
    if (!own) {
        check_requests(buf_str(&to_server));
        assert(!has(buf_str(exchange_to_client(x)), VALUE));
    }
    exchange_free(x);
}

/* The first byte says which part. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct str in = str_make(p + 1, n > 0 ? n - 1 : 0);

    if (n == 0 || n > 100000)
        return 0;
    if (p[0] == 's')
        scrubber(in);
    else if (p[0] == 'b')
        list(in);
    else if (p[0] == 'x')
        talk(in);
    return 0;
}
