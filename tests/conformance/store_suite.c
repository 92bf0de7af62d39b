#include "store_suite.h"

#include "base/mem.h"
#include "core/columns.h"
#include "unit.h"

#include <stdatomic.h>
#include <stdlib.h>

static const struct store_place *place;
static uv_loop_t loop;
static struct store *store;
static struct events *events;

/* --- tools --- */

struct wait {
    int calls;
    struct err err;
};

static void noted(void *arg, const struct err *e)
{
    struct wait *w = arg;

    w->calls++;
    w->err = *e;
}

static void turn_until(const int *value, int want)
{
    while (*value < want)
        assert_true(uv_run(&loop, UV_RUN_ONCE) != 0 || *value >= want);
}

static void open_all(void)
{
    struct store_config c = {
        .loop = &loop, .url = place->url, .write_queue = 500, .read_queue = 50};
    struct err e = {0};

    if (store_open(&c, &store, &e) < 0 || events_open(store, &events, &e) < 0)
        fail_msg("%s", e.msg);
}

static void close_all(void)
{
    events = events_close(events);
    store_close(store);
    store = NULL;
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static int set_up(void **state)
{
    (void)state;
    place->wipe();
    open_all();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_all();
    return 0;
}

static struct err write_and_wait(enum store_class class, store_work work)
{
    struct wait w = {0};

    store_write(store, class, work, noted, &w);
    assert_int_equal(w.calls, 0);
    turn_until(&w.calls, 1);
    return w.err;
}

static int put_meta(struct store_tx *tx, const char *name, const char *value, struct err *e)
{
    return tx_run(tx,
                  "INSERT INTO meta (name, value) VALUES (:name, :value)"
                  " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                  PARAMS(P_C("name", name), P_C(":value", value)), e) < 0
               ? -1
               : 0;
}

/* The value of a name, through a reader; NULL when absent. */
struct lookup {
    struct wait w; /* first: noted's argument */
    const char *name;
    char *value;
};

static int look_up(struct store_tx *tx, void *arg, struct err *e)
{
    struct lookup *l = arg;
    struct store_rows *r;
    int more;

    if (tx_query(tx, "SELECT value FROM meta WHERE name = :name", PARAMS(P_C("name", l->name)), &r,
                 e) < 0)
        return -1;
    more = rows_step(r, e);
    if (more > 0)
        l->value = str_dup(rows_text(r, 0));
    return more < 0 ? -1 : 0; /* rows_end is forgotten on purpose: the work's end does it */
}

static atomic_bool readers_held;
static atomic_int held; /* how many are */
#define READERS 2       /* of the store */

static int held_look_up(struct store_tx *tx, void *arg, struct err *e)
{
    atomic_fetch_add(&held, 1);
    while (atomic_load(&readers_held))
        uv_sleep(1);
    return look_up(tx, arg, e);
}

static char *meta(const char *name)
{
    struct lookup l = {.name = name};

    store_read(store, look_up, noted, &l);
    turn_until(&l.w.calls, 1);
    assert_int_equal(l.w.err.code, ERR_NONE);
    return l.value;
}

static void assert_meta(const char *name, const char *want)
{
    AUTO(mem_free) char *have = meta(name);

    if (want)
        assert_string_equal(have, want);
    else
        assert_null(have);
}

static struct event_spec spec(const char *type, const char *object)
{
    return (struct event_spec){.type = type, .object = object, .actor = "system"};
}

struct say { /* a work that tells one event */
    struct wait w;
    struct event_spec spec;
    int64_t seq;
    bool give_up;
};

static int say_it(struct store_tx *tx, void *arg, struct err *e)
{
    struct say *s = arg;

    tx_event(tx, &s->spec, &s->seq);
    return s->give_up ? err_set(e, ERR_CONFLICT, 0, "no") : 0;
}

static int64_t say(const char *type, const char *object, const char *data)
{
    struct say s = {.spec = spec(type, object)};

    s.spec.data = str_of(data);
    store_write(store, STORE_DURABLE, say_it, noted, &s);
    turn_until(&s.w.calls, 1);
    assert_int_equal(s.w.err.code, ERR_NONE);
    return s.seq;
}

static void say_many(int n, const char *type)
{
    struct say *s = xzalloc((size_t)n * sizeof *s);

    for (int i = 0; i < n; i++) {
        s[i].spec = spec(type, i % 2 ? "thing/odd" : "thing/even");
        store_write(store, STORE_RELAXED, say_it, noted, &s[i]);
    }
    for (int i = 0; i < n; i++) {
        turn_until(&s[i].w.calls, 1);
        assert_int_equal(s[i].w.err.code, ERR_NONE);
        if (i > 0)
            assert_int_equal(s[i].seq, s[i - 1].seq + 1);
    }
    free(s);
}

struct got { /* events as they came */
    struct wait w;
    int n;
    int64_t seqs[5000];
    int64_t counts;
    struct subscription *sub;
    int pause_every; /* 0: never */
    int64_t end_at;
};

static void got_one(void *arg, const struct event *ev)
{
    struct got *g = arg;

    assert_true(g->n < (int)ARRAY_LEN(g->seqs));
    g->seqs[g->n++] = ev->seq;
    g->counts += ev->count;
}

static int got_live(void *arg, const struct event *ev)
{
    struct got *g = arg;

    got_one(arg, ev);
    if (g->end_at != 0 && ev->seq >= g->end_at)
        subscription_end(TAKE(g->sub));
    return g->pause_every != 0 && g->n % g->pause_every == 0;
}

static struct got *read_page(struct event_filter f)
{
    struct got *g = xzalloc(sizeof *g);

    events_read(events, &f, got_one, noted, g);
    turn_until(&g->w.calls, 1);
    assert_int_equal(g->w.err.code, ERR_NONE);
    return g;
}

static int count_page(struct event_filter f)
{
    AUTO(mem_free) struct got *g = read_page(f);

    return g->n;
}

struct verdict {
    int calls;
    struct audit_result r;
    struct err err;
};

static void judged(void *arg, const struct audit_result *r, const struct err *e)
{
    struct verdict *v = arg;

    v->calls++;
    v->r = *r;
    v->err = *e;
}

static struct audit_result verify(const unsigned char *head)
{
    struct verdict v = {0};

    events_verify(events, head, judged, &v);
    turn_until(&v.calls, 1);
    assert_int_equal(v.err.code, ERR_NONE);
    return v.r;
}

/* --- writes and reads --- */

static int put_a(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return put_meta(tx, "a", "1", e);
}

static int put_b_and_fail(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    if (put_meta(tx, "b", "1", e) < 0)
        return -1;
    return err_set(e, ERR_CONFLICT, 0, "changed my mind");
}

static int break_a_rule(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    if (put_meta(tx, "c", "1", e) < 0)
        return -1;
    return tx_run(tx, "INSERT INTO meta (name, value) VALUES ('c', '2')", NO_PARAMS, e) < 0 ? -1
                                                                                            : 0;
}

static int bad_sql(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx, "INSERT INTO nowhere VALUES (1)", NO_PARAMS, e) < 0 ? -1 : 0;
}

static int bad_parameter(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx, "DELETE FROM meta WHERE name = :name", PARAMS(P_C("nobody", "a")), e) < 0 ? -1
                                                                                                : 0;
}

