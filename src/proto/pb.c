/* pb: a table-driven codec for protobuf's binary form. */
#include "proto/pb.h"

#include <errno.h>

enum wire { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_GROUP, WIRE_GROUP_END, WIRE_32 };

/* A few bytes of input can demand a whole struct; this bounds the memory. */
#define MEMORY_FACTOR 16
#define MEMORY_BASE (1024 * 1024)

struct reader {
    struct arena *arena;
    size_t budget;
    int depth;
    struct err *e;
};

size_t pb_type_size(const struct pb_field *f)
{
    switch (f->type) {
    case PB_STRING:
    case PB_BYTES:
        return sizeof(struct str);
    case PB_BOOL:
        return sizeof(bool);
    case PB_FLOAT:
    case PB_INT32:
    case PB_FIXED32:
    case PB_UINT32:
    case PB_ENUM:
    case PB_SFIXED32:
    case PB_SINT32:
        return 4;
    case PB_MESSAGE:
    case PB_GROUP:
        return f->flags & PB_REPEATED ? f->message->size : sizeof(void *);
    case PB_DOUBLE:
    case PB_INT64:
    case PB_UINT64:
    case PB_FIXED64:
    case PB_SFIXED64:
    case PB_SINT64:
        return 8;
    }
    return 8;
}

/* Capacity doubles at each power of two, so it need not be stored. */
void *pb_append(const struct pb_field *f, void *to, struct arena *a, size_t *budget)
{
    char **items = (void *)((char *)to + f->offset);
    size_t *count = (void *)((char *)to + f->aux);
    size_t size = pb_type_size(f), n = *count;

    if (n == 0 || (n >= 4 && (n & (n - 1)) == 0)) {
        size_t room = (n < 4 ? 4 : 2 * n) * size;
        char *bigger;

        if (room > *budget)
            return NULL;
        *budget -= room;
        bigger = arena_zalloc(a, room);
        if (n > 0)
            memcpy(bigger, *items, n * size);
        *items = bigger;
    }
    *count = n + 1;
    return *items + n * size;
}

void *pb_place(const struct pb_field *f, void *to)
{
    char *base = to;

    if (f->flags & PB_OPTIONAL)
        *(bool *)(base + f->aux) = true;
    if (f->flags & PB_ONEOF)
        memcpy(base + f->aux, &f->number, sizeof f->number);
    return base + f->offset;
}

static bool is_zero(const struct pb_field *f, const void *value)
{
    static const char zeros[8];

    if (f->type == PB_STRING || f->type == PB_BYTES)
        return ((const struct str *)value)->n == 0;
    if (f->type == PB_MESSAGE)
        return *(void *const *)value == NULL;
    return memcmp(value, zeros, pb_type_size(f)) == 0;
}

size_t pb_count(const struct pb_field *f, const void *from)
{
    const char *base = from;
    uint32_t which;

    if (f->flags & PB_REPEATED)
        return *(const size_t *)(const void *)(base + f->aux);
    if (f->flags & PB_OPTIONAL)
        return *(const bool *)(base + f->aux);
    if (f->flags & PB_ONEOF) {
        memcpy(&which, base + f->aux, sizeof which);
        return which == f->number && !(f->type == PB_MESSAGE && is_zero(f, base + f->offset));
    }
    return !is_zero(f, base + f->offset);
}

const void *pb_at(const struct pb_field *f, const void *from, size_t i)
{
    const char *base = (const char *)from + f->offset;

    if (f->flags & PB_REPEATED)
        return *(const char *const *)(const void *)base + i * pb_type_size(f);
    return f->type == PB_MESSAGE ? *(const void *const *)(const void *)base : base;
}

static int get_varint(struct str *in, uint64_t *ret)
{
    uint64_t v = 0;

    for (size_t i = 0; i < 10 && i < in->n; i++) {
        uint64_t b = (unsigned char)in->p[i];

        if (i == 9 && b > 1)
            return -EINVAL;
        v |= (b & 0x7f) << (7 * i);
        if (!(b & 0x80)) {
            *in = str_skip(*in, i + 1);
            *ret = v;
            return 0;
        }
    }
    return -EINVAL;
}

static int get_fixed(struct str *in, size_t bytes, uint64_t *ret)
{
    uint64_t v = 0;

    if (in->n < bytes)
        return -EINVAL;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)(unsigned char)in->p[i] << (8 * i);
    *in = str_skip(*in, bytes);
    *ret = v;
    return 0;
}

static int get_bytes(struct str *in, struct str *ret)
{
    uint64_t n;

    if (get_varint(in, &n) < 0 || n > in->n)
        return -EINVAL;
    *ret = str_make(in->p, (size_t)n);
    *in = str_skip(*in, (size_t)n);
    return 0;
}

static int get_tag(struct str *in, uint32_t *ret_number, enum wire *ret_wire)
{
    uint64_t tag;

    if (get_varint(in, &tag) < 0 || tag > UINT32_MAX || tag >> 3 == 0 || (tag & 7) > WIRE_32)
        return -EINVAL;
    *ret_number = (uint32_t)(tag >> 3);
    *ret_wire = (enum wire)(tag & 7);
    return 0;
}

