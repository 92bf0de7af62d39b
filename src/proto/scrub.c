/* scrub: replaces secret values by their placeholders in a stream. */
#include "proto/scrub.h"

#include "base/enc.h"
#include "base/mem.h"

#include <stdlib.h>

#define ENCODED_MIN 6 /* a shorter encoded form would be found everywhere */
#define ESCAPE_MAX 8  /* bytes of the longest escaped character: "&#x0026;" */

struct scrub_form {
    char *text; /* the text to replace */
    size_t n;
    struct str put; /* its replacement; the form owns the bytes */
    bool any_case;  /* hexadecimal: text is in lower case */
    bool escapable; /* some of its bytes may arrive escaped */
};

/* ---- forms ---- */

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int longer_first(const void *a, const void *b)
{
    const struct scrub_form *x = a, *y = b;

    return x->n < y->n ? 1 : x->n > y->n ? -1 : 0;
}

static bool is_there(const struct scrub *s, struct str text)
{
    for (size_t i = 0; i < s->count; i++)
        if (str_eq(str_make(s->forms[i].text, s->forms[i].n), text))
            return true;
    return false;
}

static bool may_start(const struct scrub_form *f, char c)
{
    if (f->text[0] == c)
        return true;
    if (f->any_case && c >= 'A' && c <= 'F')
        return f->text[0] == (c | 0x20);
    return !is_plain(f->text[0]) && (c == '%' || c == '\\' || c == '&' || c == '+');
}

/* Many secrets have hundreds of forms: at each byte, only the forms that start with it are
 * tried. */
static void index_forms(struct scrub *s)
{
    size_t n = 0, room = 0;

    if (s->indexed)
        return;
    s->indexed = true;
    if (s->count > 0)
        qsort(s->forms, s->count, sizeof *s->forms, longer_first);
    for (unsigned c = 0; c < ARRAY_LEN(s->starts); c++) {
        if (n + s->count > room) {
            room = 2 * (n + s->count);
            s->order = xrealloc(s->order, room * sizeof *s->order);
        }
        assert(n + s->count <= UINT16_MAX);
        s->starts[c].at = (uint16_t)n;
        for (size_t i = 0; i < s->count; i++)
            if (may_start(&s->forms[i], (char)c))
                s->order[n++] = (uint16_t)i;
        s->starts[c].n = (uint16_t)(n - s->starts[c].at);
    }
}

static void add(struct scrub *s, struct str text, struct str put, bool any_case)
{
    struct scrub_form *f;
    size_t most = 0;

    if (text.n == 0 || is_there(s, text))
        return;
    s->forms = xrealloc(s->forms, (s->count + 1) * sizeof *s->forms);
    f = &s->forms[s->count++];
    *f = (struct scrub_form){.text = xmemdup(text.p, text.n),
                             .n = text.n,
                             .put = str_make(xmemdup(put.p, put.n), put.n),
                             .any_case = any_case};
    for (size_t i = 0; i < text.n; i++) {
        f->escapable |= !is_plain(text.p[i]);
        most += is_plain(text.p[i]) ? 1 : ESCAPE_MAX;
    }
    s->longest = size_max(s->longest, most);
    s->indexed = false;
}

static void add_encoded(struct scrub *s, struct buf *text, struct str put, bool any_case)
{
    if (buf_len(text) >= ENCODED_MIN)
        add(s, buf_str(text), put, any_case);
    if (buf_len(text) > 0)
        mem_wipe(buf_data(text), buf_len(text));
    buf_clear(text);
}

/* Base64 of the value inside any other text: for each of the three alignments to groups of three
 * bytes, the digits that depend on the value alone. */
static void add_base64(struct scrub *s, struct str value, struct str put,
                       void (*encode)(struct buf *to, const void *p, size_t n))
{
    static const size_t before[3] = {0, 2, 3}; /* digits that depend on the text before the value */
    AUTO(buf_done) struct buf plain = {0}, text = {0};

    for (size_t shift = 0; shift < 3; shift++) {
        size_t whole;

        buf_clear(&plain);
        buf_add(&plain, "\0\0", shift);
        buf_add_str(&plain, value);
        encode(&text, buf_data(&plain), buf_len(&plain));
        whole = buf_len(&plain) * 8 / 6;
        buf_truncate(&text, whole);
        buf_take(&text, before[shift]);
        add_encoded(s, &text, put, false);
        mem_wipe(buf_data(&plain), buf_len(&plain));
    }
}