/* --- rows by a table of columns --- */

struct setting { /* a row of meta */
    char name[16];
    char *value;
};
static const struct column setting_list[] = {
    COLUMN(struct setting, name, COLUMN_CHARS, .flags = COLUMN_KEY),
    COLUMN(struct setting, value, COLUMN_TEXT),
};
static struct columns settings = {.table = "meta",
                                  .list = setting_list,
                                  .count = ARRAY_LEN(setting_list),
                                  .order = "ORDER BY name DESC"}; /* zz is the first */

static int save_setting(struct store_tx *tx, void *arg, struct err *e)
{
    return row_save(tx, arg, e);
}

static int insert_setting(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_insert(tx, &settings, arg, e);
}

static int load_setting_row(void *arg, const struct store_rows *rows, struct err *e)
{
    return columns_load(&settings, rows, arg, e);
}

static int load_setting(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_each(tx, &settings, load_setting_row, arg, e);
}

static int one_number_too_many(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx, "DELETE FROM meta WHERE name = :name", PARAMS(P_C(NULL, "a"), P_C(NULL, "b")),
                  e) < 0
               ? -1
               : 0;
}

static enum err_code code_of(store_work work, void *arg)
{
    struct err e = {0};

    return store_now(store, work, arg, &e) < 0 ? e.code : ERR_NONE;
}

static void rows_are_saved_and_loaded_by_their_columns(void **state)
{
    struct setting s = {.name = "zz", .value = xstrdup("old")}, back = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct row *r = row_take(&settings, &s);

        s.value[0] = 'O'; /* it is a copy */
        assert_int_equal(code_of(save_setting, r), ERR_NONE);
        row_free(r);
        if (i == 0)
            assert_meta("zz", "old");
    }
    assert_meta("zz", "Old");
    assert_int_equal(code_of(insert_setting, &s), ERR_CONFLICT);
    assert_int_equal(code_of(load_setting, &back), ERR_NONE);
    assert_string_equal(back.name, "zz");
    assert_string_equal(back.value, "Old");
    assert_int_equal(code_of(one_number_too_many, NULL), ERR_INTERNAL);
    mem_free(s.value);
    mem_free(back.value);
}

