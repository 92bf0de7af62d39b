/* pb_json: reads and writes protobuf's JSON form (ProtoJSON). */

/* 64-bit integers are strings, bytes are base64, enums are names; numbers, names and both spellings
 * of a field are accepted on input. */
#include "base/enc.h"
#include "proto/pb.h"

#include <math.h>

#define MEMORY_MAX (64 * 1024 * 1024) /* the text's size was limited before parsing */

struct reader {
    struct arena *arena;
    size_t budget;
    int depth;
    struct err *e;
};

static int read_message(struct reader *r, const struct pb_message *m, const json_t *v, void *to);

static int wrong(struct reader *r, const struct pb_field *f, const char *expected)
{
    return err_set(r->e, ERR_INVALID, 0, "%s: %s is expected", f->json, expected);
}

static struct str text_of(const json_t *v)
{
    return str_make(json_string_value(v), json_string_length(v));
}

static bool is_unsigned(enum pb_type t)
{
    return t == PB_UINT32 || t == PB_FIXED32 || t == PB_UINT64 || t == PB_FIXED64;
}

/* Integers, as a number or as text; 1e3 and 5.0 are integers too. */
static int get_whole(const struct pb_field *f, const json_t *v, int64_t *ret_s, uint64_t *ret_u)
{
    double d;

    if (json_is_integer(v)) {
        *ret_s = json_integer_value(v);
        *ret_u = (uint64_t)*ret_s;
        return is_unsigned(f->type) && *ret_s < 0 ? -1 : 0;
    }
    if (json_is_string(v)) {
        if (is_unsigned(f->type))
            return str_parse_u64(text_of(v), ret_u);
        return str_parse_i64(text_of(v), ret_s);
    }
    d = json_real_value(v);
    if (!json_is_real(v) || d != floor(d) || fabs(d) > 9007199254740992.0 ||
        (is_unsigned(f->type) && d < 0))
        return -1;
    *ret_s = (int64_t)d;
    *ret_u = (uint64_t)*ret_s;
    return 0;
}

static int get_integer(struct reader *r, const struct pb_field *f, const json_t *v, void *to)
{
    bool half = pb_type_size(f) == 4;
    int64_t s = 0;
    uint64_t u = 0;

    if (get_whole(f, v, &s, &u) < 0)
        return wrong(r, f,
                     is_unsigned(f->type) ? "a whole number of at least 0" : "a whole number");
    if (is_unsigned(f->type)) {
        if (half && u > UINT32_MAX)
            return wrong(r, f, "a number of 32 bits");
        if (half)
            *(uint32_t *)to = (uint32_t)u;
        else
            *(uint64_t *)to = u;
        return 0;
    }
    if (half && (s > INT32_MAX || s < INT32_MIN))
        return wrong(r, f, "a number of 32 bits");
    if (half)
        *(int32_t *)to = (int32_t)s;
    else
        *(int64_t *)to = s;
    return 0;
}

static int get_real(struct reader *r, const struct pb_field *f, const json_t *v, void *to)
{
    double d;

    if (json_is_number(v))
        d = json_number_value(v);
    else if (!json_is_string(v))
        return wrong(r, f, "a number");
    else if (str_eq_c(text_of(v), "NaN"))
        d = NAN;
    else if (str_eq_c(text_of(v), "Infinity"))
        d = INFINITY;
    else if (str_eq_c(text_of(v), "-Infinity"))
        d = -INFINITY;
    else if (str_parse_double(text_of(v), &d) < 0)
        return wrong(r, f, "a number");
    if (f->type == PB_FLOAT)
        *(float *)to = (float)d;
    else
        *(double *)to = d;
    return 0;
}

static int get_enum(struct reader *r, const struct pb_field *f, const json_t *v, void *to)
{
    const struct pb_enum *names = f->enumeration;

    if (!json_is_string(v))
        return get_integer(r, f, v, to);
    for (size_t i = 0; i < names->count; i++) {
        if (str_eq_c(text_of(v), names->values[i].name)) {
            *(int32_t *)to = names->values[i].number;
            return 0;
        }
    }
    return wrong(r, f, names->name);
}

static int get_text(struct reader *r, const struct pb_field *f, const json_t *v, struct str *to)
{
    AUTO(buf_done) struct buf raw = {0};

    if (!json_is_string(v))
        return wrong(r, f, f->type == PB_BYTES ? "base64 text" : "text");
    if (f->type == PB_STRING) {
        *to = arena_str(r->arena, text_of(v));
        return 0;
    }
    if (dec_base64(&raw, text_of(v)) < 0)
        return wrong(r, f, "base64 text");
    *to = arena_str(r->arena, buf_str(&raw));
    return 0;
}

