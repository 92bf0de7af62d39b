/* layout: encodes, decodes and checks messages by tables of fields. */
#include "wire/layout.h"

#include <inttypes.h>

/* clang-format off */
static const struct wire_field text_fields[] = {
    WIRE_FIELD(struct wire_text, text, .kind = WIRE_TEXT, .max = 131071), /* MAX_ARG_STRLEN - 1 */
};
/* clang-format on */
const struct wire_layout wire_text_row = WIRE_LAYOUT("text", struct wire_text, text_fields);

static void put_le(uint8_t *to, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_le(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

void wire_put_u16(uint8_t *to, uint16_t v)
{
    put_le(to, v, 2);
}

void wire_put_u32(uint8_t *to, uint32_t v)
{
    put_le(to, v, 4);
}

void wire_put_u64(uint8_t *to, uint64_t v)
{
    put_le(to, v, 8);
}

uint16_t wire_get_u16(const uint8_t *p)
{
    return (uint16_t)get_le(p, 2);
}

uint32_t wire_get_u32(const uint8_t *p)
{
    return (uint32_t)get_le(p, 4);
}

uint64_t wire_get_u64(const uint8_t *p)
{
    return get_le(p, 8);
}

static size_t number_width(enum wire_kind k)
{
    return k == WIRE_U8 ? 1 : k == WIRE_U16 ? 2 : k == WIRE_U32 ? 4 : 8;
}

static uint64_t number_max(const struct wire_field *f)
{
    if (f->max != 0)
        return f->max;
    return f->kind == WIRE_U64 ? INT64_MAX : UINT64_MAX >> (64 - 8 * number_width(f->kind));
}

static int check_number(const struct wire_layout *l, const struct wire_field *f, uint64_t v,
                        struct err *e)
{
    if (v >= f->min && v <= number_max(f))
        return 0;
    return err_set(e, ERR_INVALID, 0, "%s.%s is %" PRIu64 ", allowed are %" PRIu64 " to %" PRIu64,
                   l->name, f->name, v, f->min, number_max(f));
}

static int check_length(const struct wire_layout *l, const struct wire_field *f, uint64_t n,
                        struct err *e)
{
    const char *unit = f->kind == WIRE_ROWS ? "rows" : "bytes";

    if (n >= f->min && n <= f->max)
        return 0;
    return err_set(e, ERR_INVALID, 0,
                   "%s.%s has %" PRIu64 " %s, allowed are %" PRIu64 " to %" PRIu64, l->name,
                   f->name, n, unit, f->min, f->max);
}

static int check_text(const struct wire_layout *l, const struct wire_field *f, struct str s,
                      struct err *e)
{
    if (check_length(l, f, s.n, e) < 0)
        return -1;
    if (f->kind == WIRE_TEXT && s.n > 0 && memchr(s.p, '\0', s.n))
        return err_set(e, ERR_INVALID, 0, "%s.%s contains a NUL byte", l->name, f->name);
    return 0;
}

/* ---- encode ---- */

static void out_bytes(struct wire_out *o, const void *p, size_t n)
{
    if (o->full || n > o->size - o->n) {
        o->full = true;
        return;
    }
    if (n > 0)
        memcpy(o->p + o->n, p, n);
    o->n += n;
}

static void out_number(struct wire_out *o, uint64_t v, size_t width)
{
    uint8_t b[8];

    put_le(b, v, width);
    out_bytes(o, b, width);
}

static void out_text(struct wire_out *o, struct str s)
{
    out_number(o, s.n, 4);
    out_bytes(o, s.p, s.n);
}

static void out_err(struct wire_out *o, const struct err *v)
{
    out_number(o, (uint64_t)v->code, 2);
    out_number(o, (uint64_t)(uint32_t)v->sys, 4);
    out_text(o, str_make(v->msg, strnlen(v->msg, sizeof v->msg - 1)));
    out_text(o, str_make(v->object, strnlen(v->object, sizeof v->object - 1)));
    out_text(o, str_make(v->hint, strnlen(v->hint, sizeof v->hint - 1)));
}

static uint64_t load_number(const struct wire_field *f, const void *value)
{
    switch (number_width(f->kind)) {
    case 1:
        return *(const uint8_t *)value;
    case 2:
        return *(const uint16_t *)value;
    case 4:
        return *(const uint32_t *)value;
    default:
        return *(const uint64_t *)value;
    }
}

static int put_fields(const struct wire_layout *l, const void *msg, struct wire_out *o,
                      struct err *e);

static int put_rows(const struct wire_layout *l, const struct wire_field *f,
                    const struct wire_rows *rows, struct wire_out *o, struct err *e)
{
    if (check_length(l, f, rows->count, e) < 0)
        return -1;
    out_number(o, rows->count, 4);
    if (!rows->items) {
        out_bytes(o, rows->raw.p, rows->raw.n);
        return 0;
    }
    for (uint32_t i = 0; i < rows->count; i++)
        if (put_fields(f->row, (const char *)rows->items + i * f->row->size, o, e) < 0)
            return err_wrap(e, "%s.%s row %u", l->name, f->name, i);
    return 0;
}

static int put_field(const struct wire_layout *l, const struct wire_field *f, const void *value,
                     struct wire_out *o, struct err *e)
{
    switch (f->kind) {
    case WIRE_U8:
    case WIRE_U16:
    case WIRE_U32:
    case WIRE_U64:
        out_number(o, load_number(f, value), number_width(f->kind));
        return check_number(l, f, load_number(f, value), e);
    case WIRE_ID16:
        out_bytes(o, value, 16);
        return 0;
    case WIRE_TEXT:
    case WIRE_BLOB:
        if (check_text(l, f, *(const struct str *)value, e) < 0)
            return -1;
        out_text(o, *(const struct str *)value);
        return 0;
    case WIRE_ROWS:
        return put_rows(l, f, value, o, e);
    case WIRE_ERR:
        out_err(o, value);
        return 0;
    }
    assert(0 && "a kind of field without a case");
    return -1;
}

static int put_fields(const struct wire_layout *l, const void *msg, struct wire_out *o,
                      struct err *e)
{
    for (size_t i = 0; i < l->count; i++)
        if (put_field(l, &l->fields[i], (const char *)msg + l->fields[i].at, o, e) < 0)
            return -1;
    return 0;
}

int wire_put(const struct wire_layout *l, const void *msg, struct wire_out *o, struct err *e)
{
    if (put_fields(l, msg, o, e) < 0)
        return -1;
    if (o->full)
        return err_set(e, ERR_TOO_LARGE, 0, "%s is larger than %zu bytes", l->name, o->size);
    return 0;
}

/* ---- decode ---- */

static int in_bytes(struct str *in, size_t n, const void **ret)
{
    if (n > in->n)
        return -1;
    *ret = in->p;
    in->p += n;
    in->n -= n;
    return 0;
}

static int in_number(struct str *in, size_t width, uint64_t *ret)
{
    const void *p;

    if (in_bytes(in, width, &p) < 0)
        return -1;
    *ret = get_le(p, width);
    return 0;
}

static int in_text(struct str *in, struct str *ret)
{
    uint64_t n;
    const void *p;

    if (in_number(in, 4, &n) < 0 || in_bytes(in, n, &p) < 0)
        return -1;
    *ret = str_make(p, n);
    return 0;
}

/* The text ends up in logs and on terminals: remove control bytes and broken UTF-8. */
static void clean_text(struct str from, char *to, size_t size)
{
    bool utf8 = str_is_utf8(from);
    size_t n = size_min(from.n, size - 1);

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)from.p[i];

        to[i] = c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8) ? '?' : (char)c;
    }
    to[n] = '\0';
}