static void a_failing_work_undoes_only_itself(void **state)
{
    struct wait w[5] = {0};

    (void)state;
    store_write(store, STORE_DURABLE, put_b_and_fail, noted, &w[0]);
    store_write(store, STORE_DURABLE, put_a, noted, &w[1]);
    store_write(store, STORE_RELAXED, break_a_rule, noted, &w[2]);
    store_write(store, STORE_RELAXED, bad_sql, noted, &w[3]);
    store_write(store, STORE_RELAXED, bad_parameter, noted, &w[4]);
    for (int i = 0; i < 5; i++)
        turn_until(&w[i].calls, 1);
    assert_int_equal(w[0].err.code, ERR_CONFLICT);
    assert_string_equal(w[0].err.msg, "changed my mind");
    assert_int_equal(w[1].err.code, ERR_NONE);
    assert_int_equal(w[2].err.code, ERR_CONFLICT);
    assert_int_equal(w[3].err.code, ERR_INTERNAL);
    assert_int_equal(w[4].err.code, ERR_INTERNAL);
    /* statements and names of tables are for the log alone */
    assert_string_equal(w[2].err.msg, "the change conflicts with what the database has");
    assert_string_equal(w[3].err.msg, "the database refused a statement");
    assert_string_equal(w[4].err.msg, "the database refused a statement");
    assert_meta("a", "1");
    assert_meta("b", NULL);
    assert_meta("c", NULL);
    assert_true(store_is_healthy(store, NULL));
}

static int write_values(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    if (tx_run(tx,
               "CREATE TABLE sample (id TEXT PRIMARY KEY, name TEXT, none TEXT, hash BYTEA,"
               " big BIGINT, small BIGINT)",
               NO_PARAMS, e) < 0)
        return -1;
    return tx_run(tx,
                  "INSERT INTO sample (id, name, none, hash, big, small)"
                  " VALUES (:id, :name, :none, :hash, :big, :small)",
                  PARAMS(P_C("id", "s_1"), P_TEXT("name", STR("a\xc3\xa9'\";--")),
                         P_TEXT("none", str_make(NULL, 0)), P_BLOB("hash", STR("\0\1\xff")),
                         P_INT("big", INT64_MAX), P_INT("small", INT64_MIN)),
                  e) == 1
               ? 0
               : -1;
}

static int check_values(struct store_tx *tx, void *arg, struct err *e)
{
    struct store_rows *r, *again;

    (void)arg;
    if (tx_query(tx, "SELECT name, none, hash, big, small FROM sample", NO_PARAMS, &r, e) < 0 ||
        rows_step(r, e) != 1)
        return -1;
    if (!str_eq(rows_text(r, 0), STR("a\xc3\xa9'\";--")) || !rows_is_null(r, 1) ||
        rows_text(r, 1).p != NULL || !str_eq(rows_blob(r, 2), STR("\0\1\xff")) ||
        rows_int(r, 3) != INT64_MAX || rows_int(r, 4) != INT64_MIN)
        return err_set(e, ERR_INTERNAL, 0, "other values");
    /* the same statement inside its own rows */
    if (tx_query(tx, "SELECT name, none, hash, big, small FROM sample", NO_PARAMS, &again, e) < 0 ||
        rows_step(again, e) != 1 || rows_step(again, e) != 0 || rows_step(r, e) != 0)
        return err_set(e, ERR_INTERNAL, 0, "not the one row");
    rows_end(again);
    return 0;
}

static void every_type_of_value_comes_back(void **state)
{
    struct wait w = {0};
    struct err e;

    (void)state;
    e = write_and_wait(STORE_DURABLE, write_values);
    assert_int_equal(e.code, ERR_NONE);
    store_read(store, check_values, noted, &w);
    turn_until(&w.calls, 1);
    assert_string_equal(w.err.msg, "");
}

static int go_on_after_a_failure(struct store_tx *tx, void *arg, struct err *e)
{
    struct err ignored;

    (void)arg;
    if (put_meta(tx, "d", "1", e) < 0)
        return -1;
    return tx_run(tx, "INSERT INTO meta (name, value) VALUES ('d', '2')", NO_PARAMS, &ignored) < 0
               ? 0
               : err_set(e, ERR_CONFLICT, 0, "twice the same name");
}

static void a_failed_statement_fails_its_work(void **state)
{
    struct err e;

    (void)state;
    e = write_and_wait(STORE_DURABLE, go_on_after_a_failure);
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_meta("d", NULL);
    assert_true(store_is_healthy(store, NULL));
}

