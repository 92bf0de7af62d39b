#include "link/guest_internal.h"

#include "base/fd.h"
#include "unit.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* A guest without descriptors, and a peer that says whatever a test wants. */
struct host {
    struct guest *g;
    int ready, lost, running, exited, gone, room, opened, eof, done, stats;
    struct err err, chan_err;
    struct buf out;
    struct guest_exec *x;
    struct guest_pipe *p;
    enum { KEEP, DROP, CLOSE } in_output; /* what the output callback does */
    bool no_ack;
};

static void on_ready(struct guest *g, const struct guest_hello_init *h)
{
    (void)h;
    ((struct host *)guest_arg(g))->ready++;
}

static void on_lost(struct guest *g, const struct err *e)
{
    struct host *h = guest_arg(g);

    h->lost++;
    h->err = *e;
}

static void x_running(struct guest_exec *x, const struct guest_exec_running *r)
{
    (void)r;
    ((struct host *)guest_exec_arg(x))->running++;
}

static void x_output(struct guest_exec *x, enum guest_stream s, uint64_t at, struct str bytes)
{
    struct host *h = guest_exec_arg(x);

    buf_add_str(&h->out, bytes);
    if (h->in_output == DROP) {
        guest_exec_drop(x);
        h->x = NULL;
    } else if (h->in_output == CLOSE) {
        guest_close(h->g);
        h->g = NULL;
    } else if (!h->no_ack) {
        guest_exec_ack(x, s, at + bytes.n);
    }
}

static void x_room(struct guest_exec *x)
{
    ((struct host *)guest_exec_arg(x))->room++;
}

static void x_exited(struct guest_exec *x, const struct guest_exec_exit *how)
{
    (void)how;
    ((struct host *)guest_exec_arg(x))->exited++;
}

static void x_gone(struct guest_exec *x, const struct err *e)
{
    struct host *h = guest_exec_arg(x);

    h->gone++;
    h->chan_err = *e;
    h->x = NULL;
}

static const struct guest_exec_ops exec_ops = {x_running, x_output, x_room, x_exited, x_gone};

static void p_opened(struct guest_pipe *p)
{
    ((struct host *)guest_pipe_arg(p))->opened++;
}

static void p_data(struct guest_pipe *p, struct str bytes)
{
    struct host *h = guest_pipe_arg(p);

    buf_add_str(&h->out, bytes);
    if (!h->no_ack)
        guest_pipe_consume(p, bytes.n);
}

static void p_eof(struct guest_pipe *p)
{
    ((struct host *)guest_pipe_arg(p))->eof++;
}

static void p_room(struct guest_pipe *p)
{
    ((struct host *)guest_pipe_arg(p))->room++;
}

static void p_done(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct host *h = guest_pipe_arg(p);

    (void)info;
    h->done++;
    h->chan_err = *e;
    h->p = NULL;
}

static const struct guest_pipe_ops pipe_ops = {p_opened, p_data, p_eof, p_room, p_done};

static int on_relay(struct guest *g, struct guest_pipe *p, const struct guest_relay *from,
                    struct err *e)
{
    struct host *h = guest_arg(g);

    if (from->uid == 13)
        return err_set(e, ERR_FORBIDDEN, 0, "not thirteen");
    h->p = p;
    guest_pipe_serve(p, &pipe_ops, h);
    return 0;
}

static const struct guest_ops ops = {on_ready, on_lost, on_relay};

static void got_stats(void *arg, const struct guest_stats *s, const struct err *e)
{
    ((struct host *)arg)->stats += s ? 1 : 100;
    assert_int_equal(s == NULL, e->code != ERR_NONE);
}

/* ---- the peer ---- */

static void peer_raw(struct host *h, const void *p, size_t n)
{
    guest_feed(h->g, str_make(p, n));
}

