#include "wire/tar.h"

#include <inttypes.h>

/* POSIX, "ustar Interchange Format" */
enum {
    AT_NAME = 0,
    AT_MODE = 100,
    AT_UID = 108,
    AT_GID = 116,
    AT_SIZE = 124,
    AT_MTIME = 136,
    AT_SUM = 148,
    AT_TYPE = 156,
    AT_LINK = 157,
    AT_MAGIC = 257,
    AT_PREFIX = 345,
};
#define NAME_SIZE 100
#define PREFIX_SIZE 155
#define NUMBER_SIZE 8
#define LONG_SIZE 12
#define OCTAL_MAX_8 07777777LL
#define OCTAL_MAX_12 077777777777LL

enum { HEADER, LONG, DATA, PAD, ENDED };

/* --- writing --- */

static void put_octal(char *at, size_t size, int64_t v)
{
    for (size_t i = size - 1; i-- > 0; v >>= 3)
        at[i] = (char)('0' + (v & 7));
}

static void put_sum(char *block)
{
    unsigned sum = 0;

    memset(block + AT_SUM, ' ', NUMBER_SIZE);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    put_octal(block + AT_SUM, NUMBER_SIZE - 1, sum);
    block[AT_SUM + 6] = '\0';
}

static void write_header(struct buf *to, const struct tar_entry *e, char type)
{
    char b[TAR_BLOCK] = {0};

    memcpy(b + AT_NAME, e->name.p, size_min(e->name.n, NAME_SIZE));
    if (e->link.n > 0)
        memcpy(b + AT_LINK, e->link.p, size_min(e->link.n, NAME_SIZE));
    put_octal(b + AT_MODE, NUMBER_SIZE, e->mode & 07777);
    put_octal(b + AT_UID, NUMBER_SIZE, i64_min(e->uid, OCTAL_MAX_8));
    put_octal(b + AT_GID, NUMBER_SIZE, i64_min(e->gid, OCTAL_MAX_8));
    put_octal(b + AT_SIZE, LONG_SIZE, i64_min(e->size, OCTAL_MAX_12));
    put_octal(b + AT_MTIME, LONG_SIZE, i64_max(0, i64_min(e->mtime_s, OCTAL_MAX_12)));
    b[AT_TYPE] = type;
    memcpy(b + AT_MAGIC,
           "ustar\0"
           "00",
           8);
    put_sum(b);
    buf_add(to, b, sizeof b);
}

/* "LENGTH key=value\n": the length counts itself. */
static void add_record(struct buf *to, const char *key, struct str value)
{
    size_t rest = strlen(key) + value.n + 3, digits = 1, total;

    for (;;) {
        size_t n = 0;

        total = rest + digits;
        for (size_t v = total; v > 0; v /= 10)
            n++;
        if (n <= digits)
            break;
        digits = n;
    }
    buf_printf(to, "%zu %s=", total, key);
    buf_add_str(to, value);
    buf_add_char(to, '\n');
}

static void add_number(struct buf *to, const char *key, int64_t v)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, v);
    add_record(to, key, str_of(text));
}

static void write_pax(struct buf *to, const struct tar_entry *e)
{
    AUTO(buf_done) struct buf records = {0};
    struct tar_entry head = {.name = STR("pax"), .mode = 0644};

    if (e->name.n > NAME_SIZE)
        add_record(&records, "path", e->name);
    if (e->link.n > NAME_SIZE)
        add_record(&records, "linkpath", e->link);
    if (e->size > OCTAL_MAX_12)
        add_number(&records, "size", e->size);
    if (e->mtime_s < 0 || e->mtime_s > OCTAL_MAX_12)
        add_number(&records, "mtime", e->mtime_s);
    if (e->uid > OCTAL_MAX_8)
        add_number(&records, "uid", e->uid);
    if (e->gid > OCTAL_MAX_8)
        add_number(&records, "gid", e->gid);
    if (buf_len(&records) == 0)
        return;
    head.size = (int64_t)buf_len(&records);
    write_header(to, &head, 'x');
    buf_add_str(to, buf_str(&records));
    tar_write_pad(to, head.size);
}

void tar_write(struct buf *to, const struct tar_entry *e)
{
    static const char types[] = {
        [TAR_FILE] = '0', [TAR_DIR] = '5', [TAR_SYMLINK] = '2', [TAR_HARDLINK] = '1'};

    assert(e->kind != TAR_OTHER && (e->kind == TAR_FILE || e->size == 0));
    write_pax(to, e);
    write_header(to, e, types[e->kind]);
}

static void add_zeros(struct buf *to, size_t n)
{
    static const char zeros[2 * TAR_BLOCK];

    buf_add(to, zeros, n);
}

void tar_write_pad(struct buf *to, int64_t size)
{
    add_zeros(to, (size_t)(-(uint64_t)size % TAR_BLOCK));
}

void tar_write_end(struct buf *to)
{
    add_zeros(to, 2 * TAR_BLOCK);
}

/* --- reading --- */