static int sort_names(struct store_tx *tx, void *arg, struct err *e)
{
    static const char *const names[] = {"Z", "_", "a", "a-b", "aB", "ab", "b", "\xc3\xa4"};
    struct store_rows *r;
    size_t i = 0;

    (void)arg;
    for (size_t k = ARRAY_LEN(names); k-- > 0;)
        if (put_meta(tx, names[k], "1", e) < 0)
            return -1;
    if (tx_query(tx, "SELECT name FROM meta WHERE name >= :from ORDER BY name",
                 PARAMS(P_C("from", "Z")), &r, e) < 0)
        return -1;
    while (rows_step(r, e) > 0 && i < ARRAY_LEN(names))
        if (!str_eq_c(rows_text(r, 0), names[i++]))
            return err_set(e, ERR_INTERNAL, 0, "%s is not in its place", names[i - 1]);
    return i == ARRAY_LEN(names) ? 0 : err_set(e, ERR_INTERNAL, 0, "%zu names", i);
}

static void texts_sort_by_their_bytes(void **state)
{
    struct err e;

    (void)state;
    e = write_and_wait(STORE_DURABLE, sort_names);
    assert_string_equal(e.msg, "");
}

static void a_reader_cannot_write(void **state)
{
    struct wait w = {0};

    (void)state;
    store_read(store, put_a, noted, &w);
    turn_until(&w.calls, 1);
    assert_int_not_equal(w.err.code, ERR_NONE);
    assert_meta("a", NULL);
}

static void a_full_queue_refuses_through_the_callback(void **state)
{
    enum { N = 1500 };
    struct wait *w = xzalloc(N * sizeof *w);
    int refused = 0;

    (void)state;
    for (int i = 0; i < N; i++)
        store_write(store, STORE_RELAXED, put_a, noted, &w[i]);
    for (int i = 0; i < N; i++)
        assert_int_equal(w[i].calls, 0);
    for (int i = 0; i < N; i++) {
        turn_until(&w[i].calls, 1);
        assert_true(w[i].err.code == ERR_NONE || w[i].err.code == ERR_LIMIT);
        refused += w[i].err.code == ERR_LIMIT;
    }
    assert_true(refused > 0 && refused <= 1000);
    free(w);
}

static void closing_finishes_what_is_queued(void **state)
{
    struct wait w[200] = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(w); i++)
        store_write(store, i % 2 ? STORE_DURABLE : STORE_RELAXED, put_a, noted, &w[i]);
    close_all();
    for (size_t i = 0; i < ARRAY_LEN(w); i++) {
        assert_int_equal(w[i].calls, 1);
        assert_int_equal(w[i].err.code, ERR_NONE);
    }
    open_all();
    assert_meta("a", "1");
}

/* The place of a callback among all. */
struct told {
    int *order, at;
};

static void note_order(void *arg, const struct err *e)
{
    struct told *t = arg;

    assert_int_equal(e->code, ERR_NONE);
    t->at = ++*t->order;
}

static int put_order(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx,
                  "INSERT INTO meta (name, value) VALUES ('order', '1') ON CONFLICT (name) DO "
                  "UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)",
                  NO_PARAMS, e) < 0
               ? -1
               : 0;
}

static void later_writes_go_with_the_next(void **state)
{
    int order = 0;
    struct told t[4] = {{&order, 0}, {&order, 0}, {&order, 0}, {&order, 0}};
    uint64_t began;

    (void)state;
    uv_update_time(&loop);
    began = uv_now(&loop);
    store_write_later(store, put_order, note_order, &t[0]);
    store_write_later(store, put_order, note_order, &t[1]);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    uv_update_time(&loop);
    if (uv_now(&loop) - began < STORE_LATER_MS) /* else they were due: the machine is busy */
        assert_int_equal(order, 0);
    store_write(store, STORE_RELAXED, put_order, note_order, &t[2]);
    turn_until(&t[2].at, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t[i].at, i + 1);
    assert_meta("order", "3");
    uv_update_time(&loop);
    began = uv_now(&loop);
    store_write_later(store, put_order, note_order, &t[3]); /* nothing follows */
    turn_until(&t[3].at, 1);
    uv_update_time(&loop);
    assert_true(uv_now(&loop) - began >= STORE_LATER_MS);
    assert_meta("order", "4");
}

static void later_writes_end_with_the_store(void **state)
{
    int order = 0;
    struct told t[2] = {{&order, 0}, {&order, 0}};

    (void)state;
    store_write_later(store, put_order, note_order, &t[0]);
    store_write_later(store, put_order, note_order, &t[1]);
    close_all();
    assert_int_equal(order, 2);
    open_all();
    assert_meta("order", "2");
}

static void work_now_is_done_when_it_returns(void **state)
{
    struct err e = {0};

    (void)state;
    assert_int_equal(store_now(store, put_a, NULL, &e), 0);
    assert_true(store_now(store, put_b_and_fail, NULL, &e) < 0);
    assert_int_equal(e.code, ERR_CONFLICT);
    assert_meta("a", "1");
    assert_meta("b", NULL);
}