static void peer(struct host *h, const struct guest_msg *m)
{
    static uint8_t bytes[GUEST_HEAD + GUEST_PAYLOAD_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct err e = {0};

    if (guest_encode(m, GUEST_INIT, &o, &e) < 0)
        fail_msg("encode: %s", e.msg);
    peer_raw(h, bytes, o.n);
}

static void peer_hello(struct host *h)
{
    struct guest_msg m = {.type = GUEST_HELLO_INIT};

    m.u.hello_init.version = GUEST_VERSION;
    memcpy(m.u.hello_init.nonce, h->g->nonce, 16);
    peer_raw(h, guest_mark, GUEST_MARK);
    peer(h, &m);
}

static void peer_data(struct host *h, uint32_t channel, uint32_t stream, uint64_t at,
                      struct str bytes, bool eof)
{
    struct guest_msg m = {.type = GUEST_DATA, .channel = channel, .stream = stream};
    static uint8_t head[GUEST_DATA_HEAD + GUEST_DATA_MAX + 1];
    size_t n;

    m.u.data = (struct guest_data){at, bytes};
    n = guest_data_head(head, &m, eof);
    assert_int_equal(n, bytes.n);
    memcpy(head + GUEST_DATA_HEAD, bytes.p, n);
    head[GUEST_DATA_HEAD + n] = 0;
    peer_raw(h, head, GUEST_DATA_HEAD + n + 1);
}

static void peer_running(struct host *h, uint32_t channel, uint64_t out_from)
{
    struct guest_msg m = {.type = GUEST_EXEC_RUNNING, .channel = channel};

    m.u.running.pid = 2;
    m.u.running.known = out_from > 0;
    m.u.running.out_from = out_from;
    peer(h, &m);
}

static void peer_exit(struct host *h, uint32_t channel, uint64_t out_end)
{
    struct guest_msg m = {.type = GUEST_EXEC_EXIT, .channel = channel};

    m.u.exit.out_end = out_end;
    peer(h, &m);
}

static void peer_plain(struct host *h, enum guest_type type, uint32_t channel)
{
    struct guest_msg m = {.type = type, .channel = channel};

    peer(h, &m);
}

static void peer_ack(struct host *h, uint32_t channel, uint64_t acked, uint64_t limit)
{
    struct guest_msg m = {.type = GUEST_ACK, .channel = channel, .stream = GUEST_IN};

    m.u.ack = (struct guest_ack){acked, limit};
    peer(h, &m);
}

/* ---- set-up ---- */

static void begin(struct host *h)
{
    *h = (struct host){0};
    h->g = guest_make(&ops, h);
    peer_hello(h);
    assert_int_equal(h->ready, 1);
    buf_clear(&h->g->out);
}

static void end(struct host *h)
{
    guest_close(h->g);
    buf_done(&h->out);
}

static void start(struct host *h)
{
    static const struct wire_text argv[] = {{{"true", 4}}};
    struct guest_exec_start s = {.id = STR("ex_1"), .argv = {.count = 1, .items = argv}};
    struct err e = {0};

    assert_int_equal(guest_exec_start(h->g, &s, &exec_ops, h, &h->x, &e), 0);
}

static void start_and_run(struct host *h)
{
    begin(h);
    start(h);
    peer_running(h, 1, 0);
    assert_int_equal(h->running, 1);
    buf_clear(&h->g->out);
}

static void dial(struct host *h)
{
    struct guest_dial d = {GUEST_TCP, 80, STR("localhost")};
    struct err e = {0};

    assert_int_equal(guest_dial(h->g, &d, &pipe_ops, h, &h->p, &e), 0);
}

static void read_file(struct host *h)
{
    struct guest_file_call c = {.op = GUEST_FILE_READ, .path = STR("/a"), .length = 10};
    struct err e = {0};

    assert_int_equal(guest_file(h->g, &c, &pipe_ops, h, &h->p, &e), 0);
}

static void must_be_lost(struct host *h, const char *why)
{
    if (h->lost != 1)
        fail_msg("not lost; expected: %s", why);
    if (!strstr(h->err.msg, why))
        fail_msg("'%s' does not say '%s'", h->err.msg, why);
    end(h);
}

/* ---- tests ---- */

static void hello_is_checked(void **state)
{
    struct guest_msg m = {.type = GUEST_HELLO_INIT};
    struct host h = {0};

    (void)state;
    h.g = guest_make(&ops, &h);
    peer_raw(&h, "GET / HTTP/1.1\r\n", 16);
    must_be_lost(&h, "does not speak the guest protocol");

    h = (struct host){0};
    h.g = guest_make(&ops, &h);
    peer_raw(&h, guest_mark, GUEST_MARK);
    m.u.hello_init.version = GUEST_VERSION; /* a nonce that is not ours */
    peer(&h, &m);
    assert_int_equal(h.ready, 0);
    must_be_lost(&h, "answers another one");

    h = (struct host){0};
    h.g = guest_make(&ops, &h);
    peer_raw(&h, guest_mark, GUEST_MARK);
    memcpy(m.u.hello_init.nonce, h.g->nonce, 16);
    m.u.hello_init.version = 0;
    peer(&h, &m);
    assert_int_equal(h.err.code, ERR_UNSUPPORTED);
    must_be_lost(&h, "version 0");

    h = (struct host){0};
    h.g = guest_make(&ops, &h);
    peer_raw(&h, guest_mark, GUEST_MARK);
    m = (struct guest_msg){.type = GUEST_PING};
    peer(&h, &m);
    must_be_lost(&h, "before hello");

    begin(&h);
    m = (struct guest_msg){.type = GUEST_HELLO_INIT};
    m.u.hello_init.version = GUEST_VERSION;
    memcpy(m.u.hello_init.nonce, h.g->nonce, 16);
    peer(&h, &m);
    must_be_lost(&h, "second hello");

    h = (struct host){0};
    h.g = guest_make(&ops, &h);
    guest_tick(h.g);
    assert_int_equal(h.err.code, ERR_TIMEOUT);
    must_be_lost(&h, "does not answer");
}

static void nothing_is_sent_before_hello(void **state)
{
    struct guest_exec_start s = {.id = STR("ex_1")};
    struct err e = {0};
    struct host h = {0};

    (void)state;
    h.g = guest_make(&ops, &h);
    assert_int_equal(guest_exec_start(h.g, &s, &exec_ops, &h, &h.x, &e), -1);
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    guest_stats(h.g, got_stats, &h);
    assert_int_equal(h.stats, 100);
    end(&h);
    assert_int_equal(h.lost, 0); /* closed by us: not lost */
}

static void a_long_command_goes_out(void **state)
{
    static const size_t lengths[] = {8000, 8192, 65536, 131071};
    static char line[131071];
    struct host h;

    (void)state;
    memset(line, 'x', sizeof line);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        const struct wire_text argv[] = {{str_make(line, lengths[i])}};
        struct guest_exec_start s = {.id = STR("ex_1"), .argv = {.count = 1, .items = argv}};
        struct err e = {0};

        begin(&h);
        buf_clear(&h.g->out);
        assert_int_equal(guest_exec_start(h.g, &s, &exec_ops, &h, &h.x, &e), 0);
        assert_true(buf_len(&h.g->out) > lengths[i]);
        end(&h);
    }
}

