/* yaml: reads one strict YAML document into a JSON tree. */
#include "proto/yaml.h"

#include <errno.h>
#include <yaml.h>

struct build {
    yaml_parser_t parser;
    struct yaml *y;
    size_t depth, values;
    struct err *e;
};

static void yaml_event_done_p(yaml_event_t *ev)
{
    yaml_event_delete(ev); /* accepts a zeroed one */
}

static void parser_done_p(struct build *b)
{
    yaml_parser_delete(&b->parser);
}

/* --- errors --- */

static int refuse(struct build *b, yaml_mark_t at, const char *why)
{
    return err_set(b->e, ERR_INVALID, 0, "line %zu, column %zu: %s", at.line + 1, at.column + 1,
                   why);
}

static int parser_failed(struct build *b)
{
    const yaml_parser_t *p = &b->parser;
    const char *problem = p->problem ? p->problem : "not YAML";

    if (p->error == YAML_MEMORY_ERROR)
        return err_set(b->e, ERR_UNAVAILABLE, 0, "not enough memory for a YAML text");
    if (p->error == YAML_READER_ERROR) /* the mark lags behind the reader's position */
        return err_set(b->e, ERR_INVALID, 0, "line %zu or below: %s at byte %zu", p->mark.line + 1,
                       problem, p->problem_offset);
    return refuse(b, p->problem_mark, problem);
}

static int next(struct build *b, yaml_event_t *ret)
{
    return yaml_parser_parse(&b->parser, ret) ? 0 : parser_failed(b);
}

/* --- places: a map from (container, key or index) to line and column --- */

static void place_key(struct buf *to, const json_t *container, struct str member)
{
    buf_add(to, &container, sizeof container);
    buf_add_str(to, member);
}

static void note_place(struct build *b, const json_t *container, struct str member, yaml_mark_t at)
{
    AUTO(buf_done) struct buf key = {0};
    uintptr_t packed = (uintptr_t)(at.line + 1) << 24 | size_min(at.column + 1, 0xffffff);

    place_key(&key, container, member);
    map_set(&b->y->places, buf_str(&key), (void *)packed);
}

static struct yaml_place find_place(const struct yaml *y, const json_t *container,
                                    struct str member)
{
    AUTO(buf_done) struct buf key = {0};
    uintptr_t packed;

    place_key(&key, container, member);
    packed = (uintptr_t)map_get(&y->places, buf_str(&key));
    return (struct yaml_place){packed >> 24, packed & 0xffffff};
}

struct yaml_place yaml_place_of_key(const struct yaml *y, const json_t *object, const char *key)
{
    return find_place(y, object, str_of(key));
}

struct yaml_place yaml_place_of_item(const struct yaml *y, const json_t *array, size_t index)
{
    return find_place(y, array, str_make(&index, sizeof index));
}

/* --- scalars: YAML 1.2.2, §10.3.2 --- */

static bool is_one_of(struct str s, const char *const *words)
{
    for (; *words; words++)
        if (str_eq_c(s, *words))
            return true;
    return false;
}

static size_t count_digits(struct str s)
{
    size_t n = 0;

    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
        n++;
    return n;
}

static bool is_real(struct str s) /* without its sign */
{
    size_t whole = count_digits(s), fraction = 0;

    s = str_skip(s, whole);
    if (s.n && s.p[0] == '.') {
        s = str_skip(s, 1);
        fraction = count_digits(s);
        s = str_skip(s, fraction);
    }
    if (whole + fraction == 0)
        return false;
    if (s.n && (s.p[0] == 'e' || s.p[0] == 'E')) {
        s = str_skip(s, 1);
        s = str_skip(s, s.n && (s.p[0] == '-' || s.p[0] == '+'));
        return s.n > 0 && count_digits(s) == s.n;
    }
    return s.n == 0;
}

/* 0x… and 0o…; 1: not in this form. */
static int parse_based(struct str s, int64_t *ret)
{
    char text[32], *end;
    bool hex = str_starts(s, STR("0x"));
    unsigned long long v;

    if (!hex && !str_starts(s, STR("0o")))
        return 1;
    s = str_skip(s, 2);
    if (s.n == 0 || s.n >= sizeof text)
        return s.n ? -ERANGE : 1;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (strspn(text, hex ? "0123456789abcdefABCDEF" : "01234567") != s.n)
        return 1;
    errno = 0;
    v = strtoull(text, &end, hex ? 16 : 8);
    if (errno || v > INT64_MAX)
        return -ERANGE;
    *ret = (int64_t)v;
    return 0;
}

