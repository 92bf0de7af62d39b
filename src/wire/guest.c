/* guest: encodes, decodes and frames the protocol between holtd and holt-init. */
#include "wire/guest.h"

#include <sys/resource.h>

/* Every byte is >= 0x80.  The first and the last byte of a header are < 0x80, and so are the last
 * bytes of the offset before data and of every payload (its end byte).  So the mark can only occur
 * inside a payload, where guest_encode and guest_data_head avoid it, and no frame ends in part of
 * it. */
const uint8_t guest_mark[GUEST_MARK] = {0xf3, 0x9b, 0xc7, 0xe8, 0x8d, 0xb1, 0xfa, 0x96,
                                        0xd4, 0xa9, 0xee, 0x83, 0xcb, 0xbd, 0xf0, 0x91};

/* clang-format off */
#define NUM(type, member, width, ...) WIRE_FIELD(struct type, member, .kind = width, __VA_ARGS__)
#define TEXT(type, member, lo, hi) WIRE_FIELD(struct type, member, .kind = WIRE_TEXT, .min = (lo), .max = (hi))
#define ROWS(type, member, lo, hi, l) \
    WIRE_FIELD(struct type, member, .kind = WIRE_ROWS, .min = (lo), .max = (hi), .row = (l))
#define ID16(type, member) WIRE_FIELD(struct type, member, .kind = WIRE_ID16)
#define ERROR(type, member) WIRE_FIELD(struct type, member, .kind = WIRE_ERR)

static const struct wire_field exec_row_fields[] = {
    TEXT(guest_exec_row, id, 1, GUEST_EXEC_ID_MAX),
    NUM(guest_exec_row, state, WIRE_U8, .max = GUEST_EXEC_ENDED),
    NUM(guest_exec_row, in_at, WIRE_U64),
    NUM(guest_exec_row, out_from, WIRE_U64),
    NUM(guest_exec_row, out_end, WIRE_U64),
    NUM(guest_exec_row, err_from, WIRE_U64),
    NUM(guest_exec_row, err_end, WIRE_U64),
};
const struct wire_layout guest_exec_row_layout =
    WIRE_LAYOUT("exec row", struct guest_exec_row, exec_row_fields);

static const struct wire_field rlimit_row_fields[] = {
    NUM(guest_rlimit_row, resource, WIRE_U8, .max = RLIM_NLIMITS - 1),
    NUM(guest_rlimit_row, soft, WIRE_U64),
    NUM(guest_rlimit_row, hard, WIRE_U64),
};
const struct wire_layout guest_rlimit_row_layout =
    WIRE_LAYOUT("rlimit row", struct guest_rlimit_row, rlimit_row_fields);

static const struct wire_field hello_host_fields[] = {
    NUM(guest_hello_host, version_min, WIRE_U16, .min = 1),
    NUM(guest_hello_host, version_max, WIRE_U16, .min = 1),
    ID16(guest_hello_host, nonce),
};
static const struct wire_field hello_init_fields[] = {
    NUM(guest_hello_init, version, WIRE_U16),
    ID16(guest_hello_init, nonce),
    ID16(guest_hello_init, epoch),
    NUM(guest_hello_init, uptime_ms, WIRE_U64),
    ROWS(guest_hello_init, execs, 0, GUEST_EXECS_MAX, &guest_exec_row_layout),
};
static const struct wire_field ping_fields[] = {
    NUM(guest_ping, token, WIRE_U64),
};
static const struct wire_field stats_fields[] = {
    NUM(guest_stats, uptime_ms, WIRE_U64),
    NUM(guest_stats, processes, WIRE_U32),
    NUM(guest_stats, execs_live, WIRE_U32, .max = GUEST_EXECS_MAX),
    NUM(guest_stats, execs_ended, WIRE_U32, .max = GUEST_EXECS_MAX),
    NUM(guest_stats, buffered, WIRE_U64),
    NUM(guest_stats, memory_total, WIRE_U64),
    NUM(guest_stats, memory_available, WIRE_U64),
    NUM(guest_stats, disk_total, WIRE_U64),
    NUM(guest_stats, disk_free, WIRE_U64),
};
static const struct wire_field rule_row_fields[] = {
    NUM(guest_rule_row, layer, WIRE_U8, .max = GUEST_LAYERS_MAX - 1),
    NUM(guest_rule_row, kind, WIRE_U8, .max = GUEST_RULE_COUNT - 1),
    TEXT(guest_rule_row, text, 1, GUEST_PATH_MAX),
};
const struct wire_layout guest_rule_row_layout =
    WIRE_LAYOUT("rule row", struct guest_rule_row, rule_row_fields);
