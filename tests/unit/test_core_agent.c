#include "team_fixture.h"

static int beat(struct team *t, void *arg, struct err *e)
{
    struct agent a;

    return agent_heartbeat(t, str_of(arg), &a, e);
}

static int watch(struct team *t, void *arg, struct err *e)
{
    bool due;

    if (agent_watch_due(t, &due, e) < 0)
        return -1;
    *(bool *)arg = due;
    return agent_watch(t, e);
}

static int pause_it(struct team *t, void *arg, struct err *e)
{
    return agent_pause(t, str_of(arg), STR("why"), e);
}

static int resume_it(struct team *t, void *arg, struct err *e)
{
    struct agent a;

    return agent_resume(t, str_of(arg), &a, e);
}

static int revoke_it(struct team *t, void *arg, struct err *e)
{
    struct directive d;

    return agent_revoke(t, str_of(arg), STR("why"), true, &d, e);
}

static int ack_it(struct team *t, void *arg, struct err *e)
{
    return agent_acknowledge(t, str_of(arg), STR(""), e);
}

static int remove_it(struct team *t, void *arg, struct err *e)
{
    return agent_remove(t, str_of(arg), e);
}

static int checkpoint_it(struct team *t, void *arg, struct err *e)
{
    struct checkpoint c = {.agent = str_of(arg),
                           .card = STR("x"),
                           .state = STR(""),
                           .rationale = STR(""),
                           .metadata = STR("{}")};

    return agent_checkpoint(t, &c, e);
}

#define NAME(text) ((void *)(uintptr_t)(text))

static void status_follows_heartbeats_and_checkpoints(void **state)
{
    struct fixture *f = *state;
    bool due;

    assert_int_equal(run(f, do_register, NAME("a")), ERR_NONE);
    assert_int_equal(look(f, "a").status, AGENT_ONLINE);
    assert_int_equal(run(f, watch, &due), ERR_NONE);
    assert_false(due);
    for (int i = 0; i < 18; i++)
        assert_int_equal(run(f, beat, NAME("a")), ERR_NONE);
    assert_int_equal(look(f, "a").status, AGENT_STALLED);
    assert_int_equal(run(f, checkpoint_it, NAME("a")), ERR_NONE);
    assert_int_equal(look(f, "a").status, AGENT_ONLINE);
    f->t.now_ms += 30001;
    assert_int_equal(run(f, watch, &due), ERR_NONE);
    assert_true(due);
    assert_int_equal(look(f, "a").status, AGENT_OFFLINE);
    assert_int_equal(run(f, beat, NAME("a")), ERR_NONE);
    assert_int_equal(look(f, "a").status, AGENT_ONLINE);
}

static void silence_counts_while_somebody_listens(void **state)
{
    struct fixture *f = *state;
    bool due;

    assert_int_equal(run(f, do_register, NAME("gone")), ERR_NONE);
    f->t.now_ms += 30001;
    assert_int_equal(run(f, do_register, NAME("here")), ERR_NONE);
    assert_int_equal(run(f, watch, &due), ERR_NONE);
    f->t.now_ms += 3600000; /* holtd was away */
    f->t.since_ms = f->t.now_ms;
    assert_int_equal(run(f, watch, &due), ERR_NONE);
    assert_false(due);
    assert_int_equal(look(f, "here").status, AGENT_ONLINE);
    assert_int_equal(look(f, "gone").status, AGENT_OFFLINE); /* it was before, and said nothing */
    f->t.now_ms += 30001;
    assert_int_equal(run(f, watch, &due), ERR_NONE);
    assert_true(due);
    assert_int_equal(look(f, "here").status, AGENT_OFFLINE);
}

