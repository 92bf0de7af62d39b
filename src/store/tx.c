/* tx: statements, rows and events inside a work. */
#include "base/mem.h"
#include "store/store_internal.h"

static const struct store_engine *engine_of(const struct store_rows *r)
{
    return r->conn->db->engine;
}

static int need_savepoint(struct store_tx *tx, struct err *e)
{
    if (!tx->writes || tx->saved)
        return 0;
    if (tx->conn->db->engine->savepoint(tx->conn, e) < 0)
        return -1;
    tx->saved = true;
    return 0;
}

/* The engine's messages name the database, its tables or a statement. */
static int engine_failed(struct err *e)
{
    return err_private(e);
}

int64_t tx_run(struct store_tx *tx, const char *sql, const struct store_param *p, size_t n,
               struct err *e)
{
    int64_t changed =
        need_savepoint(tx, e) < 0 ? -1 : tx->conn->db->engine->run(tx->conn, sql, p, n, e);

    if (changed >= 0)
        return changed;
    tx->failed = true;
    return engine_failed(e);
}

int tx_query(struct store_tx *tx, const char *sql, const struct store_param *p, size_t n,
             struct store_rows **ret, struct err *e)
{
    if (need_savepoint(tx, e) < 0 || tx->conn->db->engine->query(tx->conn, sql, p, n, ret, e) < 0) {
        tx->failed = true;
        return engine_failed(e);
    }
    list_push(&tx->rows, &(*ret)->link);
    return 0;
}

int rows_step(struct store_rows *r, struct err *e)
{
    int more = engine_of(r)->step(r, e);

    return more < 0 ? engine_failed(e) : more;
}

void rows_end(struct store_rows *r)
{
    if (r)
        engine_of(r)->end(r);
}

int64_t rows_int(const struct store_rows *r, int column)
{
    return engine_of(r)->get_int(r, column);
}

struct str rows_text(const struct store_rows *r, int column)
{
    return engine_of(r)->get_bytes(r, column);
}

struct str rows_blob(const struct store_rows *r, int column)
{
    return engine_of(r)->get_bytes(r, column);
}

bool rows_is_null(const struct store_rows *r, int column)
{
    return engine_of(r)->is_null(r, column);
}

/* Names in events may come from a client: bounded, and valid UTF-8, which PostgreSQL requires of
 * every text. */
static struct str event_text(struct arena *a, struct str s, size_t max)
{
    size_t n = size_min(s.n, max);
    char *p;

    while (n > 0 && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n--; /* not inside a character */
    s = arena_str(a, str_make(s.p, n));
    if (str_is_utf8(s) && memchr(s.p, '\0', s.n) == NULL)
        return s;
    p = arena_alloc(a, s.n + 1);
    for (size_t i = 0; i < s.n; i++)
        p[i] = (unsigned char)s.p[i] >= 0x80 || s.p[i] == '\0' ? '?' : s.p[i];
    p[s.n] = '\0';
    return str_make(p, s.n);
}

void tx_event(struct store_tx *tx, const struct event_spec *ev, int64_t *ret_seq)
{
    struct noted *n = arena_zalloc(tx->arena, sizeof *n);

    assert(ev->type && ev->object && ev->actor);
    n->ev.type = event_text(tx->arena, str_of(ev->type), EVENT_NAME_MAX);
    n->ev.object = event_text(tx->arena, str_of(ev->object), EVENT_NAME_MAX);
    n->ev.actor = event_text(tx->arena, str_of(ev->actor), EVENT_NAME_MAX);
    n->ev.data = event_text(tx->arena, ev->data.n > 0 ? ev->data : STR("{}"), SIZE_MAX);
    n->ev.audit = ev->audit;
    n->ev.count = ev->count > 0 ? ev->count : 1;
    n->ret_seq = ret_seq;
    list_push(&tx->job->events, &n->link);
}

static void tx_end_rows(struct store_tx *tx)
{
    struct list *l;

    while ((l = list_pop(&tx->rows)) != NULL)
        rows_end(LIST_ENTRY(l, struct store_rows, link));
}

int job_run(struct store_tx *tx, struct job *j)
{
    int r;

    tx->job = j;
    tx->saved = tx->failed = false;
    j->err = (struct err){0};
    r = j->work(tx, j->arg, &j->err);
    tx_end_rows(tx);
    if (r == 0 && tx->failed)
        return err_set(&j->err, ERR_INTERNAL, 0, "a statement has failed and the work went on");
    if (r == 0) {
        j->err.code = ERR_NONE;
        return 0;
    }
    if (j->err.code == ERR_NONE)
        err_set(&j->err, ERR_INTERNAL, 0, "a change failed without a reason");
    return -1;
}
