/* enc: hex, base64 and percent encoding and strict decoding. */
#include "base/enc.h"

#include <errno.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

void enc_hex(const void *p, size_t n, char *to)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = p;

    for (size_t i = 0; i < n; i++) {
        to[2 * i] = digits[b[i] >> 4];
        to[2 * i + 1] = digits[b[i] & 15];
    }
    to[2 * n] = '\0';
}

int dec_hex(struct str s, void *to, size_t n)
{
    unsigned char *b = to;

    if (s.n != 2 * n)
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        int high = hex_value(s.p[2 * i]), low = hex_value(s.p[2 * i + 1]);

        if (high < 0 || low < 0)
            return -EINVAL;
        b[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}

static void base64(struct buf *to, const unsigned char *b, size_t n, const char *last_two, bool pad)
{
    static const char common[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)b[i] << 16 | (i + 1 < n ? (uint32_t)b[i + 1] << 8 : 0) |
                     (i + 2 < n ? b[i + 2] : 0);
        size_t digits = size_min(n - i, 3) + 1;

        for (size_t j = 0; j < 4; j++) {
            uint32_t d = v >> (18 - 6 * j) & 63;

            if (j < digits)
                buf_add_char(to, d < 62 ? common[d] : last_two[d - 62]);
            else if (pad)
                buf_add_char(to, '=');
        }
    }
}

void enc_base64(struct buf *to, const void *p, size_t n)
{
    base64(to, p, n, "+/", true);
}

void enc_base64url(struct buf *to, const void *p, size_t n)
{
    base64(to, p, n, "-_", false);
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    if (c == '/' || c == '_')
        return 63;
    return -1;
}

int dec_base64(struct buf *to, struct str s)
{
    uint32_t v = 0;
    size_t bits = 0;

    if (s.n % 4 == 0 && str_ends(s, STR("==")))
        s.n -= 2;
    else if (s.n % 4 == 0 && str_ends(s, STR("=")))
        s.n -= 1;
    if (s.n % 4 == 1)
        return -EINVAL;
    for (size_t i = 0; i < s.n; i++) {
        int d = base64_value(s.p[i]);

        if (d < 0)
            return -EINVAL;
        v = v << 6 | (uint32_t)d;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            buf_add_char(to, (char)(v >> bits));
            v &= (1U << bits) - 1;
        }
    }
    return v == 0 ? 0 : -EINVAL; /* left-over bits must be zero */
}

void enc_percent(struct buf *to, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '.' || c == '_' || c == '~')
            buf_add_char(to, c);
        else
            buf_printf(to, "%%%02X", (unsigned)(unsigned char)c);
    }
}

int dec_percent(struct buf *to, struct str s, bool plus)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char byte;

        if (s.p[i] == '%') {
            if (s.n - i < 3 || dec_hex(str_make(s.p + i + 1, 2), &byte, 1) < 0)
                return -EINVAL;
            buf_add_char(to, (char)byte);
            i += 2;
        } else {
            buf_add_char(to, plus && s.p[i] == '+' ? ' ' : s.p[i]);
        }
    }
    return 0;
}
