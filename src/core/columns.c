/* columns: statements, parameters and objects by a table of columns. */
#include "core/columns.h"

#include "base/mem.h"

/* --- statements --- */

static bool is_written(const struct column *c)
{
    return !(c->flags & COLUMN_UNWRITTEN);
}

static bool is_read(const struct column *c)
{
    return !(c->flags & COLUMN_UNREAD);
}

static bool is_updated(const struct column *c)
{
    return !(c->flags & (COLUMN_KEY | COLUMN_ONCE | COLUMN_UNWRITTEN));
}

/* The wanted names, each between two texts, joined by commas. */
static void add_names(struct buf *to, const struct columns *c,
                      bool (*is_wanted)(const struct column *c), const char *fmt)
{
    bool more = false;

    for (size_t i = 0; i < c->count; i++) {
        if (!is_wanted(&c->list[i]))
            continue;
        buf_add_c(to, more ? ", " : "");
        for (const char *p = fmt; *p; p++)
            if (*p == '@')
                buf_add_c(to, c->list[i].name);
            else
                buf_add_char(to, *p);
        more = true;
    }
}

static const char *key_of(const struct columns *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].flags & COLUMN_KEY)
            return c->list[i].name;
    assert(!"a table of columns has a key");
    return NULL;
}

static void add_insert(struct buf *to, const struct columns *c)
{
    buf_printf(to, "INSERT INTO %s (", c->table);
    add_names(to, c, is_written, "@");
    buf_add_c(to, ") VALUES (");
    add_names(to, c, is_written, ":@");
    buf_add_c(to, ")");
}

static void add_save(struct buf *to, const struct columns *c)
{
    size_t before;

    add_insert(to, c);
    buf_printf(to, " ON CONFLICT (%s) DO UPDATE SET ", key_of(c));
    before = buf_len(to);
    add_names(to, c, is_updated, "@ = excluded.@");
    if (buf_len(to) > before)
        return;
    buf_clear(to); /* a row of this table never changes */
    add_insert(to, c);
    buf_add_c(to, " ON CONFLICT DO NOTHING");
}

static void add_select(struct buf *to, const struct columns *c)
{
    buf_add_c(to, "SELECT ");
    add_names(to, c, is_read, "@");
    buf_printf(to, " FROM %s %s", c->table, c->order);
}

static void add_erase(struct buf *to, const struct columns *c)
{
    buf_printf(to, "DELETE FROM %s WHERE %s = :%s", c->table, key_of(c), key_of(c));
}

/* Made once; if two threads make it at the same time, one takes the other's. */
static const char *sql_of(_Atomic(char *) *at, const struct columns *c,
                          void (*add)(struct buf *to, const struct columns *c))
{
    char *sql = atomic_load_explicit(at, memory_order_acquire), *none = NULL;
    AUTO(buf_done) struct buf to = {0};

    if (sql)
        return sql;
    assert(c->count <= COLUMNS_MAX);
    add(&to, c);
    sql = buf_steal(&to);
    if (atomic_compare_exchange_strong(at, &none, sql))
        return sql;
    mem_free(sql);
    return none;
}

/* --- writing --- */

static const void *place(const struct column *c, const void *object)
{
    return (const char *)object + c->offset;
}

/* Its value.  A text made from the object is appended to `made`, which may move: s.p is set when
 * all are there, and NULL for a NULL. */
static struct store_param param_of(const struct column *c, const void *object, struct buf *made)
{
    const void *at = place(c, object);
    struct store_param p = {.type = STORE_INT};
    size_t before = buf_len(made);

    switch (c->type) {
    case COLUMN_INT:
        p.i = *(const int64_t *)at;
        break;
    case COLUMN_I32:
        p.i = *(const int *)at;
        break;
    case COLUMN_U32:
        p.i = *(const uint32_t *)at;
        break;
    case COLUMN_BOOL:
        p.i = *(const bool *)at;
        break;
    case COLUMN_TEXT:
        p.type = STORE_TEXT;
        if (*(char *const *)at)
            p.s = str_of(*(char *const *)at);
        else if (!(c->flags & COLUMN_NULLS))
            p.s = STR("");
        break;
    case COLUMN_CHARS:
        p.type = STORE_TEXT;
        p.s = str_of(at);
        break;
    case COLUMN_MADE:
    case COLUMN_BYTES:
        p.type = c->type == COLUMN_MADE ? STORE_TEXT : STORE_BLOB;
        if (c->put(object, made))
            p.s = str_make("", buf_len(made) - before);
        break;
    }
    return p;
}

static bool is_made(const struct column *c)
{
    return c->type == COLUMN_MADE || c->type == COLUMN_BYTES;
}

static size_t params_of(const struct columns *c, const void *object, struct buf *made,
                        struct store_param *ret)
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < c->count; i++)
        if (is_written(&c->list[i]))
            ret[n++] = param_of(&c->list[i], object, made);
    n = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!is_written(&c->list[i]))
            continue;
        if (is_made(&c->list[i]) && ret[n].s.n > 0) {
            ret[n].s.p = buf_data(made) + at;
            at += ret[n].s.n;
        }
        n++;
    }
    return n;
}

