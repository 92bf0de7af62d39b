#include "proto/scrub.h"

#include "base/enc.h"
#include "base/mem.h"
#include "proto/json.h"

#include <stdlib.h>

#define ENCODED_MIN 6 /* a shorter encoded form would be found in everything */

struct scrub_form {
    char *text; /* what must not pass */
    size_t n;
    char *put; /* what does instead */
    size_t put_n;
};

/* ---- forms ---- */

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

static void add(struct scrub *s, struct str text, struct str put)
{
    struct scrub_form *f;

    if (text.n == 0 || is_there(s, text))
        return;
    s->forms = xrealloc(s->forms, (s->count + 1) * sizeof *s->forms);
    f = &s->forms[s->count++];
    f->text = xmemdup(text.p, text.n);
    f->n = text.n;
    f->put_n = s->same_length ? text.n : put.n;
    f->put = xmalloc(f->put_n + 1);
    memset(f->put, '*', f->put_n);
    memcpy(f->put, put.p, size_min(put.n, f->put_n));
    s->starts[(unsigned char)text.p[0]] = 1;
}

static void add_encoded(struct scrub *s, struct buf *text, struct str put)
{
    if (buf_len(text) >= ENCODED_MIN)
        add(s, buf_str(text), put);
    if (buf_len(text) > 0)
        mem_wipe(buf_data(text), buf_len(text));
    buf_clear(text);
}

/* Base64 of the value with any text before and behind: of each of the three ways in which it can
 * lie across groups of three bytes, the digits that hang on the value alone. */
static void add_base64(struct scrub *s, struct str value, struct str put,
                       void (*encode)(struct buf *to, const void *p, size_t n))
{
    static const size_t before[3] = {0, 2, 3}; /* digits that hang on what stands before */
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
        add_encoded(s, &text, put);
        mem_wipe(buf_data(&plain), buf_len(&plain));
    }
}

static void lower_escapes(struct buf *text)
{
    char *p = buf_data(text);

    for (size_t i = 0; i + 2 < buf_len(text); i++)
        for (size_t k = 1; p[i] == '%' && k < 3; k++)
            if (p[i + k] >= 'A' && p[i + k] <= 'F')
                p[i + k] = (char)(p[i + k] | 0x20);
}

static void put_html(struct buf *to, struct str s, const char *quote)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c == '&')
            buf_add_c(to, "&amp;");
        else if (c == '<')
            buf_add_c(to, "&lt;");
        else if (c == '>')
            buf_add_c(to, "&gt;");
        else if (c == '"')
            buf_add_c(to, "&quot;");
        else if (c == '\'')
            buf_add_c(to, quote);
        else
            buf_add_char(to, c);
    }
}

static void put_json(struct buf *to, struct str s, bool slashes)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_str(&w, s);
    for (size_t i = 1; i + 1 < buf_len(&text); i++) {
        if (slashes && buf_data(&text)[i] == '/')
            buf_add_char(to, '\\');
        buf_add_char(to, buf_data(&text)[i]);
    }
    mem_wipe(buf_data(&text), buf_len(&text));
}

static void put_hex(struct buf *to, struct str s, const char *digits)
{
    for (size_t i = 0; i < s.n; i++) {
        buf_add_char(to, digits[(unsigned char)s.p[i] >> 4]);
        buf_add_char(to, digits[(unsigned char)s.p[i] & 15]);
    }
}

void scrub_add(struct scrub *s, struct str value, struct str placeholder)
{
    AUTO(buf_done) struct buf t = {0};

    add(s, value, placeholder);
    add_base64(s, value, placeholder, enc_base64);
    add_base64(s, value, placeholder, enc_base64url);
    enc_percent(&t, value);
    add_encoded(s, &t, placeholder);
    enc_percent(&t, value);
    lower_escapes(&t);
    add_encoded(s, &t, placeholder);
    put_json(&t, value, false);
    add_encoded(s, &t, placeholder);
    put_json(&t, value, true);
    add_encoded(s, &t, placeholder);
    put_html(&t, value, "&#39;");
    add_encoded(s, &t, placeholder);
    put_html(&t, value, "&#x27;");
    add_encoded(s, &t, placeholder);
    put_hex(&t, value, "0123456789abcdef");
    add_encoded(s, &t, placeholder);
    put_hex(&t, value, "0123456789ABCDEF");
    add_encoded(s, &t, placeholder);
    qsort(s->forms, s->count, sizeof *s->forms, longer_first);
}

/* ---- the stream ---- */

static const struct scrub_form *find(const struct scrub *s, struct str in)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct scrub_form *f = &s->forms[i];

        if (f->text[0] == in.p[0] && f->n <= in.n && memcmp(f->text, in.p, f->n) == 0)
            return f;
    }
    return NULL;
}

/* Where everything that starts before has come in whole.  What is held hangs on lengths and line
 * ends only, never on how much of a value it looks like: else whoever chooses what a server says
 * could find a value out byte by byte.  No form has a line end in it. */
static size_t decided(const struct scrub *s, struct str in, bool last)
{
    size_t tail = size_min(in.n, s->count > 0 ? s->forms[0].n - 1 : 0);
    const char *line_end = memrchr(in.p + in.n - tail, '\n', tail);

    if (last)
        return in.n;
    return line_end ? (size_t)(line_end - in.p) + 1 : in.n - tail;
}

/* Returns how much of `in` is done. */
static size_t pass(const struct scrub *s, struct str in, bool last, struct buf *to)
{
    size_t i = 0, from = 0, end;

    if (in.n == 0)
        return 0;
    end = decided(s, in, last);
    while (i < end) {
        const struct scrub_form *f = NULL;

        if (s->starts[(unsigned char)in.p[i]])
            f = find(s, str_skip(in, i));
        if (!f) {
            i++;
            continue;
        }
        buf_add(to, in.p + from, i - from);
        buf_add(to, f->put, f->put_n);
        i += f->n;
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

void scrub_done(struct scrub *s)
{
    for (size_t i = 0; i < s->count; i++) {
        mem_wipe(s->forms[i].text, s->forms[i].n);
        mem_free(s->forms[i].text);
        mem_free(s->forms[i].put);
    }
    mem_free(s->forms);
    if (s->held.size > 0)
        mem_wipe(s->held.base, s->held.size);
    buf_done(&s->held);
    *s = (struct scrub){.same_length = s->same_length};
}
