/* sqlite_stmt: cached statements, parameters and rows of SQLite. */
#include "store/sqlite.h"

#include "base/mem.h"

#define STMTS_MAX 256 /* cached per connection */
#define KNOWN_MAX 24  /* parameters whose positions a statement remembers */

struct sqlite_stmt { /* a prepared statement; also the store_rows of its running query */
    struct store_rows rows;
    struct sqlite_conn *conn;
    sqlite3_stmt *h;
    bool busy;
    bool cached;
    struct {
        char name[24]; /* a copy: preparing a statement again frees its own; "": unknown */
        int at;
    } known[KNOWN_MAX]; /* of the parameter given as the Nth */
};

static void stmt_free(struct sqlite_stmt *s)
{
    (void)sqlite3_finalize(s->h);
    free(s);
}

void sqlite_forget_stmts(struct sqlite_conn *c)
{
    struct str key;
    void *value;
    size_t at = 0;

    while (map_next(&c->stmts, &at, &key, &value)) {
        struct sqlite_stmt *s = value;

        if (s->busy)
            s->cached = false; /* its end frees it */
        else
            stmt_free(s);
    }
    map_done(&c->stmts);
    memset(c->guesses, 0, sizeof c->guesses);
}

static void stmt_done(struct sqlite_stmt *s)
{
    (void)sqlite3_reset(s->h); /* the step has reported its error */
    (void)sqlite3_clear_bindings(s->h);
    s->busy = false;
    if (!s->cached)
        stmt_free(s);
}

/* Most texts are literals: the statement last seen at that address is a first guess, compared with
 * the text. */
static struct sqlite_stmt **guess_of(struct sqlite_conn *c, const char *sql)
{
    return &c->guesses[((uintptr_t)sql >> 4) % ARRAY_LEN(c->guesses)];
}

static struct sqlite_stmt *stmt_find(struct sqlite_conn *c, const char *sql)
{
    struct sqlite_stmt **guess = guess_of(c, sql);

    if (!*guess || strcmp(sqlite3_sql((*guess)->h), sql) != 0)
        *guess = map_get(&c->stmts, str_of(sql));
    return *guess;
}

static int stmt_get(struct sqlite_conn *c, const char *sql, struct sqlite_stmt **ret, struct err *e)
{
    struct sqlite_stmt *s = stmt_find(c, sql);
    bool twice = s && s->busy; /* a query inside its own rows */
    sqlite3_stmt *h = NULL;
    int rc;

    if (!s || twice) {
        rc = sqlite3_prepare_v3(c->h, sql, -1, SQLITE_PREPARE_PERSISTENT, &h, NULL);
        if (rc != SQLITE_OK)
            return sqlite_fail(c->db, c->h, rc, sql, e);
        s = xzalloc(sizeof *s);
        s->conn = c;
        s->h = h;
        s->rows.conn = &c->base;
        if (!twice) {
            if (c->stmts.count >= STMTS_MAX)
                sqlite_forget_stmts(c);
            s->cached = true;
            map_set(&c->stmts, str_of(sql), s);
        }
    }
    s->busy = true;
    list_init(&s->rows.link);
    *ret = s;
    return 0;
}

/* Callers give parameters in the same order each time: comparing the name suffices. */
static int place_of(struct sqlite_stmt *s, size_t i, const char *given)
{
    const char *bare = given + (given[0] == ':');
    char name[64];
    int at;

    if (i < KNOWN_MAX && strcmp(s->known[i].name, bare) == 0)
        return s->known[i].at;
    (void)snprintf(name, sizeof name, ":%s", bare);
    at = sqlite3_bind_parameter_index(s->h, name);
    if (at > 0 && i < KNOWN_MAX && strlen(bare) < sizeof s->known[i].name) {
        memcpy(s->known[i].name, bare, strlen(bare) + 1);
        s->known[i].at = at;
    }
    return at;
}

