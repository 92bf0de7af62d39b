/* grpc: message frames, timeouts and message texts of gRPC. */
#include "proto/grpc.h"

#include <errno.h>

#define MESSAGE_KEEP (64 * 1024)

void grpc_reader_done(struct grpc_reader *r)
{
    buf_done(&r->message);
}

bool grpc_reader_is_between(const struct grpc_reader *r)
{
    return r->head_have == 0 || r->complete;
}

static int begin_message(struct grpc_reader *r)
{
    unsigned flag = r->head[0];
    uint32_t n = (uint32_t)r->head[1] << 24 | (uint32_t)r->head[2] << 16 |
                 (uint32_t)r->head[3] << 8 | r->head[4];

    if (flag == GRPC_FLAG_COMPRESSED && !r->compressed)
        return -EOPNOTSUPP;
    if (flag != 0 && flag != GRPC_FLAG_COMPRESSED && !(r->trailers && flag == GRPC_FLAG_TRAILER))
        return -EPROTO;
    if (n > r->limit)
        return -EMSGSIZE;
    r->left = n;
    return 0;
}

int grpc_reader_next(struct grpc_reader *r, struct str *in, struct grpc_frame *ret)
{
    size_t n;

    if (r->complete) {
        buf_clear(&r->message);
        buf_shrink(&r->message, MESSAGE_KEEP);
        r->complete = false;
        r->head_have = 0;
    }
    while (r->head_have < GRPC_HEAD) {
        int code;

        if (in->n == 0)
            return 0;
        r->head[r->head_have++] = (unsigned char)in->p[0];
        *in = str_skip(*in, 1);
        code = r->head_have == GRPC_HEAD ? begin_message(r) : 0;
        if (code < 0)
            return code;
    }
    n = size_min(r->left, in->n);
    buf_add(&r->message, in->p, n);
    *in = str_skip(*in, n);
    r->left -= n;
    if (r->left > 0)
        return 0;
    r->complete = true;
    *ret = (struct grpc_frame){
        .trailer = r->head[0] == GRPC_FLAG_TRAILER,
        .compressed = r->head[0] == GRPC_FLAG_COMPRESSED,
        .data = buf_str(&r->message),
    };
    return 1;
}

void grpc_frame_head(unsigned char to[GRPC_HEAD], unsigned flag, size_t n)
{
    assert(n <= UINT32_MAX);
    to[0] = (unsigned char)flag;
    for (int i = 0; i < 4; i++)
        to[1 + i] = (unsigned char)(n >> (24 - 8 * i));
}

int grpc_timeout_parse(struct str s, int64_t *ret_ms)
{
    static const struct {
        char unit;
        int64_t ns;
    } units[] = {
        {'H', 3600000000000}, {'M', 60000000000}, {'S', 1000000000},
        {'m', 1000000},       {'u', 1000},        {'n', 1},
    };
    int64_t n;

    if (s.n < 2 || s.n > 9 || s.p[0] == '-' || str_parse_i64(str_make(s.p, s.n - 1), &n) < 0)
        return -EINVAL;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (s.p[s.n - 1] != units[i].unit)
            continue;
        *ret_ms = units[i].ns >= 1000000 ? n * (units[i].ns / 1000000)
                                         : (n * units[i].ns + 999999) / 1000000;
        return 0;
    }
    return -EINVAL;
}

void grpc_text_encode(struct buf *to, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c >= ' ' && c <= '~' && c != '%')
            buf_add_char(to, (char)c);
        else
            buf_printf(to, "%%%02X", c);
    }
}
