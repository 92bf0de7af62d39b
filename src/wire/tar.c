/* tar: reads and writes ustar, GNU and pax archives without I/O. */
#include "wire/tar.h"

#include <errno.h>

#define HEADERS_MAX 16 /* extended headers before one entry */

/* The fields of a header: offset and size. */
#define H_NAME 0, 100
#define H_MODE 100, 8
#define H_UID 108, 8
#define H_GID 116, 8
#define H_SIZE 124, 12
#define H_MTIME 136, 12
#define H_SUM 148, 8
#define H_LINK 157, 100
#define H_PREFIX 345, 155
#define H_TYPE 156
#define H_MAGIC 257

enum { AT_HEADER, AT_DATA, AT_PAD, AT_EXTRA, AT_EXTRA_PAD, AT_ENTRY_END, AT_END, AT_FAILED };

void tar_reader_done(struct tar_reader *r)
{
    buf_done(&r->block);
    buf_done(&r->extra);
    buf_done(&r->pax);
    buf_done(&r->name);
    buf_done(&r->link);
    *r = (struct tar_reader){0};
}

static int fail(struct tar_reader *r, struct err *e, const char *why)
{
    r->state = AT_FAILED;
    return err_set(e, ERR_INVALID, 0, "the archive is not a valid tar: %s", why);
}

/* --- numbers --- */

/* Octal digits between spaces and NULs; or, with the top bit set, GNU's big-endian binary. */
static int number(const char *block, size_t at, size_t n, uint64_t *ret)
{
    const unsigned char *p = (const unsigned char *)block + at;
    uint64_t v = 0;
    size_t i = 0;

    if (p[0] & 0x80) {
        if (p[0] != 0x80) /* negative, or larger than 2^56 */
            return -ERANGE;
        for (i = 1; i < n; i++) {
            if (v >> 55)
                return -ERANGE;
            v = v << 8 | p[i];
        }
        *ret = v;
        return 0;
    }
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(p[i] - '0');
    for (; i < n; i++)
        if (p[i] != ' ' && p[i] != '\0')
            return -EINVAL;
    *ret = v;
    return 0;
}

static bool sum_is_right(const char *block)
{
    uint64_t said, sum = 0;
    int64_t sum_signed = 0; /* old tars summed signed characters */

    if (number(block, H_SUM, &said) < 0)
        return false;
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        bool in_sum = i >= 148 && i < 156;

        sum += in_sum ? ' ' : (unsigned char)block[i];
        sum_signed += in_sum ? ' ' : (signed char)block[i];
    }
    return said == sum || (int64_t)said == sum_signed;
}

static struct str text(const char *block, size_t at, size_t n)
{
    return str_make(block + at, strnlen(block + at, n));
}

/* --- pax records: "LEN KEY=VALUE\n", LEN counting itself --- */

static int pax_next(struct str *in, struct str *key, struct str *value)
{
    ptrdiff_t space = str_index(*in, ' ');
    uint64_t len;
    struct str body;

    if (space <= 0 || str_parse_u64(str_make(in->p, (size_t)space), &len) < 0)
        return -EINVAL;
    if (len > in->n || len < (uint64_t)space + 3 || in->p[len - 1] != '\n')
        return -EINVAL;
    body = str_make(in->p + space + 1, (size_t)len - (size_t)space - 2);
    if (str_index(body, '=') <= 0)
        return -EINVAL;
    *key = str_cut(body, '=', value);
    *in = str_skip(*in, (size_t)len);
    return 0;
}

static int pax_text(struct str value, struct buf *to, bool *has)
{
    if (value.n == 0 || value.n > TAR_NAME_MAX || memchr(value.p, '\0', value.n))
        return -EINVAL;
    buf_clear(to);
    buf_add_str(to, value);
    *has = true;
    return 0;
}

