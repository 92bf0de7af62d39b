#include "core/identity/throttle.h"

#include "base/clock.h"
#include "unit.h"

#include <stdio.h>

static struct clock_fake now = {.wall_ms = 1, .mono_ns = 1};

static bool active(const struct throttle *t, const char *peer)
{
    int64_t ms;

    return throttle_active(t, str_of(peer), &ms);
}

static void off_never_throttles(void **state)
{
    struct throttle t = {0};

    (void)state;
    for (int i = 0; i < 100; i++)
        throttle_failed(&t, STR("a"));
    assert_false(active(&t, "a"));
    throttle_done(&t);
}

static void memory_is_bounded_and_a_flood_is_counted_as_one(void **state)
{
    struct throttle t = {.failures = 2, .window_ms = 1000};
    char name[32];

    (void)state;
    clock_set_fake(&now);
    for (int i = 0; i < THROTTLE_PEERS_MAX + 1000; i++) {
        (void)snprintf(name, sizeof name, "peer %d", i);
        throttle_failed(&t, str_of(name));
    }
    assert_true(t.peers.count <= THROTTLE_PEERS_MAX + 1);
    assert_false(active(&t, "peer 1"));  /* failed once, has a count of its own */
    assert_true(active(&t, "newcomer")); /* past the bound all share one */
    now.mono_ns += 1000 * 1000000LL;
    assert_false(active(&t, "newcomer"));
    throttle_failed(&t, STR("newcomer")); /* makes room by forgetting */
    assert_int_equal(t.peers.count, 1);
    clock_set_fake(NULL);
    throttle_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_never_throttles),
        cmocka_unit_test(memory_is_bounded_and_a_flood_is_counted_as_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
