/* trace: reads and writes traceparent (W3C Trace Context, section 3.2). */
#include "proto/trace.h"

#include "base/enc.h"

#include <stdio.h>
#include <string.h>

static bool is_lower_hex(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= '0' && s.p[i] <= '9') && !(s.p[i] >= 'a' && s.p[i] <= 'f'))
            return false;
    return true;
}

static void from_hex(struct str s, unsigned char *to)
{
    for (size_t i = 0; i < s.n / 2; i++) {
        unsigned char high = (unsigned char)s.p[2 * i], low = (unsigned char)s.p[2 * i + 1];

        high = (unsigned char)(high <= '9' ? high - '0' : high - 'a' + 10);
        low = (unsigned char)(low <= '9' ? low - '0' : low - 'a' + 10);
        to[i] = (unsigned char)(high << 4 | low);
    }
}

static bool is_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

bool trace_parse(struct str text, struct trace_place *ret)
{
    struct trace_place p;
    struct str rest, version = str_cut(text, '-', &rest), trace = str_cut(rest, '-', &rest);
    struct str span = str_cut(rest, '-', &rest), flags = str_cut(rest, '-', &rest);
    unsigned char bits;

    if (version.n != 2 || trace.n != 32 || span.n != 16 || flags.n != 2 || !is_lower_hex(version) ||
        !is_lower_hex(trace) || !is_lower_hex(span) || !is_lower_hex(flags) ||
        str_eq_c(version, "ff"))
        return false;
    if (str_eq_c(version, "00") && text.n != TRACE_TEXT - 1)
        return false;
    from_hex(trace, p.trace);
    from_hex(span, p.span);
    from_hex(flags, &bits);
    p.sampled = bits & 1;
    if (is_zero(p.trace, sizeof p.trace) || is_zero(p.span, sizeof p.span))
        return false;
    *ret = p;
    return true;
}

char *trace_print(const struct trace_place *p, char to[TRACE_TEXT])
{
    char trace[TRACE_HEX], span[SPAN_HEX];

    enc_hex(p->trace, sizeof p->trace, trace);
    enc_hex(p->span, sizeof p->span, span);
    (void)snprintf(to, TRACE_TEXT, "00-%s-%s-%s", trace, span, p->sampled ? "01" : "00");
    return to;
}