static int skip(struct str *in, uint32_t number, enum wire wire, int depth)
{
    uint64_t v;
    struct str s;
    uint32_t inner;
    enum wire inner_wire;

    switch (wire) {
    case WIRE_VARINT:
        return get_varint(in, &v);
    case WIRE_64:
        return get_fixed(in, 8, &v);
    case WIRE_32:
        return get_fixed(in, 4, &v);
    case WIRE_BYTES:
        return get_bytes(in, &s);
    case WIRE_GROUP:
        while (depth < PB_DEPTH_MAX && get_tag(in, &inner, &inner_wire) == 0) {
            if (inner_wire == WIRE_GROUP_END)
                return inner == number ? 0 : -EINVAL;
            if (skip(in, inner, inner_wire, depth + 1) < 0)
                return -EINVAL;
        }
        return -EINVAL;
    case WIRE_GROUP_END:
        return -EINVAL;
    }
    return -EINVAL;
}

static enum wire wire_of(enum pb_type type)
{
    switch (type) {
    case PB_DOUBLE:
    case PB_FIXED64:
    case PB_SFIXED64:
        return WIRE_64;
    case PB_FLOAT:
    case PB_FIXED32:
    case PB_SFIXED32:
        return WIRE_32;
    case PB_STRING:
    case PB_BYTES:
    case PB_MESSAGE:
        return WIRE_BYTES;
    case PB_GROUP:
        return WIRE_GROUP;
    case PB_INT64:
    case PB_UINT64:
    case PB_INT32:
    case PB_BOOL:
    case PB_UINT32:
    case PB_ENUM:
    case PB_SINT32:
    case PB_SINT64:
        return WIRE_VARINT;
    }
    return WIRE_VARINT;
}

static int broken(struct reader *r, const struct pb_message *m, const char *field, const char *why)
{
    return err_set(r->e, ERR_INVALID, 0, "%s%s%s: %s", m->name, field ? "." : "",
                   field ? field : "", why);
}

static void store_number(const struct pb_field *f, uint64_t v, void *to)
{
    if (f->type == PB_SINT32)
        v = (uint32_t)v >> 1 ^ (0U - ((uint32_t)v & 1));
    if (f->type == PB_SINT64)
        v = v >> 1 ^ (0 - (v & 1));
    if (f->type == PB_BOOL)
        *(bool *)to = v != 0;
    else if (pb_type_size(f) == 4)
        memcpy(to, &(uint32_t){(uint32_t)v}, 4);
    else
        memcpy(to, &v, 8);
}

static int get_number(const struct pb_field *f, struct str *in, void *to)
{
    enum wire wire = wire_of(f->type);
    uint64_t v;
    int r = wire == WIRE_VARINT ? get_varint(in, &v) : get_fixed(in, wire == WIRE_64 ? 8 : 4, &v);

    if (r == 0)
        store_number(f, v, to);
    return r;
}

static int read_message(struct reader *r, const struct pb_message *m, struct str in, void *to);

static int get_value(struct reader *r, const struct pb_message *m, const struct pb_field *f,
                     struct str *in, void *to)
{
    struct str s;
    void **child = to;

    if (wire_of(f->type) != WIRE_BYTES)
        return get_number(f, in, to) < 0 ? broken(r, m, f->name, "cut short") : 0;
    if (get_bytes(in, &s) < 0)
        return broken(r, m, f->name, "cut short");
    if (f->type == PB_STRING && !str_is_utf8(s))
        return broken(r, m, f->name, "not UTF-8");
    if (f->type != PB_MESSAGE) {
        *(struct str *)to = s;
        return 0;
    }
    if (f->flags & PB_REPEATED)
        return read_message(r, f->message, s, to);
    if (!*child) { /* a second occurrence is merged into the first */
        if (f->message->size > r->budget)
            return broken(r, m, f->name, "needs too much memory");
        r->budget -= f->message->size;
        *child = arena_zalloc(r->arena, f->message->size);
    }
    return read_message(r, f->message, s, *child);
}

static int get_repeated(struct reader *r, const struct pb_message *m, const struct pb_field *f,
                        struct str *in, void *to)
{
    void *item = pb_append(f, to, r->arena, &r->budget);

    if (!item)
        return broken(r, m, f->name, "needs too much memory");
    return get_value(r, m, f, in, item);
}

static int get_packed(struct reader *r, const struct pb_message *m, const struct pb_field *f,
                      struct str *in, void *to)
{
    struct str all;

    if (get_bytes(in, &all) < 0)
        return broken(r, m, f->name, "cut short");
    while (all.n > 0)
        if (get_repeated(r, m, f, &all, to) < 0)
            return -1;
    return 0;
}