/* keep: SQLITE_STATIC if the values outlive the statement's run, else SQLITE_TRANSIENT. */
static int bind_one(sqlite3_stmt *h, int at, const struct store_param *p,
                    sqlite3_destructor_type keep)
{
    switch (p->type) {
    case STORE_INT:
        return sqlite3_bind_int64(h, at, p->i);
    case STORE_DOUBLE:
        return sqlite3_bind_double(h, at, p->d);
    case STORE_NULL:
        return sqlite3_bind_null(h, at);
    case STORE_TEXT:
        if (p->s.p == NULL)
            return sqlite3_bind_null(h, at);
        return sqlite3_bind_text64(h, at, p->s.p, p->s.n, keep, SQLITE_UTF8);
    case STORE_BLOB:
        if (p->s.p == NULL)
            return sqlite3_bind_null(h, at);
        return sqlite3_bind_blob64(h, at, p->s.p, p->s.n, keep);
    }
    return SQLITE_MISUSE;
}

static int bind_all(struct sqlite_stmt *s, const struct store_param *p, size_t n,
                    sqlite3_destructor_type keep, struct err *e)
{
    const char *sql = sqlite3_sql(s->h);

    for (size_t i = 0; i < n; i++) {
        int at = p[i].name ? place_of(s, i, p[i].name) : (int)i + 1, rc;

        if (at == 0)
            return err_set(e, ERR_INTERNAL, 0, "no parameter :%s in: %s", p[i].name, sql);
        rc = bind_one(s->h, at, &p[i], keep);
        if (rc != SQLITE_OK)
            return sqlite_fail(s->conn->db, s->conn->h, rc, sql, e);
    }
    return 0;
}

static struct sqlite_stmt *stmt_bound(struct engine_conn *conn, const char *sql,
                                      const struct store_param *p, size_t n,
                                      sqlite3_destructor_type keep, struct err *e)
{
    struct sqlite_stmt *s = NULL;

    if (stmt_get(CONTAINER_OF(conn, struct sqlite_conn, base), sql, &s, e) < 0)
        return NULL;
    if (bind_all(s, p, n, keep, e) == 0)
        return s;
    stmt_done(s);
    return NULL;
}

int sqlite_query(struct engine_conn *conn, const char *sql, const struct store_param *p, size_t n,
                 struct store_rows **ret, struct err *e)
{
    struct sqlite_stmt *s = stmt_bound(conn, sql, p, n, SQLITE_TRANSIENT, e);

    if (!s)
        return -1;
    *ret = &s->rows;
    return 0;
}

static struct sqlite_stmt *stmt_of(const struct store_rows *r)
{
    return CONTAINER_OF(r, struct sqlite_stmt, rows);
}

int sqlite_step(struct store_rows *r, struct err *e)
{
    struct sqlite_stmt *s = stmt_of(r);
    int rc = sqlite3_step(s->h);

    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE)
        return 0;
    return sqlite_fail(s->conn->db, s->conn->h, rc, sqlite3_sql(s->h), e);
}

void sqlite_end(struct store_rows *r)
{
    if (!r)
        return;
    list_unlink(&r->link);
    stmt_done(stmt_of(r));
}

int64_t sqlite_run(struct engine_conn *conn, const char *sql, const struct store_param *p, size_t n,
                   struct err *e)
{
    struct sqlite_stmt *s = stmt_bound(conn, sql, p, n, SQLITE_STATIC, e);
    sqlite3 *h;
    int more;

    if (!s)
        return -1;
    h = s->conn->h;
    do
        more = sqlite_step(&s->rows, e);
    while (more > 0);
    sqlite_end(&s->rows);
    return more < 0 ? -1 : sqlite3_changes64(h);
}

int64_t sqlite_get_int(const struct store_rows *r, int column)
{
    return sqlite3_column_int64(stmt_of(r)->h, column);
}

struct str sqlite_get_bytes(const struct store_rows *r, int column)
{
    sqlite3_stmt *h = stmt_of(r)->h;
    const void *p;

    if (sqlite3_column_type(h, column) == SQLITE_NULL)
        return str_make(NULL, 0);
    p = sqlite3_column_blob(h, column); /* of a text: its bytes */
    return str_make(p ? p : "", (size_t)sqlite3_column_bytes(h, column));
}

bool sqlite_is_null(const struct store_rows *r, int column)
{
    return sqlite3_column_type(stmt_of(r)->h, column) == SQLITE_NULL;
}