static const struct wire_field rules_fields[] = {
    ROWS(guest_rules, rows, 0, GUEST_RULES_MAX, &guest_rule_row_layout),
};
static const struct wire_field ruled_fields[] = {
    NUM(guest_ruled, landlock, WIRE_U32, .max = INT32_MAX),
};
static const struct wire_field ack_fields[] = {
    NUM(guest_ack, acked, WIRE_U64),
    NUM(guest_ack, limit, WIRE_U64),
};
static const struct wire_field reset_fields[] = {
    ERROR(guest_reset, err),
};
static const struct wire_field start_fields[] = {
    TEXT(guest_exec_start, id, 1, GUEST_EXEC_ID_MAX),
    NUM(guest_exec_start, flags, WIRE_U32, .max = GUEST_EXEC_FLAGS),
    NUM(guest_exec_start, rows, WIRE_U16, .max = 4096),
    NUM(guest_exec_start, cols, WIRE_U16, .max = 4096),
    TEXT(guest_exec_start, user, 0, 255),
    TEXT(guest_exec_start, cwd, 0, GUEST_PATH_MAX),
    ROWS(guest_exec_start, argv, 1, 4096, &wire_text_row),
    ROWS(guest_exec_start, env, 0, 4096, &wire_text_row),
    ROWS(guest_exec_start, rlimits, 0, RLIM_NLIMITS, &guest_rlimit_row_layout),
};
static const struct wire_field attach_fields[] = {
    TEXT(guest_exec_attach, id, 1, GUEST_EXEC_ID_MAX),
    NUM(guest_exec_attach, out_from, WIRE_U64),
    NUM(guest_exec_attach, err_from, WIRE_U64),
};
static const struct wire_field running_fields[] = {
    NUM(guest_exec_running, pid, WIRE_U32, .max = INT32_MAX),
    NUM(guest_exec_running, known, WIRE_U8, .max = 1),
    NUM(guest_exec_running, in_at, WIRE_U64),
    NUM(guest_exec_running, out_from, WIRE_U64),
    NUM(guest_exec_running, err_from, WIRE_U64),
};
static const struct wire_field resize_fields[] = {
    NUM(guest_exec_resize, rows, WIRE_U16, .min = 1, .max = 4096),
    NUM(guest_exec_resize, cols, WIRE_U16, .min = 1, .max = 4096),
};
static const struct wire_field signal_fields[] = {
    NUM(guest_exec_signal, signal, WIRE_U8, .min = 1, .max = 64),
    NUM(guest_exec_signal, scope, WIRE_U8, .max = GUEST_SCOPE_COUNT - 1),
};
static const struct wire_field exit_fields[] = {
    NUM(guest_exec_exit, how, WIRE_U8, .max = GUEST_HOW_COUNT - 1),
    NUM(guest_exec_exit, code, WIRE_U8),
    NUM(guest_exec_exit, core, WIRE_U8, .max = 1),
    NUM(guest_exec_exit, oom, WIRE_U8, .max = 1),
    NUM(guest_exec_exit, user_us, WIRE_U64),
    NUM(guest_exec_exit, system_us, WIRE_U64),
    NUM(guest_exec_exit, wall_us, WIRE_U64),
    NUM(guest_exec_exit, max_rss_kib, WIRE_U64),
    NUM(guest_exec_exit, out_end, WIRE_U64),
    NUM(guest_exec_exit, err_end, WIRE_U64),
    ERROR(guest_exec_exit, err),
};
static const struct wire_field file_call_fields[] = {
    NUM(guest_file_call, op, WIRE_U8, .max = GUEST_FILE_OP_COUNT - 1),
    NUM(guest_file_call, flags, WIRE_U32, .max = GUEST_FILE_FLAGS),
    TEXT(guest_file_call, path, 1, GUEST_PATH_MAX),
    TEXT(guest_file_call, to, 0, GUEST_PATH_MAX),
    NUM(guest_file_call, offset, WIRE_U64),
    NUM(guest_file_call, length, WIRE_U64),
    NUM(guest_file_call, mode, WIRE_U32, .max = 07777),
    NUM(guest_file_call, uid, WIRE_U32),
    NUM(guest_file_call, gid, WIRE_U32),
};
static const struct wire_field file_done_fields[] = {
    NUM(guest_file_done, kind, WIRE_U8, .max = 15),
    NUM(guest_file_done, mode, WIRE_U32, .max = 07777),
    NUM(guest_file_done, uid, WIRE_U32),
    NUM(guest_file_done, gid, WIRE_U32),
    NUM(guest_file_done, size, WIRE_U64),
    NUM(guest_file_done, mtime_ms, WIRE_U64),
    TEXT(guest_file_done, name, 0, 255),
    TEXT(guest_file_done, link, 0, GUEST_PATH_MAX),
};
const struct wire_layout guest_file_done_layout =
    WIRE_LAYOUT("file_done", struct guest_file_done, file_done_fields);

