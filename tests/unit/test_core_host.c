#include "core/sandbox/host.h"

#include "base/mem.h"
#include "core/exec/exec.h"
#include "core/sandbox/sandbox_internal.h"
#include "ground.h"

/* A runtime with hosts that says what the test wants. */
static struct {
    driver_capacity_cb done[4];
    void *arg[4];
    size_t n; /* questions that wait */
} asked;

static struct driver place;

static int h_open(const struct driver_config *c, struct driver **ret, struct err *e)
{
    (void)e;
    assert_non_null(c->host);
    *ret = xmemdup(&place, sizeof place); /* one for each host */
    return 0;
}

static void h_close(struct driver *d)
{
    mem_free(d);
}

static void h_list(struct driver *d, driver_list_cb done, void *arg)
{
    (void)d;
    done(arg, NULL, 0, &(struct err){0});
}

static void h_capacity(struct driver *d, driver_capacity_cb done, void *arg)
{
    (void)d;
    asked.done[asked.n] = done;
    asked.arg[asked.n++] = arg;
}

static const struct driver_ops driver_hosted = {.name = "hosted",
                                                .caps = DRIVER_HAS_HOSTS,
                                                .memory_preset = 512 << 20,
                                                .open = h_open,
                                                .close = h_close,
                                                .list = h_list,
                                                .capacity = h_capacity};
static struct driver place = {&driver_hosted};

#define HOST(host, ...)                                                                            \
    {.name = host, .uri = "x:", .pool_dir = "", .network = "", .ssh_config = "", __VA_ARGS__}

struct fixture {
    struct ground g;
    struct sandboxes *all;
};

static struct sandboxes *open_hosts(struct ground *g)
{
    static const struct driver_ops *const drivers[] = {&driver_hosted, NULL};
    static const struct driver_host hosts[] = {HOST("a", .memory_bytes = 1 << 30),
                                               HOST("b", .cpus = 2)};
    const struct driver_allows allows = {.machines = {.hosts = hosts, .host_count = 2}};
    struct sandboxes *all;
    struct err e = {0};

    assert_int_equal(sandboxes_open(&(struct sandboxes_config){.loop = &g->loop,
                                                               .store = g->store,
                                                               .commands = &exec_commands,
                                                               .drivers = drivers,
                                                               .allows = &allows,
                                                               .state = g->dir,
                                                               .node = "n"},
                                    &all, &e),
                     0);
    return all;
}

static int set_up(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    assert_int_equal(scratch_make(f->g.dir, "host"), 0);
    ground_open(&f->g);
    f->all = open_hosts(&f->g);
    asked.n = 0;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    while (asked.n > 0) {
        asked.n--;
        asked.done[asked.n](asked.arg[asked.n], NULL, &(struct err){.code = ERR_CANCELLED});
    }
    f->all = sandboxes_close(f->all);
    ground_close(&f->g);
    assert_int_equal(scratch_remove(f->g.dir), 0);
    mem_free(f);
    return 0;
}

#define NOBODY 2
/* Each host is asked, and has this; one of them does not answer. */
static void answer(struct fixture *f, size_t silent_one, const struct driver_capacity *c)
{
    static const struct err none, silent = {.code = ERR_UNAVAILABLE, .msg = "no way there"};

    hosts_tick(f->all);
    assert_int_equal(asked.n, 2);
    asked.n = 0;
    for (size_t i = 0; i < 2; i++)
        asked.done[i](asked.arg[i], i == silent_one ? NULL : c, i == silent_one ? &silent : &none);
}

static const char *placed(struct fixture *f, const char *wanted, struct sandbox_limits l,
                          struct err *e)
{
    const struct driver_slot *s = host_place(f->all, &driver_hosted, str_of(wanted), &l, e);

    return s ? host_name(s) : "";
}

static void a_machine_goes_where_it_fits(void **state)
{
    struct fixture *f = *state;
    const struct driver_capacity has = {
        .memory_bytes = 4LL << 30, .cpus = 8, .disk_bytes = 1 << 30};
    struct err e = {0};

    assert_string_equal(placed(f, "", (struct sandbox_limits){0}, &e), "a"); /* nothing is known */
    answer(f, NOBODY, &has);
    assert_string_equal(placed(f, "", (struct sandbox_limits){0}, &e), "a");
    assert_string_equal(placed(f, "b", (struct sandbox_limits){0}, &e), "b");
    /* over the setting's limit of the one, over that of the other */
    assert_string_equal(placed(f, "", (struct sandbox_limits){.memory_bytes = 2LL << 30}, &e), "b");
    assert_string_equal(placed(f, "", (struct sandbox_limits){.cpu_millis = 2001}, &e), "a");
    assert_string_equal(
        placed(f, "", (struct sandbox_limits){.memory_bytes = 2LL << 30, .cpu_millis = 3000}, &e),
        "");
    assert_int_equal(e.code, ERR_INVALID);
    assert_non_null(strstr(e.msg, "'a': 1024 MiB of memory; 'b': 2 CPUs"));
    assert_string_equal(placed(f, "", (struct sandbox_limits){.disk_bytes = 2LL << 30}, &e), "");
    assert_non_null(strstr(e.msg, "MiB of disk"));
    assert_string_equal(placed(f, "c", (struct sandbox_limits){0}, &e), "");
    assert_non_null(strstr(e.msg, "there is no host 'c'"));
}

static void on_drained(void *arg, const struct err *e)
{
    assert_int_equal(e->code, ERR_NONE);
    *(bool *)arg = true;
}

static void drained_and_silent_hosts_get_none(void **state)
{
    static const struct principal by = {.role = ROLE_ADMIN, .actor = "token/tk_tester"};
    struct fixture *f = *state;
    const struct driver_capacity has = {.memory_bytes = 4LL << 30, .cpus = 8};
    struct host_info i;
    bool done = false;
    struct err e = {0};

    assert_int_equal(host_drain(f->all, STR("a"), true, &by, on_drained, &done, &e), 0);
    assert_string_equal(placed(f, "", (struct sandbox_limits){0}, &e), "b");
    for (int n = 0; !done && n < 10000; n++)
        (void)uv_run(&f->g.loop, UV_RUN_ONCE);
    answer(f, 1, &has);
    assert_string_equal(placed(f, "", (struct sandbox_limits){0}, &e), "");
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.msg, "'a': drained; 'b': does not answer"));
    assert_int_equal(host_find(f->all, STR("b"), &i, &e), 0);
    assert_true(i.state == HOST_DOWN && str_eq_c(i.reason, "no way there"));
    /* the row is there for the next holtd */
    f->all = sandboxes_close(f->all);
    f->all = open_hosts(&f->g);
    assert_true(host_next(f->all, 0, &i) && i.drained);
    assert_true(host_next(f->all, 1, &i) && !i.drained && i.state == HOST_UNKNOWN);
    assert_false(host_next(f->all, 2, &i));
    answer(f, NOBODY, &has);
    assert_string_equal(placed(f, "", (struct sandbox_limits){0}, &e), "b");
    assert_int_equal(host_drain(f->all, STR("nowhere"), true, &by, on_drained, &done, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_goes_where_it_fits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(drained_and_silent_hosts_get_none, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