static int get_child(struct reader *r, const struct pb_field *f, const json_t *v, void *to)
{
    void **child = to;

    if (f->flags & PB_REPEATED)
        return read_message(r, f->message, v, to);
    *child = arena_zalloc(r->arena, f->message->size);
    return read_message(r, f->message, v, *child);
}

static int get_value(struct reader *r, const struct pb_field *f, const json_t *v, void *to)
{
    switch (f->type) {
    case PB_STRING:
    case PB_BYTES:
        return get_text(r, f, v, to);
    case PB_BOOL:
        if (!json_is_boolean(v))
            return wrong(r, f, "true or false");
        *(bool *)to = json_is_true(v);
        return 0;
    case PB_FLOAT:
    case PB_DOUBLE:
        return get_real(r, f, v, to);
    case PB_ENUM:
        return get_enum(r, f, v, to);
    case PB_MESSAGE:
        return get_child(r, f, v, to);
    case PB_GROUP:
        return wrong(r, f, "no value");
    case PB_INT32:
    case PB_INT64:
    case PB_UINT32:
    case PB_UINT64:
    case PB_SINT32:
    case PB_SINT64:
    case PB_FIXED32:
    case PB_FIXED64:
    case PB_SFIXED32:
    case PB_SFIXED64:
        return get_integer(r, f, v, to);
    }
    return wrong(r, f, "no value");
}

static int append(struct reader *r, const struct pb_field *f, void *to, void **ret)
{
    *ret = pb_append(f, to, r->arena, &r->budget);
    return *ret ? 0 : wrong(r, f, "a shorter list");
}

static int get_list(struct reader *r, const struct pb_field *f, const json_t *v, void *to)
{
    void *item;

    if (!json_is_array(v))
        return wrong(r, f, "a list");
    for (size_t i = 0; i < json_array_size(v); i++)
        if (append(r, f, to, &item) < 0 || get_value(r, f, json_array_get(v, i), item) < 0)
            return -1;
    return 0;
}

/* JSON keys are text, whatever their type. */
static int get_key(struct reader *r, const struct pb_field *f, const char *key, void *to)
{
    AUTO(json_decref) json_t *text = NULL;

    if (f->type == PB_BOOL) {
        if (strcmp(key, "true") != 0 && strcmp(key, "false") != 0)
            return wrong(r, f, "\"true\" or \"false\"");
        *(bool *)to = key[0] == 't';
        return 0;
    }
    text = json_string(key);
    return text ? get_value(r, f, text, to) : wrong(r, f, "text");
}

static int get_map(struct reader *r, const struct pb_field *f, const json_t *v, void *to)
{
    const struct pb_field *key = &f->message->fields[0], *value = &f->message->fields[1];
    const char *name;
    json_t *item;

    if (!json_is_object(v))
        return wrong(r, f, "an object");
    json_object_foreach((json_t *)(uintptr_t)v, name, item)
    {
        void *entry;

        if (append(r, f, to, &entry) < 0 || get_key(r, key, name, pb_place(key, entry)) < 0 ||
            get_value(r, value, item, pb_place(value, entry)) < 0)
            return -1;
    }
    return 0;
}

static const struct pb_field *find_field(const struct pb_message *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->fields[i].json, name) == 0 || strcmp(m->fields[i].name, name) == 0)
            return &m->fields[i];
    return NULL;
}

static int read_member(struct reader *r, const struct pb_message *m, const char *name,
                       const json_t *v, void *to)
{
    const struct pb_field *f = find_field(m, name);

    if (!f)
        return err_set(r->e, ERR_INVALID, 0, "%s has no field '%.64s'", m->name, name);
    if (json_is_null(v))
        return 0;
    if (f->flags & PB_MAP)
        return get_map(r, f, v, to);
    if (f->flags & PB_REPEATED)
        return get_list(r, f, v, to);
    return get_value(r, f, v, pb_place(f, to));
}

static int read_message(struct reader *r, const struct pb_message *m, const json_t *v, void *to)
{
    const char *name;
    json_t *member;

    if (!json_is_object(v))
        return err_set(r->e, ERR_INVALID, 0, "%s: an object is expected", m->name);
    if (++r->depth > PB_DEPTH_MAX)
        return err_set(r->e, ERR_INVALID, 0, "%s: nested too deeply", m->name);
    json_object_foreach((json_t *)(uintptr_t)v, name, member)
    {
        if (read_member(r, m, name, member, to) < 0)
            return -1;
    }
    r->depth--;
    return 0;
}