static int pax_time(struct str value, struct tar_entry *t)
{
    struct str fraction, seconds = str_cut(value, '.', &fraction);
    uint32_t ns = 0, scale = 100000000;

    if (str_parse_i64(seconds, &t->mtime_s) < 0)
        return -EINVAL;
    for (size_t i = 0; i < fraction.n; i++, scale /= 10) {
        if (fraction.p[i] < '0' || fraction.p[i] > '9')
            return -EINVAL;
        ns += (uint32_t)(fraction.p[i] - '0') * scale;
    }
    t->mtime_ns = t->mtime_s < 0 ? 0 : ns;
    return 0;
}

static int pax_xattr(struct tar_entry *t, struct str name, struct str value)
{
    if (t->xattr_count == TAR_XATTR_MAX || name.n == 0 || name.n > 255 ||
        memchr(name.p, '\0', name.n))
        return -EINVAL;
    t->xattrs[t->xattr_count++] = (struct tar_xattr){name, value};
    return 0;
}

static int pax_apply_one(struct tar_reader *r, struct str key, struct str value)
{
    static const struct str xattr = {"SCHILY.xattr.", 13}, sparse = {"GNU.sparse.", 11};
    struct tar_entry *t = &r->entry;

    if (str_eq_c(key, "path"))
        return pax_text(value, &r->name, &r->has_name);
    if (str_eq_c(key, "linkpath"))
        return pax_text(value, &r->link, &r->has_link);
    if (str_eq_c(key, "size"))
        return str_parse_u64(value, &t->size);
    if (str_eq_c(key, "uid"))
        return str_parse_u64(value, &t->uid);
    if (str_eq_c(key, "gid"))
        return str_parse_u64(value, &t->gid);
    if (str_eq_c(key, "mtime"))
        return pax_time(value, t);
    if (str_starts(key, xattr))
        return pax_xattr(t, str_skip(key, xattr.n), value);
    return str_starts(key, sparse) ? -ENOTSUP : 0;
}

/* Overrides the values of the plain header that follows. */
static int pax_apply(struct tar_reader *r, struct err *e)
{
    struct str rest = buf_str(&r->pax), key, value;

    while (rest.n > 0) {
        int c = pax_next(&rest, &key, &value);

        if (c == 0)
            c = pax_apply_one(r, key, value);
        if (c == -ENOTSUP)
            return fail(r, e, "it has sparse files, which are not supported");
        if (c < 0)
            return fail(r, e, "a pax header is malformed");
    }
    return 0;
}

/* A global header may describe the archive, but must not change its entries. */
static int check_global(struct tar_reader *r, struct err *e)
{
    struct str rest = buf_str(&r->extra), key, value;

    while (rest.n > 0) {
        if (pax_next(&rest, &key, &value) < 0)
            return fail(r, e, "a global pax header is malformed");
        if (str_eq_c(key, "path") || str_eq_c(key, "linkpath") || str_eq_c(key, "size") ||
            str_starts(key, STR("GNU.sparse.")))
            return fail(r, e, "a global pax header sets the name or size of every entry");
    }
    return 0;
}

/* --- headers --- */

static int long_text(struct tar_reader *r, struct buf *to, bool *has, struct err *e)
{
    size_t n = strnlen(buf_data(&r->extra), buf_len(&r->extra));

    if (n == 0 || n > TAR_NAME_MAX)
        return fail(r, e, "a long name is empty or too long");
    buf_clear(to);
    buf_add(to, buf_data(&r->extra), n);
    *has = true;
    return 0;
}

static int extra_end(struct tar_reader *r, struct err *e)
{
    r->state = AT_HEADER;
    switch (r->extra_kind) {
    case 'L':
        return long_text(r, &r->name, &r->has_name, e);
    case 'K':
        return long_text(r, &r->link, &r->has_link, e);
    case 'g':
        return check_global(r, e);
    default:
        buf_clear(&r->pax);
        buf_add_str(&r->pax, buf_str(&r->extra));
        return 0;
    }
}

