/* pg_redo: repeats relaxed commits that a crashed server has forgotten. */
#include "base/log.h"
#include "base/mem.h"
#include "store/pg.h"

#include <stdio.h>

/* A relaxed commit is in the server's memory for up to 100 ms.  With SQLite, holtd dies together
 * with the kernel that holds the pages; but it survives a PostgreSQL server, which could then lose
 * changes that clients were told about.  So the statements of such groups are kept until a synced
 * commit, and repeated on a server that has forgotten them.  They give the same result by the
 * store's rules: one writer, and ids, numbers and times made by holtd. */

struct pg_group {
    struct list link;
    int64_t token;
    struct list stmts;
};

struct redo_stmt {
    struct list link;
    const char *sql;
    struct store_param *params;
    size_t n;
};

void pg_redo_init(struct pg_redo *r)
{
    list_init(&r->groups);
}

void pg_redo_done(struct pg_redo *r)
{
    arena_done(&r->arena);
}

void pg_redo_begin(struct pg_conn *c)
{
    struct pg_redo *r = &c->redo;

    r->open = NULL;
    r->settled = false;
    if (c->durable)
        return;
    r->open = arena_zalloc(&r->arena, sizeof *r->open);
    list_init(&r->open->stmts);
    r->mark = &r->open->stmts;
}

void pg_redo_note(struct pg_conn *c, const char *sql, const struct store_param *p, size_t n)
{
    struct arena *a = &c->redo.arena;
    struct redo_stmt *s;

    if (!c->writes || !c->redo.open)
        return;
    s = arena_zalloc(a, sizeof *s);
    s->sql = arena_cstr(a, str_of(sql));
    s->n = n;
    s->params = arena_zalloc(a, (n + 1) * sizeof *p);
    for (size_t i = 0; i < n; i++) {
        s->params[i] = p[i];
        s->params[i].name = p[i].name ? arena_cstr(a, str_of(p[i].name)) : NULL;
        if (p[i].s.p && (p[i].type == STORE_TEXT || p[i].type == STORE_BLOB))
            s->params[i].s = arena_str(a, p[i].s);
    }
    list_push(&c->redo.open->stmts, &s->link);
}

void pg_redo_mark(struct pg_conn *c)
{
    if (c->redo.open)
        c->redo.mark = c->redo.open->stmts.prev;
}

void pg_redo_undo(struct pg_conn *c)
{
    if (c->redo.open)
        while (c->redo.open->stmts.prev != c->redo.mark)
            list_unlink(c->redo.open->stmts.prev);
}

void pg_redo_drop(struct pg_conn *c)
{
    c->redo.open = NULL;
    if (list_is_empty(&c->redo.groups))
        arena_reset(&c->redo.arena);
}

static void redo_synced(struct pg_redo *r, int64_t token)
{
    r->base = token;
    r->open = NULL;
    list_init(&r->groups);
    arena_reset(&r->arena);
}

void pg_redo_commit(struct pg_conn *c, int64_t token)
{
    struct pg_redo *r = &c->redo;

    if (!r->open) {
        redo_synced(r, token);
        return;
    }
    r->open->token = token;
    list_push(&r->groups, &r->open->link);
    r->open = NULL;
}

void pg_redo_doubt(struct pg_conn *c, int64_t token)
{
    c->redo.doubt = token;
    c->redo.settled = false;
}

bool pg_redo_settled(struct pg_conn *c, bool *ret_committed)
{
    *ret_committed = c->redo.committed;
    return c->redo.settled;
}

/* --- the token's row --- */

static int read_token(struct pg_conn *c, int64_t *ret, struct err *e)
{
    char text[32];
    int found = pg_one(c, "SELECT token FROM holt_commit WHERE id = 1", text, sizeof text, e);

    if (found < 0)
        return -1;
    if (found == 0 || str_parse_i64(str_of(text), ret) < 0)
        return err_set(e, ERR_UNAVAILABLE, 0, "table holt_commit of '%s' is damaged",
                       c->db->server);
    return 0;
}

int pg_redo_start(struct pg_conn *c, struct err *e)
{
    if (pg_exec(c,
                "CREATE TABLE IF NOT EXISTS holt_commit"
                " (id BIGINT PRIMARY KEY, token BIGINT NOT NULL);"
                "INSERT INTO holt_commit (id, token) VALUES (1, 0) ON CONFLICT (id) DO NOTHING",
                e) < 0)
        return -1;
    return read_token(c, &c->redo.base, e);
}

/* --- after a lost connection --- */

static int redo_group(struct pg_conn *c, const struct pg_group *g, struct err *e)
{
    LIST_EACH (&g->stmts, l) {
        const struct redo_stmt *s = LIST_ENTRY(l, struct redo_stmt, link);

        if (pg_run(&c->base, s->sql, s->params, s->n, e) < 0)
            return -1;
    }
    return 0;
}

/* Everything after the group `from` (or after the base: the list's head), in one transaction. */
static int redo(struct pg_conn *c, struct list *from, struct err *e)
{
    struct pg_redo *r = &c->redo;
    int64_t last = LIST_ENTRY(r->groups.prev, struct pg_group, link)->token;
    int count = 0, end;

    if (pg_exec(c, "BEGIN; SET LOCAL synchronous_commit = on", e) < 0)
        return -1;
    for (struct list *l = from->next; l != &r->groups; l = l->next, count++)
        if (redo_group(c, LIST_ENTRY(l, struct pg_group, link), e) < 0)
            return -1;
    end = pg_commit(c, last, e);
    if (end != 0)
        return -1;
    redo_synced(r, last);
    log_warn("the database server had lost its last commits; they were written again",
             LOG_C("server", c->db->server), LOG_N("commits", count));
    return 0;
}

static int not_ours(struct pg_conn *c, struct err *e)
{
    c->redo.foreign = true;
    err_set(e, ERR_UNAVAILABLE, 0,
            "database '%s' was changed by something else: it was restored, failed over, or used by "
            "another holtd",
            c->db->server);
    return err_hint(e, "restart holtd: it continues from the content of the database");
}

static void settle(struct pg_redo *r, bool committed)
{
    int64_t token = r->doubt;

    r->doubt = 0;
    r->settled = true;
    r->committed = committed;
    if (committed && r->open) {
        r->open->token = token;
        list_push(&r->groups, &r->open->link);
    } else if (committed) {
        redo_synced(r, token);
    }
    r->open = NULL;
}

int pg_redo_resume(struct pg_conn *c, struct err *e)
{
    struct pg_redo *r = &c->redo;
    int64_t token = 0, last = r->base;

    if (r->foreign)
        return not_ours(c, e);
    if (read_token(c, &token, e) < 0)
        return -1;
    if (r->doubt != 0)
        settle(r, token == r->doubt);
    r->open = NULL;
    if (!list_is_empty(&r->groups))
        last = LIST_ENTRY(r->groups.prev, struct pg_group, link)->token;
    if (token == last)
        return 0;
    if (token == r->base)
        return redo(c, &r->groups, e);
    LIST_EACH (&r->groups, l)
        if (LIST_ENTRY(l, struct pg_group, link)->token == token)
            return redo(c, l, e);
    return not_ours(c, e);
}
