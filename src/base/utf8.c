/* utf8: decodes, repairs and escapes UTF-8. */
#include "base/utf8.h"

struct lead {
    unsigned char from, to;  /* of the first byte */
    unsigned char low, high; /* bounds of the second byte: no overlong forms, no surrogates, nothing
                                past U+10FFFF */
    size_t length;
};

static const struct lead leads[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static const struct lead *find_lead(unsigned char c)
{
    for (size_t i = 0; i < ARRAY_LEN(leads); i++)
        if (c >= leads[i].from && c <= leads[i].to)
            return &leads[i];
    return NULL;
}

size_t utf8_next(struct str s, size_t *ret_wrong)
{
    const unsigned char *p = (const unsigned char *)s.p;
    const struct lead *l;

    *ret_wrong = 0;
    if (s.n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    l = find_lead(p[0]);
    for (size_t i = 1; l && i < l->length; i++) {
        unsigned char low = i == 1 ? l->low : 0x80, high = i == 1 ? l->high : 0xbf;

        if (i == s.n)
            return 0;
        if (p[i] < low || p[i] > high) {
            *ret_wrong = i;
            return 0;
        }
    }
    *ret_wrong = l ? 0 : 1;
    return l ? l->length : 0;
}

size_t utf8_replace(struct buf *to, struct str s, bool last)
{
    size_t at = 0;

    while (at < s.n) {
        size_t wrong, good = 0, n;

        while ((n = utf8_next(str_skip(s, at + good), &wrong)) > 0)
            good += n;
        buf_add(to, s.p + at, good);
        at += good;
        if (at == s.n)
            break;
        if (wrong == 0 && !last)
            break;
        buf_add_c(to, "\xef\xbf\xbd");
        at = wrong == 0 ? s.n : at + wrong;
    }
    return at;
}

size_t utf8_point(struct str s, uint32_t *ret)
{
    size_t wrong, n = utf8_next(s, &wrong);
    uint32_t point = n > 0 ? (unsigned char)s.p[0] : 0;

    if (n > 1)
        point &= 0x7fu >> n;
    for (size_t i = 1; i < n; i++)
        point = point << 6 | ((unsigned char)s.p[i] & 0x3f);
    *ret = point;
    return n;
}

void utf8_put(struct buf *to, uint32_t point)
{
    char b[4];
    size_t n;

    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        point = 0xfffd;
    n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t k = n; k-- > 1; point >>= 6)
        b[k] = (char)(0x80 | (point & 0x3f));
    /* The first byte says how many there are: 0xxxxxxx, 110xxxxx, 1110xxxx, 11110xxx. */
    b[0] = (char)(n == 1 ? point : (0xf00U >> n & 0xf0U) | point);
    buf_add(to, b, n);
}

bool utf8_is_control(uint32_t point)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
    };

    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        if (point >= ranges[i].from && point <= ranges[i].to)
            return true;
    return false;
}

bool utf8_is_unseen(uint32_t point)
{
    static const struct {
        uint32_t from, to;
    } unseen[] = {
        {0xad, 0xad},     {0x34f, 0x34f},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
        {0x180b, 0x180f}, {0x200b, 0x200f},   {0x2060, 0x206f},   {0x2800, 0x2800},
        {0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
        {0xfff0, 0xfffb}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < ARRAY_LEN(unseen); i++)
        if (point >= unseen[i].from && point <= unseen[i].to)
            return true;
    return false;
}

void utf8_escape(struct buf *to, struct str s)
{
    while (s.n > 0) {
        uint32_t point;
        size_t n = utf8_point(s, &point);

        if (n > 0 && point >= 0x7f && utf8_is_control(point))
            buf_printf(to, "\\u%04x", (unsigned)point);
        else
            buf_add(to, s.p, n > 0 ? n : 1);
        s = str_skip(s, n > 0 ? n : 1);
    }
}