int pb_from_json(const struct pb_message *m, const json_t *v, struct arena *a, void *to,
                 struct err *e)
{
    struct reader r = {.arena = a, .budget = MEMORY_MAX, .e = e};

    memset(to, 0, m->size);
    return read_message(&r, m, v, to);
}

static void put_enum(const struct pb_field *f, int32_t v, struct jw *w)
{
    for (size_t i = 0; i < f->enumeration->count; i++) {
        if (f->enumeration->values[i].number == v) {
            jw_c(w, f->enumeration->values[i].name);
            return;
        }
    }
    jw_int(w, v);
}

static void put_real(double d, struct jw *w)
{
    if (isfinite(d))
        jw_double(w, d);
    else
        jw_c(w, isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity");
}

static void put_bytes(struct str s, struct jw *w)
{
    AUTO(buf_done) struct buf text = {0};

    enc_base64(&text, s.p, s.n);
    jw_str(w, buf_str(&text));
}

static void put_long(const struct pb_field *f, const void *from, struct jw *w)
{
    char text[24];

    if (is_unsigned(f->type))
        (void)snprintf(text, sizeof text, "%llu", *(const unsigned long long *)from);
    else
        (void)snprintf(text, sizeof text, "%lld", *(const long long *)from);
    jw_c(w, text);
}

static void put_value(const struct pb_field *f, const void *from, struct jw *w)
{
    switch (f->type) {
    case PB_STRING:
        jw_str(w, *(const struct str *)from);
        return;
    case PB_BYTES:
        put_bytes(*(const struct str *)from, w);
        return;
    case PB_BOOL:
        jw_bool(w, *(const bool *)from);
        return;
    case PB_FLOAT:
        put_real((double)*(const float *)from, w);
        return;
    case PB_DOUBLE:
        put_real(*(const double *)from, w);
        return;
    case PB_ENUM:
        put_enum(f, *(const int32_t *)from, w);
        return;
    case PB_MESSAGE:
        pb_to_json(f->message, from, w);
        return;
    case PB_GROUP:
        jw_null(w);
        return;
    case PB_UINT32:
    case PB_FIXED32:
        jw_int(w, *(const uint32_t *)from);
        return;
    case PB_INT32:
    case PB_SINT32:
    case PB_SFIXED32:
        jw_int(w, *(const int32_t *)from);
        return;
    case PB_INT64:
    case PB_UINT64:
    case PB_SINT64:
    case PB_FIXED64:
    case PB_SFIXED64:
        put_long(f, from, w);
        return;
    }
}

static void key_text(const struct pb_field *f, const void *from, struct buf *to)
{
    if (f->type == PB_STRING)
        buf_add_str(to, *(const struct str *)from);
    else if (f->type == PB_BOOL)
        buf_add_c(to, *(const bool *)from ? "true" : "false");
    else if (is_unsigned(f->type))
        buf_printf(to, "%llu",
                   pb_type_size(f) == 4 ? (unsigned long long)*(const uint32_t *)from
                                        : *(const unsigned long long *)from);
    else
        buf_printf(to, "%lld",
                   pb_type_size(f) == 4 ? (long long)*(const int32_t *)from
                                        : *(const long long *)from);
}

static void put_map(const struct pb_field *f, const void *from, size_t count, struct jw *w)
{
    const struct pb_field *key = &f->message->fields[0], *value = &f->message->fields[1];

    jw_object(w);
    for (size_t i = 0; i < count; i++) {
        AUTO(buf_done) struct buf name = {0};
        const void *entry = pb_at(f, from, i);
        const void *at = (const char *)entry + value->offset;

        key_text(key, (const char *)entry + key->offset, &name);
        jw_key(w, buf_cstr(&name));
        if (value->type == PB_MESSAGE && !*(const void *const *)at) {
            jw_object(w);
            jw_object_end(w);
        } else {
            put_value(value, pb_at(value, entry, 0), w);
        }
    }
    jw_object_end(w);
}

void pb_to_json(const struct pb_message *m, const void *from, struct jw *w)
{
    jw_object(w);
    for (size_t i = 0; i < m->count; i++) {
        const struct pb_field *f = &m->fields[i];
        size_t count = pb_count(f, from);

        if (count == 0)
            continue;
        jw_key(w, f->json);
        if (f->flags & PB_MAP)
            put_map(f, from, count, w);
        else if (!(f->flags & PB_REPEATED))
            put_value(f, pb_at(f, from, 0), w);
        else {
            jw_array(w);
            for (size_t k = 0; k < count; k++)
                put_value(f, pb_at(f, from, k), w);
            jw_array_end(w);
        }
    }
    jw_object_end(w);
}