static const struct wire_field watch_event_fields[] = {
    NUM(guest_watch_event, what, WIRE_U8, .min = GUEST_WATCH_MADE, .max = GUEST_WATCH_BEGUN),
    TEXT(guest_watch_event, path, 0, GUEST_PATH_MAX),
};
const struct wire_layout guest_watch_event_layout =
    WIRE_LAYOUT("watch event", struct guest_watch_event, watch_event_fields);

static const struct wire_field dial_fields[] = {
    NUM(guest_dial, family, WIRE_U8, .max = GUEST_FAMILY_COUNT - 1),
    NUM(guest_dial, port, WIRE_U16),
    TEXT(guest_dial, address, 1, 255),
};
static const struct wire_field relay_fields[] = {
    NUM(guest_relay, service, WIRE_U8, .max = GUEST_SERVICE_COUNT - 1),
    NUM(guest_relay, uid, WIRE_U32),
    NUM(guest_relay, port, WIRE_U16),
    TEXT(guest_relay, host, 0, 255),
};

static const struct wire_layout
    hello_host_layout = WIRE_LAYOUT("hello_host", struct guest_hello_host, hello_host_fields),
    hello_init_layout = WIRE_LAYOUT("hello_init", struct guest_hello_init, hello_init_fields),
    ping_layout       = WIRE_LAYOUT("ping", struct guest_ping, ping_fields),
    stats_layout      = WIRE_LAYOUT("stats", struct guest_stats, stats_fields),
    rules_layout      = WIRE_LAYOUT("rules", struct guest_rules, rules_fields),
    ruled_layout      = WIRE_LAYOUT("ruled", struct guest_ruled, ruled_fields),
    ack_layout        = WIRE_LAYOUT("ack", struct guest_ack, ack_fields),
    reset_layout      = WIRE_LAYOUT("reset", struct guest_reset, reset_fields),
    start_layout      = WIRE_LAYOUT("exec_start", struct guest_exec_start, start_fields),
    attach_layout     = WIRE_LAYOUT("exec_attach", struct guest_exec_attach, attach_fields),
    running_layout    = WIRE_LAYOUT("exec_running", struct guest_exec_running, running_fields),
    resize_layout     = WIRE_LAYOUT("exec_resize", struct guest_exec_resize, resize_fields),
    signal_layout     = WIRE_LAYOUT("exec_signal", struct guest_exec_signal, signal_fields),
    exit_layout       = WIRE_LAYOUT("exec_exit", struct guest_exec_exit, exit_fields),
    file_call_layout  = WIRE_LAYOUT("file_call", struct guest_file_call, file_call_fields),
    dial_layout       = WIRE_LAYOUT("dial", struct guest_dial, dial_fields),
    relay_layout      = WIRE_LAYOUT("relay", struct guest_relay, relay_fields);

