#include "net/stream.h"

#include "unit.h"

#include "base/buf.h"
#include "base/fd.h"

#include <sys/socket.h>
#include <unistd.h>

#define TOTAL (4 << 20)

/* A stream over a socket pair, whose other end reads a little at a time. */
struct fixture {
    uv_loop_t loop;
    struct stream_hub *hub;
    struct stream *s;
    int peer;
    size_t written, read;
    bool closed;
};

static char byte_at(size_t offset)
{
    return (char)(offset * 2654435761U >> 11);
}

static size_t on_data(struct stream *s, struct str bytes)
{
    (void)s;
    return bytes.n;
}

static void on_nothing(struct stream *s)
{
    (void)s;
}

static void on_closed(struct stream *s, const struct err *e)
{
    (void)e;
    ((struct fixture *)stream_arg(s))->closed = true;
}

static void hub_freed(void *arg)
{
    (void)arg;
}

static void set_up(struct fixture *f)
{
    static const struct stream_ops ops = {
        .data = on_data, .eof = on_nothing, .writable = on_nothing, .closed = on_closed};
    struct err e = {0};
    int ends[2], small = 8192;

    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    f->hub = stream_hub_new(&f->loop);
    f->s = stream_adopt(f->hub, ends[0], "the test", &e);
    assert_non_null(f->s);
    f->peer = ends[1];
    stream_handle(f->s, &ops, f);
}

static void tear_down(struct fixture *f)
{
    stream_close(f->s);
    fd_close(f->peer);
    stream_hub_free(f->hub, hub_freed, NULL);
    while (uv_run(&f->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_true(f->closed);
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static void write_piece(struct fixture *f, size_t n)
{
    AUTO(buf_done) struct buf bytes = {0};
    struct str all, pieces[STREAM_PIECES];

    for (size_t i = 0; i < n; i++)
        buf_add_char(&bytes, byte_at(f->written + i));
    all = buf_str(&bytes);
    pieces[0] = str_make(all.p, n / 7);
    pieces[1] = str_make(all.p + n / 7, n - n / 7 - n / 5);
    pieces[2] = str_make(all.p + n - n / 5, n / 5);
    (void)!stream_write_pieces(f->s, pieces, STREAM_PIECES);
    f->written += n;
}

static void read_some(struct fixture *f, size_t n)
{
    static char block[65536];
    ssize_t got = read(f->peer, block, size_min(n, sizeof block));

    for (ssize_t i = 0; i < got; i++)
        assert_int_equal(block[i], byte_at(f->read + (size_t)i));
    f->read += got > 0 ? (size_t)got : 0;
}

/* Large pieces, which are not copied, beside small ones, which are; the kernel takes parts. */
static void pieces_of_any_size_arrive_in_order(void **state)
{
    static const size_t sizes[] = {70000, 3, 20000, 16384, 100, 40000, 65536};
    struct fixture f = {0};

    (void)state;
    set_up(&f);
    for (size_t i = 0; f.read < TOTAL; i++) {
        if (f.written < TOTAL && stream_pending(f.s) < STREAM_HIGH)
            write_piece(&f, sizes[i % ARRAY_LEN(sizes)]);
        assert_int_equal(stream_sent(f.s) + stream_pending(f.s), f.written);
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
        read_some(&f, 1 + i * 7919 % 50000);
    }
    while (f.read < f.written) {
        (void)uv_run(&f.loop, UV_RUN_NOWAIT);
        read_some(&f, 65536);
    }
    assert_int_equal(stream_pending(f.s), 0);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_arrive_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