static void a_command_goes_through(void **state)
{
    struct host h;

    (void)state;
    start_and_run(&h);
    peer_data(&h, 1, GUEST_OUT, 0, STR("hel"), false);
    peer_data(&h, 1, GUEST_OUT, 0, STR("hello"), true); /* a repetition is cut */
    assert_true(str_eq_c(buf_str(&h.out), "hello"));
    peer_exit(&h, 1, 5);
    assert_int_equal(h.exited, 1);
    guest_exec_forget(h.x);
    peer_plain(&h, GUEST_CLOSE, 1); /* init's answer, to a channel we no longer know */
    assert_int_equal(h.lost + h.gone, 0);
    assert_int_equal(h.g->channel_count, 0);
    end(&h);
}

static void every_lie_about_a_command_is_seen(void **state)
{
    struct guest_exec_attach at = {.id = STR("ex_1"), .out_from = 100};
    struct guest_msg m = {.type = GUEST_EXEC_RUNNING, .channel = 1};
    struct err e = {0};
    struct host h;

    (void)state;
    begin(&h);
    start(&h);
    peer_data(&h, 1, GUEST_OUT, 0, STR("x"), false);
    must_be_lost(&h, "does not run");

    begin(&h);
    start(&h);
    peer_exit(&h, 1, 0);
    must_be_lost(&h, "does not run");

    begin(&h);
    start(&h);
    m.u.running.out_from = 7; /* and yet not known */
    peer(&h, &m);
    must_be_lost(&h, "do not begin at 0");

    begin(&h);
    assert_int_equal(guest_exec_attach(h.g, &at, &exec_ops, &h, &h.x, &e), 0);
    peer_running(&h, 1, 99);
    must_be_lost(&h, "before the end of the log");

    start_and_run(&h);
    peer_running(&h, 1, 0);
    must_be_lost(&h, "twice");

    start_and_run(&h);
    peer_data(&h, 1, GUEST_OUT, 1, STR("x"), false);
    assert_int_equal(h.gone, 1);
    must_be_lost(&h, "gap");

    start_and_run(&h);
    peer_data(&h, 1, GUEST_OUT, 0, STR("x"), true);
    peer_data(&h, 1, GUEST_OUT, 1, STR("y"), false);
    must_be_lost(&h, "after the stream's end");

    start_and_run(&h);
    peer_data(&h, 1, GUEST_OUT, 0, STR("x"), true);
    peer_exit(&h, 1, 2);
    must_be_lost(&h, "tells of 2");

    start_and_run(&h);
    peer_exit(&h, 1, 0);
    peer_exit(&h, 1, 0);
    must_be_lost(&h, "twice");

    start_and_run(&h);
    peer_ack(&h, 1, 1, 1 << 20);
    must_be_lost(&h, "ack of 1");

    start_and_run(&h);
    peer_ack(&h, 1, 0, 10);
    must_be_lost(&h, "takes back");

    start_and_run(&h);
    peer_plain(&h, GUEST_OPENED, 1);
    must_be_lost(&h, "opened on a command's");
}