#define HOST GUEST_HOST
#define INIT GUEST_INIT
#define BOTH (GUEST_HOST | GUEST_INIT)
const struct guest_type_info guest_types[GUEST_TYPE_END] = {
    /*                      name            from  opens  on_channel layout */
    [GUEST_HELLO_HOST]   = {"hello_host",   HOST, false, false, &hello_host_layout},
    [GUEST_HELLO_INIT]   = {"hello_init",   INIT, false, false, &hello_init_layout},
    [GUEST_PING]         = {"ping",         BOTH, false, false, &ping_layout},
    [GUEST_PONG]         = {"pong",         BOTH, false, false, &ping_layout},
    [GUEST_STATS_GET]    = {"stats_get",    HOST, false, false, NULL},
    [GUEST_STATS]        = {"stats",        INIT, false, false, &stats_layout},
    [GUEST_RULES]        = {"rules",        HOST, false, false, &rules_layout},
    [GUEST_RULED]        = {"ruled",        INIT, false, false, &ruled_layout},
    [GUEST_DATA]         = {"data",         BOTH, false, true,  NULL},
    [GUEST_ACK]          = {"ack",          BOTH, false, true,  &ack_layout},
    [GUEST_RESET]        = {"reset",        BOTH, false, true,  &reset_layout},
    [GUEST_CLOSE]        = {"close",        BOTH, false, true,  NULL},
    [GUEST_OPENED]       = {"opened",       BOTH, false, true,  NULL},
    [GUEST_EXEC_START]   = {"exec_start",   HOST, true,  true,  &start_layout},
    [GUEST_EXEC_ATTACH]  = {"exec_attach",  HOST, true,  true,  &attach_layout},
    [GUEST_EXEC_RUNNING] = {"exec_running", INIT, false, true,  &running_layout},
    [GUEST_EXEC_RESIZE]  = {"exec_resize",  HOST, false, true,  &resize_layout},
    [GUEST_EXEC_SIGNAL]  = {"exec_signal",  HOST, false, true,  &signal_layout},
    [GUEST_EXEC_EXIT]    = {"exec_exit",    INIT, false, true,  &exit_layout},
    [GUEST_EXEC_FORGET]  = {"exec_forget",  HOST, false, true,  NULL},
    [GUEST_FILE_CALL]    = {"file_call",    HOST, true,  true,  &file_call_layout},
    [GUEST_FILE_DONE]    = {"file_done",    INIT, false, true,  &guest_file_done_layout},
    [GUEST_DIAL]         = {"dial",         HOST, true,  true,  &dial_layout},
    [GUEST_RELAY]        = {"relay",        INIT, true,  true,  &relay_layout},
};
/* clang-format on */

static const struct guest_type_info *type_info(unsigned type)
{
    return type < GUEST_TYPE_END && guest_types[type].name ? &guest_types[type] : NULL;
}

static size_t payload_max(unsigned type)
{
    return type == GUEST_EXEC_START ? GUEST_START_MAX : GUEST_PAYLOAD_MAX;
}

/* Where the mark begins in s, or -1.  Steps by its length: all its bytes are >= 0x80, so a smaller
 * byte at the far end rules out every earlier position. */
static ptrdiff_t find_mark(struct str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t i = 0;

    while (s.n - i >= GUEST_MARK) {
        size_t k = GUEST_MARK;

        while (k > 0 && p[i + k - 1] >= 0x80)
            k--;
        if (k == 0 && memcmp(p + i, guest_mark, GUEST_MARK) == 0)
            return (ptrdiff_t)i;
        i += k > 0 ? k : 1;
    }
    return -1;
}

/* ---- decode ---- */

static int check_head(const struct guest_frame *f, size_t length, enum guest_side from,
                      struct err *e)
{
    const struct guest_type_info *t = type_info(f->type);
    bool streamed = f->type == GUEST_DATA || f->type == GUEST_ACK;

