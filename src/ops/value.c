/* value: decodes and checks one field's value. */
#include "ops/value.h"

#include "base/clock.h"
#include "proto/json.h"

#include <errno.h>
#include <inttypes.h>

#define SHOWN_SIZE (VALUE_SHOWN * 6 + 8)

/* --- errors --- */

char *value_shown(struct str s, char *to)
{
    AUTO(buf_done) struct buf b = {0};
    struct jw w = {.to = &b};
    size_t n = size_min(s.n, VALUE_SHOWN);

    while (n < s.n && n > 0 && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--; /* not inside a character */
    jw_str(&w, str_make(s.p, n));
    (void)snprintf(to, SHOWN_SIZE, "%.*s%s", (int)buf_len(&b) - 2, buf_cstr(&b) + 1,
                   n < s.n ? "…" : "");
    return to;
}

static const char *kind(const struct value *v)
{
    return v->kind ? v->kind : "field";
}

/* given: the text after "is": a value or a description of one. */
static int wrong(const struct value *v, const char *given)
{
    AUTO(buf_done) struct buf rule = {0};

    op_rule(v->f, &rule);
    if (v->f->secret)
        given = "not in the right format";
    return err_set(v->e, ERR_INVALID, 0, "%s '%s' is %s; it must be %s", kind(v), v->f->name, given,
                   buf_cstr(&rule));
}

static int wrong_text(const struct value *v, struct str text)
{
    char shown[SHOWN_SIZE], quoted[SHOWN_SIZE + 4];

    (void)snprintf(quoted, sizeof quoted, "\"%s\"", value_shown(text, shown));
    return wrong(v, quoted);
}

static int wrong_json(const struct value *v, const json_t *given)
{
    char number[40];

    if (json_is_string(given))
        return wrong_text(v, str_make(json_string_value(given), json_string_length(given)));
    if (json_is_integer(given)) {
        (void)snprintf(number, sizeof number, "%" PRId64, (int64_t)json_integer_value(given));
        return wrong(v, number);
    }
    if (json_is_real(given)) {
        (void)snprintf(number, sizeof number, "%.15g", json_real_value(given));
        return wrong(v, number);
    }
    if (json_is_boolean(given))
        return wrong(v, json_is_true(given) ? "true" : "false");
    return wrong(v, json_is_array(given) ? "a list" : json_is_object(given) ? "an object" : "null");
}

static bool has_range(const struct op_field *f)
{
    return f->min != 0 || f->max != 0;
}

/* Checks the number of characters or entries: "from 1 to 1000". */
static int check_count(const struct value *v, size_t n, const char *of)
{
    const struct op_field *f = v->f;

    if (f->max == 0 || ((int64_t)n >= f->min && (int64_t)n <= f->max))
        return 0;
    if (f->min == 0)
        return err_set(v->e, ERR_INVALID, 0, "%s '%s' has %zu %s; it must have at most %" PRId64,
                       kind(v), f->name, n, of, f->max);
    return err_set(v->e, ERR_INVALID, 0,
                   "%s '%s' has %zu %s; it must have from %" PRId64 " to %" PRId64, kind(v),
                   f->name, n, of, f->min, f->max);
}

/* --- strings --- */

static size_t characters(struct str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static int text_str(const struct value *v, struct str text)
{
    if (v->f->pattern && !op_pattern_fits(op_pattern(v->f->pattern), text))
        return wrong_text(v, text);
    if (check_count(v, characters(text), "characters") < 0)
        return -1;
    *(struct str *)v->slot = arena_str(v->a, text);
    return 0;
}

static int json_as_text(const struct value *v, const json_t *given)
{
    if (!json_is_string(given))
        return wrong_json(v, given);
    return value_text(v, str_make(json_string_value(given), json_string_length(given)));
}

static int text_choice(const struct value *v, struct str text)
{
    for (int i = 0; v->f->choices[i]; i++) {
        if (str_eq_c(text, v->f->choices[i])) {
            *(int *)v->slot = i;
            return 0;
        }
    }
    return wrong_text(v, text);
}

/* --- numbers --- */

static int parse_number(enum op_type type, struct str text, int64_t *ret)
{
    if (type == OP_DURATION)
        return str_parse_duration_ms(text, ret);
    if (type == OP_SIZE)
        return str_parse_size(text, ret);
    if (type == OP_TIME)
        return clock_parse(text, ret);
    return str_parse_i64(text, ret);
}

static int put_number(const struct value *v, int64_t n)
{
    const struct op_field *f = v->f;

    if (!has_range(f) || (n >= f->min && n <= f->max)) {
        *(int64_t *)v->slot = n;
        return 0;
    }
    if (f->type == OP_INT)
        return err_set(v->e, ERR_INVALID, 0,
                       "%s '%s' is %" PRId64 "; it must be from %" PRId64 " to %" PRId64, kind(v),
                       f->name, n, f->min, f->max);
    return 1; /* the caller knows how it was written */
}

static int text_number(const struct value *v, struct str text)
{
    int64_t n = 0;
    int r = parse_number(v->f->type, text, &n);

    if (r == 0)
        r = put_number(v, n);
    else
        r = 1;
    return r > 0 ? wrong_text(v, text) : r;
}

/* JSON Schema: 2240.0 is an integer.  Beyond 2^53 a double is not exact. */
static bool is_whole(double d)
{
    return d >= -9007199254740992.0 && d <= 9007199254740992.0 && d == (double)(int64_t)d;
}

static int json_number(const struct value *v, const json_t *given)
{
    int r = 1;

    if (json_is_string(given) && v->f->type != OP_INT)
        return json_as_text(v, given);
    if (json_is_integer(given) && v->f->type != OP_TIME)
        r = put_number(v, json_integer_value(given));
    else if (json_is_real(given) && v->f->type != OP_TIME && is_whole(json_real_value(given)))
        r = put_number(v, (int64_t)json_real_value(given));
    return r > 0 ? wrong_json(v, given) : r;
}

static int text_bool(const struct value *v, struct str text)
{
    if (str_parse_bool(text, v->slot) < 0)
        return wrong_text(v, text);
    return 0;
}

static int json_bool(const struct value *v, const json_t *given)
{
    if (!json_is_boolean(given))
        return wrong_json(v, given);
    *(bool *)v->slot = json_is_true(given);
    return 0;
}

static int text_since(const struct value *v, struct str text)
{
    struct op_since s = {OP_ABSENT, OP_ABSENT};
    int r = str_parse_i64(text, &s.seq);

    if (r < 0)
        r = clock_parse(text, &s.time_ms);
    if (r < 0 || (s.seq < 0 && s.seq != OP_ABSENT))
        return wrong_text(v, text);
    *(struct op_since *)v->slot = s;
    return 0;
}

static int json_since(const struct value *v, const json_t *given)
{
    if (!json_is_integer(given) || json_integer_value(given) < 0)
        return json_is_string(given) ? json_as_text(v, given) : wrong_json(v, given);
    *(struct op_since *)v->slot = (struct op_since){json_integer_value(given), OP_ABSENT};
    return 0;
}

/* --- lists and maps: arrays double; the arena keeps the outgrown ones --- */

static void *grown(struct arena *a, void *v, size_t n, size_t size)
{
    void *bigger;

    if (n & (n - 1)) /* between powers of two there is room; 0 and 1 are grown */
        return v;
    bigger = arena_zalloc(a, size * (n ? 2 * n : 1));
    if (n)
        memcpy(bigger, v, size * n);
    return bigger;
}

static int add_entry(const struct value *v, struct str text)
{
    struct op_list *l = v->slot;

    if (v->f->max && (int64_t)l->n >= v->f->max)
        return check_count(v, l->n + 1, "entries or more");
    l->v = grown(v->a, l->v, l->n, sizeof *l->v);
    l->v[l->n++] = arena_str(v->a, text);
    return 0;
}

static int add_pair(const struct value *v, struct str key, struct str value)
{
    struct op_map *m = v->slot;

    if (v->f->max && (int64_t)m->n >= v->f->max)
        return check_count(v, m->n + 1, "entries or more");
    m->v = grown(v->a, m->v, m->n, sizeof *m->v);
    m->v[m->n++] = (struct op_pair){arena_str(v->a, key), arena_str(v->a, value)};
    return 0;
}

static int text_list(const struct value *v, struct str text)
{
    while (text.n > 0)
        if (add_entry(v, str_cut(text, ',', &text)) < 0)
            return -1;
    return 0;
}

static int json_list(const struct value *v, const json_t *given)
{
    if (!json_is_array(given))
        return wrong_json(v, given);
    for (size_t i = 0; i < json_array_size(given); i++) {
        const json_t *item = json_array_get(given, i);

        if (!json_is_string(item))
            return wrong(v, "a list with values other than strings");
        if (add_entry(v, str_make(json_string_value(item), json_string_length(item))) < 0)
            return -1;
    }
    return value_end(v);
}

static int text_map(const struct value *v, struct str text)
{
    while (text.n > 0) {
        struct str pair = str_cut(text, ',', &text), value;
        struct str key = str_cut(pair, '=', &value);

        if (key.n == 0 || key.n == pair.n) /* no name, or no '=' */
            return wrong_text(v, pair);
        if (add_pair(v, key, value) < 0)
            return -1;
    }
    return 0;
}

static int json_map(const struct value *v, const json_t *given)
{
    json_t *o = (json_t *)(uintptr_t)given; /* jansson's iterators are not const */

    if (!json_is_object(given))
        return wrong_json(v, given);
    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        const json_t *item = json_object_iter_value(at);
        struct str text = str_make(json_string_value(item), json_string_length(item));

        if (!json_is_string(item))
            return wrong(v, "an object with values other than strings");
        if (add_pair(v, str_of(json_object_iter_key(at)), text) < 0)
            return -1;
    }
    return value_end(v);
}

static int text_json(const struct value *v, struct str text)
{
    return wrong_text(v, text);
}

static int json_json(const struct value *v, const json_t *given)
{
    *(const json_t **)v->slot = given;
    return 0;
}

static const struct {
    int (*text)(const struct value *v, struct str text);
    int (*json)(const struct value *v, const json_t *given);
} codecs[] = {
    [OP_STR] = {text_str, json_as_text},       [OP_INT] = {text_number, json_number},
    [OP_BOOL] = {text_bool, json_bool},        [OP_DURATION] = {text_number, json_number},
    [OP_SIZE] = {text_number, json_number},    [OP_TIME] = {text_number, json_number},
    [OP_CHOICE] = {text_choice, json_as_text}, [OP_LIST] = {text_list, json_list},
    [OP_MAP] = {text_map, json_map},           [OP_JSON] = {text_json, json_json},
    [OP_SINCE] = {text_since, json_since},
};

void value_absent(const struct value *v)
{
    enum op_type t = v->f->type;

    if (t == OP_INT || t == OP_DURATION || t == OP_SIZE || t == OP_TIME)
        *(int64_t *)v->slot = OP_ABSENT;
    else if (t == OP_CHOICE)
        *(int *)v->slot = -1;
    else if (t == OP_SINCE)
        *(struct op_since *)v->slot = (struct op_since){OP_ABSENT, OP_ABSENT};
}

static int check_text(const struct value *v, struct str text)
{
    assert(v->f->type < ARRAY_LEN(codecs));
    if (!str_is_utf8(text) || (text.n && memchr(text.p, '\0', text.n)))
        return wrong(v, "not UTF-8 text, or holds a NUL byte");
    return 0;
}

int value_text(const struct value *v, struct str text)
{
    return check_text(v, text) < 0 ? -1 : codecs[v->f->type].text(v, text);
}

int value_entry(const struct value *v, struct str text)
{
    if (v->f->type != OP_LIST)
        return value_text(v, text);
    return check_text(v, text) < 0 ? -1 : add_entry(v, text);
}

int value_json(const struct value *v, const json_t *given)
{
    assert(v->f->type < ARRAY_LEN(codecs));
    return codecs[v->f->type].json(v, given);
}

int value_end(const struct value *v)
{
    if (v->f->type == OP_LIST)
        return check_count(v, ((struct op_list *)v->slot)->n, "entries");
    if (v->f->type == OP_MAP)
        return check_count(v, ((struct op_map *)v->slot)->n, "entries");
    return 0;
}