static void directives_outlive_everything_else(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(run(f, do_register, NAME("a")), ERR_NONE);
    assert_int_equal(run(f, pause_it, NAME("a")), ERR_NONE);
    assert_int_equal(run(f, revoke_it, NAME("a")), ERR_NONE);
    assert_int_equal(run(f, beat, NAME("a")), ERR_NONE);
    assert_int_equal(run(f, remove_it, NAME("a")), ERR_NONE);
    assert_int_equal(run(f, do_register, NAME("a")), ERR_NONE);
    assert_int_equal(look(f, "a").status, AGENT_REVOKED);
    assert_int_equal(run(f, ack_it, NAME("a")), ERR_NONE);
    assert_int_equal(look(f, "a").status, AGENT_PAUSED);
    assert_int_equal(run(f, resume_it, NAME("a")), ERR_NONE);
    assert_int_equal(look(f, "a").status, AGENT_ONLINE);
}

static void agents_do_not_rule(void **state)
{
    static const rule rules[] = {pause_it, resume_it, revoke_it};
    struct fixture *f = *state;

    assert_int_equal(run(f, do_register, NAME("a")), ERR_NONE);
    as_agent(f, "a");
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        assert_int_equal(run(f, rules[i], NAME("a")), ERR_FORBIDDEN);
    assert_int_equal(run(f, beat, NAME("b")), ERR_FORBIDDEN);
    assert_int_equal(run(f, do_register, NAME("b")), ERR_FORBIDDEN);
    assert_int_equal(run(f, ack_it, NAME("b")), ERR_FORBIDDEN);
}

static int set_mode(struct team *t, void *arg, struct err *e)
{
    return agent_set_mode(t, STR("a"), *(enum agent_mode *)arg, e);
}

static void only_people_raise_a_mode(void **state)
{
    struct fixture *f = *state;
    enum agent_mode advisory = AGENT_ADVISORY, manual = AGENT_MANUAL, full = AGENT_AUTONOMOUS;

    assert_int_equal(run(f, do_register, NAME("a")), ERR_NONE);
    assert_int_equal(run(f, set_mode, &advisory), ERR_NONE);
    as_agent(f, "a");
    assert_int_equal(run(f, set_mode, &full), ERR_FORBIDDEN);
    assert_int_equal(run(f, set_mode, &manual), ERR_NONE);
    assert_int_equal(run(f, set_mode, &advisory), ERR_NONE);
    as_agent(f, NULL);
    assert_int_equal(run(f, set_mode, &full), ERR_NONE);
    as_agent(f, "a");
    assert_int_equal(run(f, set_mode, &full), ERR_NONE);
}

static void names_and_numbers_are_bounded(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"", "a,b", "a/b", "a\n", "*", "human"};
    char name[8];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(run(f, do_register, NAME(bad[i])), ERR_INVALID);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(run(f, do_register, name), ERR_NONE);
    }
    assert_int_equal(run(f, do_register, NAME("one more")), ERR_LIMIT);
    assert_int_equal(run(f, do_register, name), ERR_NONE); /* again is not more */
}

static void tags_are_sets(void **state)
{
    struct fixture *f = *state;
    const struct str v[] = {STR(" Code "), STR("review"), STR("CODE"), STR("")};
    struct str tags;
    struct err e = {0};

    assert_int_equal(team_tags(&f->arena, v, ARRAY_LEN(v), &tags, &e), 0);
    assert_true(str_eq_c(tags, "code,review"));
    assert_true(team_tags_cover(tags, STR("review")) && team_tags_cover(tags, STR("")));
    assert_false(team_tags_cover(tags, STR("code,cod")));
    assert_int_equal(team_tags_count(tags), 2);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, team_setup, team_teardown)
    const struct CMUnitTest tests[] = {
        TEST(status_follows_heartbeats_and_checkpoints),
        TEST(silence_counts_while_somebody_listens),
        TEST(directives_outlive_everything_else),
        TEST(agents_do_not_rule),
        TEST(only_people_raise_a_mode),
        TEST(names_and_numbers_are_bounded),
        TEST(tags_are_sets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