/* Fields mostly come in the table's order: *hint shortens the search. */
static const struct pb_field *find_field(const struct pb_message *m, uint32_t number, size_t *hint)
{
    for (size_t i = 0; i < m->count; i++) {
        size_t at = (*hint + i) % m->count;

        if (m->fields[at].number == number) {
            *hint = at;
            return &m->fields[at];
        }
    }
    return NULL;
}

static int read_field(struct reader *r, const struct pb_message *m, struct str *in, void *to,
                      size_t *hint)
{
    const struct pb_field *f;
    uint32_t number;
    enum wire wire;

    if (get_tag(in, &number, &wire) < 0)
        return broken(r, m, NULL, "broken tag");
    f = find_field(m, number, hint);
    if (f && (f->flags & PB_REPEATED) && wire == WIRE_BYTES && wire_of(f->type) != WIRE_BYTES)
        return get_packed(r, m, f, in, to);
    if (!f || wire_of(f->type) != wire || f->type == PB_GROUP)
        return skip(in, number, wire, r->depth) < 0 ? broken(r, m, NULL, "broken field") : 0;
    if (f->flags & PB_REPEATED)
        return get_repeated(r, m, f, in, to);
    return get_value(r, m, f, in, pb_place(f, to));
}

static int read_message(struct reader *r, const struct pb_message *m, struct str in, void *to)
{
    size_t hint = 0;

    if (r->depth >= PB_DEPTH_MAX)
        return broken(r, m, NULL, "nested too deeply");
    r->depth++;
    while (in.n > 0)
        if (read_field(r, m, &in, to, &hint) < 0)
            return -1;
    r->depth--;
    return 0;
}

int pb_decode(const struct pb_message *m, struct str in, struct arena *a, void *to, struct err *e)
{
    struct reader r = {.arena = a, .budget = in.n * MEMORY_FACTOR + MEMORY_BASE, .e = e};

    memset(to, 0, m->size);
    return read_message(&r, m, in, to);
}

static void put_varint(struct buf *to, uint64_t v)
{
    char bytes[10];
    size_t n = 0;

    for (; v > 0x7f; v >>= 7)
        bytes[n++] = (char)(v | 0x80);
    bytes[n++] = (char)v;
    buf_add(to, bytes, n);
}

static uint64_t load_number(const struct pb_field *f, const void *from)
{
    uint32_t half;
    uint64_t v;

    if (f->type == PB_BOOL)
        return *(const bool *)from;
    if (pb_type_size(f) == 8) {
        memcpy(&v, from, 8);
        return f->type == PB_SINT64 ? v << 1 ^ (0 - (v >> 63)) : v;
    }
    memcpy(&half, from, 4);
    if (f->type == PB_SINT32)
        return (uint32_t)(half << 1) ^ (0U - (half >> 31));
    if (f->type == PB_INT32 || f->type == PB_ENUM)
        return (uint64_t)(int64_t)(int32_t)half;
    return half;
}

static void put_number(const struct pb_field *f, const void *from, struct buf *to)
{
    enum wire wire = wire_of(f->type);
    uint64_t v = load_number(f, from);
    char bytes[8];

    if (wire == WIRE_VARINT) {
        put_varint(to, v);
        return;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(v >> (8 * i));
    buf_add(to, bytes, wire == WIRE_64 ? 8 : 4);
}

/* Inserts the length of everything from `start` on before it. */
static void insert_length(struct buf *to, size_t start)
{
    AUTO(buf_done) struct buf head = {0};
    size_t n = buf_len(to) - start;

    put_varint(&head, n);
    buf_add_str(to, buf_str(&head)); /* makes room */
    memmove(buf_data(to) + start + buf_len(&head), buf_data(to) + start, n);
    memcpy(buf_data(to) + start, buf_data(&head), buf_len(&head));
}

static void put_value(const struct pb_field *f, const void *from, struct buf *to)
{
    size_t start;

    put_varint(to, (uint64_t)f->number << 3 | wire_of(f->type));
    if (f->type == PB_STRING || f->type == PB_BYTES) {
        const struct str *s = from;

        put_varint(to, s->n);
        buf_add_str(to, *s);
    } else if (f->type == PB_MESSAGE) {
        start = buf_len(to);
        pb_encode(f->message, from, to);
        insert_length(to, start);
    } else {
        put_number(f, from, to);
    }
}

static void put_packed(const struct pb_field *f, const void *from, size_t count, struct buf *to)
{
    size_t start;

    put_varint(to, (uint64_t)f->number << 3 | WIRE_BYTES);
    start = buf_len(to);
    for (size_t i = 0; i < count; i++)
        put_number(f, pb_at(f, from, i), to);
    insert_length(to, start);
}

void pb_encode(const struct pb_message *m, const void *from, struct buf *to)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct pb_field *f = &m->fields[i];
        size_t count = pb_count(f, from);

        if (count > 0 && (f->flags & PB_PACKED))
            put_packed(f, from, count, to);
        else
            for (size_t k = 0; k < count; k++)
                put_value(f, pb_at(f, from, k), to);
    }
}