static int in_err(struct str *in, struct err *ret)
{
    uint64_t code, sys;
    struct str msg, object, hint;

    if (in_number(in, 2, &code) < 0 || in_number(in, 4, &sys) < 0 || in_text(in, &msg) < 0 ||
        in_text(in, &object) < 0 || in_text(in, &hint) < 0)
        return -1;
    if (code >= ERR_CODE_COUNT || sys > INT32_MAX || msg.n >= sizeof ret->msg ||
        object.n >= sizeof ret->object || hint.n >= sizeof ret->hint)
        return -1;
    *ret = (struct err){.code = (enum err_code)code, .sys = (int)sys};
    clean_text(msg, ret->msg, sizeof ret->msg);
    clean_text(object, ret->object, sizeof ret->object);
    clean_text(hint, ret->hint, sizeof ret->hint);
    return 0;
}

static void store_number(const struct wire_field *f, uint64_t v, void *value)
{
    switch (number_width(f->kind)) {
    case 1:
        *(uint8_t *)value = (uint8_t)v;
        break;
    case 2:
        *(uint16_t *)value = (uint16_t)v;
        break;
    case 4:
        *(uint32_t *)value = (uint32_t)v;
        break;
    default:
        *(uint64_t *)value = v;
    }
}

static int cut_short(const struct wire_layout *l, const struct wire_field *f, struct err *e)
{
    return err_set(e, ERR_INVALID, 0, "%s.%s is cut short or malformed", l->name, f->name);
}

