#include "api/idempotency.h"

#include "base/clock.h"
#include "ground.h"

/* A real store; requests and exchanges are replaced by what they were told. */
struct fixture {
    struct ground g;
    struct api api;
    struct http_header key;
    struct http_req req;
    struct request r;
    const struct route *route;
    struct arena arena;
    /* what happened to the last request */
    bool answered, ran, replayed;
    int status;
    char text[256], made[32];
};
static struct fixture *f;

static const struct route make = {.name = "thing.make", .creates = true};
static const struct route make_anew = {.name = "thing.make", .creates = true, .remakes = true};
static const struct route look = {.name = "thing.look"};

const struct http_req *xchg_req(const struct xchg *x)
{
    (void)x;
    return &f->req;
}

struct arena *xchg_arena(struct xchg *x)
{
    (void)x;
    return &f->arena;
}

void xchg_add_header(struct xchg *x, const char *name, struct str value)
{
    (void)x;
    f->replayed = strcmp(name, "idempotency-replayed") == 0 && str_eq_c(value, "true");
}

void request_send(struct request *r, int status, const char *content_type, struct str body)
{
    (void)r, (void)content_type;
    f->answered = true;
    f->status = status;
    (void)snprintf(f->text, sizeof f->text, STR_FMT, STR_ARG(body));
}

void request_fail(struct request *r, const struct err *e)
{
    (void)r;
    f->answered = true;
    f->status = err_table[e->code].http;
    (void)snprintf(f->text, sizeof f->text, "%s", e->msg);
}

void request_wait(struct request *r, struct waiter *w)
{
    r->waiter = w;
    w->r = r;
}

struct request *waiter_end(struct waiter *w)
{
    struct request *r = w->r;

    w->r = NULL;
    if (r)
        r->waiter = NULL;
    return r;
}

/* --- a handler --- */

struct change {
    struct idem *idem, *kept;
    bool secret, fails, done, late;
};

static int change_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct change *c = arg;

    if (c->idem && idem_record(tx, c->idem, "thing/1", 201,
                               c->secret ? (struct str){0} : STR("{\"id\":1}"), e) < 0)
        return -1;
    return c->fails ? err_set(e, ERR_CONFLICT, 0, "no") : 0;
}

static void change_done(void *arg, const struct err *e)
{
    struct change *c = arg;

    assert_int_equal(e->code, c->fails ? ERR_CONFLICT : ERR_NONE);
    c->idem = idem_unref(c->idem);
    c->done = true;
}

static struct change plan;

static void handler(struct request *r, struct str body)
{
    f->ran = f->answered = true;
    (void)snprintf(f->text, sizeof f->text, STR_FMT, STR_ARG(body));
    (void)snprintf(f->made, sizeof f->made, STR_FMT, STR_ARG(idem_made(r)));
    if (f->made[0]) {
        r->idem = idem_unref(r->idem);
        return;
    }
    plan.idem = TAKE(r->idem);
    plan.kept = plan.late ? idem_ref(plan.idem) : NULL;
    plan.done = false;
    store_write(f->api.c.store, STORE_DURABLE, change_work, change_done, &plan);
    while (!plan.done)
        (void)uv_run(&f->g.loop, UV_RUN_ONCE);
}

static void begin(const char *actor, const char *key, const char *body)
{
    static char sent[64]; /* the connection's memory */

    f->key = (struct http_header){STR("idempotency-key"), str_of(key)};
    f->req = (struct http_req){.method = STR("POST"),
                               .target = STR("/things"),
                               .headers = &f->key,
                               .header_count = key ? 1 : 0};
    f->r = (struct request){.api = &f->api, .route = f->route};
    (void)snprintf(f->r.who.actor, sizeof f->r.who.actor, "%s", actor);
    f->answered = f->ran = f->replayed = false;
    (void)snprintf(sent, sizeof sent, "%s", body);
    idem_run(&f->r, str_of(sent), handler);
}

static void ask(const char *actor, const char *key, const char *body)
{
    begin(actor, key, body);
    while (!f->answered)
        (void)uv_run(&f->g.loop, UV_RUN_ONCE);
}

static int setup(void **state)
{
    (void)state;
    f = xzalloc(sizeof *f);
    plan = (struct change){0};
    assert_int_equal(scratch_make(f->g.dir, "idem"), 0);
    ground_open(&f->g);
    f->route = &make;
    f->api.c.store = f->g.store;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    clock_set_fake(NULL);
    ground_close(&f->g);
    assert_int_equal(f->api.running_keys.count, 0);
    map_done(&f->api.running_keys);
    arena_done(&f->arena);
    assert_int_equal(scratch_remove(f->g.dir), 0);
    mem_free(f);
    return 0;
}

static void the_same_request_gets_the_same_reply(void **state)
{
    (void)state;
    ask("token/a", "k", "{}");
    assert_true(f->ran);
    ask("token/a", "k", "{}");
    assert_false(f->ran);
    assert_true(f->replayed);
    assert_int_equal(f->status, 201);
    assert_string_equal(f->text, "{\"id\":1}");
}

static void another_request_with_the_key_is_a_conflict(void **state)
{
    (void)state;
    ask("token/a", "k", "{}");
    ask("token/a", "k", "{ }");
    assert_false(f->ran);
    assert_int_equal(f->status, 409);
    ask("token/b", "k", "{ }"); /* somebody else's key is another key */
    assert_true(f->ran);
    ask("token/a", "K", "{ }");
    assert_true(f->ran);
}