static void a_window_is_a_window(void **state)
{
    static char chunk[32768];
    struct host h;
    uint64_t at = 0;

    (void)state;
    start_and_run(&h);
    h.no_ack = true;
    for (; at < GUEST_WINDOW_UP; at += sizeof chunk)
        peer_data(&h, 1, GUEST_OUT, at, str_make(chunk, sizeof chunk), false);
    assert_int_equal(h.lost, 0);
    peer_data(&h, 1, GUEST_ERR, 0, STR("x"), false); /* each stream has its own */
    assert_int_equal(h.lost, 0);
    peer_data(&h, 1, GUEST_OUT, at, STR("x"), false);
    must_be_lost(&h, "past the limit");

    start_and_run(&h);
    for (at = 0; at < 4 * GUEST_WINDOW_UP; at += sizeof chunk) /* acknowledged as it comes */
        peer_data(&h, 1, GUEST_OUT, at, str_make(chunk, sizeof chunk), false);
    assert_int_equal(h.lost, 0);
    assert_true(buf_len(&h.g->out) > 0 && buf_len(&h.g->out) < 4096);
    end(&h);
}

static void stdin_keeps_to_its_window(void **state)
{
    static char bytes[2 * GUEST_WINDOW_DOWN];
    struct host h;
    size_t n;

    (void)state;
    begin(&h);
    start(&h);
    assert_int_equal(guest_exec_stdin(h.x, 0, STR("early"), false), 0);
    peer_running(&h, 1, 0);
    assert_int_equal(h.room, 1);
    n = guest_exec_stdin(h.x, 0, str_make(bytes, sizeof bytes), true);
    assert_int_equal(n, GUEST_WINDOW_DOWN);
    buf_clear(&h.g->out);
    guest_took(h.g);
    assert_int_equal(h.room, 1); /* no credit */
    peer_ack(&h, 1, 1000, 1000 + GUEST_WINDOW_DOWN);
    assert_int_equal(h.room, 2);
    assert_int_equal(guest_exec_stdin_at(h.x), 1000);
    assert_int_equal(guest_exec_stdin(h.x, 1000, str_make(bytes, n), false), n);
    peer_exit(&h, 1, 0);
    assert_int_equal(guest_exec_stdin(h.x, 2000, STR("late"), true), 4); /* nobody reads it */
    end(&h);

    start_and_run(&h);
    assert_int_equal(guest_exec_stdin(h.x, 5, STR("x"), false), 0); /* init forgot five bytes */
    peer_plain(&h, GUEST_CLOSE, 1);
    must_be_lost(&h, "lost input");
}