static int get_fields(const struct wire_layout *l, struct str *in, void *msg, struct err *e);

static int get_rows(const struct wire_layout *l, const struct wire_field *f, struct str *in,
                    struct wire_rows *ret, struct err *e)
{
    union { /* the largest row; used for checking only */
        struct err err;
        uint64_t numbers[32];
    } scratch;
    uint64_t count;
    const char *begin;

    assert(f->row->size <= sizeof scratch);
    if (in_number(in, 4, &count) < 0)
        return cut_short(l, f, e);
    if (check_length(l, f, count, e) < 0)
        return -1;
    begin = in->p;
    for (uint64_t i = 0; i < count; i++)
        if (get_fields(f->row, in, &scratch, e) < 0)
            return err_wrap(e, "%s.%s", l->name, f->name);
    *ret = (struct wire_rows){.count = (uint32_t)count,
                              .raw = str_make(begin, (size_t)(in->p - begin))};
    return 0;
}

static int get_number(const struct wire_layout *l, const struct wire_field *f, struct str *in,
                      void *value, struct err *e)
{
    uint64_t v;

    if (in_number(in, number_width(f->kind), &v) < 0)
        return cut_short(l, f, e);
    if (check_number(l, f, v, e) < 0)
        return -1;
    store_number(f, v, value);
    return 0;
}

static int get_field(const struct wire_layout *l, const struct wire_field *f, struct str *in,
                     void *value, struct err *e)
{
    const void *p;

    switch (f->kind) {
    case WIRE_U8:
    case WIRE_U16:
    case WIRE_U32:
    case WIRE_U64:
        return get_number(l, f, in, value, e);
    case WIRE_ID16:
        if (in_bytes(in, 16, &p) < 0)
            return cut_short(l, f, e);
        memcpy(value, p, 16);
        return 0;
    case WIRE_TEXT:
    case WIRE_BLOB:
        if (in_text(in, value) < 0)
            return cut_short(l, f, e);
        return check_text(l, f, *(struct str *)value, e);
    case WIRE_ROWS:
        return get_rows(l, f, in, value, e);
    case WIRE_ERR:
        return in_err(in, value) < 0 ? cut_short(l, f, e) : 0;
    }
    assert(0 && "a kind of field without a case");
    return -1;
}

static int get_fields(const struct wire_layout *l, struct str *in, void *msg, struct err *e)
{
    for (size_t i = 0; i < l->count; i++)
        if (get_field(l, &l->fields[i], in, (char *)msg + l->fields[i].at, e) < 0)
            return -1;
    return 0;
}

int wire_get(const struct wire_layout *l, struct str in, void *ret, struct err *e)
{
    if (get_fields(l, &in, ret, e) < 0)
        return -1;
    if (in.n > 0)
        return err_set(e, ERR_INVALID, 0, "%s has %zu bytes too many", l->name, in.n);
    return 0;
}

bool wire_rows_next(const struct wire_layout *row, struct wire_rows *rows, void *ret)
{
    struct err e;

    if (rows->count == 0)
        return false;
    assert(!rows->items);
    if (get_fields(row, &rows->raw, ret, &e) < 0)
        assert(0 && "rows are checked when they are decoded");
    rows->count--;
    return true;
}
