/* pg_stmt: prepared statements, parameters and rows of PostgreSQL. */
#include "base/mem.h"
#include "store/pg.h"

#include <endian.h>
#include <stdio.h>

#define STMTS_MAX 256 /* prepared per connection */
#define QUEUE_MAX 64  /* statements in one round trip */

/* Types by their object ids: pg_type.dat, which never change. */
enum {
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_INT8 = 20,
    PG_INT2 = 21,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_FLOAT8 = 701,
};

struct pg_stmt {
    struct pg_sql sql;
    char name[16];
    Oid types[PG_PARAMS_MAX];
    bool prepared;
};

struct pg_rows {
    struct store_rows base;
    PGresult *res;
    int at, count;
};

struct values { /* in the form of PQsendQueryPrepared */
    const char *v[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX], formats[PG_PARAMS_MAX];
    Oid types[PG_PARAMS_MAX];
    uint64_t numbers[PG_PARAMS_MAX]; /* in network order */
};

void pg_forget_stmts(struct pg_conn *c)
{
    struct str key;
    void *value;
    size_t at = 0;

    while (map_next(&c->stmts, &at, &key, &value)) {
        struct pg_stmt *s = value;

        free(s->sql.text);
        free(s);
    }
    map_done(&c->stmts);
}

/* --- parameters --- */

static Oid type_of(const struct store_param *p)
{
    switch (p->type) {
    case STORE_INT:
        return PG_INT8;
    case STORE_DOUBLE:
        return PG_FLOAT8;
    case STORE_TEXT:
        return PG_TEXT;
    case STORE_BLOB:
        return PG_BYTEA;
    case STORE_NULL:
        break;
    }
    return 0; /* the server infers it */
}

static int bind_one(struct values *to, size_t i, const struct store_param *p, struct err *e)
{
    to->formats[i] = 1; /* binary */
    to->types[i] = type_of(p);
    to->lengths[i] = 8;
    to->v[i] = NULL;
    if (p->type == STORE_INT || p->type == STORE_DOUBLE) {
        if (p->type == STORE_INT)
            memcpy(&to->numbers[i], &p->i, 8);
        else
            memcpy(&to->numbers[i], &p->d, 8);
        to->numbers[i] = htobe64(to->numbers[i]);
        to->v[i] = (const char *)&to->numbers[i];
    } else if (p->type != STORE_NULL && p->s.p) {
        if (p->s.n > INT32_MAX / 2)
            return err_set(e, ERR_TOO_LARGE, 0, "a value is too large for the database");
        to->lengths[i] = (int)p->s.n;
        to->v[i] = p->s.p;
    }
    return 0;
}

static ptrdiff_t find(const struct pg_sql *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0)
            return (ptrdiff_t)i;
    return -1;
}

static int bind_all(const struct pg_sql *s, const struct store_param *p, size_t n,
                    struct values *to, struct err *e)
{
    bool given[PG_PARAMS_MAX] = {0};

    for (size_t i = 0; i < n; i++) {
        const char *name = p[i].name ? p[i].name + (p[i].name[0] == ':') : "";
        ptrdiff_t at = p[i].name ? find(s, name) : i < s->n ? (ptrdiff_t)i : -1;

        if (at < 0)
            return err_set(e, ERR_INTERNAL, 0, "no parameter %zu (:%s) in: %s", i + 1, name,
                           s->text);
        if (bind_one(to, (size_t)at, &p[i], e) < 0)
            return -1;
        given[at] = true;
    }
    for (size_t i = 0; i < s->n; i++)
        if (!given[i])
            return err_set(e, ERR_INTERNAL, 0, "no value for :%s in: %s", s->names[i], s->text);
    return 0;
}

/* --- statements --- */

static int prepare(struct pg_conn *c, struct pg_stmt *s, const Oid *types, struct err *e)
{
    PGresult *r = NULL;
    char old[32];
    int failed = 0;

    (void)snprintf(old, sizeof old, "DEALLOCATE %s", s->name);
    if (pg_drain(c, e) < 0 || (s->prepared && pg_exec(c, old, e) < 0))
        return -1;
    s->prepared = false;
    (void)snprintf(s->name, sizeof s->name, "s%u", c->stmt_count++);
    if (PQsendPrepare(c->h, s->name, s->sql.text, (int)s->sql.n, types))
        r = pg_answer(c);
    else
        pg_lose(c, PQerrorMessage(c->h));
    if (!r || PQresultStatus(r) != PGRES_COMMAND_OK)
        failed = pg_fail(c, r, s->sql.text, e);
    PQclear(r);
    s->prepared = failed == 0;
    memcpy(s->types, types, s->sql.n * sizeof s->types[0]);
    return failed;
}

static int stmt_get(struct pg_conn *c, const char *sql, struct pg_stmt **ret, struct err *e)
{
    struct pg_stmt *s = map_get(&c->stmts, str_of(sql));

    if (!s) {
        struct pg_sql made;

        if (pg_sql_make(sql, &made, e) < 0)
            return -1;
        if (c->stmts.count >= STMTS_MAX) {
            pg_forget_stmts(c);
            if (pg_exec(c, "DEALLOCATE ALL", e) < 0) {
                free(made.text);
                return -1;
            }
        }
        s = xzalloc(sizeof *s);
        s->sql = made;
        map_set(&c->stmts, str_of(sql), s);
    }
    *ret = s;
    return 0;
}

