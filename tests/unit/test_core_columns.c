#include "core/columns.h"

#include "base/mem.h"
#include "ground.h"

struct thing {
    char id[8];
    char *name, *note; /* note: may be NULL */
    int64_t big;
    int small;
    uint32_t bits;
    bool lit;
    int64_t born;
    const char *made, *blob; /* NULL: the column is NULL */
    char got[16];
    int64_t made_length;
    int64_t unread;
};

static bool put_made(const void *object, struct buf *to)
{
    const struct thing *t = object;

    if (t->made)
        buf_add_c(to, t->made);
    return t->made;
}

static int get_made(void *object, struct str text, struct err *e)
{
    struct thing *t = object;

    if (str_eq_c(text, "bad"))
        return err_set(e, ERR_INTERNAL, 0, "it is bad");
    (void)snprintf(t->got, sizeof t->got, STR_FMT, STR_ARG(text));
    return 0;
}

static bool put_blob(const void *object, struct buf *to)
{
    const struct thing *t = object;

    if (t->blob)
        buf_add(to, t->blob, 3);
    return t->blob;
}

#define HAS(member, kind, ...) COLUMN(struct thing, member, kind, __VA_ARGS__)
static const struct column list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT),
    HAS(note, COLUMN_TEXT, .flags = COLUMN_NULLS),
    {.name = "made", .type = COLUMN_MADE, .put = put_made, .get = get_made},
    HAS(big, COLUMN_INT),
    HAS(small, COLUMN_I32),
    HAS(bits, COLUMN_U32),
    HAS(lit, COLUMN_BOOL),
    HAS(born, COLUMN_INT, .flags = COLUMN_ONCE),
    {.name = "blob", .type = COLUMN_BYTES, .flags = COLUMN_UNREAD, .put = put_blob},
    COLUMN_AS("COALESCE(LENGTH(blob), -1)", struct thing, made_length, COLUMN_INT,
              .flags = COLUMN_UNWRITTEN),
    HAS(unread, COLUMN_INT, .flags = COLUMN_UNREAD),
};
static struct columns things = {
    .table = "things", .list = list, .count = ARRAY_LEN(list), .order = "ORDER BY id"};

/* --- work --- */

static int make_table(struct store_tx *tx, void *arg, struct err *e)
{
    (void)arg;
    return tx_run(tx,
                  "CREATE TABLE things (id TEXT PRIMARY KEY, name TEXT NOT NULL, note TEXT, made "
                  "TEXT, big BIGINT, small BIGINT, bits BIGINT, lit BIGINT, born BIGINT, blob "
                  "BYTEA, unread BIGINT)",
                  NO_PARAMS, e) < 0
               ? -1
               : 0;
}

static int save(struct store_tx *tx, void *arg, struct err *e)
{
    return row_save(tx, arg, e);
}

static int insert(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_insert(tx, &things, arg, e);
}

static int load_row(void *arg, const struct store_rows *rows, struct err *e)
{
    return columns_load(&things, rows, arg, e);
}

static int load(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_each(tx, &things, load_row, arg, e);
}

static int run_sql(struct store_tx *tx, void *arg, struct err *e)
{
    return tx_run(tx, arg, NO_PARAMS, e) < 0 ? -1 : 0;
}

struct fixture {
    struct ground g;
    struct err e;
};

static void do_it(struct fixture *f, store_work work, void *arg)
{
    f->e = (struct err){0};
    if (store_now(f->g.store, work, arg, &f->e) < 0)
        fail_msg("%s", f->e.msg);
}

static int setup(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    assert_int_equal(scratch_make(f->g.dir, "columns"), 0);
    ground_open(&f->g);
    do_it(f, make_table, NULL);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    ground_close(&f->g);
    assert_int_equal(scratch_remove(f->g.dir), 0);
    mem_free(f);
    return 0;
}

static void thing_done(struct thing *t)
{
    mem_free(t->name);
    mem_free(t->note);
}