static int begin_extra(struct tar_reader *r, char kind, uint64_t size, struct err *e)
{
    if (size == 0 || size > TAR_PAX_MAX)
        return fail(r, e, "an extended header is empty or too long");
    if (++r->headers > HEADERS_MAX)
        return fail(r, e, "an entry has too many extended headers");
    r->extra_kind = kind;
    buf_clear(&r->extra);
    r->left = size;
    r->pad = (uint32_t)(-size & (TAR_BLOCK - 1));
    r->state = AT_EXTRA;
    return TAR_MORE;
}

static int kind_of(char type, enum tar_kind *ret)
{
    static const struct {
        char type;
        enum tar_kind kind;
    } kinds[] = {{'0', TAR_FILE},     {'\0', TAR_FILE},   {'7', TAR_FILE},
                 {'1', TAR_HARDLINK}, {'2', TAR_SYMLINK}, {'3', TAR_CHAR},
                 {'4', TAR_BLOCKDEV}, {'5', TAR_DIR},     {'6', TAR_FIFO}};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].type == type) {
            *ret = kinds[i].kind;
            return 0;
        }
    }
    return -EINVAL;
}

static int read_numbers(const char *block, struct tar_entry *t)
{
    uint64_t mode, mtime;

    if (number(block, H_MODE, &mode) < 0 || number(block, H_UID, &t->uid) < 0 ||
        number(block, H_GID, &t->gid) < 0 || number(block, H_SIZE, &t->size) < 0)
        return -EINVAL;
    if (number(block, H_MTIME, &mtime) < 0) /* before 1970: the exact time does not matter */
        mtime = 0;
    t->mode = (uint32_t)mode & 07777;
    t->mtime_s = mtime > INT64_MAX ? 0 : (int64_t)mtime;
    return 0;
}

static void read_texts(struct tar_reader *r, const char *block)
{
    if (!r->has_name) {
        struct str prefix =
            memcmp(block + H_MAGIC, "ustar", 6) == 0 ? text(block, H_PREFIX) : (struct str){0};

        buf_clear(&r->name);
        buf_add_str(&r->name, prefix);
        if (prefix.n > 0)
            buf_add_char(&r->name, '/');
        buf_add_str(&r->name, text(block, H_NAME));
    }
    if (!r->has_link) {
        buf_clear(&r->link);
        buf_add_str(&r->link, text(block, H_LINK));
    }
}

static int begin_entry(struct tar_reader *r, const char *block, struct err *e)
{
    struct tar_entry *t = &r->entry;

    *t = (struct tar_entry){0};
    if (kind_of(block[H_TYPE], &t->kind) < 0)
        return fail(r, e,
                    block[H_TYPE] == 'S' ? "it has sparse files, which are not supported"
                                         : "it has an entry of an unknown type");
    if (read_numbers(block, t) < 0)
        return fail(r, e, "a number in a header is malformed");
    if (pax_apply(r, e) < 0)
        return -1;
    read_texts(r, block);
    t->name = buf_str(&r->name);
    t->link = buf_str(&r->link);
    /* A tar from before ustar marks a directory only by its name. */
    if (t->kind == TAR_FILE && str_ends(t->name, STR("/")))
        t->kind = TAR_DIR;
    /* for a directory, "size" is a hint for allocation: no content follows */
    if (t->kind == TAR_DIR)
        t->size = 0;
    if (t->size > INT64_MAX || (t->kind != TAR_FILE && t->size > 0))
        return fail(r, e, "an entry without content has a size");
    r->left = t->size;
    r->pad = (uint32_t)(-t->size & (TAR_BLOCK - 1));
    r->headers = 0;
    r->has_name = r->has_link = false;
    r->state = t->size > 0 ? AT_DATA : AT_ENTRY_END;
    return TAR_ENTRY;
}