static void end_of_input_waits_for_the_command(void **state)
{
    struct host h;

    (void)state;
    begin(&h);
    start(&h);
    buf_clear(&h.g->out);
    assert_int_equal(guest_exec_stdin(h.x, 0, STR(""), true), 0);
    assert_int_equal(buf_len(&h.g->out), 0);
    peer_running(&h, 1, 0);
    assert_int_equal(buf_len(&h.g->out), GUEST_DATA_HEAD + 1);
    assert_int_equal(buf_data(&h.g->out)[1], GUEST_EOF);
    end(&h);
}

static void channels_are_known_by_number(void **state)
{
    struct host h;

    (void)state;
    begin(&h);
    peer_plain(&h, GUEST_CLOSE, 1);
    must_be_lost(&h, "never opened");

    begin(&h);
    peer_plain(&h, GUEST_CLOSE, 2);
    must_be_lost(&h, "never opened");

    start_and_run(&h);
    guest_exec_drop(h.x);
    peer_data(&h, 1, GUEST_OUT, 999, STR("what crossed our close"), false);
    assert_int_equal(h.lost, 0);
    peer_data(&h, 3, GUEST_OUT, 0, STR("x"), false);
    must_be_lost(&h, "channel 3");
}

static void a_relay_is_refused_and_counted(void **state)
{
    struct guest_msg m = {.type = GUEST_RELAY, .channel = 4};
    struct host h;

    (void)state;
    begin(&h);
    m.u.relay = (struct guest_relay){.uid = 13, .host = STR("192.0.2.1")};
    peer(&h, &m);
    assert_int_equal(buf_data(&h.g->out)[0], GUEST_RESET);
    peer_plain(&h, GUEST_CLOSE, 2); /* below its last: dropped */
    assert_int_equal(h.lost, 0);
    peer(&h, &m);
    must_be_lost(&h, "used before");
}

static void a_relay_is_served(void **state)
{
    struct guest_msg m = {.type = GUEST_RELAY, .channel = 2};
    struct host h;

    (void)state;
    begin(&h);
    m.u.relay = (struct guest_relay){.service = GUEST_API, .host = STR("")};
    peer(&h, &m);
    assert_non_null(h.p);
    assert_int_equal(buf_data(&h.g->out)[0], GUEST_OPENED);
    peer_data(&h, 2, GUEST_OUT, 0, STR("GET /"), false);
    assert_true(str_eq_c(buf_str(&h.out), "GET /"));
    buf_clear(&h.g->out);
    assert_int_equal(guest_pipe_write(h.p, STR("answer")), 6);
    assert_int_equal(buf_data(&h.g->out)[0], GUEST_DATA);
    assert_int_equal(buf_data(&h.g->out)[8], 2);
    guest_pipe_eof(h.p);
    peer_data(&h, 2, GUEST_OUT, 5, STR(""), true);
    assert_int_equal(h.eof, 1);
    peer_plain(&h, GUEST_CLOSE, 2);
    assert_int_equal(h.done, 1);
    assert_int_equal(h.chan_err.code, ERR_NONE);
    assert_int_equal(h.g->relay_count, 0);
    end(&h);
}

