#include "core/sandbox/pool.h"

#include "unit.h"

#define MINUTE 60000
#define START 1000000000LL

/* A runtime that remembers what it was told, and answers when the test says so. */
static struct {
    struct driver d;
    struct driver_want want;
    struct str layer;
    int asked;
    driver_pooled_cb done;
    void *arg;
} runtime;

static void ask(struct driver *d, const struct driver_want *want, driver_pooled_cb done, void *arg)
{
    assert_ptr_equal(d, &runtime.d);
    runtime.want = *want;
    runtime.layer = want->kind.layer_count ? want->kind.layers[0] : STR("");
    runtime.asked++;
    runtime.done = done;
    runtime.arg = arg;
}

static void answer(int64_t ready, int64_t broken)
{
    const struct driver_pooled p = {ready, broken};

    runtime.done(runtime.arg, &p, &(struct err){0});
}

static const struct driver_ops pooling = {.name = "pooling", .pool = ask},
                               plain = {.name = "plain"};

static struct pool *open_pool(const struct driver_ops *ops, struct pool_config c, bool is_default)
{
    memset(&runtime, 0, sizeof runtime);
    runtime.d.ops = ops;
    return pool_new(&c, &runtime.d, is_default);
}

static void create(struct pool *p, int n, int64_t at)
{
    const struct driver_kind any = {0};

    for (int i = 0; i < n; i++)
        pool_created(p, &any, false, at);
}

static void a_fixed_size_stays(void **state)
{
    struct pool *p = open_pool(&pooling, (struct pool_config){.size = 3}, true);

    (void)state;
    assert_int_equal(pool_desired(p, START), 3);
    create(p, 50, START);
    assert_int_equal(pool_desired(p, START), 3);
    assert_null(pool_free(p));
}

static void autosize_follows_the_last_minute(void **state)
{
    struct pool *p =
        open_pool(&pooling, (struct pool_config){.autosize = true, .min = 1, .max = 6}, true);

    (void)state;
    assert_int_equal(pool_desired(p, START), 1);
    create(p, 2, START);
    assert_int_equal(pool_desired(p, START), 2);
    create(p, 2, START + 30000);
    assert_int_equal(pool_desired(p, START + 30000), 4);
    assert_int_equal(pool_desired(p, START + MINUTE - 1), 4);
    assert_int_equal(pool_desired(p, START + MINUTE), 2); /* the first two are too old */
    create(p, 100, START + MINUTE);
    assert_int_equal(pool_desired(p, START + MINUTE), 6);
    assert_int_equal(pool_desired(p, START + 3 * MINUTE), 1); /* and smaller again */
    assert_null(pool_free(p));
}

static void autosize_without_bounds_has_some(void **state)
{
    struct pool *p = open_pool(&pooling, (struct pool_config){.autosize = true}, true);
    const struct pool_config many = {.autosize = true, .min = 20};

    (void)state;
    assert_int_equal(pool_desired(p, START), 0);
    create(p, 100, START);
    assert_int_equal(pool_desired(p, START), 10);
    pool_configure(p, &many);
    assert_int_equal(pool_desired(p, START), 20);
    assert_null(pool_free(p));
}

static void creates_of_an_earlier_holtd_count(void **state)
{
    struct pool *p = open_pool(&pooling, (struct pool_config){.autosize = true}, true);

    (void)state;
    pool_seed(p, START - 5 * MINUTE);
    pool_seed(p, START - 10000);
    assert_int_equal(pool_desired(p, START), 1);
    pool_seed(p, START - 10000 - MINUTE); /* the same second of another minute */
    assert_int_equal(pool_desired(p, START), 1);
    assert_null(pool_free(p));
}

static void only_runtimes_in_use_have_one(void **state)
{
    struct pool *p = open_pool(&pooling, (struct pool_config){.size = 3}, false);

    (void)state;
    assert_int_equal(pool_desired(p, START), 0);
    create(p, 1, START);
    assert_int_equal(pool_desired(p, START), 3);
    assert_int_equal(pool_desired(p, START + MINUTE), 0);
    assert_null(pool_free(p));
    p = open_pool(&plain, (struct pool_config){.size = 3}, true);
    assert_int_equal(pool_desired(p, START), 0); /* it makes none ahead */
    pool_tick(p, START);
    assert_null(pool_free(p));
}