    if (!t)
        return err_set(e, ERR_INVALID, 0, "a frame of unknown type %u", f->type);
    if (!(t->from & from))
        return err_set(e, ERR_INVALID, 0, "%s came from the wrong side", t->name);
    if (length > payload_max(f->type))
        return err_set(e, ERR_TOO_LARGE, 0, "%s of %zu bytes", t->name, length);
    if (f->flags & ~(f->type == GUEST_DATA ? GUEST_EOF : 0))
        return err_set(e, ERR_INVALID, 0, "%s with flags %#x", t->name, f->flags);
    if (t->on_channel != (f->channel != 0) || f->channel > INT32_MAX)
        return err_set(e, ERR_INVALID, 0, "%s on channel %u", t->name, f->channel);
    if (t->opens && f->channel % 2 != (from == GUEST_HOST ? 1 : 0))
        return err_set(e, ERR_INVALID, 0, "%s opens channel %u of the other side", t->name,
                       f->channel);
    if (f->aux != 0 && (!streamed || f->aux >= GUEST_STREAM_COUNT))
        return err_set(e, ERR_INVALID, 0, "%s on stream %u", t->name, f->aux);
    /* Stream 0 flows to init: holtd sends its data, init its acknowledgements. */
    if (streamed && (f->type == GUEST_DATA) != ((f->aux == GUEST_IN) == (from == GUEST_HOST)))
        return err_set(e, ERR_INVALID, 0, "%s on stream %u from the wrong side", t->name, f->aux);
    return 0;
}

int guest_parse(struct str in, enum guest_side from, struct guest_frame *ret, size_t *ret_used,
                struct err *e)
{
    const uint8_t *p = (const uint8_t *)in.p;
    struct guest_frame f;
    size_t length;

    if (in.n < GUEST_HEAD)
        return 0;
    f = (struct guest_frame){
        .type = p[0], .flags = p[1], .channel = wire_get_u32(p + 8), .aux = wire_get_u32(p + 12)};
    length = wire_get_u32(p + 4);
    if (wire_get_u16(p + 2) != 0)
        return err_set(e, ERR_INVALID, 0, "a frame with reserved bits set");
    if (check_head(&f, length, from, e) < 0)
        return -1;
    if (in.n - GUEST_HEAD < length)
        return 0;
    if (length > 0 && p[GUEST_HEAD + length - 1] != 0)
        return err_set(e, ERR_INVALID, 0, "a payload without its end byte");
    f.payload = str_make(in.p + GUEST_HEAD, length > 0 ? length - 1 : 0);
    *ret = f;
    *ret_used = GUEST_HEAD + length;
    return 1;
}

static int decode_data(const struct guest_frame *f, struct guest_data *ret, struct err *e)
{
    if (f->payload.n < 8)
        return err_set(e, ERR_INVALID, 0, "data without an offset");
    ret->offset = wire_get_u64((const uint8_t *)f->payload.p);
    ret->bytes = str_skip(f->payload, 8);
    if (ret->offset > (uint64_t)INT64_MAX - ret->bytes.n)
        return err_set(e, ERR_INVALID, 0, "data past the largest offset");
    if (ret->bytes.n == 0 && !(f->flags & GUEST_EOF))
        return err_set(e, ERR_INVALID, 0, "data without bytes");
    return 0;
}

/* Rules across several fields. */
static int check_whole(const struct guest_msg *m, struct err *e)
{
    const struct guest_hello_host *h = &m->u.hello_host;
    const struct guest_ack *a = &m->u.ack;
    const struct guest_exec_exit *x = &m->u.exit;

    if (m->type == GUEST_HELLO_HOST && h->version_min > h->version_max)
        return err_set(e, ERR_INVALID, 0, "hello_host offers no version");
    if (m->type == GUEST_ACK && a->limit < a->acked)
        return err_set(e, ERR_INVALID, 0, "ack with a limit below what is acknowledged");
    if (m->type == GUEST_RESET && m->u.reset.err.code == ERR_NONE)
        return err_set(e, ERR_INVALID, 0, "reset without an error");
    if (m->type == GUEST_EXEC_EXIT && (x->how == GUEST_FAILED) != (x->err.code != ERR_NONE))
        return err_set(e, ERR_INVALID, 0, "exec_exit whose error does not fit its kind");
    return 0;
}

int guest_decode(const struct guest_frame *f, enum guest_side from, struct guest_msg *ret,
                 struct err *e)
{
    const struct guest_type_info *t = type_info(f->type);