/* Sends it: alone, or after queued ones. */
static int send_stmt(struct pg_conn *c, const char *sql, const struct store_param *p, size_t n,
                     bool queue, struct err *e)
{
    struct pg_stmt *s;
    struct values v;

    if (c->lost) {
        *e = c->why;
        return -1;
    }
    if (stmt_get(c, sql, &s, e) < 0 || bind_all(&s->sql, p, n, &v, e) < 0)
        return -1;
    /* The same text with other types (a NULL for a number) is another statement to the server. */
    if ((!s->prepared || memcmp(s->types, v.types, s->sql.n * sizeof v.types[0]) != 0) &&
        prepare(c, s, v.types, e) < 0)
        return -1;
    if (queue || c->queued > 0)
        pg_queue(c);
    if (c->lost ||
        !PQsendQueryPrepared(c->h, s->name, (int)s->sql.n, v.v, v.lengths, v.formats, 1)) {
        pg_lose(c, PQerrorMessage(c->h));
        *e = c->why;
        return -1;
    }
    return 0;
}

static PGresult *execute(struct pg_conn *c, const char *sql, const struct store_param *p, size_t n,
                         struct err *e)
{
    PGresult *r;

    if (send_stmt(c, sql, p, n, false, e) < 0)
        return NULL;
    r = c->queued > 0 ? pg_queue_answer(c) : pg_answer(c);
    if (r && (PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK)) {
        if (strncmp(PQcmdStatus(r), "SELECT", 6) != 0)
            pg_redo_note(c, sql, p, n);
        return r;
    }
    (void)pg_fail(c, r, sql, e);
    PQclear(r);
    return NULL;
}

int pg_later(struct engine_conn *conn, const char *sql, const struct store_param *p, size_t n,
             struct err *e)
{
    struct pg_conn *c = pg_conn_of(conn);

    if (send_stmt(c, sql, p, n, true, e) < 0)
        return -1;
    pg_redo_note(c, sql, p, n);
    return c->queued >= QUEUE_MAX ? pg_drain(c, e) : 0;
}

int64_t pg_run(struct engine_conn *conn, const char *sql, const struct store_param *p, size_t n,
               struct err *e)
{
    PGresult *r = execute(pg_conn_of(conn), sql, p, n, e);
    uint64_t changed = 0;

    if (!r)
        return -1;
    if (str_parse_u64(str_of(PQcmdTuples(r)), &changed) < 0)
        changed = 0; /* empty for a statement that changes no rows */
    PQclear(r);
    return (int64_t)changed;
}

/* --- rows --- */

static int check_columns(const PGresult *r, const char *sql, struct err *e)
{
    for (int i = 0; i < PQnfields(r); i++) {
        switch (PQftype(r, i)) {
        case PG_BOOL:
        case PG_BYTEA:
        case PG_INT2:
        case PG_INT4:
        case PG_INT8:
        case PG_TEXT:
            break;
        default:
            return err_set(e, ERR_INTERNAL, 0, "column %d needs a CAST (… AS BIGINT) in: %s", i + 1,
                           sql);
        }
    }
    return 0;
}

int pg_query(struct engine_conn *conn, const char *sql, const struct store_param *p, size_t n,
             struct store_rows **ret, struct err *e)
{
    PGresult *res = execute(pg_conn_of(conn), sql, p, n, e);
    struct pg_rows *r;

    if (!res)
        return -1;
    if (check_columns(res, sql, e) < 0) {
        PQclear(res);
        return -1;
    }
    r = xzalloc(sizeof *r);
    r->base.conn = conn;
    list_init(&r->base.link);
    r->res = res;
    r->at = -1;
    r->count = PQntuples(res);
    *ret = &r->base;
    return 0;
}

static struct pg_rows *rows_of(const struct store_rows *r)
{
    return CONTAINER_OF(r, struct pg_rows, base);
}

int pg_step(struct store_rows *base, struct err *e)
{
    struct pg_rows *r = rows_of(base);

    (void)e;
    if (r->at < r->count)
        r->at++;
    return r->at < r->count;
}

void pg_end(struct store_rows *base)
{
    if (!base)
        return;
    list_unlink(&base->link);
    PQclear(rows_of(base)->res);
    free(rows_of(base));
}

bool pg_is_null(const struct store_rows *base, int column)
{
    const struct pg_rows *r = rows_of(base);

    return r->at < 0 || r->at >= r->count || PQgetisnull(r->res, r->at, column);
}

struct str pg_get_bytes(const struct store_rows *base, int column)
{
    const struct pg_rows *r = rows_of(base);

    if (pg_is_null(base, column))
        return str_make(NULL, 0);
    return str_make(PQgetvalue(r->res, r->at, column), (size_t)PQgetlength(r->res, r->at, column));
}

int64_t pg_get_int(const struct store_rows *base, int column)
{
    struct str s = pg_get_bytes(base, column);
    uint64_t v = s.n > 0 && (signed char)s.p[0] < 0 && s.n > 1 ? UINT64_MAX : 0;
    int64_t i;

    if (s.n > 8)
        return 0; /* a text */
    for (size_t k = 0; k < s.n; k++)
        v = v << 8 | (unsigned char)s.p[k];
    memcpy(&i, &v, sizeof i);
    return i;
}