static void put_hex(struct buf *to, struct str s)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < s.n; i++) {
        buf_add_char(to, digits[(unsigned char)s.p[i] >> 4]);
        buf_add_char(to, digits[(unsigned char)s.p[i] & 15]);
    }
}

void scrub_add(struct scrub *s, struct str value, struct str placeholder)
{
    AUTO(buf_done) struct buf t = {0};

    add(s, value, placeholder, false);
    add_base64(s, value, placeholder, enc_base64);
    add_base64(s, value, placeholder, enc_base64url);
    put_hex(&t, value);
    add_encoded(s, &t, placeholder, true);
}

/* ---- escapes ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The number in `digits`; -1: not a number. */
static int32_t number(struct str digits, unsigned base)
{
    int32_t v = digits.n > 0 ? 0 : -1;

    for (size_t i = 0; i < digits.n && v >= 0; i++) {
        int d = hex_digit(digits.p[i]);

        v = d < 0 || d >= (int)base ? -1 : v * (int32_t)base + d;
    }
    return v;
}

/* "&amp;", "&#38;", "&#x26;": the character; -1: none. */
static int32_t read_entity(struct str in, size_t *ret_n)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    ptrdiff_t end = str_index(str_make(in.p, size_min(in.n, ESCAPE_MAX)), ';');
    struct str text = end > 1 ? str_make(in.p + 1, (size_t)end - 1) : (struct str){0};

    *ret_n = (size_t)end + 1;
    if (text.n > 1 && text.p[0] == '#')
        return (text.p[1] | 0x20) == 'x' ? number(str_skip(text, 2), 16)
                                         : number(str_skip(text, 1), 10);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(text, names[i].name))
            return names[i].c;
    return -1;
}

/* JSON and JavaScript: "\\/", "\\u002f", "\\x2f". */
static int32_t read_backslash(struct str in, size_t *ret_n)
{
    size_t digits = in.n < 2 ? 0 : in.p[1] == 'u' ? 4 : in.p[1] == 'x' ? 2 : 0;

    *ret_n = 2 + digits;
    if (in.n < *ret_n)
        return -1;
    if (digits > 0)
        return number(str_make(in.p + 2, digits), 16);
    if (in.p[1] == 't')
        return '\t';
    return is_plain(in.p[1]) ? -1 : (unsigned char)in.p[1];
}

/* The escaped character at the start of `in`; -1: none.  *ret_byte: it is a byte, not a Unicode
 * character. */
static int32_t read_escape(struct str in, size_t *ret_n, bool *ret_byte)
{
    *ret_byte = in.p[0] == '%' || (in.n > 1 && in.p[0] == '\\' && in.p[1] == 'x');
    switch (in.p[0]) {
    case '%':
        *ret_n = 3;
        return in.n >= 3 ? number(str_make(in.p + 1, 2), 16) : -1;
    case '\\':
        return read_backslash(in, ret_n);
    case '&':
        return read_entity(in, ret_n);
    case '+':
        *ret_n = 1;
        return ' ';
    default:
        return -1;
    }
}

/* RFC 3629, up to U+FFFF, the most an escape can hold.  0: not a character. */
static size_t put_utf8(uint32_t c, char to[static 3])
{
    if (c >= 0x10000)
        return 0;
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    to[0] = (char)(0xe0 | c >> 12);
    to[1] = (char)(0x80 | (c >> 6 & 0x3f));
    to[2] = (char)(0x80 | (c & 0x3f));
    return 3;
}

/* The number of bytes of `text` that the escape at the start of `in` stands for; 0: it does not
 * match. */
static size_t unescape(struct str text, struct str in, size_t *ret_n)
{
    char bytes[3];
    bool byte;
    int32_t c = read_escape(in, ret_n, &byte);
    size_t n = 1;

    if (c < 0)
        return 0;
    bytes[0] = (char)c;
    if (c >= 0x80 && !byte)
        n = put_utf8((uint32_t)c, bytes);
    return n > 0 && n <= text.n && memcmp(text.p, bytes, n) == 0 ? n : 0;
}

/* ---- the stream ---- */

static bool is_literal(const struct scrub_form *f, struct str in)
{
    if (f->n > in.n)
        return false;
    if (!f->any_case)
        return memcmp(f->text, in.p, f->n) == 0;
    for (size_t i = 0; i < f->n; i++)
        if ((in.p[i] >= 'A' && in.p[i] <= 'F' ? in.p[i] | 0x20 : in.p[i]) != f->text[i])
            return false;
    return true;
}

