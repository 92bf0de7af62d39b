#include "wire/guest.h"

#include "unit.h"

#define MSG_FILL 0x5a

static const struct wire_text two_texts[] = {{{"ls", 2}}, {{"-l", 2}}};
static const struct guest_rlimit_row one_rlimit[] = {{7, 100, GUEST_NO_LIMIT}};
static const struct guest_rule_row two_rules[] = {
    {0, GUEST_RULE_NAME, {"careful", 7}},
    {0, GUEST_RULE_PATH_DENY, {"/etc", 4}},
};
static const struct guest_exec_row two_execs[] = {
    {{"ex_1", 4}, GUEST_EXEC_LIVE, 1, 2, 3, 4, 5},
    {{"ex_2", 4}, GUEST_EXEC_ENDED, 6, 7, 8, 9, 10},
};

/* One valid message of each type; a type without one fails the test below. */
static struct guest_msg sample(enum guest_type type)
{
    const struct guest_type_info *t = &guest_types[type];
    struct guest_msg m = {.type = type};

    m.channel = !t->on_channel ? 0 : t->opens && t->from == GUEST_INIT ? 4 : 5;
    if (type == GUEST_HELLO_HOST)
        m.u.hello_host = (struct guest_hello_host){1, 3, {1, 2, 3}};
    else if (type == GUEST_HELLO_INIT)
        m.u.hello_init =
            (struct guest_hello_init){1, {9}, {8}, 77, {.count = 2, .items = two_execs}};
    else if (type == GUEST_STATS)
        m.u.stats = (struct guest_stats){1, 2, 3, 4, 5, 6, 7, 8, 9};
    else if (type == GUEST_RULES)
        m.u.rules.rows = (struct wire_rows){.count = 2, .items = two_rules};
    else if (type == GUEST_RULED)
        m.u.ruled.landlock = 7;
    else if (type == GUEST_ACK)
        m.u.ack = (struct guest_ack){5, 9};
    else if (type == GUEST_RESET)
        (void)err_set(&m.u.reset.err, ERR_NOT_FOUND, 2, "open '%s'", "x");
    else if (type == GUEST_EXEC_START)
        m.u.start = (struct guest_exec_start){.id = STR("ex_1"),
                                              .flags = GUEST_EXEC_PTY,
                                              .rows = 24,
                                              .cols = 80,
                                              .user = STR("1000:1000"),
                                              .cwd = STR("/"),
                                              .argv = {.count = 2, .items = two_texts},
                                              .env = {.count = 1, .items = two_texts},
                                              .rlimits = {.count = 1, .items = one_rlimit}};
    else if (type == GUEST_EXEC_ATTACH)
        m.u.attach = (struct guest_exec_attach){STR("ex_1"), 10, 20};
    else if (type == GUEST_EXEC_RUNNING)
        m.u.running = (struct guest_exec_running){12, 1, 3, 4, 5};
    else if (type == GUEST_EXEC_RESIZE)
        m.u.resize = (struct guest_exec_resize){24, 80};
    else if (type == GUEST_EXEC_SIGNAL)
        m.u.signal = (struct guest_exec_signal){15, GUEST_SCOPE_ALL};
    else if (type == GUEST_EXEC_EXIT)
        m.u.exit = (struct guest_exec_exit){GUEST_SIGNALLED, 9, 0, 1, 1, 2, 3, 4, 5, 6, {0}};
    else if (type == GUEST_FILE_CALL)
        m.u.file = (struct guest_file_call){GUEST_FILE_RENAME, 0, STR("/a"), STR("/b"), 1, 2, 0644,
                                            GUEST_NO_ID,       3};
    else if (type == GUEST_FILE_DONE)
        m.u.done = (struct guest_file_done){8, 0644, 1, 2, 3, 4, STR("n"), STR("")};
    else if (type == GUEST_DIAL)
        m.u.dial = (struct guest_dial){GUEST_TCP, 80, STR("localhost")};
    else if (type == GUEST_RELAY)
        m.u.relay = (struct guest_relay){GUEST_EGRESS, 0, 443, STR("example.org")};
    return m;
}

static enum guest_side sender_of(enum guest_type type)
{
    return guest_types[type].from & GUEST_HOST ? GUEST_HOST : GUEST_INIT;
}

static size_t encode(const struct guest_msg *m, enum guest_side from, uint8_t *to, size_t size)
{
    struct wire_out o = {.p = to, .size = size};
    struct err e = {0};

    if (guest_encode(m, from, &o, &e) < 0)
        fail_msg("%s: %s", guest_types[m->type].name, e.msg);
    return o.n;
}