struct row { /* one allocation with its texts */
    struct columns *columns;
    size_t n;
    struct store_param params[];
};

struct row *row_take(struct columns *c, const void *object)
{
    AUTO(buf_done) struct buf made = {0};
    struct store_param p[COLUMNS_MAX];
    size_t n = params_of(c, object, &made, p), bytes = 0;
    struct row *r;
    char *to;

    for (size_t i = 0; i < n; i++)
        bytes += p[i].s.n;
    r = xmalloc(sizeof *r + n * sizeof *p + bytes + 1);
    r->columns = c;
    r->n = n;
    memcpy(r->params, p, n * sizeof *p);
    to = (char *)&r->params[n];
    for (size_t i = 0; i < n; i++) {
        if (!p[i].s.p)
            continue;
        memcpy(to, p[i].s.p, p[i].s.n);
        r->params[i].s.p = to;
        to += p[i].s.n;
    }
    return r;
}

struct row *row_free(struct row *r)
{
    mem_free(r);
    return NULL;
}

int row_save(struct store_tx *tx, const struct row *r, struct err *e)
{
    const char *sql = sql_of(&r->columns->sql_save, r->columns, add_save);

    return tx_run(tx, sql, r->params, r->n, e) < 0 ? -1 : 0;
}

static int write_object(struct store_tx *tx, struct columns *c, const char *sql, const void *object,
                        struct err *e)
{
    AUTO(buf_done) struct buf made = {0};
    struct store_param p[COLUMNS_MAX];
    size_t n = params_of(c, object, &made, p);

    return tx_run(tx, sql, p, n, e) < 0 ? -1 : 0;
}

int columns_insert(struct store_tx *tx, struct columns *c, const void *object, struct err *e)
{
    return write_object(tx, c, sql_of(&c->sql_insert, c, add_insert), object, e);
}

int columns_save(struct store_tx *tx, struct columns *c, const void *object, struct err *e)
{
    return write_object(tx, c, sql_of(&c->sql_save, c, add_save), object, e);
}

int columns_erase(struct store_tx *tx, struct columns *c, const char *key, struct err *e)
{
    return tx_run(tx, sql_of(&c->sql_erase, c, add_erase), PARAMS(P_C(NULL, key)), e) < 0 ? -1 : 0;
}

/* --- reading --- */

int columns_each(struct store_tx *tx, struct columns *c, columns_fn fn, void *arg, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (tx_query(tx, sql_of(&c->sql_select, c, add_select), NO_PARAMS, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0 && (r = fn(arg, rows, e)) == 0)
        ;
    rows_end(rows);
    return r;
}

static int load_text(const struct column *c, struct str text, void *at, struct err *e)
{
    if (c->type == COLUMN_TEXT) {
        mem_free(*(char **)at);
        *(char **)at = !text.p && (c->flags & COLUMN_NULLS) ? NULL : str_dup(text);
        return 0;
    }
    if (text.n >= c->size || (text.n > 0 && memchr(text.p, '\0', text.n)))
        return err_set(e, ERR_INTERNAL, 0, "its column '%s' is damaged", c->name);
    memset(at, 0, c->size);
    if (text.n > 0)
        memcpy(at, text.p, text.n);
    return 0;
}

static int load_one(const struct column *c, const struct store_rows *rows, int n, void *object,
                    struct err *e)
{
    void *at = (char *)object + c->offset;

    switch (c->type) {
    case COLUMN_INT:
        *(int64_t *)at = rows_int(rows, n);
        return 0;
    case COLUMN_I32:
        *(int *)at = (int)rows_int(rows, n);
        return 0;
    case COLUMN_U32:
        *(uint32_t *)at = (uint32_t)rows_int(rows, n);
        return 0;
    case COLUMN_BOOL:
        *(bool *)at = rows_int(rows, n) != 0;
        return 0;
    case COLUMN_TEXT:
    case COLUMN_CHARS:
        return load_text(c, rows_text(rows, n), at, e);
    case COLUMN_MADE:
    case COLUMN_BYTES:
        return c->get ? c->get(object, rows_text(rows, n), e) : 0;
    }
    return 0;
}

int columns_load(const struct columns *c, const struct store_rows *rows, void *object,
                 struct err *e)
{
    int n = 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct column *column = &c->list[i];

        if (!is_read(column))
            continue;
        if ((column->flags & COLUMN_KEY) && c->prefix &&
            !id_is_valid(c->prefix, rows_text(rows, n)))
            return err_set(e, ERR_INTERNAL, 0, "a row of %s has a damaged id", c->table);
        if (load_one(column, rows, n++, object, e) < 0)
            return err_wrap(e, "a row of %s", c->table);
    }
    return 0;
}
