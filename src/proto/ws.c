/* ws: reads and writes WebSocket frames. */
#include "proto/ws.h"

#include "base/enc.h"
#include "proto/sha1.h"

#define FIN 0x80
#define RSV 0x70
#define MASKED 0x80
#define LENGTH 0x7f
#define LEN_16 126
#define LEN_64 127
#define JOINED_KEEP (64 * 1024)

void ws_reader_done(struct ws_reader *r)
{
    buf_done(&r->joined);
}

static bool is_control(enum ws_op op)
{
    return op >= WS_OP_CLOSE;
}

/* Length of the head that starts with these two bytes. */
static size_t head_size(const unsigned char *head)
{
    int n = head[1] & LENGTH;

    return 2 + (n == LEN_16 ? 2U : n == LEN_64 ? 8U : 0U) + (head[1] & MASKED ? 4U : 0U);
}

static bool op_is_known(unsigned op)
{
    return op <= WS_OP_BINARY || (op >= WS_OP_CLOSE && op <= WS_OP_PONG);
}

/* Checks the first two bytes before waiting for the rest of the head. */
static int check_head(const struct ws_reader *r)
{
    unsigned op = r->head[0] & 0x0f;
    bool fin = r->head[0] & FIN;

    if ((r->head[0] & RSV) || !op_is_known(op) || !!(r->head[1] & MASKED) != r->masked)
        return -WS_PROTOCOL;
    if (is_control(op))
        return fin && (r->head[1] & LENGTH) <= WS_CONTROL_MAX ? 0 : -WS_PROTOCOL;
    /* a continuation without a message, or a new message inside one */
    if ((op == WS_OP_MORE) != (r->kind != WS_OP_MORE))
        return -WS_PROTOCOL;
    return 0;
}

static int read_length(const struct ws_reader *r, uint64_t *ret)
{
    uint64_t n = r->head[1] & LENGTH;
    size_t bytes = n == LEN_16 ? 2 : n == LEN_64 ? 8 : 0;

    if (bytes > 0) {
        n = 0;
        for (size_t i = 0; i < bytes; i++)
            n = n << 8 | r->head[2 + i];
        if (n < LEN_16 || (bytes == 8 && (n <= UINT16_MAX || n > INT64_MAX)))
            return -WS_PROTOCOL; /* §5.2: the shortest form, top bit clear */
    }
    *ret = n;
    return 0;
}

static int begin_payload(struct ws_reader *r)
{
    int code;

    r->op = r->head[0] & 0x0f;
    r->fin = r->head[0] & FIN;
    code = read_length(r, &r->left);
    if (code < 0)
        return code;
    if (!is_control(r->op) && r->left > r->limit - buf_len(&r->joined))
        return -WS_TOO_BIG;
    if (r->masked)
        memcpy(r->mask, r->head + r->head_have - 4, 4);
    if (r->op == WS_OP_TEXT || r->op == WS_OP_BINARY)
        r->kind = r->op;
    r->at = 0;
    r->control_have = 0;
    r->in_payload = true;
    return 0;
}

/* Returns 1 when the head is complete, 0 for more. */
static int read_head(struct ws_reader *r, struct str *in)
{
    while (in->n > 0) {
        r->head[r->head_have++] = (unsigned char)in->p[0];
        *in = str_skip(*in, 1);
        if (r->head_have < 2)
            continue;
        if (r->head_have == 2) {
            int code = check_head(r);

            if (code < 0)
                return code;
        }
        if (r->head_have == head_size(r->head))
            return 1;
    }
    return 0;
}

/* §5.3, eight bytes at a time: `at` is the offset in the payload. */
static void apply_mask(const unsigned char *mask, uint64_t at, const char *from, char *to, size_t n)
{
    unsigned char turned[8];
    uint64_t key, v;
    size_t i = 0;

    for (size_t k = 0; k < sizeof turned; k++)
        turned[k] = mask[(at + k) & 3];
    memcpy(&key, turned, sizeof key);
    for (; i + sizeof v <= n; i += sizeof v) {
        memcpy(&v, from + i, sizeof v);
        v ^= key;
        memcpy(to + i, &v, sizeof v);
    }
    for (; i < n; i++)
        to[i] = (char)(from[i] ^ turned[i & 3]);
}

static void read_payload(struct ws_reader *r, struct str *in)
{
    size_t n = r->left < in->n ? (size_t)r->left : in->n;
    char *to;

    if (is_control(r->op)) {
        to = (char *)r->control + r->control_have;
        r->control_have += n;
    } else {
        if (buf_reserve(&r->joined, n, &to) < 0)
            abort(); /* the buffer has no limit: it cannot fail */
        buf_added(&r->joined, n);
    }
    if (r->masked)
        apply_mask(r->mask, r->at, in->p, to, n);
    else if (n > 0)
        memcpy(to, in->p, n);
    r->at += n;
    r->left -= n;
    *in = str_skip(*in, n);
}

bool ws_code_is_valid(int code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != WS_NO_CODE &&
            code != WS_VANISHED) ||
           (code >= 3000 && code <= 4999);
}

