/* json: reads JSON with limits through jansson, writes it into a buffer. */
#include "proto/json.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <math.h>

#define NUMBER_(n) #n
#define NUMBER(n) NUMBER_(n) /* as text */

/* --- reading --- */

struct place { /* of a byte in a text, counted from 1 */
    size_t line, column;
};

static struct place place_of(struct str text, size_t at)
{
    struct place p = {1, 1};

    for (size_t i = 0; i < at && i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];

        if (c == '\n')
            p = (struct place){p.line + 1, 1};
        else if ((c & 0xc0) != 0x80) /* columns are characters, as jansson counts them */
            p.column++;
    }
    return p;
}

static int refuse_at(struct str text, size_t at, struct err *e, const char *why)
{
    struct place p = place_of(text, at);

    return err_set(e, ERR_INVALID, 0, "line %zu, column %zu: %s", p.line, p.column, why);
}

/* The end of the string that opens at `at`: the index after its closing quote. */
static size_t skip_string(struct str text, size_t at)
{
    for (at++; at < text.n && text.p[at] != '"'; at++)
        if (text.p[at] == '\\')
            at++;
    return at + 1;
}

/* jansson nests to 2048 levels and spends about 250 bytes on an empty object, so both are bounded
 * before it sees the text.  Syntax errors are left to jansson, whose messages are better. */
static int check_shape(struct str text, struct err *e)
{
    size_t depth = 0, values = 1;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == '"') {
            i = skip_string(text, i) - 1;
        } else if (c == '[' || c == '{') {
            values++;
            if (++depth > JSON_DEPTH_MAX)
                return refuse_at(text, i, e, "nested deeper than " NUMBER(JSON_DEPTH_MAX));
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (c == ',') {
            values++;
        } else if (c == '\0') { /* jansson ignores a NUL after a number */
            return refuse_at(text, i, e, "a NUL byte is not allowed in JSON");
        }
        if (values > JSON_VALUES_MAX)
            return refuse_at(text, i, e, "more than " NUMBER(JSON_VALUES_MAX) " values");
    }
    return 0;
}

static int read_with(struct str text, size_t flags, json_t **ret, struct err *e)
{
    json_error_t why = {0};
    json_t *v;

    if (check_shape(text, e) < 0)
        return -1;
    v = json_loadb(text.p ? text.p : "", text.n, flags | JSON_DECODE_ANY, &why);
    if (!v && json_error_code(&why) == json_error_out_of_memory)
        return err_set(e, ERR_UNAVAILABLE, 0, "not enough memory for a JSON text of %zu bytes",
                       text.n);
    if (!v && json_error_code(&why) == json_error_null_character)
        return err_set(e, ERR_INVALID, 0, "line %d, column %d: \\u0000 is not allowed in a string",
                       why.line, why.column);
    if (!v)
        return err_set(e, ERR_INVALID, 0, "line %d, column %d: %s", why.line, why.column, why.text);
    *ret = v;
    return 0;
}

int json_read(struct str text, json_t **ret, struct err *e)
{
    return read_with(text, JSON_REJECT_DUPLICATES, ret, e);
}

/* Whether s begins with an escape like "\ud800" of that half of the surrogates. */
static bool is_surrogate(struct str s, const char *halves)
{
    return s.n >= 6 && s.p[0] == '\\' && s.p[1] == 'u' && (s.p[2] == 'd' || s.p[2] == 'D') &&
           strchr(halves, s.p[3]) && s.p[3] != '\0';
}

/* Replaces unpaired surrogates by \ufffd; skips the character after a backslash. */
static void mend_surrogates(struct buf *text)
{
    static const char first[] = "89abAB", second[] = "cdefCDEF";
    char *at = buf_cstr(text);
    size_t n = buf_len(text);

    for (size_t i = 0; i < n; i++) {
        struct str s = str_make(at + i, n - i);

        if (is_surrogate(s, first) && is_surrogate(str_skip(s, 6), second))
            i += 11;
        else if (is_surrogate(s, first) || is_surrogate(s, second))
            memcpy(at + i + 2, "fffd", 4);
        else if (s.p[0] == '\\')
            i++;
    }
}

int json_read_lax(struct str text, json_t **ret, struct err *e)
{
    AUTO(buf_done) struct buf clean = {0};

    (void)utf8_replace(&clean, text, true);
    mend_surrogates(&clean);
    return read_with(buf_str(&clean), JSON_ALLOW_NUL, ret, e);
}

/* --- writing --- */

static void add_mark(struct jw *w, char c)
{
    buf_add_char(w->to, c);
    if (w->spaced)
        buf_add_char(w->to, ' ');
}

static void before_value(struct jw *w)
{
    if (w->comma)
        add_mark(w, ',');
    w->comma = true;
}

static void open_with(struct jw *w, char c)
{
    before_value(w);
    buf_add_char(w->to, c);
    w->comma = false;
}

static void close_with(struct jw *w, char c)
{
    buf_add_char(w->to, c);
    w->comma = true;
}

void jw_object(struct jw *w)
{
    open_with(w, '{');
}

void jw_object_end(struct jw *w)
{
    close_with(w, '}');
}

void jw_array(struct jw *w)
{
    open_with(w, '[');
}

void jw_array_end(struct jw *w)
{
    close_with(w, ']');
}

/* The length of the well-formed character at the start of s; 0: none. */
static size_t character(struct str s)
{
    unsigned char c = (unsigned char)s.p[0];
    size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

    return len <= s.n && str_is_utf8(str_make(s.p, len)) ? len : 0;
}