static struct thing sample(void)
{
    return (struct thing){.id = "a",
                          .name = xstrdup("na\"me"),
                          .made = "of it",
                          .big = INT64_MIN,
                          .small = -7,
                          .bits = UINT32_MAX,
                          .lit = true,
                          .born = 11,
                          .blob = "x\0y",
                          .unread = 5};
}

static void save_thing(struct fixture *f, const struct thing *t)
{
    struct row *r = row_take(&things, t);

    do_it(f, save, r);
    row_free(r);
}

/* --- tests --- */

static void a_row_comes_back(void **state)
{
    struct fixture *f = *state;
    struct thing t = sample(), back = {.unread = 99, .note = xstrdup("old")};

    save_thing(f, &t);
    do_it(f, load, &back);
    assert_string_equal(back.id, "a");
    assert_string_equal(back.name, t.name);
    assert_null(back.note);
    assert_string_equal(back.got, "of it");
    assert_true(back.big == INT64_MIN);
    assert_int_equal(back.small, -7);
    assert_true(back.bits == UINT32_MAX);
    assert_true(back.lit);
    assert_int_equal(back.born, 11);
    assert_int_equal(back.made_length, 3);
    assert_int_equal(back.unread, 99);
    thing_done(&t);
    thing_done(&back);
}

/* The store's thread sees what was there when it was taken. */
static void a_row_is_a_copy(void **state)
{
    struct fixture *f = *state;
    struct thing t = sample(), back = {0};
    struct row *r = row_take(&things, &t);

    memset(t.name, 'z', strlen(t.name));
    t.big = 0;
    do_it(f, save, r);
    row_free(r);
    do_it(f, load, &back);
    assert_string_equal(back.name, "na\"me");
    assert_true(back.big == INT64_MIN);
    thing_done(&t);
    thing_done(&back);
}

static void a_second_save_changes_what_may_change(void **state)
{
    struct fixture *f = *state;
    struct thing t = sample(), back = {0};

    save_thing(f, &t);
    t.big = 2;
    t.born = 12;
    t.note = xstrdup("");
    t.made = NULL;
    t.blob = NULL;
    t.name[0] = 'N';
    save_thing(f, &t);
    do_it(f, load, &back);
    assert_int_equal(back.big, 2);
    assert_int_equal(back.born, 11); /* once */
    assert_string_equal(back.note, "");
    assert_string_equal(back.got, "");
    assert_int_equal(back.made_length, -1); /* NULL */
    assert_string_equal(back.name, t.name);
    thing_done(&t);
    thing_done(&back);
}

static void an_insert_never_changes_a_row(void **state)
{
    struct fixture *f = *state;
    struct thing t = sample(), back = {0};

    do_it(f, insert, &t);
    t.big = 3;
    assert_true(store_now(f->g.store, insert, &t, &f->e) < 0);
    do_it(f, load, &back);
    assert_true(back.big == INT64_MIN);
    thing_done(&t);
    thing_done(&back);
}

static void damage_is_said_with_its_column(void **state)
{
    struct fixture *f = *state;
    struct thing t = sample(), back = {0};

    save_thing(f, &t);
    do_it(f, run_sql, (void *)(uintptr_t)"UPDATE things SET id = 'longer than eight'");
    assert_true(store_now(f->g.store, load, &back, &f->e) < 0);
    assert_non_null(strstr(f->e.msg, "things"));
    assert_non_null(strstr(f->e.msg, "'id'"));
    do_it(f, run_sql, (void *)(uintptr_t)"UPDATE things SET id = 'a', made = 'bad'");
    assert_true(store_now(f->g.store, load, &back, &f->e) < 0);
    assert_non_null(strstr(f->e.msg, "it is bad"));
    thing_done(&t);
    thing_done(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(a_row_is_a_copy, setup, teardown),
        cmocka_unit_test_setup_teardown(a_second_save_changes_what_may_change, setup, teardown),
        cmocka_unit_test_setup_teardown(an_insert_never_changes_a_row, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_is_said_with_its_column, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
