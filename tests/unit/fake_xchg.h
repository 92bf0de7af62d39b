/* fake_xchg: an exchange whose protocol only takes notes, for tests of what is built on exchanges.
 * Include it in one file of a program. */
#pragma once

#include "../fuzz/fake_net.h"

static struct {
    struct buf out;     /* the reply's body, or raw bytes */
    struct buf head;    /* "200\nname: value\n…" */
    struct buf trailer; /* "name: value\n…" */
    size_t consumed;
    bool ended, aborted, upgraded;
    int write_result; /* what writing answers: 1 is "wait" */
} note;

static struct xchg *fake_x;

static void note_fields(struct buf *to, const struct http_header *h, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(to, STR_FMT ": " STR_FMT "\n", STR_ARG(h[i].name), STR_ARG(h[i].value));
}

static void note_head(struct xchg *x, int status, const struct http_header *h, size_t count)
{
    (void)x;
    buf_printf(&note.head, "%d\n", status);
    note_fields(&note.head, h, count);
}

static int note_write(struct xchg *x, const void *p, size_t n)
{
    (void)x;
    buf_add(&note.out, p, n);
    return note.write_result;
}

static void note_end(struct xchg *x, const struct http_header *h, size_t count)
{
    (void)x;
    note_fields(&note.trailer, h, count);
    note.ended = true;
}

static void note_abort(struct xchg *x)
{
    (void)x;
    note.aborted = true;
}

static void note_consume(struct xchg *x, size_t n)
{
    (void)x;
    note.consumed += n;
}

static void note_upgrade(struct xchg *x, const struct http_header *h, size_t count)
{
    x->status = 101;
    note_head(x, 101, h, count);
    note.upgraded = true;
}

static const struct xchg_proto note_proto = {
    .head = note_head,
    .write = note_write,
    .end = note_end,
    .abort = note_abort,
    .consume = note_consume,
    .upgrade = note_upgrade,
};

/* A request whose head is complete; fields are "name", "value", …, NULL. */
static UNUSED struct xchg *fake_request(enum http_version version, const char *method,
                                        const char *path, const char *const *fields)
{
    struct http_req *r;

    fake_x = xchg_new(&fake_conn, &note_proto, NULL);
    r = &fake_x->req;
    r->version = version;
    r->method = str_of(method);
    r->path = r->target = str_of(path);
    r->headers = arena_alloc(&fake_x->arena, 32 * sizeof *r->headers);
    for (; *fields; fields += 2)
        r->headers[r->header_count++] = (struct http_header){str_of(fields[0]), str_of(fields[1])};
    return fake_x;
}

/* The reply is sent, or the peer is gone. */
static UNUSED void fake_gone(bool done)
{
    if (fake_x)
        xchg_gone(TAKE(fake_x), done);
}

static UNUSED int fake_setup(void **state)
{
    (void)state;
    if (uv_loop_init(&fake_server.loop) != 0)
        abort();
    net_metrics_add();
    fake_conn = (struct conn){.server = &fake_server, .stream = &fake_stream};
    list_init(&fake_conn.link);
    return 0;
}

static UNUSED int fake_teardown(void **state)
{
    (void)state;
    fake_gone(note.ended);
    (void)uv_run(&fake_server.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&fake_server.loop) != 0)
        abort();
    xchg_free_spares(true);
    buf_done(&note.out);
    buf_done(&note.head);
    buf_done(&note.trailer);
    memset(&note, 0, sizeof note);
    return 0;
}
