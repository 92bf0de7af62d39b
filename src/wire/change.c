/* change: encodes and decodes records of differences. */
#include "wire/change.h"

const char *const change_kind_names[CHANGE_KIND_COUNT] = {
    [CHANGE_FILE] = "file",       [CHANGE_PACKAGE] = "package", [CHANGE_SERVICE] = "service",
    [CHANGE_USER] = "user",       [CHANGE_GROUP] = "group",     [CHANGE_CRON] = "cron",
    [CHANGE_COMMAND] = "command", [CHANGE_END] = "end",
};
const char *const change_what_names[CHANGE_WHAT_COUNT] = {
    [CHANGE_ADDED] = "added",
    [CHANGE_CHANGED] = "changed",
    [CHANGE_REMOVED] = "removed",
};
const char *const change_verdict_names[CHANGE_VERDICT_COUNT] = {
    [CHANGE_NO_VERDICT] = "",       [CHANGE_APPLY] = "apply", [CHANGE_ALREADY] = "already",
    [CHANGE_CONFLICT] = "conflict", [CHANGE_KEPT] = "kept",
};
const char *const change_type_names[CHANGE_TYPE_COUNT] = {
    [CHANGE_ABSENT] = "absent",   [CHANGE_REGULAR] = "file", [CHANGE_DIR] = "directory",
    [CHANGE_SYMLINK] = "symlink", [CHANGE_FIFO] = "fifo",    [CHANGE_SOCKET] = "socket",
    [CHANGE_CHAR] = "character",  [CHANGE_BLOCK] = "block",
};

/* clang-format off */
static const struct wire_field xattr_fields[] = {
    WIRE_FIELD(struct change_xattr, name, .kind = WIRE_TEXT, .min = 1, .max = 255),
    WIRE_FIELD(struct change_xattr, value, .kind = WIRE_BLOB, .max = 65536),
};
const struct wire_layout change_xattr_row = WIRE_LAYOUT("xattr", struct change_xattr, xattr_fields);

static const struct wire_field attr_fields[] = {
    WIRE_FIELD(struct change_attr, name, .kind = WIRE_TEXT, .min = 1, .max = 64),
    WIRE_FIELD(struct change_attr, before, .kind = WIRE_BLOB, .max = 65536),
    WIRE_FIELD(struct change_attr, after, .kind = WIRE_BLOB, .max = 65536),
};
const struct wire_layout change_attr_row = WIRE_LAYOUT("attr", struct change_attr, attr_fields);

#define SIDE(side) \
    WIRE_FIELD(struct change, side.type, .kind = WIRE_U8, .max = CHANGE_TYPE_COUNT - 1), \
    WIRE_FIELD(struct change, side.mode, .kind = WIRE_U32, .max = 07777), \
    WIRE_FIELD(struct change, side.uid, .kind = WIRE_U32), \
    WIRE_FIELD(struct change, side.gid, .kind = WIRE_U32), \
    WIRE_FIELD(struct change, side.major, .kind = WIRE_U32), \
    WIRE_FIELD(struct change, side.minor, .kind = WIRE_U32), \
    WIRE_FIELD(struct change, side.size, .kind = WIRE_U64), \
    WIRE_FIELD(struct change, side.mtime_ns, .kind = WIRE_U64), \
    WIRE_FIELD(struct change, side.target, .kind = WIRE_TEXT, .max = 4096), \
    WIRE_FIELD(struct change, side.hash, .kind = WIRE_BLOB, .max = 32), \
    WIRE_FIELD(struct change, side.link, .kind = WIRE_TEXT, .max = CHANGE_PATH_MAX), \
    WIRE_FIELD(struct change, side.xattrs, .kind = WIRE_ROWS, .max = 1024, .row = &change_xattr_row)

