/* words: error texts as Python writes them. */
#include "api/dialects/agentbox/agentbox.h"
#include "base/utf8.h"

/* repr() of a text: double quotes if it contains only single ones. */
static void quote(struct str s, struct buf *to)
{
    char q = str_index(s, '\'') >= 0 && str_index(s, '"') < 0 ? '"' : '\'';

    buf_add_char(to, q);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c == '\n' || c == '\r' || c == '\t')
            buf_printf(to, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (c < ' ' || c == 0x7f)
            buf_printf(to, "\\x%02x", c);
        else if (c == '\\' || c == (unsigned char)q)
            buf_printf(to, "\\%c", c);
        else
            buf_add_char(to, (char)c);
    }
    buf_add_char(to, q);
}

void agentbox_say_errno(int sys, struct str path, struct buf *to)
{
    buf_printf(to, "[Errno %d] %s: ", sys, strerror(sys));
    quote(path, to);
}

bool agentbox_say_codec(struct str s, struct buf *to)
{
    size_t at = 0, n, wrong;
    unsigned char c;

    while ((n = utf8_next(str_skip(s, at), &wrong)) > 0)
        at += n;
    if (at == s.n)
        return false;
    c = (unsigned char)s.p[at];
    n = wrong ? wrong : s.n - at;
    if (n == 1)
        buf_printf(to, "'utf-8' codec can't decode byte 0x%02x in position %zu: ", c, at);
    else
        buf_printf(to, "'utf-8' codec can't decode bytes in position %zu-%zu: ", at, at + n - 1);
    buf_add_c(to, wrong == 0             ? "unexpected end of data"
                  : c < 0xc2 || c > 0xf4 ? "invalid start byte"
                                         : "invalid continuation byte");
    return true;
}
