/* body: parses JSON bodies with the errors of Go's decoder. */
#include "api/dialects/sbx/body.h"

#include <inttypes.h>

#define DEPTH_MAX 200

/* --- syntax, with the errors of Go's decoder, which clients of the original may show --- */

struct scan {
    struct str left;
    int depth;
    struct err *e;
};

static int wrong(struct scan *s, const char *where)
{
    unsigned char c = (unsigned char)s->left.p[0];
    char shown[16];

    if (c == '\'')
        (void)snprintf(shown, sizeof shown, "\\'");
    else if (c == '\\')
        (void)snprintf(shown, sizeof shown, "\\\\");
    else if (c == '\n' || c == '\t' || c == '\r')
        (void)snprintf(shown, sizeof shown, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    else if (c < 0x20 || c == 0x7f)
        (void)snprintf(shown, sizeof shown, "\\x%02x", c);
    else if (c < 0x80)
        (void)snprintf(shown, sizeof shown, "%c", c);
    else if (c <= 0xa0 || c == 0xad)
        (void)snprintf(shown, sizeof shown, "\\u%04x", c);
    else /* Go counts a byte as the character of that number */
        (void)snprintf(shown, sizeof shown, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
    return err_set(s->e, ERR_INVALID, 0, "invalid character '%s' %s", shown, where);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_one_of(char c, const char *these)
{
    return c != '\0' && strchr(these, c);
}

static int skip_space(struct scan *s)
{
    while (s->left.n > 0 && is_one_of(s->left.p[0], " \t\r\n"))
        s->left = str_skip(s->left, 1);
    return s->left.n > 0 ? 0 : err_set(s->e, ERR_INVALID, 0, "unexpected EOF");
}

static int next(struct scan *s)
{
    s->left = str_skip(s->left, 1);
    return s->left.n > 0 ? 0 : err_set(s->e, ERR_INVALID, 0, "unexpected EOF");
}

static int scan_escape(struct scan *s)
{
    if (next(s) < 0)
        return -1;
    if (s->left.p[0] != 'u')
        return is_one_of(s->left.p[0], "\"\\/bfnrt") ? 0 : wrong(s, "in string escape code");
    for (int i = 0; i < 4; i++) {
        if (next(s) < 0)
            return -1;
        if (!is_hex(s->left.p[0]))
            return wrong(s, "in \\u hexadecimal character escape");
    }
    return 0;
}

static int scan_string(struct scan *s)
{
    for (;;) {
        if (next(s) < 0)
            return -1;
        if (s->left.p[0] == '"')
            break;
        if (s->left.p[0] == '\\' && scan_escape(s) < 0)
            return -1;
        if ((unsigned char)s->left.p[0] < 0x20)
            return wrong(s, "in string literal");
    }
    s->left = str_skip(s->left, 1);
    return 0;
}

static void skip_digits(struct scan *s)
{
    while (s->left.n > 0 && is_digit(s->left.p[0]))
        s->left = str_skip(s->left, 1);
}

static int scan_number(struct scan *s)
{
    if (s->left.p[0] == '-' && next(s) < 0)
        return -1;
    if (!is_digit(s->left.p[0]))
        return wrong(s, "in numeric literal");
    if (s->left.p[0] == '0')
        s->left = str_skip(s->left, 1);
    else
        skip_digits(s);
    if (s->left.n > 0 && s->left.p[0] == '.') {
        if (next(s) < 0)
            return -1;
        if (!is_digit(s->left.p[0]))
            return wrong(s, "after decimal point in numeric literal");
        skip_digits(s);
    }
    if (s->left.n > 0 && (s->left.p[0] == 'e' || s->left.p[0] == 'E')) {
        if (next(s) < 0 || ((s->left.p[0] == '+' || s->left.p[0] == '-') && next(s) < 0))
            return -1;
        if (!is_digit(s->left.p[0]))
            return wrong(s, "in exponent of numeric literal");
        skip_digits(s);
    }
    return 0;
}

static int scan_word(struct scan *s, const char *word)
{
    char where[64];

    for (size_t i = 1; word[i]; i++) {
        if (next(s) < 0)
            return -1;
        (void)snprintf(where, sizeof where, "in literal %s (expecting '%c')", word, word[i]);
        if (s->left.p[0] != word[i])
            return wrong(s, where);
    }
    s->left = str_skip(s->left, 1);
    return 0;
}

static int scan_value(struct scan *s);

static int scan_key(struct scan *s)
{
    if (s->left.p[0] != '"')
        return wrong(s, "looking for beginning of object key string");
    if (scan_string(s) < 0 || skip_space(s) < 0)
        return -1;
    if (s->left.p[0] != ':')
        return wrong(s, "after object key");
    return next(s);
}

/* An object or an array, from its first character on. */
static int scan_group(struct scan *s, bool object)
{
    char close = object ? '}' : ']';

    if (++s->depth > DEPTH_MAX)
        return err_set(s->e, ERR_INVALID, 0, "exceeded max depth");
    if (next(s) < 0 || skip_space(s) < 0)
        return -1;
    for (bool first = true; !(first && s->left.p[0] == close); first = false) {
        if ((object && scan_key(s) < 0) || scan_value(s) < 0 || skip_space(s) < 0)
            return -1;
        if (s->left.p[0] == close)
            break;
        if (s->left.p[0] != ',')
            return wrong(s, object ? "after object key:value pair" : "after array element");
        if (next(s) < 0 || skip_space(s) < 0)
            return -1;
    }
    s->depth--;
    s->left = str_skip(s->left, 1);
    return 0;
}

static int scan_value(struct scan *s)
{
    if (skip_space(s) < 0)
        return -1;
    switch (s->left.p[0]) {
    case '{':
    case '[':
        return scan_group(s, s->left.p[0] == '{');
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        if (s->left.p[0] == '-' || is_digit(s->left.p[0]))
            return scan_number(s);
        return wrong(s, "looking for beginning of value");
    }
}

/* The first value of the body: the rest is ignored. */
static int cut_value(struct str *body, struct err *e)
{
    struct scan s = {.left = *body, .e = e};

    if (skip_space(&s) < 0)
        return err_set(e, ERR_INVALID, 0, "EOF");
    if (scan_value(&s) < 0)
        return -1;
    body->n -= s.left.n;
    return 0;
}

/* --- the types --- */

static const char *const go_types[] = {"string", "[]string", "map[string]string", "bool", "int"};

static const char *go_kind(const json_t *v)
{
    return json_is_string(v)    ? "string"
           : json_is_number(v)  ? "number"
           : json_is_boolean(v) ? "bool"
           : json_is_array(v)   ? "array"
                                : "object";
}

struct reading {
    struct arena *a;
    const struct sbx_form *form;
    const struct sbx_field *f;
    struct err *e;
};

static int mismatch(struct reading *g, const json_t *v, const char *type)
{
    char number[32] = "";

    if (json_is_real(v))
        (void)snprintf(number, sizeof number, " %.15g", json_real_value(v));
    return err_set(g->e, ERR_INVALID, 0,
                   "json: cannot unmarshal %s%s into Go struct field %s.%s of type %s", go_kind(v),
                   number, g->form->name, g->f->name, type);
}

static int read_string(struct reading *g, const json_t *v, struct str *to)
{
    if (json_is_null(v))
        return 0;
    if (!json_is_string(v))
        return mismatch(g, v, "string");
    if (memchr(json_string_value(v), '\0', json_string_length(v)))
        return err_set(g->e, ERR_INVALID, 0, "%s: a text with a NUL character", g->f->name);
    *to = str_make(json_string_value(v), json_string_length(v));
    return 0;
}

static int read_strings(struct reading *g, const json_t *v, struct sbx_strings *to)
{
    if (!json_is_array(v))
        return mismatch(g, v, go_types[SBX_STRINGS]);
    to->v = arena_zalloc(g->a, (json_array_size(v) + 1) * sizeof *to->v);
    for (; to->n < json_array_size(v); to->n++) {
        to->v[to->n] = STR("");
        if (read_string(g, json_array_get(v, to->n), &to->v[to->n]) < 0)
            return -1;
    }
    return 0;
}

static int read_map(struct reading *g, json_t *v, struct sbx_map *to)
{
    if (!json_is_object(v))
        return mismatch(g, v, go_types[SBX_MAP]);
    to->v = arena_zalloc(g->a, (json_object_size(v) + 1) * sizeof *to->v);
    for (void *at = json_object_iter(v); at; at = json_object_iter_next(v, at)) {
        struct pair *p = &to->v[to->n++];

        p->key = str_of(json_object_iter_key(at));
        p->value = STR("");
        if (read_string(g, json_object_iter_value(at), &p->value) < 0)
            return -1;
    }
    return 0;
}

static int read_field(struct reading *g, json_t *v, void *to)
{
    struct sbx_bool *b = to;
    struct sbx_int *n = to;

    if (json_is_null(v))
        return 0;
    switch (g->f->kind) {
    case SBX_STRING:
        return read_string(g, v, to);
    case SBX_STRINGS:
        return read_strings(g, v, to);
    case SBX_MAP:
        return read_map(g, v, to);
    case SBX_BOOL:
        if (!json_is_boolean(v))
            return mismatch(g, v, go_types[SBX_BOOL]);
        *b = (struct sbx_bool){true, json_is_true(v)};
        return 0;
    case SBX_INT:
        if (!json_is_integer(v))
            return mismatch(g, v, go_types[SBX_INT]);
        *n = (struct sbx_int){true, json_integer_value(v)};
        return 0;
    }
    return 0;
}

int sbx_read_body(struct str body, const struct sbx_form *f, struct arena *a, json_t **hold,
                  void *to, struct err *e)
{
    struct reading g = {.a = a, .form = f, .e = e};

    if (cut_value(&body, e) < 0 || json_read_lax(body, hold, e) < 0)
        return -1;
    if (json_is_null(*hold))
        return 0;
    if (!json_is_object(*hold))
        return err_set(e, ERR_INVALID, 0, "json: cannot unmarshal %s into Go value of type api.%s",
                       go_kind(*hold), f->name);
    for (void *at = json_object_iter(*hold); at; at = json_object_iter_next(*hold, at))
        for (size_t i = 0; i < f->count; i++) {
            g.f = &f->fields[i];
            if (str_case_eq_c(str_of(json_object_iter_key(at)), g.f->name) && /* as in Go */
                read_field(&g, json_object_iter_value(at), (char *)to + g.f->offset) < 0)
                return -1;
        }
    return 0;
}
