#include "wire/virt.h"

#include "unit.h"

static const struct virt_list_row list_rows[] = {{{"sb_1", 4}, 1, 0}, {{"sb_2", 4}, 0, 1}};

static struct virt_msg sample(enum virt_type type)
{
    struct virt_msg m = {.type = type, .tag = virt_types[type].untagged ? 0 : 7};

    if (type == VIRT_HELLO)
        m.u.hello = (struct virt_hello){1, 1, STR("in_1")};
    else if (type == VIRT_WELCOME)
        m.u.welcome.version = 1;
    else if (type == VIRT_CREATE)
        m.u.create = (struct virt_create){STR("sb_1"), STR("box"), VIRT_RELAY, 1 << 20,
                                          2,           3,          4,          STR("-----BEGIN")};
    else if (type == VIRT_STATS)
        m.u.stats = (struct virt_stats){1, 2, 3};
    else if (type == VIRT_LIST)
        m.u.list.after = STR("sb_0");
    else if (type == VIRT_LISTED)
        m.u.listed = (struct virt_listed){1, {.count = 2, .items = list_rows}};
    else if (type == VIRT_HOST)
        m.u.host = (struct virt_host){1, 2, 3, 4, 5, 6, VIRT_ACCEL_TCG, STR("rack"), STR("QEMU 7")};
    else if (type != VIRT_DONE && type != VIRT_CREATED && type != VIRT_HOST_GET)
        m.u.name.id = STR("sb_1");
    return m;
}

static void every_type_survives_the_round_trip(void **state)
{
    static uint8_t one[4096], two[4096];

    (void)state;
    for (unsigned type = 1; type < VIRT_TYPE_END; type++) {
        struct wire_out o = {.p = one, .size = sizeof one}, o2 = {.p = two, .size = sizeof two};
        enum packet_side from = virt_types[type].from;
        size_t fds = virt_types[type].fds;
        struct virt_msg m = sample(type), back;
        struct err e = {0};

        if (packet_encode(&virt_protocol, &m, from, &o, &e) < 0)
            fail_msg("%s: %s", virt_types[type].name, e.msg);
        assert_int_equal(packet_decode(&virt_protocol, str_make(one, o.n), fds, from, &back, &e),
                         0);
        assert_int_equal(packet_encode(&virt_protocol, &back, from, &o2, &e), 0);
        assert_int_equal(o.n, o2.n);
        assert_memory_equal(one, two, o.n);
        assert_int_equal(
            packet_decode(&virt_protocol, str_make(one, o.n), fds, from ^ 3, &back, &e), -1);
        assert_int_equal(
            packet_decode(&virt_protocol, str_make(one, o.n), fds + 1, from, &back, &e), -1);
        for (size_t cut = 0; cut < o.n; cut++)
            assert_int_equal(
                packet_decode(&virt_protocol, str_make(one, cut), fds, from, &back, &e), -1);
    }
}

static void names_that_would_reach_elsewhere_are_refused(void **state)
{
    (void)state;
    assert_true(virt_id_is_safe(STR("sb_01")));
    assert_false(virt_id_is_safe(STR("../x")));
    assert_false(virt_id_is_safe(STR("")));
    assert_true(virt_hostname_is_safe(STR("box-1.local")));
    assert_false(virt_hostname_is_safe(STR("a init=/bin/sh"))); /* the kernel's command line */
    assert_false(virt_hostname_is_safe(STR("")));
}

static void files_are_named_by_host(void **state)
{
    char name[VIRT_FILE_MAX];

    (void)state;
    virt_file_name(VIRT_HOST_PRESET, name);
    assert_string_equal(name, "virt");
    virt_file_name("rack-1", name);
    assert_string_equal(name, "virt-rack-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_survives_the_round_trip),
        cmocka_unit_test(names_that_would_reach_elsewhere_are_refused),
        cmocka_unit_test(files_are_named_by_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