void tar_reader_done(struct tar_reader *r)
{
    buf_done(&r->name);
    buf_done(&r->link);
    buf_done(&r->long_data);
}

static int fail(struct tar_reader *r, const char *fault)
{
    r->fault = fault;
    return -1;
}

/* Octal digits with spaces or NULs around them, or base-256 (GNU: the top bit is set). */
static int get_number(const unsigned char *at, size_t size, int64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;

    if (at[0] & 0x80) {
        if (at[0] != 0x80) /* negative, or more than we could hold */
            return -1;
        for (i = 1; i < size; i++) {
            if (v >> 55)
                return -1;
            v = v << 8 | at[i];
        }
        *ret = (int64_t)v;
        return 0;
    }
    while (i < size && at[i] == ' ')
        i++;
    for (; i < size && at[i] >= '0' && at[i] <= '7'; i++)
        v = v << 3 | (unsigned)(at[i] - '0');
    for (; i < size; i++)
        if (at[i] != ' ' && at[i] != '\0')
            return -1;
    *ret = (int64_t)v;
    return 0;
}

static bool sum_fits(const unsigned char *block)
{
    int64_t said, sum = 0;

    if (get_number(block + AT_SUM, NUMBER_SIZE, &said) < 0)
        return false;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= AT_SUM && i < AT_SUM + NUMBER_SIZE ? ' ' : block[i];
    return sum == said;
}