static const struct wire_field change_fields[] = {
    WIRE_FIELD(struct change, kind, .kind = WIRE_U8, .max = CHANGE_KIND_COUNT - 1),
    WIRE_FIELD(struct change, what, .kind = WIRE_U8, .max = CHANGE_WHAT_COUNT - 1),
    WIRE_FIELD(struct change, by, .kind = WIRE_U16),
    WIRE_FIELD(struct change, flags, .kind = WIRE_U16),
    WIRE_FIELD(struct change, path, .kind = WIRE_TEXT, .max = CHANGE_PATH_MAX),
    SIDE(before),
    SIDE(after),
    WIRE_FIELD(struct change, verdict, .kind = WIRE_U8, .max = CHANGE_VERDICT_COUNT - 1),
    SIDE(onto),
    WIRE_FIELD(struct change, text, .kind = WIRE_BLOB, .max = CHANGE_TEXT_MAX),
    WIRE_FIELD(struct change, content, .kind = WIRE_BLOB, .max = CHANGE_CONTENT_MAX),
    WIRE_FIELD(struct change, manager, .kind = WIRE_TEXT, .max = 16),
    WIRE_FIELD(struct change, name, .kind = WIRE_BLOB, .max = 131072),
    WIRE_FIELD(struct change, old_value, .kind = WIRE_BLOB, .max = 65536),
    WIRE_FIELD(struct change, new_value, .kind = WIRE_BLOB, .max = 65536),
    WIRE_FIELD(struct change, attrs, .kind = WIRE_ROWS, .max = 64, .row = &change_attr_row),
    WIRE_FIELD(struct change, size, .kind = WIRE_U64),
};
/* clang-format on */
const struct wire_layout change_layout = WIRE_LAYOUT("change", struct change, change_fields);

static size_t rows_size(const struct wire_rows *r, const struct wire_layout *row)
{
    size_t n = r->raw.n;

    for (uint32_t i = 0; r->items && i < r->count; i++) {
        const char *item = (const char *)r->items + i * row->size;

        for (size_t f = 0; f < row->count; f++)
            n += 4 + ((const struct str *)(const void *)(item + row->fields[f].at))->n;
    }
    return n;
}

/* An upper bound of the encoded record. */
static size_t change_size(const struct change *c)
{
    const struct change_side *sides[] = {&c->before, &c->after, &c->onto};
    size_t n = 512 + c->path.n + c->text.n + c->content.n + c->manager.n + c->name.n +
               c->old_value.n + c->new_value.n + rows_size(&c->attrs, &change_attr_row);

    for (size_t i = 0; i < ARRAY_LEN(sides); i++)
        n += sides[i]->target.n + sides[i]->hash.n + sides[i]->link.n +
             rows_size(&sides[i]->xattrs, &change_xattr_row);
    return n;
}

int change_put(struct buf *to, const struct change *c, struct err *e)
{
    size_t size = change_size(c);
    struct wire_out o = {0};
    char *room;

    if (size > CHANGE_RECORD_MAX || buf_reserve(to, 4 + size, &room) < 0)
        return err_set(e, ERR_TOO_LARGE, 0, "a change is over %d bytes", CHANGE_RECORD_MAX);
    o.p = (uint8_t *)room + 4;
    o.size = size;
    if (wire_put(&change_layout, c, &o, e) < 0)
        return -1;
    wire_put_u32((uint8_t *)room, (uint32_t)o.n);
    buf_added(to, 4 + o.n);
    return 0;
}

int change_get(struct str *in, struct change *ret, struct err *e)
{
    size_t n;

    if (in->n < 4)
        return 0;
    n = wire_get_u32((const uint8_t *)in->p);
    if (n > CHANGE_RECORD_MAX)
        return err_set(e, ERR_INVALID, 0, "a change of %zu bytes", n);
    if (in->n - 4 < n)
        return 0;
    if (wire_get(&change_layout, str_make(in->p + 4, n), ret, e) < 0)
        return -1;
    *in = str_skip(*in, 4 + n);
    return 1;
}
