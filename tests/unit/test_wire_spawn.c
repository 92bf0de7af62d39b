#include "wire/spawn.h"

#include "unit.h"

static const struct wire_text layer[] = {{{"base", 4}}};
static const struct spawn_mount_row mount[] = {{SPAWN_MOUNT_TMPFS, {"", 0}, {"/data", 5}, 0, 4096}};
static const struct spawn_list_row listed[] = {{{"sb_1", 4}, SPAWN_RUNNING, 1}};

static struct spawn_msg sample(enum spawn_type type)
{
    struct spawn_msg m = {.type = type, .tag = type == SPAWN_EVENT ? 0 : 7};

    m.u.name.id = STR("sb_1"); /* the first field of every message about one sandbox */
    if (type == SPAWN_HELLO)
        m.u.hello = (struct spawn_hello){1, 1, STR("in_1")};
    else if (type == SPAWN_WELCOME)
        m.u.welcome = (struct spawn_welcome){1, 0, SPAWN_CAN_ALL, {3}};
    else if (type == SPAWN_CREATE)
        m.u.create = (struct spawn_create){.id = STR("sb_1"),
                                           .hostname = STR("den"),
                                           .memory_bytes = 1 << 20,
                                           .cpu_millis = 500,
                                           .layers = {.count = 1, .items = layer},
                                           .mounts = {.count = 1, .items = mount}};
    else if (type == SPAWN_CREATED)
        m.u.created = (struct spawn_created){12, 3, STR("sb/sb_1/init.sock"), 1};
    else if (type == SPAWN_STATS)
        m.u.stats = (struct spawn_stats){1, 2, 3, 4, 5, 6, 7, 8};
    else if (type == SPAWN_LISTED)
        m.u.listed = (struct spawn_listed){0, {.count = 1, .items = listed}};
    else if (type == SPAWN_LISTENERS)
        m.u.listeners.kinds = 15;
    else if (type == SPAWN_DESTROY)
        m.u.destroy.keep = 1;
    else if (type == SPAWN_MEASURE)
        m.u.measure.kind = SPAWN_MOUNT_VOLUME;
    else if (type == SPAWN_MEASURED)
        m.u.measured.bytes = 4096;
    else if (type == SPAWN_POOL)
        m.u.pool = (struct spawn_pool){8, 4};
    else if (type == SPAWN_POOLED)
        m.u.pooled = (struct spawn_pooled){3, 1};
    else if (type == SPAWN_SNAPSHOT)
        m.u.snapshot =
            (struct spawn_snapshot){STR("sb_1"), STR("tmp_1"), SPAWN_SNAPSHOT_MOVE, 1 << 20};
    else if (type == SPAWN_SNAPSHOTTED)
        m.u.snapshotted = (struct spawn_snapshotted){1, 2, 3, STR("ab12")};
    else if (type == SPAWN_DONE)
        m.u.done.err = (struct err){0};
    else if (type == SPAWN_EVENT)
        m.u.event = (struct spawn_event){STR("sb_1"), SPAWN_INIT_ENDED, 9};
    return m;
}

static void every_type_survives_the_round_trip(void **state)
{
    static uint8_t one[4096], two[4096];

    (void)state;
    for (unsigned type = 1; type < SPAWN_TYPE_END; type++) {
        struct wire_out o = {.p = one, .size = sizeof one}, o2 = {.p = two, .size = sizeof two};
        enum spawn_side from = spawn_types[type].from;
        size_t fds = spawn_types[type].fds;
        struct spawn_msg m = sample(type), back;
        struct err e = {0};

        if (spawn_encode(&m, from, &o, &e) < 0)
            fail_msg("%s: %s", spawn_types[type].name, e.msg);
        assert_int_equal(spawn_decode(str_make(one, o.n), fds, from, &back, &e), 0);
        assert_int_equal(spawn_encode(&back, from, &o2, &e), 0);
        assert_int_equal(o.n, o2.n);
        assert_memory_equal(one, two, o.n);
        assert_int_equal(spawn_decode(str_make(one, o.n), fds, from ^ 3, &back, &e), -1);
        assert_int_equal(spawn_decode(str_make(one, o.n), fds + 1, from, &back, &e), -1);
        for (size_t cut = 0; cut < o.n; cut++)
            assert_int_equal(spawn_decode(str_make(one, cut), fds, from, &back, &e), -1);
        assert_int_equal(spawn_decode(str_make(one, o.n + 1), fds, from, &back, &e), -1);
    }
}

static void tags_belong_to_requests_and_replies(void **state)
{
    uint8_t bytes[64];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct spawn_msg m = sample(SPAWN_DESTROY);
    struct err e = {0};

    (void)state;
    m.tag = 0;
    assert_int_equal(spawn_encode(&m, SPAWN_HOST, &o, &e), -1);
    m = sample(SPAWN_EVENT);
    m.tag = 1;
    assert_int_equal(spawn_encode(&m, SPAWN_SPAWN, &o, &e), -1);
}

static void ids_that_are_no_plain_file_names_are_refused(void **state)
{
    static const char *const bad[] = {
        "", ".", "..", "a/b", "a.b", "-rf", "a b", "\xc3\xa4", "01234567890123456789012345678901"};

    (void)state;
    assert_true(spawn_id_is_safe(STR("sb_01hx-A")));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(spawn_id_is_safe(str_of(bad[i])));
    assert_false(spawn_id_is_safe(STR("a\0b")));
    assert_true(spawn_layer_is_safe(
        STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")));
    assert_false(spawn_layer_is_safe(
        STR("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_survives_the_round_trip),
        cmocka_unit_test(tags_belong_to_requests_and_replies),
        cmocka_unit_test(ids_that_are_no_plain_file_names_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
