/* The HTTP/1.1 codec: input fed in pieces must give what it gives when fed whole.  The first byte
 * seeds the pieces. */
#include "proto/http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http1_limits limits = {.head_max = 1024, .count_max = 16};

struct outcome {
    int head; /* 1, 0 or -status */
    int body;
    int trailers;
    size_t used;
    struct http1_request r;
    struct arena arena;
    struct buf content;
};

static size_t next_piece(uint32_t *seed, size_t left)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed == 0 ? left : size_min(left, 1 + (*seed >> 24) % 40);
}

static void read_body(struct outcome *o, struct str in, bool whole, uint32_t seed)
{
    struct http_header *h;
    struct http1_body b;
    struct err e = {0};
    size_t count, at = 0;

    http1_body_init(&b, o->r.framing, o->r.req.content_length);
    o->body = http1_body_is_complete(&b) ? 1 : 0;
    while (o->body == 0 && at < in.n) {
        size_t n = whole ? in.n - at : next_piece(&seed, in.n - at), used = 0;
        struct str part = {NULL, 0};

        o->body = http1_body_next(&b, str_make(in.p + at, n), &used, &part, &e);
        if (o->body < 0)
            break;
        assert(used <= n && part.n <= used);
        buf_add_str(&o->content, part);
        at += used;
    }
    if (o->body == 1)
        o->trailers = http1_body_trailers(&b, &o->arena, &h, &count, &e);
    o->used += at;
    http1_body_done(&b);
}

static void run(struct outcome *o, struct str in, bool whole, uint32_t seed)
{
    struct http1_scan s = {0};
    struct err e = {0};
    size_t n = 0;

    do {
        n += whole ? in.n - n : next_piece(&seed, in.n - n);
        o->head = http1_scan(&s, str_make(in.p, n), &limits, &e);
    } while (o->head == 0 && n < in.n);
    if (o->head == 1) {
        assert(s.at <= n);
        o->head = http1_request(&s, str_make(in.p, n), &o->arena, &o->r, &e);
    }
    assert(o->head >= 0 || (o->head <= -400 && e.code != ERR_NONE));
    if (o->head != 1)
        return;
    o->used = s.at;
    read_body(o, str_skip(in, s.at), whole, seed);
}

static void try_response(struct str in)
{
    struct arena a = {0};
    struct http1_scan s = {0};
    struct http1_response r;
    struct err e = {0};

    if (http1_scan(&s, in, &limits, &e) == 1 && http1_response(&s, in, false, &a, &r, &e) == 1)
        assert(r.status >= 100 && r.status <= 599);
    arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole = {0}, pieces = {0};
    struct str in;

    if (size < 1)
        return 0;
    in = str_make(data + 1, size - 1);
    run(&whole, in, true, 0);
    run(&pieces, in, false, data[0]);
    assert(whole.head == pieces.head && whole.body == pieces.body);
    assert(whole.trailers == pieces.trailers);
    if (whole.body >= 0)
        assert(whole.used == pieces.used &&
               str_eq(buf_str(&whole.content), buf_str(&pieces.content)));
    if (whole.head == 1)
        assert(str_eq(whole.r.req.path, pieces.r.req.path) &&
               whole.r.req.header_count == pieces.r.req.header_count);
    try_response(in);
    arena_done(&whole.arena);
    arena_done(&pieces.arena);
    buf_done(&whole.content);
    buf_done(&pieces.content);
    return 0;
}