static int make_number(struct build *b, struct str s, yaml_mark_t at, json_t **ret)
{
    static const char *const endless[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const not_a_number[] = {".nan", ".NaN", ".NAN", NULL};
    bool sign = s.n > 0 && (s.p[0] == '-' || s.p[0] == '+');
    struct str digits = str_skip(s, sign);
    int64_t n = 0;
    double d = 0;
    int r = parse_based(s, &n);

    if (r == 1 && digits.n > 0 && count_digits(digits) == digits.n) {
        if (digits.n > 1 && digits.p[0] == '0')
            return refuse(b, at, "a number with a leading zero: quote it, or write 0o for octal");
        r = str_parse_i64(s.p[0] == '+' ? digits : s, &n);
    }
    if (r == -ERANGE)
        return refuse(b, at, "the number is too large");
    if (r == 0) {
        *ret = json_integer(n);
        return 0;
    }
    if (is_one_of(digits, endless) || is_one_of(s, not_a_number))
        return refuse(b, at, "not a finite number");
    if (!is_real(digits))
        return 1;
    if (str_parse_double(s, &d) < 0)
        return refuse(b, at, "the number is too large or too long");
    *ret = json_real(d);
    return 0;
}

/* The value of a scalar without quotes and tag. */
static int make_plain(struct build *b, struct str s, yaml_mark_t at, json_t **ret)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};

    if (is_one_of(s, nulls))
        *ret = json_null();
    else if (is_one_of(s, yes))
        *ret = json_true();
    else if (is_one_of(s, no))
        *ret = json_false();
    else
        return make_number(b, s, at, ret);
    return 0;
}

static int make_scalar(struct build *b, const yaml_event_t *ev, json_t **ret)
{
    struct str s = str_make(ev->data.scalar.value, ev->data.scalar.length);
    json_t *v = NULL;
    int r = 1;

    if (ev->data.scalar.plain_implicit)
        r = make_plain(b, s, ev->start_mark, &v);
    if (r < 0)
        return -1;
    if (r == 1 && s.n && memchr(s.p, '\0', s.n))
        return refuse(b, ev->start_mark, "a string contains a NUL character");
    if (r == 1)
        v = json_stringn(s.p, s.n);
    if (!v)
        return refuse(b, ev->start_mark, "a string is not UTF-8");
    *ret = v;
    return 0;
}

/* --- nodes --- */

static int check_properties(struct build *b, const yaml_event_t *ev)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (ev->type == YAML_ALIAS_EVENT)
        return refuse(b, ev->start_mark, "aliases are not supported: write the value out");
    if (ev->type == YAML_SCALAR_EVENT) {
        anchor = ev->data.scalar.anchor;
        tag = ev->data.scalar.tag;
    } else if (ev->type == YAML_SEQUENCE_START_EVENT) {
        anchor = ev->data.sequence_start.anchor;
        tag = ev->data.sequence_start.tag;
    } else if (ev->type == YAML_MAPPING_START_EVENT) {
        anchor = ev->data.mapping_start.anchor;
        tag = ev->data.mapping_start.tag;
    }
    if (anchor)
        return refuse(b, ev->start_mark, "anchors are not supported: write the value out");
    if (tag && !(ev->type == YAML_SCALAR_EVENT && strcmp((const char *)tag, YAML_STR_TAG) == 0))
        return refuse(b, ev->start_mark, "only the tag !!str is supported");
    if (++b->values > JSON_VALUES_MAX)
        return refuse(b, ev->start_mark, "too many values");
    return 0;
}

static int make_node(struct build *b, const yaml_event_t *ev, json_t **ret);