static void relays_are_bounded_and_may_be_refused(void **state)
{
    struct guest_msg m = {.type = GUEST_RELAY, .channel = 2};
    struct host h;

    (void)state;
    begin(&h);
    m.u.relay = (struct guest_relay){.service = GUEST_API, .uid = 13, .host = STR("")};
    peer(&h, &m);
    assert_null(h.p);
    assert_int_equal(buf_data(&h.g->out)[0], GUEST_RESET);
    m.u.relay.uid = 0;
    for (uint32_t i = 0; i < 2 * GUEST_RELAYS_MAX; i++) {
        m.channel += 2;
        h.p = NULL;
        peer(&h, &m);
        assert_int_equal(h.p != NULL, i < GUEST_RELAYS_MAX);
    }
    assert_int_equal(h.g->relay_count, GUEST_RELAYS_MAX);
    m.u.relay.service = GUEST_DNS; /* those that are led out do not count with them */
    m.channel += 2;
    peer(&h, &m);
    assert_non_null(h.p);
    assert_int_equal(h.g->led_count, 1);
    guest_pipe_cancel(h.p);
    assert_int_equal(h.g->led_count, 0);
    m.u.relay.service = GUEST_API;
    peer_plain(&h, GUEST_CLOSE, 4); /* the first that was served */
    assert_int_equal(h.done, 1);
    m.channel += 2;
    peer(&h, &m);
    assert_non_null(h.p);
    assert_int_equal(h.lost, 0);
    guest_pipe_cancel(h.p);
    assert_int_equal(h.g->relay_count, GUEST_RELAYS_MAX - 1);
    guest_close(h.g);
    h.g = NULL;
    assert_int_equal(h.done, GUEST_RELAYS_MAX);
}

static void at_most_so_many_channels(void **state)
{
    struct guest_file_call c = {.op = GUEST_FILE_STAT, .path = STR("/a"), .length = 1};
    struct err e = {0};
    struct host h;

    (void)state;
    begin(&h);
    for (int i = 0; i < GUEST_CHANNELS_MAX; i++)
        assert_int_equal(guest_file(h.g, &c, &pipe_ops, &h, &h.p, &e), 0);
    assert_int_equal(guest_file(h.g, &c, &pipe_ops, &h, &h.p, &e), -1);
    assert_int_equal(e.code, ERR_LIMIT);
    end(&h);
    assert_int_equal(h.done, GUEST_CHANNELS_MAX); /* each was told once */
    assert_int_equal(h.chan_err.code, ERR_CANCELLED);
}

static void callbacks_may_end_anything(void **state)
{
    struct host h;

    (void)state;
    start_and_run(&h);
    h.in_output = DROP;
    peer_data(&h, 1, GUEST_OUT, 0, STR("x"), false);
    assert_int_equal(h.gone, 0);
    assert_int_equal(h.g->channel_count, 0);
    end(&h);

    start_and_run(&h);
    h.in_output = CLOSE;
    peer_data(&h, 1, GUEST_OUT, 0, STR("x"), true);
    assert_int_equal(h.gone, 1);
    assert_int_equal(h.lost, 0);
    assert_null(h.g);
    buf_done(&h.out);
}

static void a_dial_and_its_ends(void **state)
{
    struct host h;

    (void)state;
    begin(&h);
    dial(&h);
    peer_data(&h, 1, GUEST_OUT, 0, STR("x"), false);
    must_be_lost(&h, "before the connection is open");

    begin(&h);
    dial(&h);
    peer_plain(&h, GUEST_OPENED, 1);
    peer_data(&h, 1, GUEST_OUT, 0, STR("bye"), true);
    assert_int_equal(h.opened + h.eof, 2);
    assert_int_equal(guest_pipe_write(h.p, STR("hi")), 2);
    guest_pipe_eof(h.p);
    peer_plain(&h, GUEST_CLOSE, 1);
    assert_int_equal(h.done, 1);
    assert_int_equal(h.chan_err.code, ERR_NONE);
    end(&h);

    begin(&h);
    dial(&h);
    peer_plain(&h, GUEST_OPENED, 1);
    peer_plain(&h, GUEST_CLOSE, 1);
    assert_int_equal(h.chan_err.code, ERR_UNAVAILABLE); /* early */
    end(&h);

    begin(&h);
    dial(&h);
    peer_plain(&h, GUEST_OPENED, 1);
    peer_plain(&h, GUEST_OPENED, 1);
    must_be_lost(&h, "unexpected 'opened'");

    begin(&h);
    dial(&h);
    peer_plain(&h, GUEST_FILE_DONE, 1);
    must_be_lost(&h, "file_done on a transfer's channel");
}

