#include "core_world.h"

#include "base/mem.h"

#include <string.h>
#include <unistd.h>

const struct principal tester = {.role = ROLE_ADMIN, .actor = "token/tk_tester"};

static void tick(uv_timer_t *t)
{
    struct world *w = t->data;

    sandboxes_tick(w->all);
}

void world_open(struct world *w)
{
    AUTO(mem_free) char *url = xasprintf("sqlite:%s/holt.db", w->dir);
    const struct sandboxes_config c = {.loop = &w->loop,
                                       .commands = &exec_commands,
                                       .drivers = w->drivers,
                                       .state = w->dir,
                                       .bindir = w->bindir,
                                       .node = "test",
                                       .installation = "test"};
    struct sandboxes_config with;
    struct err e = {0};

    CHECK(uv_loop_init(&w->loop) == 0);
    if (store_open(&(struct store_config){.loop = &w->loop, .url = url}, &w->store, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        abort();
    }
    with = c;
    with.store = w->store;
    if (sandboxes_open(&with, &w->all, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.msg);
        abort();
    }
    (void)uv_timer_init(&w->loop, &w->ticks);
    w->ticks.data = w;
    (void)uv_timer_start(&w->ticks, tick, 100, 100);
}

void world_close(struct world *w)
{
    uv_close((uv_handle_t *)&w->ticks, NULL);
    w->all = sandboxes_close(w->all);
    store_close(w->store);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&w->loop) == 0);
}

void world_remove(struct world *w)
{
    CHECK(scratch_remove(w->dir) == 0);
}

void world_await(struct world *w)
{
    while (!w->called)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    w->called = false;
}

void world_turn(struct world *w, int64_t ms)
{
    uint64_t until = uv_hrtime() + (uint64_t)ms * 1000000;

    while (uv_hrtime() < until)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
}

static uint64_t patience(void)
{
    return uv_hrtime() + 60 * 1000000000ull;
}

static int64_t out_end(const struct exec *x)
{
    struct exec_info i;

    exec_info(x, &i);
    return i.out_end;
}

void world_until_out(struct world *w, struct exec *x, int64_t end)
{
    for (uint64_t until = patience(); out_end(x) < end; (void)uv_run(&w->loop, UV_RUN_ONCE))
        CHECK(uv_hrtime() < until);
}

void world_until_still(struct world *w, struct exec *x)
{
    uint64_t until = patience();
    int64_t before;

    do {
        before = out_end(x);
        world_turn(w, 300);
        CHECK(uv_hrtime() < until);
    } while (out_end(x) != before);
}

void world_until_boxes(struct world *w, size_t count)
{
    for (uint64_t until = patience(); sandboxes_count(w->all) != count;
         (void)uv_run(&w->loop, UV_RUN_ONCE))
        CHECK(uv_hrtime() < until);
}

void world_until_state(struct world *w, struct sandbox *s, enum sandbox_state state)
{
    struct sandbox_info i;

    for (uint64_t until = patience(); sandbox_info(s, &i), i.state != state;
         (void)uv_run(&w->loop, UV_RUN_ONCE))
        CHECK(uv_hrtime() < until);
}

void world_settle(struct world *w)
{
    while (!sandboxes_settled(w->all))
        (void)uv_run(&w->loop, UV_RUN_ONCE);
}

void on_sandbox(void *arg, struct sandbox *s, const struct err *e)
{
    struct world *w = arg;

    w->called = true;
    w->s = s;
    w->e = *e;
}

void on_exec(void *arg, struct exec *x, const struct err *e)
{
    struct world *w = arg;

    w->called = true;
    w->x = x;
    w->e = *e;
}

struct sandbox *world_create(struct world *w, const struct sandbox_spec *spec)
{
    static const struct sandbox_spec none;

    sandbox_create(w->all, spec ? spec : &none, &tester, on_sandbox, w);
    world_await(w);
    if (!w->s && !spec)
        (void)fprintf(stderr, "%s\n", w->e.msg);
    return w->s;
}

struct exec *world_start(struct world *w, struct sandbox *s, struct exec_spec spec)
{
    exec_start(s, &spec, &tester, on_exec, w);
    world_await(w);
    return w->x;
}

struct exec *world_sh(struct world *w, struct sandbox *s, const char *line)
{
    return world_start(w, s, (struct exec_spec){.shell = str_of(line)});
}

void world_wait(struct world *w, struct exec *x)
{
    (void)exec_wait(x, on_exec, w);
    world_await(w);
}

void world_destroy(struct world *w, struct sandbox *s)
{
    sandbox_destroy(s, &tester, on_sandbox, w);
    world_await(w);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct output *o = arg;
    int i = stream == EXEC_STDOUT ? 0 : 1;

    CHECK(time_us > 0 && bytes.n > 0);
    CHECK(o->at[i] < 0 || offset == o->at[i]); /* once, in order */
    o->at[i] = offset + (int64_t)bytes.n;
    buf_add_str(&o->bytes[i], bytes);
    return 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct output *o = arg;
    int i = stream == EXEC_STDOUT ? 0 : 1;

    CHECK(o->at[i] < 0 || from == o->at[i]);
    CHECK(to > from);
    o->at[i] = to;
    o->gap += to - from;
    return 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct output *o = arg;

    o->ended = true;
    o->e = *e;
}

const struct exec_reader_ops output_ops = {on_bytes, on_gap, on_end};

void world_read(struct world *w, struct exec *x, enum exec_which which, int64_t out, int64_t err,
                struct output *to)
{
    output_done(to);
    *to = (struct output){.at = {out, err}};
    (void)exec_read(x, which, out, err, false, &output_ops, to);
    while (!to->ended)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
}

void output_done(struct output *o)
{
    buf_done(&o->bytes[0]);
    buf_done(&o->bytes[1]);
}

struct count {
    const char *sql;
    int64_t n;
};

static int count_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct count *c = arg;
    struct store_rows *rows;

    if (tx_query(tx, c->sql, NO_PARAMS, &rows, e) < 0 || rows_step(rows, e) <= 0)
        return -1;
    c->n = rows_int(rows, 0);
    rows_end(rows);
    return 0;
}

int64_t world_count(struct world *w, const char *sql)
{
    struct count c = {.sql = sql};
    struct err e = {0};

    CHECK(store_now(w->store, count_work, &c, &e) == 0);
    return c.n;
}