static void add_escaped(struct buf *to, char c)
{
    static const char from[] = "\"\\\b\f\n\r\t", as[] = "\"\\bfnrt";
    const char *short_form = c ? strchr(from, c) : NULL;

    if (short_form)
        buf_printf(to, "\\%c", as[short_form - from]);
    else
        buf_printf(to, "\\u%04x", (unsigned)(unsigned char)c);
}

static bool is_plain(char c) /* is written unescaped in a JSON string */
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x7f && c != '"' && c != '\\';
}

static void add_string(struct buf *to, struct str s)
{
    buf_add_char(to, '"');
    for (size_t i = 0; i < s.n;) {
        size_t run = i, len;

        while (run < s.n && is_plain(s.p[run]))
            run++;
        if (run > i)
            buf_add(to, s.p + i, run - i);
        i = run;
        if (i == s.n)
            break;
        len = character(str_skip(s, i));
        if (len == 0)
            buf_add_c(to, "\xef\xbf\xbd"); /* U+FFFD */
        else if (len == 1)
            add_escaped(to, s.p[i]);
        else
            buf_add(to, s.p + i, len);
        i += size_max(len, 1);
    }
    buf_add_char(to, '"');
}

void jw_key(struct jw *w, const char *key)
{
    before_value(w);
    add_string(w->to, str_of(key));
    add_mark(w, ':');
    w->comma = false;
}

void jw_str(struct jw *w, struct str s)
{
    before_value(w);
    add_string(w->to, s);
}

void jw_c(struct jw *w, const char *s)
{
    if (s)
        jw_str(w, str_of(s));
    else
        jw_null(w);
}

void jw_int(struct jw *w, int64_t v)
{
    char text[20]; /* as many as INT64_MIN has */
    size_t at = sizeof text;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do
        text[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (v < 0)
        text[--at] = '-';
    before_value(w);
    buf_add(w->to, text + at, sizeof text - at);
}

void jw_double(struct jw *w, double v)
{
    char text[40];

    if (!isfinite(v)) { /* JSON cannot represent it */
        jw_null(w);
        return;
    }
    (void)snprintf(text, sizeof text, "%.15g", v);
    if (strtod(text, NULL) != v)
        (void)snprintf(text, sizeof text, "%.17g", v);
    before_value(w);
    buf_add_c(w->to, text);
    if (!strpbrk(text, ".e"))
        buf_add_c(w->to, ".0"); /* so that it is read back as a real number */
}

void jw_bool(struct jw *w, bool v)
{
    jw_raw(w, v ? STR("true") : STR("false"));
}

void jw_null(struct jw *w)
{
    jw_raw(w, STR("null"));
}

void jw_time(struct jw *w, int64_t wall_ms)
{
    char text[CLOCK_TEXT];

    jw_c(w, wall_ms ? clock_text(wall_ms, text) : NULL);
}

void jw_raw(struct jw *w, struct str json)
{
    before_value(w);
    buf_add_str(w->to, json);
}

static void write_object(struct jw *w, const json_t *v)
{
    /* The iteration macros want a mutable object; nothing here changes it. */
    json_t *o = (json_t *)(uintptr_t)v;

    jw_object(w);
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        before_value(w);
        add_string(w->to, str_of(json_object_iter_key(at)));
        add_mark(w, ':');
        w->comma = false;
        jw_json(w, json_object_iter_value(at));
    }
    jw_object_end(w);
}

static void write_array(struct jw *w, const json_t *v)
{
    jw_array(w);
    for (size_t i = 0; i < json_array_size(v); i++)
        jw_json(w, json_array_get(v, i));
    jw_array_end(w);
}

void jw_json(struct jw *w, const json_t *v)
{
    if (json_is_object(v))
        write_object(w, v);
    else if (json_is_array(v))
        write_array(w, v);
    else if (json_is_string(v))
        jw_str(w, str_make(json_string_value(v), json_string_length(v)));
    else if (json_is_integer(v))
        jw_int(w, json_integer_value(v));
    else if (json_is_real(v))
        jw_double(w, json_real_value(v));
    else if (json_is_boolean(v))
        jw_bool(w, json_is_true(v));
    else
        jw_null(w);
}

void jw_kstr(struct jw *w, const char *key, struct str s)
{
    jw_key(w, key);
    jw_str(w, s);
}

void jw_kc(struct jw *w, const char *key, const char *s)
{
    jw_key(w, key);
    jw_c(w, s);
}

void jw_ktext(struct jw *w, const char *key, struct str s)
{
    jw_key(w, key);
    if (s.n > 0)
        jw_str(w, s);
    else
        jw_null(w);
}

void jw_kint_if(struct jw *w, const char *key, bool known, int64_t v)
{
    jw_key(w, key);
    if (known)
        jw_int(w, v);
    else
        jw_null(w);
}

void jw_kint(struct jw *w, const char *key, int64_t v)
{
    jw_key(w, key);
    jw_int(w, v);
}

void jw_kbool(struct jw *w, const char *key, bool v)
{
    jw_key(w, key);
    jw_bool(w, v);
}

void jw_ktime(struct jw *w, const char *key, int64_t wall_ms)
{
    jw_key(w, key);
    jw_time(w, wall_ms);
}

void json_error(struct buf *to, const struct err *e)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_key(&w, "error");
    jw_object(&w);
    jw_kc(&w, "code", err_table[e->code].name);
    jw_kc(&w, "message", e->msg);
    if (e->object[0])
        jw_kc(&w, "object", e->object);
    if (e->hint[0])
        jw_kc(&w, "hint", e->hint);
    jw_object_end(&w);
    jw_object_end(&w);
}