static int header(struct tar_reader *r, const char *block, struct err *e)
{
    static const char zero[TAR_BLOCK];
    char type = block[H_TYPE];
    uint64_t size;

    if (memcmp(block, zero, TAR_BLOCK) == 0) {
        if (r->headers > 0)
            return fail(r, e, "it ends after an extended header");
        r->state = AT_END;
        return TAR_END;
    }
    if (!sum_is_right(block))
        return fail(r, e, "a header's checksum is wrong");
    if (type == '\0' || !strchr("LKxgX", type))
        return begin_entry(r, block, e);
    if (number(block, H_SIZE, &size) < 0)
        return fail(r, e, "a number in a header is malformed");
    return begin_extra(r, type, size, e);
}

/* --- reading --- */

static struct str take(struct str *in, uint64_t most)
{
    struct str part = str_make(in->p, size_min(in->n, (size_t)most));

    *in = str_skip(*in, part.n);
    return part;
}

static int step_header(struct tar_reader *r, struct str *in, struct err *e)
{
    char block[TAR_BLOCK];

    buf_add_str(&r->block, take(in, TAR_BLOCK - buf_len(&r->block)));
    if (buf_len(&r->block) < TAR_BLOCK)
        return TAR_MORE;
    memcpy(block, buf_data(&r->block), TAR_BLOCK);
    buf_clear(&r->block);
    if (r->headers == 0) { /* belongs to the last entry */
        buf_clear(&r->pax);
        r->has_name = r->has_link = false;
    }
    return header(r, block, e);
}

static void step_pad(struct tar_reader *r, struct str *in)
{
    r->pad -= (uint32_t)take(in, r->pad).n;
}

static int step_data(struct tar_reader *r, struct str *in, struct str *ret_data)
{
    *ret_data = take(in, r->left);
    r->left -= ret_data->n;
    if (r->left == 0)
        r->state = AT_PAD;
    return TAR_DATA;
}

static void step_extra(struct tar_reader *r, struct str *in)
{
    struct str part = take(in, r->left);

    buf_add_str(&r->extra, part);
    r->left -= part.n;
    if (r->left == 0)
        r->state = AT_EXTRA_PAD;
}

/* Transitions that consume no input; TAR_MORE: read more. */
static int step_free(struct tar_reader *r, struct err *e)
{
    if (r->state == AT_PAD && r->pad == 0)
        r->state = AT_ENTRY_END;
    if (r->state == AT_EXTRA_PAD && r->pad == 0)
        return extra_end(r, e) < 0 ? -1 : TAR_MORE;
    if (r->state == AT_FAILED)
        return fail(r, e, "it was cancelled");
    if (r->state == AT_END)
        return TAR_END;
    if (r->state != AT_ENTRY_END)
        return TAR_MORE;
    r->state = AT_HEADER;
    return TAR_ENTRY_END;
}

int tar_read(struct tar_reader *r, struct str *in, struct str *ret_data, struct err *e)
{
    for (;;) {
        int told = step_free(r, e);

        if (told != TAR_MORE)
            return told;
        if (in->n == 0)
            return TAR_MORE;
        if (r->state == AT_DATA)
            return step_data(r, in, ret_data);
        if (r->state == AT_EXTRA)
            step_extra(r, in);
        else if (r->state == AT_HEADER)
            told = step_header(r, in, e);
        else
            step_pad(r, in);
        if (told != TAR_MORE)
            return told;
    }
}

bool tar_may_end(const struct tar_reader *r)
{
    return r->state == AT_END ||
           (r->state == AT_HEADER && buf_len(&r->block) == 0 && r->headers == 0);
}

/* --- writing --- */

static void put_number(char *block, size_t at, size_t n, uint64_t v)
{
    for (size_t i = n - 1; i-- > 0; v >>= 3)
        block[at + i] = (char)('0' + (v & 7));
}

static bool fits(uint64_t v, size_t digits)
{
    return v >> (3 * digits) == 0;
}

static void put_text(char *block, size_t at, size_t n, struct str s)
{
    memcpy(block + at, s.p ? s.p : "", size_min(s.n, n));
}