/* --- events --- */

static void events_are_numbered_without_gaps_and_chained(void **state)
{
    struct say bad = {.spec = spec("thing.refused", "thing/x"), .give_up = true};
    unsigned char head[32];
    struct audit_result r;
    int64_t first;

    (void)state;
    first = say("thing.made", "thing/1", "{\"name\":\"x\"}");
    store_write(store, STORE_DURABLE, say_it, noted, &bad);
    turn_until(&bad.w.calls, 1);
    assert_int_equal(bad.w.err.code, ERR_CONFLICT);
    assert_int_equal(say("thing.made", "thing/2", NULL), first + 1);
    say_many(300, "thing.counted");
    assert_int_equal(events_head(events, head), first + 301);
    r = verify(head);
    assert_int_equal(r.broken_seq, 0);
    assert_int_equal(r.checked, 302);
    assert_int_equal(r.last_seq, first + 301);
    assert_true(r.head_found && r.head_seq == first + 301);
    assert_memory_equal(r.head, head, 32);
    head[5] ^= 1;
    assert_false(verify(head).head_found);
}

static void a_clean_restart_goes_on_an_unclean_one_jumps(void **state)
{
    int64_t before, after;

    (void)state;
    before = say("thing.made", "thing/1", NULL);
    close_all();
    open_all();
    assert_int_equal(say("thing.made", "thing/1", NULL), before + 1);
    close_all();
    place->run_sql("UPDATE chain SET clean = 0");
    open_all();
    assert_int_equal(count_page((struct event_filter){.type = STR("system.epoch")}), 1);
    after = say("thing.made", "thing/1", NULL);
    assert_int_equal(after, before + 1 + 1000000 + 1);
    assert_int_equal(verify(NULL).broken_seq, 0);
}

static void filters_and_pages(void **state)
{
    AUTO(mem_free) struct got *g = NULL;
    int64_t first;

    (void)state;
    first = say("token.created", "token/tk_1", NULL);
    say("token.revoked", "token/tk_1", NULL);
    say("tokens.other", "tokens/1", NULL);
    say_many(20, "thing.made");
    assert_int_equal(count_page((struct event_filter){0}), 23);
    assert_int_equal(count_page((struct event_filter){.type = STR("token.*")}), 2);
    assert_int_equal(count_page((struct event_filter){.type = STR("token.created")}), 1);
    assert_int_equal(count_page((struct event_filter){.type = STR("token")}), 0);
    assert_int_equal(count_page((struct event_filter){.object = STR("token/")}), 2);
    assert_int_equal(count_page((struct event_filter){.object = STR("thing/odd")}), 10);
    assert_int_equal(count_page((struct event_filter){.actor = STR("nobody")}), 0);
    assert_int_equal(count_page((struct event_filter){.actor = STR("system"), .limit = 7}), 7);
    assert_int_equal(count_page((struct event_filter){.since_seq = first + 20}), 2);
    g = read_page((struct event_filter){.since_seq = first, .limit = 5});
    for (int i = 0; i < 5; i++)
        assert_int_equal(g->seqs[i], first + 1 + i);
}

static void since_a_time(void **state)
{
    int64_t first;

    (void)state;
    first = say("thing.made", "thing/1", NULL);
    say_many(10, "thing.made");
    close_all();
    place->run_sql("UPDATE events SET time_ms = 100000000 + seq * 7200000");
    open_all();
    for (int i = 0; i < 11; i++)
        assert_int_equal(
            count_page((struct event_filter){.since_ms = 100000000 + (first + i) * 7200000}),
            11 - i);
    assert_int_equal(count_page((struct event_filter){.since_ms = INT64_MAX}), 0);
}

/* --- subscriptions --- */

