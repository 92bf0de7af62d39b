/* The registry of remote agents: heartbeats, links that replace each other, sandboxes that end. */
#include "core/remote/remote.h"

#include "base/clock.h"

#include "unit.h"

#define BEAT_MS 90000

static struct {
    int closed;
    bool shutdown;
    char why[256], forgot[64], noted[512];
} seen;

static void on_close(void *arg, const struct err *why, bool shutdown)
{
    (void)arg;
    seen.closed++;
    seen.shutdown = shutdown;
    (void)snprintf(seen.why, sizeof seen.why, "%s", why->msg);
}

static const struct remote_ops ops = {.close = on_close};

static void on_note(void *arg, const char *type, const char *sandbox, struct str data)
{
    size_t n = strlen(seen.noted);

    (void)arg, (void)sandbox, (void)data;
    (void)snprintf(seen.noted + n, sizeof seen.noted - n, "%s ", type);
}

static void on_forget(void *arg, const char *id)
{
    (void)arg;
    (void)snprintf(seen.forgot, sizeof seen.forgot, "%s", id);
}

static struct clock_fake now;

static void pass(struct remotes *all, int64_t ms)
{
    now.mono_ns += ms * 1000000;
    now.wall_ms += ms;
    clock_set_fake(&now);
    remotes_tick(all);
}

static struct remotes *begin(void)
{
    struct remotes *all = remotes_new(NULL, on_note, NULL, BEAT_MS);

    memset(&seen, 0, sizeof seen);
    now = (struct clock_fake){.wall_ms = 1000000, .mono_ns = 1000000};
    clock_set_fake(&now);
    remotes_on_forget(all, on_forget, NULL);
    return all;
}

static struct remote *joined(struct remotes *all, const char *sandbox)
{
    struct err e = {0};
    struct remote *r = remote_join(all, STR("far"), &ops, &seen, true, &e);

    assert_non_null(r);
    remote_expect(r, true);
    assert_int_equal(remote_bind(all, STR("far"), sandbox, false, &e), 0);
    return r;
}

static enum remote_state state(const struct remote *r)
{
    struct remote_info i;

    remote_info(r, &i);
    return i.state;
}

static void end(struct remotes *all)
{
    (void)remotes_free(all);
    clock_set_fake(NULL);
}

static void silence_ends_a_link(void **unused)
{
    struct remotes *all = begin();
    struct remote *r = joined(all, "sb_1");

    (void)unused;
    pass(all, BEAT_MS / 3 * 2 - 1);
    assert_int_equal(state(r), REMOTE_READY);
    pass(all, 1);
    assert_int_equal(state(r), REMOTE_STALE);
    remote_beat(r, false, STR(""), STR(""));
    assert_int_equal(state(r), REMOTE_READY);
    pass(all, BEAT_MS - 1);
    assert_int_equal(seen.closed, 0);
    pass(all, 1);
    assert_int_equal(seen.closed, 1);
    assert_non_null(strstr(seen.why, "no heartbeat for 90 s"));
    assert_int_equal(state(r), REMOTE_DISCONNECTED);
    assert_string_equal(seen.noted, "agent.connected agent.ready agent.disconnected ");
    pass(all, 100LL * BEAT_MS); /* it is a sandbox: who keeps those removes it */
    assert_ptr_equal(remotes_of_sandbox(all, STR("sb_1")), r);
    end(all);
}

static void times_follow_the_setting(void **unused)
{
    struct remotes *all = begin();

    (void)unused;
    assert_int_equal(remotes_gone_ms(all), 300000);
    remotes_set_heartbeat(all, 200000);
    assert_int_equal(remotes_gone_ms(all), 600000);
    end(all);
}

static void the_newest_link_wins(void **unused)
{
    struct remotes *all = begin();
    struct remote *r = joined(all, "sb_1");
    struct err e = {0};
    int other;

    (void)unused;
    assert_ptr_equal(remote_join(all, STR("far"), &ops, &other, true, &e), r);
    assert_int_equal(seen.closed, 1);
    remote_left(r, &seen); /* the old one, late */
    assert_int_equal(state(r), REMOTE_READY);
    remote_left(r, &other);
    assert_int_equal(state(r), REMOTE_DISCONNECTED);
    end(all);
}

static void only_its_own_agent_makes_a_sandbox(void **unused)
{
    struct remotes *all = begin();
    struct err e = {0};
    struct remote *r;

    (void)unused;
    assert_int_equal(remote_bind(all, STR("far"), "sb_1", false, &e), -1);
    r = remote_join(all, STR("far"), &ops, &seen, true, &e);
    assert_int_equal(remote_bind(all, STR("far"), "sb_1", false, &e), -1);
    assert_int_equal(e.code, ERR_CONFLICT);
    remote_expect(r, true);
    assert_int_equal(remote_bind(all, STR("far"), "sb_1", false, &e), 0);
    remote_expect(r, true);
    assert_int_equal(remote_bind(all, STR("far"), "sb_2", false, &e), -1);
    end(all);
}

static void a_destroy_ends_the_secret(void **unused)
{
    struct remotes *all = begin();
    struct remote *r = joined(all, "sb_1");

    (void)unused;
    remote_release(all, STR("sb_1"), REMOTE_STOPPED);
    assert_true(seen.shutdown);
    assert_ptr_equal(remotes_of_sandbox(all, STR("sb_1")), r);
    remote_release(all, STR("sb_1"), REMOTE_DESTROYED);
    assert_string_equal(seen.forgot, "far");
    assert_null(remotes_of_sandbox(all, STR("sb_1")));

    seen.forgot[0] = '\0';
    (void)joined(all, "sb_2");
    remote_release(all, STR("sb_2"), REMOTE_UNDONE);
    assert_string_equal(seen.forgot, "");
    r = joined(all, "sb_3");
    remote_gone(r);
    remote_release(all, STR("sb_3"), REMOTE_DESTROYED);
    assert_string_equal(seen.forgot, "");
    end(all);
}

static void ids_are_names(void **unused)
{
    char longest[REMOTE_ID_MAX + 2];

    (void)unused;
    memset(longest, 'a', sizeof longest);
    assert_true(remote_id_is_valid(STR("agent-01")));
    assert_true(remote_id_is_valid(str_make(longest, REMOTE_ID_MAX)));
    assert_false(remote_id_is_valid(str_make(longest, REMOTE_ID_MAX + 1)));
    assert_false(remote_id_is_valid(STR("")));
    assert_false(remote_id_is_valid(STR("-a")));
    assert_false(remote_id_is_valid(STR("A")));
    assert_false(remote_id_is_valid(STR("a/b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_ends_a_link),
        cmocka_unit_test(times_follow_the_setting),
        cmocka_unit_test(the_newest_link_wins),
        cmocka_unit_test(only_its_own_agent_makes_a_sandbox),
        cmocka_unit_test(a_destroy_ends_the_secret),
        cmocka_unit_test(ids_are_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