static void put_header(struct buf *to, const struct tar_entry *t, char type, struct str name)
{
    char block[TAR_BLOCK] = {0};
    uint64_t sum = 0;

    put_text(block, H_NAME, name);
    put_number(block, H_MODE, t->mode & 07777);
    put_number(block, H_UID, fits(t->uid, 7) ? t->uid : 0);
    put_number(block, H_GID, fits(t->gid, 7) ? t->gid : 0);
    put_number(block, H_SIZE, fits(t->size, 11) ? t->size : 0);
    put_number(block, H_MTIME,
               t->mtime_s > 0 && fits((uint64_t)t->mtime_s, 11) ? (uint64_t)t->mtime_s : 0);
    block[H_TYPE] = type;
    put_text(block, H_LINK, t->link);
    memcpy(block + H_MAGIC,
           "ustar\0"
           "00",
           8);
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    put_number(block, 148, 7, sum);
    buf_add(to, block, sizeof block);
}

static void pax_add(struct buf *to, const char *key, struct str value)
{
    size_t body = strlen(key) + value.n + 3, len = body; /* ' ', '=', '\n' */

    for (size_t digits = 1, limit = 10; digits < 20; digits++, limit *= 10) {
        len = body + digits;
        if (len < limit)
            break;
    }
    buf_printf(to, "%zu %s=", len, key);
    buf_add_str(to, value);
    buf_add_char(to, '\n');
}

static void pax_add_number(struct buf *to, const char *key, uint64_t v)
{
    char digits[24];

    (void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)v);
    pax_add(to, key, str_of(digits));
}

static void make_pax(struct buf *to, const struct tar_entry *t)
{
    if (t->name.n > 100)
        pax_add(to, "path", t->name);
    if (t->link.n > 100)
        pax_add(to, "linkpath", t->link);
    if (!fits(t->size, 11))
        pax_add_number(to, "size", t->size);
    if (!fits(t->uid, 7))
        pax_add_number(to, "uid", t->uid);
    if (!fits(t->gid, 7))
        pax_add_number(to, "gid", t->gid);
    for (size_t i = 0; i < t->xattr_count; i++) {
        char key[300];

        (void)snprintf(key, sizeof key, "SCHILY.xattr." STR_FMT, STR_ARG(t->xattrs[i].name));
        pax_add(to, key, t->xattrs[i].value);
    }
}

int tar_write_head(struct buf *to, const struct tar_entry *t, struct err *e)
{
    static const char types[] = {
        [TAR_FILE] = '0',     [TAR_HARDLINK] = '1', [TAR_SYMLINK] = '2', [TAR_CHAR] = '3',
        [TAR_BLOCKDEV] = '4', [TAR_DIR] = '5',      [TAR_FIFO] = '6',
    };
    AUTO(buf_done) struct buf pax = {0};

    if (t->name.n == 0 || t->name.n > TAR_NAME_MAX || t->link.n > TAR_NAME_MAX)
        return err_set(e, ERR_INVALID, 0, "a name is empty or longer than %d bytes", TAR_NAME_MAX);
    make_pax(&pax, t);
    if (buf_len(&pax) > TAR_PAX_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "the attributes of '" STR_FMT "' are too large",
                       STR_ARG(t->name));
    if (buf_len(&pax) > 0) {
        put_header(to, &(struct tar_entry){.size = buf_len(&pax), .mode = 0644}, 'x',
                   STR("PaxHeader"));
        buf_add_str(to, buf_str(&pax));
        tar_write_pad(to, buf_len(&pax));
    }
    put_header(to, t, types[t->kind], t->name);
    return 0;
}

void tar_write_pad(struct buf *to, uint64_t size)
{
    static const char zero[TAR_BLOCK];

    buf_add(to, zero, (size_t)(-size & (TAR_BLOCK - 1)));
}

void tar_write_end(struct buf *to)
{
    static const char zero[2 * TAR_BLOCK];

    buf_add(to, zero, sizeof zero);
}