static void without_a_key_or_where_nothing_is_made_it_just_runs(void **state)
{
    (void)state;
    ask("token/a", NULL, "{}");
    ask("token/a", NULL, "{}");
    assert_true(f->ran);
    ask("token/a", "k", "{}");
    begin("token/a", NULL, "{}");
    f->key = (struct http_header){STR("idempotency-key"), STR("k")};
    f->req.header_count = 1;
    f->r.route = &look;
    f->ran = false;
    idem_run(&f->r, STR("{}"), handler);
    assert_true(f->ran);
}

static void a_secret_is_not_replayed(void **state)
{
    (void)state;
    plan.secret = true;
    ask("token/a", "k", "{}");
    ask("token/a", "k", "{}");
    assert_false(f->ran);
    assert_int_equal(f->status, 409);
    assert_non_null(strstr(f->text, "secret"));
}

static void the_handler_gets_the_body(void **state)
{
    (void)state;
    ask("token/a", "k", "{\"a\":1}");
    assert_string_equal(f->text, "{\"a\":1}");
}

static void what_changes_with_time_is_made_anew(void **state)
{
    (void)state;
    f->route = &make_anew;
    plan.secret = true; /* nothing is stored */
    ask("token/a", "k", "{}");
    assert_string_equal(f->made, "");
    ask("token/a", "k", "{}");
    assert_true(f->ran);
    assert_true(f->replayed);
    assert_string_equal(f->made, "1"); /* of "thing/1" */
    ask("token/a", "k", "{ }");
    assert_false(f->ran);
    assert_int_equal(f->status, 409);
}

static void kept(void *arg, const struct err *e)
{
    *(bool *)arg = e->code == ERR_NONE;
}

static void a_reply_may_come_later(void **state)
{
    bool done = false;

    (void)state;
    plan.secret = true;
    plan.late = true;
    ask("token/a", "k", "{}");
    ask("token/a", "k", "{}");
    assert_non_null(strstr(f->text, "still running")); /* until its reply is there */
    idem_keep_reply(TAKE(plan.kept), STR("{\"late\":1}"), kept, &done);
    while (!done)
        (void)uv_run(&f->g.loop, UV_RUN_ONCE);
    ask("token/a", "k", "{}");
    assert_false(f->ran);
    assert_string_equal(f->text, "{\"late\":1}");
}

static void a_failed_change_leaves_no_row(void **state)
{
    (void)state;
    plan.fails = true;
    ask("token/a", "k", "{}");
    plan.fails = false;
    ask("token/a", "k", "{}");
    assert_true(f->ran);
}

static void a_day_later_the_key_is_free(void **state)
{
    struct clock_fake clock = {.wall_ms = clock_wall_ms(), .mono_ns = clock_mono_ns()};

    (void)state;
    clock_set_fake(&clock);
    ask("token/a", "k", "{}");
    clock.wall_ms += IDEM_KEEP_MS;
    ask("token/a", "k", "{}");
    assert_false(f->ran);
    clock.wall_ms += 1;
    ask("token/a", "k", "{}");
    assert_true(f->ran);
}

static void two_at_once_are_one(void **state)
{
    struct request first;

    (void)state;
    begin("token/a", "k", "{}");
    assert_false(f->answered);
    first = f->r;
    first.waiter->r = &first;
    begin("token/a", "k", "{}");
    assert_true(f->answered);
    assert_int_equal(f->status, 409);
    assert_non_null(strstr(f->text, "still running"));
    f->ran = false;
    while (!f->ran)
        (void)uv_run(&f->g.loop, UV_RUN_ONCE);
}

static void an_asker_who_goes_frees_the_key(void **state)
{
    (void)state;
    begin("token/a", "k", "{}");
    f->r.waiter->r = NULL; /* as request_closed does */
    while (f->api.running_keys.count > 0)
        (void)uv_run(&f->g.loop, UV_RUN_ONCE);
    assert_false(f->answered);
    ask("token/a", "k", "{}");
    assert_true(f->ran);
}

static void keys_are_bounded(void **state)
{
    char key[IDEM_KEY_MAX + 2];

    (void)state;
    memset(key, 'k', sizeof key);
    key[IDEM_KEY_MAX + 1] = '\0';
    ask("token/a", key, "{}");
    assert_int_equal(f->status, 400);
    key[IDEM_KEY_MAX] = '\0';
    ask("token/a", key, "{}");
    assert_true(f->ran);
    ask("token/a", "", "{}");
    assert_int_equal(f->status, 400);
    ask("token/a", "a\tb", "{}");
    assert_int_equal(f->status, 400);
    ask("token/a", "\xc3\xa9", "{}");
    assert_int_equal(f->status, 400);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_same_request_gets_the_same_reply),
        TEST(another_request_with_the_key_is_a_conflict),
        TEST(without_a_key_or_where_nothing_is_made_it_just_runs),
        TEST(a_secret_is_not_replayed),
        TEST(the_handler_gets_the_body),
        TEST(what_changes_with_time_is_made_anew),
        TEST(a_reply_may_come_later),
        TEST(a_failed_change_leaves_no_row),
        TEST(a_day_later_the_key_is_free),
        TEST(two_at_once_are_one),
        TEST(an_asker_who_goes_frees_the_key),
        TEST(keys_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