static void a_file_and_its_ends(void **state)
{
    struct guest_msg no = {.type = GUEST_RESET, .channel = 1};
    struct host h;

    (void)state;
    begin(&h);
    read_file(&h);
    peer_data(&h, 1, GUEST_OUT, 0, STR("0123456789"), true);
    peer_plain(&h, GUEST_FILE_DONE, 1);
    assert_int_equal(h.done, 1);
    assert_int_equal(h.chan_err.code, ERR_NONE);
    peer_plain(&h, GUEST_CLOSE, 1);
    assert_int_equal(h.lost, 0);
    end(&h);

    begin(&h);
    read_file(&h);
    (void)err_set(&no.u.reset.err, ERR_NOT_FOUND, 2, "open '/a'");
    peer(&h, &no);
    assert_int_equal(h.chan_err.code, ERR_NOT_FOUND);
    end(&h);

    begin(&h);
    read_file(&h);
    peer_data(&h, 1, GUEST_ERR, 0, STR("x"), false);
    must_be_lost(&h, "stream 2");

    begin(&h);
    read_file(&h);
    guest_pipe_cancel(h.p);
    peer_plain(&h, GUEST_FILE_DONE, 1);
    assert_int_equal(h.done + h.lost, 0);
    end(&h);
}

static void a_pipe_waits_for_room(void **state)
{
    static char bytes[GUEST_WINDOW_DOWN];
    struct guest_file_call c = {.op = GUEST_FILE_WRITE, .path = STR("/a"), .length = 1};
    struct guest_pipe *first;
    struct err e = {0};
    struct host h;

    (void)state;
    begin(&h);
    assert_int_equal(guest_file(h.g, &c, &pipe_ops, &h, &first, &e), 0);
    assert_int_equal(guest_file(h.g, &c, &pipe_ops, &h, &h.p, &e), 0);
    assert_int_equal(guest_pipe_write(first, str_make(bytes, sizeof bytes)), sizeof bytes);
    assert_int_equal(guest_pipe_write(h.p, STR("x")), 0); /* the connection is full */
    guest_took(h.g);
    assert_int_equal(h.room, 0);
    buf_clear(&h.g->out);
    guest_took(h.g);
    assert_int_equal(h.room, 1);
    assert_int_equal(guest_pipe_write(h.p, STR("x")), 1);
    end(&h);
}

static void a_guest_that_does_not_read_is_given_up(void **state)
{
    struct guest_msg m = {.type = GUEST_PING};
    struct err e = {0};
    struct host h;

    (void)state;
    begin(&h);
    for (int i = 0; i < 40000; i++) /* pings are not answered without end */
        peer(&h, &m);
    assert_int_equal(h.lost, 0);
    assert_true(buf_len(&h.g->out) < GUEST_OUT_HIGH + 100);
    for (int i = 0; h.lost == 0 && i < 40000; i++) { /* what must be said ends it */
        m = (struct guest_msg){.type = GUEST_RELAY, .channel = (uint32_t)(2 * i + 2)};
        peer(&h, &m);
        assert_true(buf_len(&h.g->out) < GUEST_OUT_MAX + 9000);
    }
    assert_int_equal(
        guest_dial(h.g, &(struct guest_dial){GUEST_TCP, 1, STR("::1")}, &pipe_ops, &h, &h.p, &e),
        -1);
    must_be_lost(&h, "does not read");
}

static void keepalive_asks_and_gives_up(void **state)
{
    struct guest_msg m = {.type = GUEST_PONG};
    struct host h;

    (void)state;
    begin(&h);
    for (int i = 0; i < 5; i++) { /* answered each time */
        guest_tick(h.g);
        assert_int_equal(buf_data(&h.g->out)[0], GUEST_PING);
        m.u.ping.token = h.g->ping_token;
        peer(&h, &m);
    }
    assert_int_equal(h.lost, 0);
    for (int i = 0; i < 4; i++)
        guest_tick(h.g);
    assert_int_equal(h.err.code, ERR_TIMEOUT);
    must_be_lost(&h, "no longer answers");

    begin(&h);
    peer(&h, &m);
    must_be_lost(&h, "unexpected pong");
}