/* The number of bytes at the start of `in` that match the form; 0: no match.  Any byte but letters
 * and digits may be escaped, each in its own way: encoders differ. */
static size_t fits(const struct scrub_form *f, struct str in)
{
    size_t at = 0;

    if (is_literal(f, in))
        return f->n;
    if (!f->escapable)
        return 0;
    for (size_t i = 0; i < f->n;) {
        size_t used = 1, n = 0;

        if (at == in.n)
            return 0;
        if (!is_plain(f->text[i]))
            n = unescape(str_make(f->text + i, f->n - i), str_skip(in, at), &used);
        if (n == 0 && in.p[at] != f->text[i])
            return 0;
        at += n > 0 ? used : 1;
        i += n > 0 ? n : 1;
    }
    return at;
}

static const struct scrub_form *find(const struct scrub *s, struct str in, size_t *ret_n)
{
    unsigned char first = (unsigned char)in.p[0];

    for (size_t i = 0; i < s->starts[first].n; i++) {
        const struct scrub_form *f = &s->forms[s->order[s->starts[first].at + i]];

        *ret_n = fits(f, in);
        if (*ret_n > 0)
            return f;
    }
    return NULL;
}

static void put_back(struct scrub *s, const struct scrub_form *f, struct buf *to)
{
    buf_add_str(to, f->put);
    s->hits++;
}

/* The position before which every match has arrived completely.  What is held back depends on
 * lengths and line ends only, never on how much of a value has matched: otherwise whoever controls
 * a server's output could discover a value byte by byte.  No form contains a line end. */
static size_t decided_bytes(const struct scrub *s, struct str in, bool last)
{
    size_t tail = size_min(in.n, s->count > 0 ? s->longest - 1 : 0);
    const char *line_end = memrchr(in.p + in.n - tail, '\n', tail);

    if (last)
        return in.n;
    return line_end ? (size_t)(line_end - in.p) + 1 : in.n - tail;
}

/* Returns how much of `in` was consumed. */
static size_t pass(struct scrub *s, struct str in, bool last, struct buf *to)
{
    size_t i = 0, from = 0, end, n = 0;

    if (in.n == 0)
        return 0;
    end = decided_bytes(s, in, last);
    while (i < end) {
        const struct scrub_form *f = NULL;

        if (s->starts[(unsigned char)in.p[i]].n > 0)
            f = find(s, str_skip(in, i), &n);
        if (!f) {
            i++;
            continue;
        }
        buf_add(to, in.p + from, i - from);
        put_back(s, f, to);
        i += n;
        from = i;
    }
    buf_add(to, in.p + from, i - from);
    return i;
}

void scrub_feed(struct scrub *s, struct str in, struct buf *to)
{
    size_t used;

    if (s->count == 0) {
        buf_add_str(to, in);
        return;
    }
    index_forms(s);
    if (buf_len(&s->held) == 0) {
        used = pass(s, in, false, to);
        buf_add_str(&s->held, str_skip(in, used));
        return;
    }
    buf_add_str(&s->held, in);
    used = pass(s, buf_str(&s->held), false, to);
    buf_take(&s->held, used);
}

void scrub_end(struct scrub *s, struct buf *to)
{
    index_forms(s);
    (void)pass(s, buf_str(&s->held), true, to);
    if (buf_len(&s->held) > 0)
        mem_wipe(buf_data(&s->held), buf_len(&s->held));
    buf_clear(&s->held);
}

void scrub_all(struct scrub *s, struct str in, struct buf *to)
{
    scrub_feed(s, in, to);
    scrub_end(s, to);
}

bool scrub_finds_any_case(const struct scrub *s, struct str text)
{
    for (size_t i = 0; i < s->count; i++)
        for (size_t at = 0; at + s->forms[i].n <= text.n; at++)
            if (str_case_eq(str_make(text.p + at, s->forms[i].n),
                            str_make(s->forms[i].text, s->forms[i].n)))
                return true;
    return false;
}

void scrub_done(struct scrub *s)
{
    for (size_t i = 0; i < s->count; i++) {
        mem_wipe(s->forms[i].text, s->forms[i].n);
        mem_free(s->forms[i].text);
        mem_free((char *)(uintptr_t)s->forms[i].put.p);
    }
    mem_free(s->forms);
    mem_free(s->order);
    if (s->held.size > 0)
        mem_wipe(s->held.base, s->held.size);
    buf_done(&s->held);
    *s = (struct scrub){.hits = s->hits};
}