    if (check_head(f, f->payload.n, from, e) < 0)
        return -1;
    *ret = (struct guest_msg){.type = (enum guest_type)f->type,
                              .flags = f->flags,
                              .channel = f->channel,
                              .stream = f->aux};
    if (f->type == GUEST_DATA)
        return decode_data(f, &ret->u.data, e);
    if (!t->layout && f->payload.n > 0)
        return err_set(e, ERR_INVALID, 0, "%s with a payload", t->name);
    if (t->layout && wire_get(t->layout, f->payload, &ret->u, e) < 0)
        return -1;
    return check_whole(ret, e);
}

/* ---- encode ---- */

static void put_head(uint8_t *to, const struct guest_msg *m, uint8_t flags, size_t length)
{
    to[0] = (uint8_t)m->type;
    to[1] = flags;
    wire_put_u16(to + 2, 0);
    wire_put_u32(to + 4, (uint32_t)length);
    wire_put_u32(to + 8, m->channel);
    wire_put_u32(to + 12, m->stream);
}

static int encode_payload(const struct guest_msg *m, struct wire_out *o, struct err *e)
{
    const struct guest_type_info *t = type_info(m->type);

    if (check_whole(m, e) < 0)
        return -1;
    if (!t->layout)
        return 0;
    if (wire_put(t->layout, &m->u, o, e) < 0)
        return -1;
    o->full = o->n == o->size;
    if (o->full)
        return err_set(e, ERR_TOO_LARGE, 0, "%s is larger than %zu bytes", t->name, o->size);
    o->p[o->n++] = 0;
    if (find_mark(str_make(o->p, o->n)) >= 0)
        return err_set(e, ERR_INVALID, 0, "%s holds the protocol's mark", t->name);
    return 0;
}

int guest_encode(const struct guest_msg *m, enum guest_side from, struct wire_out *o, struct err *e)
{
    const struct guest_frame head = {
        .type = (uint8_t)m->type, .flags = m->flags, .channel = m->channel, .aux = m->stream};
    struct wire_out payload;

    assert(m->type != GUEST_DATA);
    if (check_head(&head, 0, from, e) < 0)
        return -1;
    if (o->size - o->n < GUEST_HEAD)
        return err_set(e, ERR_TOO_LARGE, 0, "no room for a frame");
    payload =
        (struct wire_out){.p = o->p + o->n + GUEST_HEAD,
                          .size = size_min(o->size - o->n - GUEST_HEAD, payload_max(m->type))};
    if (encode_payload(m, &payload, e) < 0) {
        o->full = payload.full;
        return -1;
    }
    put_head(o->p + o->n, m, m->flags, payload.n);
    o->n += GUEST_HEAD + payload.n;
    return 0;
}

size_t guest_data_head(uint8_t *head, const struct guest_msg *m, bool eof)
{
    struct str take = m->u.data.bytes;
    ptrdiff_t at;

    assert(m->type == GUEST_DATA && m->channel > 0 && m->u.data.offset <= INT64_MAX - take.n);
    take.n = size_min(take.n, GUEST_DATA_MAX);
    at = find_mark(take);
    if (at >= 0)
        /* the next frame's header separates the parts of the mark */
        take.n = (size_t)at + GUEST_MARK - 1;
    eof = eof && take.n == m->u.data.bytes.n;
    put_head(head, m, eof ? GUEST_EOF : 0, 8 + take.n + GUEST_DATA_TAIL);
    wire_put_u64(head + GUEST_HEAD, m->u.data.offset);
    return take.n;
}

/* ---- records ---- */

int guest_record_next(const struct wire_layout *l, struct str *in, void *ret, struct err *e)
{
    uint32_t n;

    if (in->n < 4)
        return 0;
    n = wire_get_u32((const uint8_t *)in->p);
    if (n > GUEST_RECORD_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "a record of %u bytes", n);
    if (in->n - 4 < n)
        return 0;
    if (wire_get(l, str_make(in->p + 4, n), ret, e) < 0)
        return -1;
    *in = str_skip(*in, 4 + (size_t)n);
    return 1;
}

int guest_record_put(const struct wire_layout *l, const void *record, struct wire_out *o,
                     struct err *e)
{
    struct wire_out body;

    if (o->size - o->n < 4)
        return err_set(e, ERR_TOO_LARGE, 0, "no room for a record");
    body = (struct wire_out){.p = o->p + o->n + 4,
                             .size = size_min(o->size - o->n - 4, GUEST_RECORD_MAX)};
    if (wire_put(l, record, &body, e) < 0)
        return -1;
    wire_put_u32(o->p + o->n, (uint32_t)body.n);
    o->n += 4 + body.n;
    return 0;
}