static bool is_zero(const unsigned char *block)
{
    for (size_t i = 0; i < TAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

static struct str field(const unsigned char *at, size_t size)
{
    return str_make(at, strnlen((const char *)at, size));
}

static void take_names(struct tar_reader *r)
{
    const unsigned char *b = r->block;

    if (!r->has_name) {
        struct str prefix = field(b + AT_PREFIX, PREFIX_SIZE);

        buf_clear(&r->name);
        if (memcmp(b + AT_MAGIC, "ustar\0", 6) == 0 && prefix.n > 0) {
            buf_add_str(&r->name, prefix);
            buf_add_char(&r->name, '/');
        }
        buf_add_str(&r->name, field(b + AT_NAME, NAME_SIZE));
    }
    if (!r->has_link) {
        buf_clear(&r->link);
        buf_add_str(&r->link, field(b + AT_LINK, NAME_SIZE));
    }
    r->entry.name = buf_str(&r->name);
    r->entry.link = buf_str(&r->link);
}

static enum tar_kind kind_of(char type, struct str name)
{
    switch (type) {
    case '\0':
    case '0':
    case '7':
        return str_ends(name, STR("/")) ? TAR_DIR : TAR_FILE;
    case '1':
        return TAR_HARDLINK;
    case '2':
        return TAR_SYMLINK;
    case '5':
        return TAR_DIR;
    default:
        return TAR_OTHER;
    }
}

static int take_entry(struct tar_reader *r, char type)
{
    const unsigned char *b = r->block;
    int64_t mode, uid, gid, size = r->left, mtime;

    if (get_number(b + AT_MODE, NUMBER_SIZE, &mode) < 0 ||
        get_number(b + AT_UID, NUMBER_SIZE, &uid) < 0 ||
        get_number(b + AT_GID, NUMBER_SIZE, &gid) < 0 ||
        get_number(b + AT_MTIME, LONG_SIZE, &mtime) < 0)
        return fail(r, "a header holds a number that is none");
    take_names(r);
    if (r->has_size)
        size = r->pax_size;
    r->entry.kind = kind_of(type, r->entry.name);
    r->entry.mode = (uint32_t)mode & 07777;
    r->entry.uid = (uint32_t)uid;
    r->entry.gid = (uint32_t)gid;
    r->entry.mtime_s = r->has_mtime ? r->pax_mtime : mtime;
    if (r->entry.kind != TAR_FILE && r->entry.kind != TAR_OTHER)
        size = 0; /* of a link it is the target's */
    r->entry.size = size;
    r->left = size;
    r->has_name = r->has_link = r->has_size = r->has_mtime = false;
    r->state = DATA;
    return TAR_ENTRY;
}

/* A header is complete.  An event, 0: none of it, -1. */
static int take_header(struct tar_reader *r)
{
    char type = (char)r->block[AT_TYPE];

    if (is_zero(r->block)) { /* one is enough for GNU tar too; what follows is padding */
        r->state = ENDED;
        return TAR_END;
    }
    if (!sum_fits(r->block))
        return fail(r, "a header's checksum does not fit");
    if (get_number(r->block + AT_SIZE, LONG_SIZE, &r->left) < 0)
        return fail(r, "a header holds a size that is none");
    if (type != 'x' && type != 'g' && type != 'L' && type != 'K')
        return take_entry(r, type);
    if (r->left > TAR_PAX_MAX)
        return fail(r, "an extended header is too long");
    r->long_kind = type;
    buf_clear(&r->long_data);
    r->pad = (int64_t)(-(uint64_t)r->left % TAR_BLOCK);
    r->state = LONG;
    return 0;
}

static int take_text(struct tar_reader *r, struct buf *to, bool *has, struct str value)
{
    if (value.n == 0 || value.n > TAR_NAME_MAX || memchr(value.p, 0, value.n))
        return fail(r, "an extended header holds a name that is none");
    buf_clear(to);
    buf_add_str(to, value);
    *has = true;
    return 0;
}

static int take_record(struct tar_reader *r, struct str key, struct str value)
{
    struct str fraction;

    if (str_eq_c(key, "path"))
        return take_text(r, &r->name, &r->has_name, value);
    if (str_eq_c(key, "linkpath"))
        return take_text(r, &r->link, &r->has_link, value);
    if (str_eq_c(key, "size")) {
        r->has_size = str_parse_i64(value, &r->pax_size) == 0 && r->pax_size >= 0;
        return r->has_size ? 0 : fail(r, "an extended header holds a size that is none");
    }
    if (str_eq_c(key, "mtime")) {
        value = str_cut(value, '.', &fraction);
        r->has_mtime = str_parse_i64(value, &r->pax_mtime) == 0;
        return r->has_mtime ? 0 : fail(r, "an extended header holds a time that is none");
    }
    return 0;
}

static int take_pax(struct tar_reader *r)
{
    struct str rest = buf_str(&r->long_data);

    while (rest.n > 0) {
        struct str record, key, value;
        ptrdiff_t space = str_index(rest, ' ');
        uint64_t n;

        if (space <= 0 || str_parse_u64(str_make(rest.p, (size_t)space), &n) < 0 || n > rest.n ||
            n < (uint64_t)space + 3 || rest.p[n - 1] != '\n')
            return fail(r, "an extended header is malformed");
        record = str_make(rest.p + space + 1, (size_t)n - (size_t)space - 2);
        key = str_cut(record, '=', &value);
        if (key.n == record.n)
            return fail(r, "an extended header is malformed");
        if (take_record(r, key, value) < 0)
            return -1;
        rest = str_skip(rest, (size_t)n);
    }
    return 0;
}

static int take_long(struct tar_reader *r)
{
    struct str text = field((const unsigned char *)buf_data(&r->long_data), buf_len(&r->long_data));

    r->state = PAD;
    switch (r->long_kind) {
    case 'x':
        return take_pax(r);
    case 'L':
        return take_text(r, &r->name, &r->has_name, text);
    case 'K':
        return take_text(r, &r->link, &r->has_link, text);
    default: /* 'g': what holds for all is nothing that we use */
        return 0;
    }
}

static struct str take_bytes(struct tar_reader *r, struct str *in)
{
    struct str part = str_make(in->p, r->left < (int64_t)in->n ? (size_t)r->left : in->n);

    r->left -= (int64_t)part.n;
    *in = str_skip(*in, part.n);
    return part;
}

/* One step: an event, 0 for none, -1; *ret_more: there may be another step without new bytes. */
static int step(struct tar_reader *r, struct str *in)
{
    size_t n;

    switch (r->state) {
    case HEADER:
        n = size_min(in->n, TAR_BLOCK - r->have);
        if (n > 0)
            memcpy(r->block + r->have, in->p, n);
        r->have += n;
        *in = str_skip(*in, n);
        if (r->have < TAR_BLOCK)
            return 0;
        r->have = 0;
        return take_header(r);
    case LONG:
        buf_add_str(&r->long_data, take_bytes(r, in));
        return r->left == 0 ? take_long(r) : 0;
    case DATA:
        if (r->left == 0) {
            r->pad = (int64_t)(-(uint64_t)r->entry.size % TAR_BLOCK);
            r->state = PAD;
            return TAR_ENTRY_END;
        }
        r->data = take_bytes(r, in);
        return r->data.n > 0 ? TAR_DATA : 0;
    case PAD:
        n = size_min(in->n, (size_t)r->pad);
        r->pad -= (int64_t)n;
        *in = str_skip(*in, n);
        if (r->pad == 0)
            r->state = HEADER;
        return 0;
    default:
        *in = str_skip(*in, in->n);
        return 0;
    }
}

int tar_reader_next(struct tar_reader *r, struct str *in)
{
    for (;;) {
        int before = r->state, event;
        size_t had = in->n;

        if (r->fault)
            return -1;
        event = step(r, in);
        if (event != 0)
            return event;
        if (r->state == before && in->n == had) /* nothing moved: it wants bytes */
            return 0;
        if (in->n == 0 && (r->state == HEADER || r->state == ENDED))
            return 0;
    }
}

bool tar_name_is_safe(struct str name)
{
    if (str_ends(name, STR("/")))
        name.n--;
    if (name.n == 0 || name.n > TAR_NAME_MAX || memchr(name.p, 0, name.n))
        return false;
    for (;;) {
        ptrdiff_t slash = str_index(name, '/');
        struct str part = str_make(name.p, slash < 0 ? name.n : (size_t)slash);

        if (part.n == 0 || str_eq_c(part, ".") || str_eq_c(part, ".."))
            return false;
        if (slash < 0)
            return true;
        name = str_skip(name, (size_t)slash + 1);
    }
}