static int make_sequence(struct build *b, json_t **ret)
{
    AUTO(json_decref) json_t *array = json_array();

    for (;;) {
        __attribute__((cleanup(yaml_event_done_p))) yaml_event_t ev = {0};
        size_t index = json_array_size(array);
        json_t *item;

        if (next(b, &ev) < 0)
            return -1;
        if (ev.type == YAML_SEQUENCE_END_EVENT)
            break;
        note_place(b, array, str_make(&index, sizeof index), ev.start_mark);
        if (make_node(b, &ev, &item) < 0)
            return -1;
        if (json_array_append_new(array, item) < 0)
            return refuse(b, ev.start_mark, "no memory");
    }
    *ret = TAKE(array);
    return 0;
}

static int make_member(struct build *b, json_t *object, const yaml_event_t *key)
{
    __attribute__((cleanup(yaml_event_done_p))) yaml_event_t ev = {0};
    struct str name = str_make(key->data.scalar.value, key->data.scalar.length);
    json_t *value;

    if (check_properties(b, key) < 0)
        return -1;
    if (key->type != YAML_SCALAR_EVENT)
        return refuse(b, key->start_mark, "a key must be a string");
    if (memchr(name.p, '\0', name.n))
        return refuse(b, key->start_mark, "a key contains a NUL character");
    if (json_object_get(object, name.p))
        return refuse(b, key->start_mark, "the key appears twice");
    note_place(b, object, name, key->start_mark);
    if (next(b, &ev) < 0 || make_node(b, &ev, &value) < 0)
        return -1;
    if (json_object_set_new(object, name.p, value) < 0)
        return refuse(b, key->start_mark, "a key is not UTF-8");
    return 0;
}

static int make_mapping(struct build *b, json_t **ret)
{
    AUTO(json_decref) json_t *object = json_object();

    for (;;) {
        __attribute__((cleanup(yaml_event_done_p))) yaml_event_t ev = {0};

        if (next(b, &ev) < 0)
            return -1;
        if (ev.type == YAML_MAPPING_END_EVENT)
            break;
        if (make_member(b, object, &ev) < 0)
            return -1;
    }
    *ret = TAKE(object);
    return 0;
}

static int make_node(struct build *b, const yaml_event_t *ev, json_t **ret)
{
    int r;

    if (check_properties(b, ev) < 0)
        return -1;
    if (ev->type == YAML_SCALAR_EVENT)
        return make_scalar(b, ev, ret);
    if (b->depth == JSON_DEPTH_MAX)
        return refuse(b, ev->start_mark, "nested too deeply");
    b->depth++;
    r = ev->type == YAML_MAPPING_START_EVENT ? make_mapping(b, ret) : make_sequence(b, ret);
    b->depth--;
    return r;
}

/* stream start, document start, node, document end, stream end; an empty stream has no document. */
static int make_document(struct build *b, json_t **ret)
{
    *ret = json_null();
    for (;;) {
        __attribute__((cleanup(yaml_event_done_p))) yaml_event_t ev = {0};

        if (next(b, &ev) < 0)
            return -1;
        if (ev.type == YAML_STREAM_END_EVENT)
            return 0;
        if (ev.type == YAML_DOCUMENT_START_EVENT && b->values > 0)
            return refuse(b, ev.start_mark, "a second document");
        if (ev.type == YAML_STREAM_START_EVENT || ev.type == YAML_DOCUMENT_START_EVENT ||
            ev.type == YAML_DOCUMENT_END_EVENT)
            continue;
        if (make_node(b, &ev, ret) < 0)
            return -1;
    }
}

int yaml_read(struct str text, struct yaml *ret, struct err *e)
{
    AUTO(yaml_done) struct yaml y = {0};
    __attribute__((cleanup(parser_done_p))) struct build b = {.y = &y, .e = e};

    if (text.n > YAML_BYTES_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the YAML text has %zu bytes; at most %d are allowed",
                       text.n, YAML_BYTES_MAX);
    if (!yaml_parser_initialize(&b.parser))
        return err_set(e, ERR_UNAVAILABLE, 0, "not enough memory for a YAML parser");
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)(text.n ? text.p : ""), text.n);
    if (make_document(&b, &y.root) < 0)
        return -1;
    *ret = y;
    y = (struct yaml){0};
    return 0;
}

void yaml_done(struct yaml *y)
{
    json_decref(y->root);
    map_done(&y->places);
    *y = (struct yaml){0};
}