/* ---- reader ---- */

#define READ_STEP (16 * 1024)
#define READ_MAX (256 * 1024) /* some frames of output; the longest frame, an exec_start */
#define SMALL 1024            /* memory that an idle reader may keep */
_Static_assert(READ_MAX >= GUEST_START_MAX && READ_MAX >= GUEST_PAYLOAD_MAX, "room for a frame");

void guest_reader_init(struct guest_reader *r, enum guest_side from, bool scan)
{
    *r = (struct guest_reader){.from = from, .scan = scan, .step = READ_STEP};
    r->in.limit = GUEST_HEAD + GUEST_MARK + READ_MAX;
}

void guest_reader_done(struct guest_reader *r)
{
    buf_done(&r->in);
}

static void drop_front(struct guest_reader *r, size_t n)
{
    buf_take(&r->in, n);
    r->looked = r->looked > n ? r->looked - n : 0;
}

size_t guest_reader_room(struct guest_reader *r, char **ret)
{
    size_t room;

    drop_front(r, r->used);
    r->used = 0;
    room = size_min(r->in.limit - buf_len(&r->in), r->step);
    if (room == 0 || buf_reserve(&r->in, room, ret) < 0)
        return 0;
    return room;
}

void guest_reader_added(struct guest_reader *r, size_t n)
{
    if (n >= r->step || n < READ_STEP)
        r->step = n < READ_STEP ? READ_STEP : READ_MAX;
    buf_added(&r->in, n);
}

void guest_reader_shrink(struct guest_reader *r)
{
    struct buf rest = {.limit = r->in.limit};

    drop_front(r, r->used);
    r->used = 0;
    buf_shrink(&r->in, SMALL);
    if (r->in.size <= GUEST_PAYLOAD_MAX)
        return;
    if (buf_try_add(&rest, buf_data(&r->in), buf_len(&r->in)) == 0) {
        buf_done(&r->in);
        r->in = rest;
    }
}

/* Without scan, the mark comes first and only once. */
static int expect_mark(struct guest_reader *r, struct err *e)
{
    size_t n = size_min(buf_len(&r->in), GUEST_MARK);

    if (n > 0 && memcmp(buf_data(&r->in), guest_mark, n) != 0)
        return err_set(e, ERR_INVALID, 0, "the peer does not speak the guest protocol");
    if (n < GUEST_MARK)
        return GUEST_READ_MORE;
    drop_front(r, GUEST_MARK);
    r->synced = true;
    return GUEST_READ_MARK;
}

/* The number of bytes at the end of s that may be the start of a mark. */
static size_t mark_begun(struct str s)
{
    for (size_t k = size_min(s.n, GUEST_MARK - 1); k > 0; k--)
        if (memcmp(s.p + s.n - k, guest_mark, k) == 0)
            return k;
    return 0;
}

/* Searches the bytes that arrived since the last call.  A mark voids everything before it. */
static bool scan_for_mark(struct guest_reader *r)
{
    ptrdiff_t at = find_mark(str_skip(buf_str(&r->in), r->looked));

    if (at >= 0) {
        drop_front(r, r->looked + (size_t)at + GUEST_MARK);
        r->looked = 0;
        r->synced = true;
        return true;
    }
    r->looked = buf_len(&r->in) - mark_begun(buf_str(&r->in));
    if (!r->synced)
        drop_front(r, r->looked);
    return false;
}

int guest_reader_next(struct guest_reader *r, struct guest_frame *ret, struct err *e)
{
    struct str in;

    drop_front(r, r->used);
    r->used = 0;
    if (r->scan && scan_for_mark(r))
        return GUEST_READ_MARK;
    if (!r->synced)
        return r->scan ? GUEST_READ_MORE : expect_mark(r, e);
    in = buf_str(&r->in);
    if (r->scan)
        in.n = r->looked; /* a frame never ends in part of the mark: nothing is held back */
    return guest_parse(in, r->from, ret, &r->used, e); /* 1 is GUEST_READ_FRAME */
}