static void assert_all_in_order(const struct got *g, int64_t from, int n)
{
    assert_int_equal(g->n, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(g->seqs[i], from + i);
}

static void a_subscriber_gets_the_past_then_the_present(void **state)
{
    AUTO(mem_free) struct got *g = xzalloc(sizeof *g);
    int64_t first;

    (void)state;
    first = say("thing.made", "thing/1", NULL);
    say_many(450, "thing.made");
    g->sub = events_subscribe(events, &(struct event_filter){0}, got_live, NULL, g);
    say_many(450, "thing.made");
    turn_until(&g->n, 901);
    say_many(99, "thing.made");
    turn_until(&g->n, 1000);
    assert_all_in_order(g, first, 1000);
    subscription_end(g->sub);
    say_many(3, "thing.made");
    assert_int_equal(g->n, 1000);
}

static void a_slow_subscriber_loses_and_doubles_nothing(void **state)
{
    AUTO(mem_free) struct got *g = xzalloc(sizeof *g);
    int64_t first;

    (void)state;
    first = say("thing.made", "thing/1", NULL);
    g->pause_every = 7;
    g->sub = events_subscribe(events, &(struct event_filter){0}, got_live, NULL, g);
    for (int round = 0; round < 20; round++) {
        say_many(50, "thing.made");
        subscription_resume(g->sub);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        subscription_resume(g->sub);
    }
    while (g->n < 1001) {
        subscription_resume(g->sub);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    assert_all_in_order(g, first, 1001);
    subscription_end(g->sub);
}

static void a_subscriber_may_end_itself(void **state)
{
    AUTO(mem_free) struct got *past = xzalloc(sizeof *past), *live = xzalloc(sizeof *live);
    struct subscription *unread;
    int64_t first;

    (void)state;
    first = say("thing.made", "thing/1", NULL);
    say_many(50, "thing.made");
    past->end_at = first + 10;
    past->sub = events_subscribe(events, &(struct event_filter){0}, got_live, NULL, past);
    live->end_at = first + 60;
    live->sub = events_subscribe(events, &(struct event_filter){.since_seq = first + 50}, got_live,
                                 NULL, live);
    unread = events_subscribe(events, &(struct event_filter){0}, got_live, NULL, past);
    subscription_end(unread);
    say_many(50, "thing.made");
    turn_until(&past->n, 11);
    say_many(1, "thing.made");
    assert_all_in_order(past, first, 11);
    assert_all_in_order(live, first + 51, 10);
}

static int say_200(struct store_tx *tx, void *arg, struct err *e)
{
    struct event_spec s = spec("thing.made", "thing/1");

    (void)arg, (void)e;
    for (int i = 0; i < 200; i++)
        tx_event(tx, &s, NULL);
    return 0;
}

static struct got *tellers[2];
static int ahead; /* the most that one was told before the other */

static int got_in_turn(void *arg, const struct event *ev)
{
    int r = got_live(arg, ev);

    ahead = (int)i64_max(ahead, tellers[0]->n - tellers[1]->n);
    ahead = (int)i64_max(ahead, tellers[1]->n - tellers[0]->n);
    return r;
}

static void a_large_commit_is_told_in_turns(void **state)
{
    AUTO(mem_free) struct got *a = xzalloc(sizeof *a), *b = xzalloc(sizeof *b);
    struct wait w = {0};
    int64_t first = say("thing.made", "thing/1", NULL);
    struct event_filter f = {.since_seq = first};

    (void)state;
    ahead = 0;
    tellers[0] = a;
    tellers[1] = b;
    a->sub = events_subscribe(events, &f, got_in_turn, NULL, a);
    b->sub = events_subscribe(events, &f, got_in_turn, NULL, b);
    store_write(store, STORE_RELAXED, say_200, noted, &w);
    turn_until(&w.calls, 1);
    turn_until(&a->n, 200);
    turn_until(&b->n, 200);
    assert_all_in_order(a, first + 1, 200);
    assert_all_in_order(b, first + 1, 200);
    assert_int_equal(ahead, 64);
    subscription_end(a->sub);
    subscription_end(b->sub);
}

static void read_failed(void *arg, const struct err *e)
{
    struct got *g = arg;

    assert_int_equal(e->code, ERR_LIMIT);
    g->w.calls++;
}

static void a_subscriber_whose_read_fails_is_told_and_may_go_on(void **state)
{
    AUTO(mem_free) struct got *g = xzalloc(sizeof *g);
    struct lookup lookups[100] = {0};
    int64_t first;

    (void)state;
    first = say("thing.made", "thing/1", NULL);
    atomic_store(&readers_held, true);
    atomic_store(&held, 0);
    for (size_t i = 0; i < ARRAY_LEN(lookups); i++) {
        lookups[i].name = "x";
        store_read(store, held_look_up, noted, &lookups[i]);
        while (i == READERS - 1 && atomic_load(&held) < READERS)
            uv_sleep(1); /* or they would make room in the full queue */
    }
    g->sub = events_subscribe(events, &(struct event_filter){0}, got_live, read_failed, g);
    turn_until(&g->w.calls, 1);
    assert_int_equal(g->n, 0);
    atomic_store(&readers_held, false);
    for (size_t i = 0; i < ARRAY_LEN(lookups); i++)
        turn_until(&lookups[i].w.calls, 1);
    subscription_resume(g->sub);
    say_many(10, "thing.made");
    turn_until(&g->n, 11);
    assert_all_in_order(g, first, 11);
    subscription_end(g->sub);
}

/* --- audit rows --- */

static void floods_of_audit_rows_fold(void **state)
{
    struct event_spec flood = spec("request.refused", "op/x"), other = spec("x.read", "file/1");
    AUTO(mem_free) struct got *g = NULL;
    struct event_filter all = {.audit_too = true};

    (void)state;
    events_set_fold(events, 100000);
    for (int i = 0; i < 1000; i++)
        events_audit(events, &flood);
    events_audit(events, &other);
    say("thing.made", "thing/1", NULL);
    assert_int_equal(count_page((struct event_filter){0}), 1);
    assert_int_equal(count_page(all), 3);
    close_all();
    open_all();
    g = read_page(all);
    assert_int_equal(g->n, 4);
    assert_int_equal(g->counts, 1002);
    assert_int_equal(verify(NULL).broken_seq, 0);
}

static void what_is_told_apart_folds_with_its_like_only(void **state)
{
    static const char *const read[] = {"{\"path\":\"/a\"}", "{\"path\":\"/b\"}",
                                       "{\"path\":\"/c\"}"};
    struct event_spec one = spec("request.read", "op/x");
    AUTO(mem_free) struct got *g = NULL;

    (void)state;
    events_set_fold(events, 100000);
    one.apart = true;
    for (size_t i = 0; i < 2 * ARRAY_LEN(read); i++) {
        one.data = str_of(read[i % ARRAY_LEN(read)]);
        events_audit(events, &one);
    }
    close_all();
    open_all();
    g = read_page((struct event_filter){.audit_too = true});
    assert_int_equal(g->n, 6);
    assert_int_equal(g->counts, 6);
}

static void no_tick(uv_timer_t *t)
{
    (void)t;
}

static void a_fold_ends_with_its_window(void **state)
{
    struct event_spec flood = spec("request.refused", "op/x");
    AUTO(mem_free) struct got *g = xzalloc(sizeof *g);
    uv_timer_t alive;

    (void)state;
    events_set_fold(events, 30);
    g->sub = events_subscribe(events, &(struct event_filter){.audit_too = true}, got_live, NULL, g);
    for (int i = 0; i < 5; i++)
        events_audit(events, &flood);
    (void)uv_timer_init(&loop, &alive); /* the store's own handles do not keep a loop going */
    (void)uv_timer_start(&alive, no_tick, 10000, 0);
    turn_until(&g->n, 2);
    assert_int_equal(g->counts, 5);
    subscription_end(g->sub);
    uv_close((uv_handle_t *)&alive, NULL);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

static void a_flood_of_many_names_folds_too(void **state)
{
    AUTO(mem_free) struct got *g = NULL;
    int64_t counts = 0, since = 0;

    (void)state;
    events_set_fold(events, 100000);
    for (int i = 0; i < 10300; i++) {
        AUTO(mem_free) char *object = xasprintf("op/%d", i);
        struct event_spec one = spec("request.refused", object);

        events_audit(events, &one);
        if (i % 400 == 0)
            say("thing.made", "thing/1", NULL); /* waits: the queue is short here */
    }
    close_all();
    open_all();
    assert_int_equal(count_page((struct event_filter){.object = STR("(many)"), .audit_too = true}),
                     2);
    do {
        mem_free(g);
        g = read_page((struct event_filter){.since_seq = since, .audit_too = true, .limit = 1000});
        counts += g->counts;
        since = g->n > 0 ? g->seqs[g->n - 1] : since;
    } while (g->n > 0);
    assert_int_equal(counts, 10300 + 26);
}

static void names_are_bounded_and_valid_text(void **state)
{
    char name[600];
    struct audit_result r;

    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name + 511, "\xc3\xa9", 2); /* the border is within this character */
    say("thing.made", name, NULL);
    name[511] = '\0';
    assert_int_equal(count_page((struct event_filter){.object = str_of(name)}), 1);
    say("thing.made", "bad/\xff\xfe", "{\"a\":\"\xff\"}");
    assert_int_equal(count_page((struct event_filter){.object = STR("bad/?\?")}), 1);
    r = verify(NULL);
    assert_int_equal(r.broken_seq, 0);
}

/* --- retention and tampering --- */

static void retention_keeps_the_chain_verifiable(void **state)
{
    struct wait w = {0};
    unsigned char old_head[32];
    struct audit_result r;
    int64_t first;

    (void)state;
    first = say("thing.made", "thing/1", NULL);
    for (int i = 0; i < 3; i++)
        say_many(i == 0 ? 499 : 500, "thing.made");
    assert_int_equal(events_head(events, old_head), first + 1499);
    events_retain(events, 0, 100, noted, &w);
    turn_until(&w.calls, 1);
    assert_int_equal(w.err.code, ERR_NONE);
    assert_int_equal(count_page((struct event_filter){.limit = 1000}), 101);
    r = verify(old_head);
    assert_int_equal(r.broken_seq, 0);
    assert_int_equal(r.first_seq, first + 1400);
    assert_true(r.head_found);
    say_many(5, "thing.made");
    assert_int_equal(verify(NULL).broken_seq, 0);
    events_retain(events, 3600000, 0, noted, &w);
    turn_until(&w.calls, 2);
    assert_int_equal(count_page((struct event_filter){.limit = 1000}), 106);
}

static void retention_by_age(void **state)
{
    struct wait w = {0};

    (void)state;
    say_many(50, "thing.made");
    uv_sleep(5);
    events_retain(events, 1, 0, noted, &w);
    turn_until(&w.calls, 1);
    assert_int_equal(count_page((struct event_filter){.limit = 1000}), 1);
    assert_int_equal(verify(NULL).broken_seq, 0);
    assert_int_equal(verify(NULL).checked, 1);
}

static void assert_tampering(const char *sql, int64_t seq, const char *why)
{
    struct audit_result r;

    place->wipe();
    open_all();
    say_many(50, "thing.made");
    close_all();
    place->run_sql(sql);
    open_all();
    r = verify(NULL);
    close_all();
    assert_int_equal(r.broken_seq, seq);
    assert_non_null(strstr(r.broken_why, why));
}

static void every_kind_of_tampering_is_found(void **state)
{
    (void)state;
    close_all();
    assert_tampering("UPDATE events SET data = '{\"a\":1}' WHERE seq = 7", 7, "altered");
    assert_tampering("UPDATE events SET type = 'b' WHERE seq = 1", 1, "altered");
    assert_tampering("UPDATE events SET times = 2 WHERE seq = 50", 50, "altered");
    assert_tampering("DELETE FROM events WHERE seq = 20", 20, "missing");
    assert_tampering("DELETE FROM events WHERE seq <= 3", 1, "missing");
    assert_tampering("DELETE FROM events WHERE seq > 40", 41, "missing");
    assert_tampering("UPDATE events SET prev = hash WHERE seq = 9", 9, "altered");
    /* a row that is right in itself, but of another chain */
    assert_tampering("UPDATE events SET hash = prev WHERE seq = 50", 50, "altered");
    assert_tampering("UPDATE chain SET head_hash = anchor_hash", 50, "head");
    assert_tampering("UPDATE chain SET anchor_seq = 4; DELETE FROM events WHERE seq <= 4", 5,
                     "does not follow");
    open_all();
}

/* --- the schema --- */

static void a_newer_or_foreign_schema_is_refused(void **state)
{
    struct store_config c = {.loop = &loop, .url = place->url};
    struct err e = {0};

    (void)state;
    close_all();
    place->run_sql("INSERT INTO migrations VALUES (9999, 'later', 'x', 0)");
    assert_true(store_open(&c, &store, &e) < 0);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(e.msg, "newer holt"));
    assert_true(e.hint[0] != '\0');
    place->run_sql("DELETE FROM migrations WHERE version = 9999;"
                   "UPDATE migrations SET checksum = 'x' WHERE version = 1");
    assert_true(store_open(&c, &store, &e) < 0);
    assert_int_equal(e.code, ERR_UNSUPPORTED);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    place->wipe();
    open_all();
}

int store_suite(const struct store_place *p)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_failing_work_undoes_only_itself),
        TEST(rows_are_saved_and_loaded_by_their_columns),
        TEST(every_type_of_value_comes_back),
        TEST(a_failed_statement_fails_its_work),
        TEST(texts_sort_by_their_bytes),
        TEST(a_reader_cannot_write),
        TEST(a_full_queue_refuses_through_the_callback),
        TEST(closing_finishes_what_is_queued),
        TEST(later_writes_go_with_the_next),
        TEST(later_writes_end_with_the_store),
        TEST(work_now_is_done_when_it_returns),
        TEST(events_are_numbered_without_gaps_and_chained),
        TEST(a_clean_restart_goes_on_an_unclean_one_jumps),
        TEST(filters_and_pages),
        TEST(since_a_time),
        TEST(a_subscriber_gets_the_past_then_the_present),
        TEST(a_slow_subscriber_loses_and_doubles_nothing),
        TEST(a_subscriber_may_end_itself),
        TEST(a_large_commit_is_told_in_turns),
        TEST(a_subscriber_whose_read_fails_is_told_and_may_go_on),
        TEST(floods_of_audit_rows_fold),
        TEST(what_is_told_apart_folds_with_its_like_only),
        TEST(a_fold_ends_with_its_window),
        TEST(a_flood_of_many_names_folds_too),
        TEST(names_are_bounded_and_valid_text),
        TEST(retention_keeps_the_chain_verifiable),
        TEST(retention_by_age),
        TEST(every_kind_of_tampering_is_found),
        TEST(a_newer_or_foreign_schema_is_refused),
    };
    int failed;

    place = p;
    (void)uv_loop_init(&loop);
    failed = cmocka_run_group_tests_name(p->url, tests, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert(uv_loop_close(&loop) == 0);
    return failed;
}