static void stats_are_shared_and_not_unasked(void **state)
{
    struct host h;

    (void)state;
    begin(&h);
    guest_stats(h.g, got_stats, &h);
    guest_stats(h.g, got_stats, &h);
    assert_int_equal(buf_len(&h.g->out), GUEST_HEAD); /* one question */
    peer_plain(&h, GUEST_STATS, 0);
    assert_int_equal(h.stats, 2);
    guest_stats(h.g, got_stats, &h);
    end(&h);
    assert_int_equal(h.stats, 102); /* told of the close */

    begin(&h);
    peer_plain(&h, GUEST_STATS, 0);
    must_be_lost(&h, "unexpected stats");
}

static void frames_may_come_in_pieces(void **state)
{
    uint8_t bytes[256];
    struct guest_msg m = {.type = GUEST_HELLO_INIT};
    struct wire_out o = {.p = bytes + GUEST_MARK, .size = sizeof bytes - GUEST_MARK};
    struct host h = {0};
    struct err e;

    (void)state;
    h.g = guest_make(&ops, &h);
    m.u.hello_init.version = GUEST_VERSION;
    memcpy(m.u.hello_init.nonce, h.g->nonce, 16);
    memcpy(bytes, guest_mark, GUEST_MARK);
    assert_int_equal(guest_encode(&m, GUEST_INIT, &o, &e), 0);
    for (size_t i = 0; i < GUEST_MARK + o.n; i++) {
        assert_int_equal(h.ready, 0);
        peer_raw(&h, bytes + i, 1);
    }
    assert_int_equal(h.ready, 1);
    end(&h);
}

/* ---- with descriptors ---- */

static void the_peer_goes_away(void **state)
{
    uv_loop_t loop;
    struct host h = {0};
    char first[GUEST_MARK];
    int sv[2];

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
    h.g = guest_open(&loop, sv[0], &ops, &h);
    assert_int_equal(read(sv[1], first, sizeof first), GUEST_MARK);
    assert_memory_equal(first, guest_mark, GUEST_MARK);
    assert_int_equal(fd_write_all(sv[1], guest_mark, 7), 0); /* half of it */
    assert_int_equal(h.lost, 0);
    fd_close(sv[1]);
    while (h.lost == 0)
        (void)uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(h.err.code, ERR_UNAVAILABLE);
    guest_close(h.g);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void what_cannot_be_watched_is_lost_not_a_crash(void **state)
{
    uv_loop_t loop;
    struct host h = {0};
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    assert_int_equal(uv_loop_init(&loop), 0);
    h.g = guest_open(&loop, dup(fileno(file)), &ops, &h);
    assert_int_equal(h.lost, 0);
    for (int i = 0; i < 100 && h.lost == 0; i++)
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(h.lost, 1);
    guest_close(h.g);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_is_checked),
        cmocka_unit_test(nothing_is_sent_before_hello),
        cmocka_unit_test(a_long_command_goes_out),
        cmocka_unit_test(a_command_goes_through),
        cmocka_unit_test(every_lie_about_a_command_is_seen),
        cmocka_unit_test(a_window_is_a_window),
        cmocka_unit_test(stdin_keeps_to_its_window),
        cmocka_unit_test(end_of_input_waits_for_the_command),
        cmocka_unit_test(channels_are_known_by_number),
        cmocka_unit_test(a_relay_is_refused_and_counted),
        cmocka_unit_test(a_relay_is_served),
        cmocka_unit_test(relays_are_bounded_and_may_be_refused),
        cmocka_unit_test(at_most_so_many_channels),
        cmocka_unit_test(callbacks_may_end_anything),
        cmocka_unit_test(a_dial_and_its_ends),
        cmocka_unit_test(a_file_and_its_ends),
        cmocka_unit_test(a_pipe_waits_for_room),
        cmocka_unit_test(a_guest_that_does_not_read_is_given_up),
        cmocka_unit_test(keepalive_asks_and_gives_up),
        cmocka_unit_test(stats_are_shared_and_not_unasked),
        cmocka_unit_test(frames_may_come_in_pieces),
        cmocka_unit_test(the_peer_goes_away),
        cmocka_unit_test(what_cannot_be_watched_is_lost_not_a_crash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