static int end_control(const struct ws_reader *r, struct ws_event *ret)
{
    struct str data = str_make(r->control, r->control_have);

    *ret = (struct ws_event){.op = r->op, .data = data};
    if (r->op != WS_OP_CLOSE)
        return 1;
    ret->code = WS_NO_CODE;
    if (data.n == 0)
        return 1;
    if (data.n == 1)
        return -WS_PROTOCOL;
    ret->code = r->control[0] << 8 | r->control[1];
    ret->data = str_skip(data, 2);
    if (!ws_code_is_valid(ret->code))
        return -WS_PROTOCOL;
    return str_is_utf8(ret->data) ? 1 : -WS_BAD_TEXT;
}

static int end_message(struct ws_reader *r, struct ws_event *ret)
{
    *ret = (struct ws_event){.op = r->kind, .data = buf_str(&r->joined)};
    r->kind = WS_OP_MORE;
    if (ret->op == WS_OP_TEXT && !str_is_utf8(ret->data))
        return -WS_BAD_TEXT;
    return 1;
}

int ws_reader_next(struct ws_reader *r, struct str *in, struct ws_event *ret)
{
    int code;

    /* the previous message has been handed out */
    if (r->kind == WS_OP_MORE && buf_len(&r->joined) > 0) {
        buf_clear(&r->joined);
        buf_shrink(&r->joined, JOINED_KEEP);
    }
    for (;;) {
        if (!r->in_payload) {
            code = read_head(r, in);
            if (code <= 0)
                return code;
            code = begin_payload(r);
            if (code < 0)
                return code;
        }
        read_payload(r, in);
        if (r->left > 0)
            return 0;
        r->in_payload = false;
        r->head_have = 0;
        if (is_control(r->op))
            return end_control(r, ret);
        if (r->fin)
            return end_message(r, ret);
    }
}

int ws_frame_next(struct ws_reader *r, struct str *in, struct str *ret_head, struct str *ret_data)
{
    const char *from = in->p;
    int code = r->in_payload ? 1 : read_head(r, in);

    *ret_data = (struct str){0};
    *ret_head = str_make(from, (size_t)(in->p - from));
    if (code > 0 && !r->in_payload)
        code = begin_payload(r) < 0 ? -WS_PROTOCOL : 1;
    if (code <= 0)
        return code;
    *ret_data = str_make(in->p, r->left < in->n ? (size_t)r->left : in->n);
    r->left -= ret_data->n;
    *in = str_skip(*in, ret_data->n);
    if (r->left > 0)
        return 0;
    r->in_payload = false;
    r->head_have = 0;
    if (!is_control(r->op) && r->fin)
        r->kind = WS_OP_MORE;
    return 1;
}

void ws_write(struct buf *to, enum ws_op op, struct str data, const unsigned char *mask)
{
    unsigned char head[10] = {(unsigned char)(FIN | op)};
    size_t bytes = data.n < LEN_16 ? 0 : data.n <= UINT16_MAX ? 2 : 8;
    char *payload;

    head[1] = (unsigned char)(bytes == 0 ? data.n : bytes == 2 ? LEN_16 : LEN_64);
    for (size_t i = 0; i < bytes; i++)
        head[2 + i] = (unsigned char)(data.n >> (8 * (bytes - 1 - i)));
    if (mask)
        head[1] |= MASKED;
    buf_add(to, head, 2 + bytes);
    if (mask)
        buf_add(to, mask, 4);
    buf_add_str(to, data);
    if (!mask)
        return;
    payload = buf_data(to) + buf_len(to) - data.n;
    apply_mask(mask, 0, payload, payload, data.n);
}

void ws_write_close(struct buf *to, int code, struct str reason, const unsigned char *mask)
{
    char payload[WS_CONTROL_MAX] = {(char)(code >> 8), (char)code};
    size_t n = size_min(reason.n, sizeof payload - 2);

    while (n > 0 && !str_is_utf8(str_make(reason.p, n)))
        n--;
    if (n > 0)
        memcpy(payload + 2, reason.p, n);
    ws_write(to, WS_OP_CLOSE, str_make(payload, code == WS_NO_CODE ? 0 : n + 2), mask);
}

bool ws_key_is_valid(struct str key)
{
    AUTO(buf_done) struct buf raw = {0};

    return key.n == 24 && dec_base64(&raw, key) == 0 && buf_len(&raw) == 16;
}

void ws_accept_key(struct str key, char to[WS_ACCEPT_SIZE])
{
    AUTO(buf_done) struct buf text = {0};
    unsigned char hash[SHA1_SIZE];

    buf_add_str(&text, key);
    buf_add_c(&text, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"); /* RFC 6455 §1.3 */
    sha1(buf_str(&text), hash);
    buf_clear(&text);
    enc_base64(&text, hash, sizeof hash);
    assert(buf_len(&text) == WS_ACCEPT_SIZE - 1);
    memcpy(to, buf_cstr(&text), WS_ACCEPT_SIZE);
}