static int decode(const uint8_t *p, size_t n, enum guest_side from, struct guest_msg *ret,
                  struct err *e)
{
    struct guest_frame f;
    size_t used;
    int r = guest_parse(str_make(p, n), from, &f, &used, e);

    return r <= 0 ? r : guest_decode(&f, from, ret, e) < 0 ? -1 : 1;
}

/* Encoded, decoded and encoded again, a message is the same bytes; each shorter input is "more",
 * each payload shorter than its layout is refused. */
static void every_type_survives_the_round_trip(void **state)
{
    static uint8_t one[4096], two[4096];

    (void)state;
    for (unsigned type = 0; type < GUEST_TYPE_END; type++) {
        enum guest_side from = sender_of(type);
        struct guest_msg m, back;
        struct err e = {0};
        size_t n;

        if (!guest_types[type].name || type == GUEST_DATA)
            continue;
        m = sample(type);
        if (type == GUEST_ACK)
            m.stream = from == GUEST_HOST ? GUEST_OUT : GUEST_IN;
        n = encode(&m, from, one, sizeof one);
        for (size_t cut = 0; cut < n; cut++)
            assert_int_equal(decode(one, cut, from, &back, &e), 0);
        assert_int_equal(decode(one, n, from, &back, &e), 1);
        assert_int_equal(back.type, type);
        assert_int_equal(back.channel, m.channel);
        assert_int_equal(encode(&back, from, two, sizeof two), n);
        assert_memory_equal(one, two, n);
        for (size_t cut = n - 1; cut > GUEST_HEAD; cut--) {
            wire_put_u32(one + 4, (uint32_t)(cut - GUEST_HEAD));
            one[cut - 1] = 0;
            assert_int_equal(decode(one, cut, from, &back, &e), -1);
        }
    }
}

static void a_message_from_the_wrong_side_is_refused(void **state)
{
    static uint8_t bytes[4096];

    (void)state;
    for (unsigned type = 0; type < GUEST_TYPE_END; type++) {
        enum guest_side from = sender_of(type);
        struct guest_msg m = sample(type), back;
        struct err e = {0};
        size_t n;

        if (!guest_types[type].name || guest_types[type].from == (GUEST_HOST | GUEST_INIT))
            continue;
        n = encode(&m, from, bytes, sizeof bytes);
        assert_int_equal(decode(bytes, n, from ^ (GUEST_HOST | GUEST_INIT), &back, &e), -1);
        assert_non_null(strstr(e.msg, "wrong side"));
    }
}