static void the_runtime_is_told_once_at_a_time(void **state)
{
    struct pool *p = open_pool(&pooling, (struct pool_config){.size = 2}, true);
    struct pool_counts c = {0};

    (void)state;
    pool_tick(p, START);
    pool_tick(p, START + 1000);
    assert_int_equal(runtime.asked, 1);
    assert_int_equal(runtime.want.size, 2);
    answer(2, 1);
    pool_tick(p, START + 2000);
    assert_int_equal(runtime.asked, 2);
    runtime.done(runtime.arg, NULL, &(struct err){.code = ERR_UNAVAILABLE});
    pool_created(p, &(struct driver_kind){0}, true, START);
    create(p, 3, START);
    pool_count(p, &c);
    assert_int_equal(c.desired, 2);
    assert_int_equal(c.ready, 2); /* as last known */
    assert_int_equal(c.broken, 1);
    assert_int_equal(c.claims, 1);
    assert_int_equal(c.misses, 3);
    assert_null(pool_free(p));
}

static void one_that_is_off_asks_once(void **state)
{
    struct pool *p = open_pool(&pooling, (struct pool_config){0}, true);
    const struct pool_config on = {.size = 1}, off = {0};
    struct pool_counts c = {0};

    (void)state;
    pool_tick(p, START); /* an earlier holtd may have wanted some */
    assert_int_equal(runtime.want.size, 0);
    answer(0, 0);
    pool_tick(p, START);
    assert_int_equal(runtime.asked, 1);
    create(p, 1, START);
    pool_count(p, &c);
    assert_int_equal(c.misses, 0); /* nobody promised one */
    pool_configure(p, &on);
    pool_tick(p, START);
    answer(1, 0);
    pool_configure(p, &off);
    pool_tick(p, START);
    assert_int_equal(runtime.want.size, 0); /* those that are there are to go */
    answer(0, 0);
    pool_tick(p, START);
    assert_int_equal(runtime.asked, 3);
    assert_null(pool_free(p));
}

static void the_kind_is_what_is_asked_for_most(void **state)
{
    struct str debian = STR("lay_debian"), python = STR("lay_python");
    const struct driver_kind a = {&debian, 1, {.memory_bytes = 1 << 20}},
                             b = {&python, 1, {.memory_bytes = 1 << 20}}, c = {&python, 1, {0}};
    struct pool *p = open_pool(&pooling, (struct pool_config){.size = 1}, true);

    (void)state;
    pool_tick(p, START);
    assert_int_equal(runtime.want.kind.layer_count, 0); /* the plainest, while nobody has asked */
    answer(0, 0);
    pool_created(p, &a, false, START);
    pool_created(p, &a, false, START + 1);
    pool_created(p, &b, false, START + 2);
    pool_created(p, &c, false, START + 3);
    pool_tick(p, START + 1000);
    assert_true(str_eq(runtime.layer, debian));
    assert_int_equal(runtime.want.kind.limits.memory_bytes, 1 << 20);
    answer(1, 0);
    pool_created(p, &c, false, START + 2000);
    pool_created(p, &c, false, START + 2001);
    pool_tick(p, START + 3000);
    assert_true(str_eq(runtime.layer, python));
    assert_int_equal(runtime.want.kind.limits.memory_bytes, 0); /* limits tell kinds apart */
    answer(1, 0);
    for (int i = 0; i < 100; i++) { /* more kinds than are remembered */
        const struct driver_kind other = {NULL, 0, {.pids = 10 + i}};

        pool_created(p, &other, false, START + 4000 + i);
    }
    pool_tick(p, START + 2 * MINUTE + 10000); /* all are old: the last one */
    assert_int_equal(runtime.want.kind.limits.pids, 109);
    answer(1, 0);
    assert_null(pool_free(p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_size_stays),
        cmocka_unit_test(autosize_follows_the_last_minute),
        cmocka_unit_test(autosize_without_bounds_has_some),
        cmocka_unit_test(creates_of_an_earlier_holtd_count),
        cmocka_unit_test(only_runtimes_in_use_have_one),
        cmocka_unit_test(the_runtime_is_told_once_at_a_time),
        cmocka_unit_test(one_that_is_off_asks_once),
        cmocka_unit_test(the_kind_is_what_is_asked_for_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
