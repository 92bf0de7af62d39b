/* holtd's end of the guest protocol against a guest that says anything: after an honest hello and
 * with one channel of each kind open.  Byte 0: how many bytes arrive at a time; byte 1: what the
 * callbacks do (bit 0: drop the command at its first output, bit 1: close the guest then). */
#include "link/guest_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct owner {
    struct guest *g;
    int channels, told; /* opened; ended or let go of */
    int lost;
    bool drop, close;
    uint64_t seen[2];
};

static void on_lost(struct guest *g, const struct err *e)
{
    struct owner *o = guest_arg(g);

    if (e->code == ERR_NONE || e->msg[0] == '\0' || o->lost++ > 0 || o->told != o->channels)
        abort();
}

static void on_running(struct guest_exec *x, const struct guest_exec_running *r)
{
    struct owner *o = guest_exec_arg(x);

    o->seen[0] = r->out_from;
    o->seen[1] = r->err_from;
    (void)guest_exec_stdin(x, r->in_at, STR("some input"), false);
}

static void on_output(struct guest_exec *x, enum guest_stream s, uint64_t at, struct str bytes)
{
    struct owner *o = guest_exec_arg(x);

    if (at != o->seen[s - GUEST_OUT] || bytes.n == 0)
        abort(); /* in order, without gaps, never twice */
    o->seen[s - GUEST_OUT] += bytes.n;
    if (o->drop) {
        o->told++;
        guest_exec_drop(x);
    } else if (o->close) {
        guest_close(o->g);
        o->g = NULL;
    } else {
        guest_exec_ack(x, s, at + bytes.n);
    }
}

static void on_exited(struct guest_exec *x, const struct guest_exec_exit *how)
{
    struct owner *o = guest_exec_arg(x);

    if (how->how != GUEST_FAILED && (how->out_end != o->seen[0] || how->err_end != o->seen[1]))
        abort();
    o->told++;
    guest_exec_forget(x);
}

static void on_gone(struct guest_exec *x, const struct err *e)
{
    struct owner *o = guest_exec_arg(x);

    (void)e;
    o->told++;
}

static const struct guest_exec_ops exec_ops = {
    .running = on_running, .output = on_output, .exited = on_exited, .gone = on_gone};

static void on_data(struct guest_pipe *p, struct str bytes)
{
    guest_pipe_consume(p, bytes.n);
}

static void on_eof(struct guest_pipe *p)
{
    guest_pipe_eof(p);
}

static void on_room(struct guest_pipe *p)
{
    (void)guest_pipe_write(p, STR("more"));
}

static void on_done(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct owner *o = guest_pipe_arg(p);

    if (info && e->code != ERR_NONE)
        abort();
    o->told++;
}

static const struct guest_pipe_ops pipe_ops = {
    .data = on_data, .eof = on_eof, .room = on_room, .done = on_done};

static int on_relay(struct guest *g, struct guest_pipe *p, const struct guest_relay *from,
                    struct err *e)
{
    struct owner *o = guest_arg(g);

    if (from->port % 2)
        return err_set(e, ERR_FORBIDDEN, 0, "an odd one");
    o->channels++;
    guest_pipe_serve(p, &pipe_ops, o);
    return 0;
}

static const struct guest_ops ops = {.lost = on_lost, .relay = on_relay};

static void greet(struct owner *o)
{
    uint8_t bytes[256];
    struct guest_msg m = {.type = GUEST_HELLO_INIT};
    struct wire_out out = {.p = bytes, .size = sizeof bytes};
    struct err e;

    m.u.hello_init.version = GUEST_VERSION;
    memcpy(m.u.hello_init.nonce, o->g->nonce, sizeof o->g->nonce);
    if (guest_encode(&m, GUEST_INIT, &out, &e) < 0)
        abort();
    guest_feed(o->g, str_make(guest_mark, GUEST_MARK));
    guest_feed(o->g, str_make(bytes, out.n));
}

/* Channels 1, 3, 5, 7 and 9. */
static void open_channels(struct owner *o)
{
    static const struct wire_text argv[] = {{{"true", 4}}};
    struct guest_exec_start s = {.id = STR("ex_1"), .argv = {.count = 1, .items = argv}};
    struct guest_exec_attach a = {.id = STR("ex_2"), .out_from = 100};
    struct guest_file_call r = {.op = GUEST_FILE_READ, .path = STR("/a"), .length = 9};
    struct guest_file_call w = {.op = GUEST_FILE_WRITE, .path = STR("/b")};
    struct guest_dial d = {GUEST_TCP, 80, STR("localhost")};
    struct guest_exec *x;
    struct guest_pipe *p;
    struct err e;

    if (guest_exec_start(o->g, &s, &exec_ops, o, &x, &e) < 0 ||
        guest_exec_attach(o->g, &a, &exec_ops, o, &x, &e) < 0 ||
        guest_file(o->g, &r, &pipe_ops, o, &p, &e) < 0 ||
        guest_file(o->g, &w, &pipe_ops, o, &p, &e) < 0)
        abort();
    (void)guest_pipe_write(p, STR("content"));
    if (guest_dial(o->g, &d, &pipe_ops, o, &p, &e) < 0)
        abort();
    o->channels = 5;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct owner o = {0};
    size_t step;

    if (size < 2)
        return 0;
    step = (size_t)data[0] + 1;
    o.drop = data[1] & 1;
    o.close = data[1] & 2;
    o.g = guest_make(&ops, &o);
    greet(&o);
    open_channels(&o);
    for (size_t at = 2; o.g && at < size; at += step) {
        guest_feed(o.g, str_make(data + at, size_min(step, size - at)));
        if (!o.g)
            break;
        if (buf_len(&o.g->out) > GUEST_OUT_MAX + GUEST_START_MAX)
            abort();
        buf_clear(&o.g->out);
        guest_took(o.g);
    }
    guest_close(o.g);
    if (o.told != o.channels)
        abort(); /* each channel was told once */
    return 0;
}