static void bad_headers_are_refused_before_their_payload_comes(void **state)
{
    /* type, flags, reserved, length, channel, aux */
    static const struct {
        uint8_t type, flags, reserved;
        uint32_t length, channel, aux;
        const char *why;
    } bad[] = {
        {0, 0, 0, 0, 0, 0, "unknown type"},
        {9, 0, 0, 0, 0, 0, "unknown type"},
        {200, 0, 0, 0, 0, 0, "unknown type"},
        {GUEST_PING, 1, 0, 8, 0, 0, "flags"},
        {GUEST_DATA, 2, 0, 9, 1, 0, "flags"},
        {GUEST_PING, 0, 1, 8, 0, 0, "reserved"},
        {GUEST_PING, 0, 0, GUEST_PAYLOAD_MAX + 1, 0, 0, "bytes"},
        {GUEST_EXEC_START, 0, 0, GUEST_START_MAX + 1, 1, 0, "bytes"},
        {GUEST_PING, 0, 0, 8, 1, 0, "channel"},
        {GUEST_DATA, 0, 0, 9, 0, 0, "channel"},
        {GUEST_DATA, 0, 0, 9, 0x80000000U, 0, "channel"},
        {GUEST_EXEC_START, 0, 0, 9, 2, 0, "other side"},
        {GUEST_PING, 0, 0, 8, 0, 1, "stream"},
        {GUEST_DATA, 0, 0, 9, 1, 3, "stream"},
        {GUEST_DATA, 0, 0, 9, 1, GUEST_OUT, "wrong side"},
        {GUEST_ACK, 0, 0, 16, 1, GUEST_IN, "wrong side"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint8_t h[GUEST_HEAD] = {bad[i].type, bad[i].flags, bad[i].reserved};
        struct guest_frame f;
        struct err e = {0};
        size_t used;

        wire_put_u32(h + 4, bad[i].length);
        wire_put_u32(h + 8, bad[i].channel);
        wire_put_u32(h + 12, bad[i].aux);
        assert_int_equal(guest_parse(str_make(h, sizeof h), GUEST_HOST, &f, &used, &e), -1);
        if (!strstr(e.msg, bad[i].why))
            fail_msg("row %zu: %s", i, e.msg);
    }
}

static void values_out_of_range_are_refused_by_name(void **state)
{
    static uint8_t bytes[4096];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct guest_msg m = sample(GUEST_EXEC_SIGNAL);
    struct err e = {0};

    (void)state;
    m.u.signal.signal = 65;
    assert_int_equal(guest_encode(&m, GUEST_HOST, &o, &e), -1);
    assert_string_equal(e.msg, "exec_signal.signal is 65, allowed are 1 to 64");
    assert_int_equal(o.n, 0);
    m = sample(GUEST_EXEC_START);
    m.u.start.cwd = STR("a\0b");
    assert_int_equal(guest_encode(&m, GUEST_HOST, &o, &e), -1);
    assert_string_equal(e.msg, "exec_start.cwd contains a NUL byte");
    m = sample(GUEST_EXEC_START);
    m.u.start.argv.count = 0;
    assert_int_equal(guest_encode(&m, GUEST_HOST, &o, &e), -1);
    assert_string_equal(e.msg, "exec_start.argv has 0 rows, allowed are 1 to 4096");
    m = sample(GUEST_EXEC_EXIT);
    m.u.exit.how = GUEST_FAILED;
    assert_int_equal(guest_encode(&m, GUEST_INIT, &o, &e), -1);
    m = sample(GUEST_ACK);
    m.u.ack = (struct guest_ack){9, 8};
    m.stream = GUEST_OUT;
    assert_int_equal(guest_encode(&m, GUEST_HOST, &o, &e), -1);
    o.size = GUEST_HEAD + 8; /* one byte short of a ping */
    m = sample(GUEST_PING);
    assert_false(o.full);
    assert_int_equal(guest_encode(&m, GUEST_HOST, &o, &e), -1);
    assert_int_equal(e.code, ERR_TOO_LARGE);
    assert_true(o.full);
    assert_int_equal(o.n, 0);
    o = (struct wire_out){.p = bytes, .size = GUEST_HEAD + 7};
    assert_int_equal(guest_encode(&m, GUEST_HOST, &o, &e), -1);
    assert_true(o.full);
}

static void rows_come_back_one_by_one(void **state)
{
    static uint8_t bytes[4096];
    struct guest_msg m = sample(GUEST_HELLO_INIT), back;
    size_t n = encode(&m, GUEST_INIT, bytes, sizeof bytes);
    struct guest_exec_row row;
    struct err e = {0};

    (void)state;
    assert_int_equal(decode(bytes, n, GUEST_INIT, &back, &e), 1);
    assert_int_equal(back.u.hello_init.execs.count, 2);
    assert_true(wire_rows_next(&guest_exec_row_layout, &back.u.hello_init.execs, &row));
    assert_true(str_eq_c(row.id, "ex_1"));
    assert_int_equal(row.err_end, 5);
    assert_true(wire_rows_next(&guest_exec_row_layout, &back.u.hello_init.execs, &row));
    assert_true(str_eq_c(row.id, "ex_2"));
    assert_int_equal(row.state, GUEST_EXEC_ENDED);
    assert_false(wire_rows_next(&guest_exec_row_layout, &back.u.hello_init.execs, &row));
}

static void a_peers_error_text_is_made_printable(void **state)
{
    static uint8_t bytes[4096];
    struct guest_msg m = sample(GUEST_RESET), back;
    struct err e = {0};
    size_t n;

    (void)state;
    (void)snprintf(m.u.reset.err.msg, sizeof m.u.reset.err.msg, "a\x1b[2Jb\nc\xff");
    n = encode(&m, GUEST_INIT, bytes, sizeof bytes);
    assert_int_equal(decode(bytes, n, GUEST_INIT, &back, &e), 1);
    assert_string_equal(back.u.reset.err.msg, "a?[2Jb?c?");
    wire_put_u16(bytes + GUEST_HEAD, ERR_CODE_COUNT);
    assert_int_equal(decode(bytes, n, GUEST_INIT, &back, &e), -1);
    wire_put_u16(bytes + GUEST_HEAD, ERR_NONE);
    assert_int_equal(decode(bytes, n, GUEST_INIT, &back, &e), -1);
}

static void add(struct guest_reader *r, const void *p, size_t n)
{
    while (n > 0) {
        char *room;
        size_t k = size_min(guest_reader_room(r, &room), n);

        assert_true(k > 0);
        memcpy(room, p, k);
        guest_reader_added(r, k);
        p = (const char *)p + k;
        n -= k;
    }
}

/* Sends `n` bytes as data frames, as a sender does; returns the length written. */
static size_t put_data(uint8_t *to, const uint8_t *data, size_t n)
{
    size_t at = 0, sent = 0;

    do {
        struct guest_msg m = {.type = GUEST_DATA, .channel = 1, .stream = GUEST_OUT};
        size_t take;

        m.u.data = (struct guest_data){sent, str_make(data + sent, n - sent)};
        take = guest_data_head(to + at, &m, true);
        memcpy(to + at + GUEST_DATA_HEAD, data + sent, take);
        at += GUEST_DATA_HEAD + take;
        to[at++] = 0;
        sent += take;
    } while (sent < n);
    return at;
}

static size_t find(const uint8_t *p, size_t n)
{
    const uint8_t *at = memmem(p, n, guest_mark, GUEST_MARK);

    return at ? (size_t)(at - p) : SIZE_MAX;
}

static void data_never_shows_the_mark_and_comes_back_whole(void **state)
{
    enum { N = 200000 };
    static uint8_t data[N], frames[2 * N], back[N];
    size_t n, got = 0;
    bool eof = false;
    struct guest_reader r;
    struct guest_frame f;
    struct guest_msg m;
    struct err e = {0};

    (void)state;
    for (size_t i = 0; i < N; i++)
        data[i] = (uint8_t)(i % 3 ? 0x80 | (i * 37) : 0xf3);
    for (size_t at = 5; at + GUEST_MARK < N; at += at < 2000 ? 16 : 4099)
        memcpy(data + at, guest_mark, GUEST_MARK);
    memcpy(data + N - GUEST_MARK, guest_mark, GUEST_MARK);
    n = put_data(frames, data, N);
    assert_true(find(frames, n) == SIZE_MAX);
    guest_reader_init(&r, GUEST_INIT, true);
    add(&r, guest_mark, GUEST_MARK);
    assert_int_equal(guest_reader_next(&r, &f, &e), GUEST_READ_MARK);
    for (size_t i = 0; i < n;) {
        size_t k = size_min(n - i, 777);
        int got_frame;

        add(&r, frames + i, k);
        i += k;
        while ((got_frame = guest_reader_next(&r, &f, &e)) == GUEST_READ_FRAME) {
            assert_int_equal(guest_decode(&f, GUEST_INIT, &m, &e), 0);
            assert_int_equal(m.u.data.offset, got);
            assert_false(eof);
            memcpy(back + got, m.u.data.bytes.p, m.u.data.bytes.n);
            got += m.u.data.bytes.n;
            eof = m.flags & GUEST_EOF;
        }
        assert_int_equal(got_frame, GUEST_READ_MORE);
        assert_true(i < n || buf_len(&r.in) == 0); /* the last frame is not held back */
    }
    assert_true(eof);
    assert_int_equal(got, N);
    assert_memory_equal(back, data, N);
    guest_reader_done(&r);
}

static void a_message_with_the_mark_in_a_path_is_not_sent(void **state)
{
    static uint8_t bytes[4096];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct guest_msg m = sample(GUEST_FILE_CALL);
    struct err e = {0};

    (void)state;
    m.u.file.path = str_make(guest_mark, GUEST_MARK);
    assert_int_equal(guest_encode(&m, GUEST_HOST, &o, &e), -1);
    assert_int_equal(e.code, ERR_INVALID);
    assert_int_equal(o.n, 0);
}

/* A peer died in the middle of a frame, at every possible byte; the next one is heard. */
static void a_new_connection_is_found_in_the_middle_of_a_frame(void **state)
{
    static uint8_t old[300], hello[200];
    uint8_t data[250];
    struct guest_msg m = sample(GUEST_HELLO_HOST);
    size_t old_n, hello_n;

    (void)state;
    memset(data, 0xf3, sizeof data);
    memcpy(hello, guest_mark, GUEST_MARK);
    hello_n = GUEST_MARK + encode(&m, GUEST_HOST, hello + GUEST_MARK, 100);
    m = (struct guest_msg){.type = GUEST_DATA, .channel = 1};
    m.u.data.bytes = str_make(data, sizeof data);
    old_n = GUEST_DATA_HEAD + guest_data_head(old, &m, false) + GUEST_DATA_TAIL;
    memcpy(old + GUEST_DATA_HEAD, data, sizeof data);
    old[old_n - 1] = 0;
    for (size_t cut = 0; cut < old_n; cut++) {
        struct guest_reader r;
        struct guest_frame f;
        struct err e = {0};

        guest_reader_init(&r, GUEST_HOST, true);
        add(&r, guest_mark, GUEST_MARK);
        assert_int_equal(guest_reader_next(&r, &f, &e), GUEST_READ_MARK);
        add(&r, old, cut);
        assert_int_equal(guest_reader_next(&r, &f, &e), GUEST_READ_MORE);
        for (size_t i = 0; i + 1 < GUEST_MARK; i++) {
            add(&r, hello + i, 1);
            assert_int_equal(guest_reader_next(&r, &f, &e), GUEST_READ_MORE);
        }
        add(&r, hello + GUEST_MARK - 1, hello_n - GUEST_MARK + 1);
        assert_int_equal(guest_reader_next(&r, &f, &e), GUEST_READ_MARK);
        assert_int_equal(guest_reader_next(&r, &f, &e), GUEST_READ_FRAME);
        assert_int_equal(f.type, GUEST_HELLO_HOST);
        guest_reader_done(&r);
    }
}

static void noise_before_the_mark_is_skipped_in_constant_memory(void **state)
{
    struct guest_reader r;
    struct guest_frame f;
    struct err e = {0};
    uint8_t noise[4096];

    (void)state;
    memset(noise, MSG_FILL, sizeof noise);
    memcpy(noise + 4096 - 8, guest_mark, 8); /* half a mark at each end */
    guest_reader_init(&r, GUEST_INIT, true);
    for (int i = 0; i < 1000; i++) {
        add(&r, noise, sizeof noise);
        assert_int_equal(guest_reader_next(&r, &f, &e), GUEST_READ_MORE);
        assert_true(buf_len(&r.in) < GUEST_MARK);
    }
    add(&r, guest_mark + 8, 8);
    assert_int_equal(guest_reader_next(&r, &f, &e), GUEST_READ_MARK);
    guest_reader_done(&r);
    guest_reader_init(&r, GUEST_INIT, false);
    add(&r, noise, 1);
    assert_int_equal(guest_reader_next(&r, &f, &e), -1);
    guest_reader_done(&r);
}

static void records_come_whole_or_not_yet(void **state)
{
    static uint8_t bytes[1024];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct guest_file_done d = {4, 0755, 0, 0, 7, 8, STR("name"), STR("")}, back;
    struct err e = {0};
    struct str in;

    (void)state;
    assert_int_equal(guest_record_put(&guest_file_done_layout, &d, &o, &e), 0);
    assert_int_equal(guest_record_put(&guest_file_done_layout, &d, &o, &e), 0);
    for (size_t cut = 0; cut < o.n / 2; cut++) {
        in = str_make(bytes, cut);
        assert_int_equal(guest_record_next(&guest_file_done_layout, &in, &back, &e), 0);
        assert_int_equal(in.n, cut);
    }
    in = str_make(bytes, o.n);
    for (int i = 0; i < 2; i++)
        assert_int_equal(guest_record_next(&guest_file_done_layout, &in, &back, &e), 1);
    assert_true(str_eq_c(back.name, "name"));
    assert_int_equal(in.n, 0);
    wire_put_u32(bytes, GUEST_RECORD_MAX + 1);
    in = str_make(bytes, 4);
    assert_int_equal(guest_record_next(&guest_file_done_layout, &in, &back, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_survives_the_round_trip),
        cmocka_unit_test(a_message_from_the_wrong_side_is_refused),
        cmocka_unit_test(bad_headers_are_refused_before_their_payload_comes),
        cmocka_unit_test(values_out_of_range_are_refused_by_name),
        cmocka_unit_test(rows_come_back_one_by_one),
        cmocka_unit_test(a_peers_error_text_is_made_printable),
        cmocka_unit_test(data_never_shows_the_mark_and_comes_back_whole),
        cmocka_unit_test(a_message_with_the_mark_in_a_path_is_not_sent),
        cmocka_unit_test(a_new_connection_is_found_in_the_middle_of_a_frame),
        cmocka_unit_test(noise_before_the_mark_is_skipped_in_constant_memory),
        cmocka_unit_test(records_come_whole_or_not_yet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
