#include "base/mem.h"
#include "store/inside.h"

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

int64_t tx_run(struct store_tx *tx, const char *sql, const struct store_param *p, size_t n,
               struct err *e)
{
    return need_savepoint(tx, e) < 0 ? -1 : tx->conn->db->engine->run(tx->conn, sql, p, n, e);
}

int tx_query(struct store_tx *tx, const char *sql, const struct store_param *p, size_t n,
             struct store_rows **ret, struct err *e)
{
    if (need_savepoint(tx, e) < 0 || tx->conn->db->engine->query(tx->conn, sql, p, n, ret, e) < 0)
        return -1;
    list_push(&tx->rows, &(*ret)->link);
    return 0;
}

int rows_step(struct store_rows *r, struct err *e)
{
    return engine_of(r)->step(r, e);
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

void tx_event(struct store_tx *tx, const struct event_spec *ev, int64_t *ret_seq)
{
    struct noted *n = arena_zalloc(tx->arena, sizeof *n);

    assert(ev->type && ev->object && ev->actor);
    n->ev.type = arena_str(tx->arena, str_of(ev->type));
    n->ev.object = arena_str(tx->arena, str_of(ev->object));
    n->ev.actor = arena_str(tx->arena, str_of(ev->actor));
    n->ev.data = arena_str(tx->arena, ev->data.n > 0 ? ev->data : STR("{}"));
    n->ev.audit = ev->audit;
    n->ev.count = ev->count > 0 ? ev->count : 1;
    n->ret_seq = ret_seq;
    list_push(&tx->job->events, &n->link);
}

void tx_end_rows(struct store_tx *tx)
{
    struct list *l;

    while ((l = list_pop(&tx->rows)) != NULL)
        rows_end(LIST_ENTRY(l, struct store_rows, link));
}

int job_run(struct store_tx *tx, struct job *j)
{
    int r;

    tx->job = j;
    tx->saved = false;
    j->err = (struct err){0};
    r = j->work(tx, j->arg, &j->err);
    tx_end_rows(tx);
    if (r == 0) {
        j->err.code = ERR_NONE;
        return 0;
    }
    if (j->err.code == ERR_NONE)
        err_set(&j->err, ERR_INTERNAL, 0, "the work on the database gave up without a reason");
    return -1;
}
