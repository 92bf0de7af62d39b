#include "core/approval/egress_rule.h"
#include "core/approval/grant.h"
#include "team_fixture.h"

struct case_ { /* what is asked, and what came of it */
    struct approval a;
    struct str sandbox, tenant, host, id;
    enum approval_scope scope;
    bool no;
    struct approval_list list;
    struct egress_rule_list rules;
};

static int ask(struct team *t, void *arg, struct err *e)
{
    struct case_ *c = arg;

    c->a = (struct approval){.sandbox = c->sandbox.p ? c->sandbox : STR("sb_1"),
                             .tenant = c->tenant.p ? c->tenant : STR(""),
                             .host = c->host.p ? c->host : STR("a.test"),
                             .port = 443,
                             .expires_ms = t->now_ms + 1000};
    return approval_ask(t, &c->a, e);
}

static int decide(struct team *t, void *arg, struct err *e)
{
    struct case_ *c = arg;
    struct grant none;

    return approval_decide(
        t, c->id.p ? c->id : c->a.id,
        &(struct approval_decision){.yes = !c->no, .scope = c->scope, .reason = STR("why")}, &c->a,
        &none, e);
}

static int decide_proposal(struct team *t, void *arg, struct err *e)
{
    struct case_ *c = arg;
    struct approval a;
    struct grant none;

    return approval_decide(t, c->a.id,
                           &(struct approval_decision){.kind = APPROVAL_PROPOSAL, .yes = true}, &a,
                           &none, e);
}

static int list_pending(struct team *t, void *arg, struct err *e)
{
    return approval_all(t, &(struct approval_filter){.state = APPROVAL_PENDING},
                        &((struct case_ *)arg)->list, e);
}

static int list_proposals(struct team *t, void *arg, struct err *e)
{
    return approval_all(t, &(struct approval_filter){.kind = APPROVAL_PROPOSAL, .state = -1},
                        &((struct case_ *)arg)->list, e);
}

static int list_rules(struct team *t, void *arg, struct err *e)
{
    return egress_rule_all(t, &((struct case_ *)arg)->rules, e);
}

static int close_late(struct team *t, void *arg, struct err *e)
{
    (void)arg;
    return approval_close(t, STR(""), "late", e);
}

static int close_of_sandbox(struct team *t, void *arg, struct err *e)
{
    (void)arg;
    if (approval_close(t, STR("sb_1"), "gone", e) < 0)
        return -1;
    return egress_rules_forget(t, STR("sb_1"), e);
}

static int remove_rule(struct team *t, void *arg, struct err *e)
{
    return egress_rule_remove(t, ((struct case_ *)arg)->rules.v[0].id, e);
}

static void the_same_question_is_one(void **state)
{
    struct fixture *f = *state;
    struct case_ c = {0}, again = {0}, other = {.host = STR("b.test")};

    assert_int_equal(run(f, ask, &c), ERR_NONE);
    f->t.now_ms += 500;
    assert_int_equal(run(f, ask, &again), ERR_NONE);
    assert_true(str_eq(c.a.id, again.a.id));
    assert_int_equal(again.a.expires_ms, c.a.expires_ms); /* its deadline does not move */
    assert_int_equal(run(f, ask, &other), ERR_NONE);
    assert_false(str_eq(c.a.id, other.a.id));
    assert_int_equal(run(f, list_pending, &c), ERR_NONE);
    assert_int_equal(c.list.n, 2);
    assert_int_equal(run(f, list_proposals, &c), ERR_NONE);
    assert_int_equal(c.list.n, 0);
    assert_int_equal(run(f, decide_proposal, &c), ERR_NOT_FOUND); /* not the hub's */
}

static void an_answer_for_once_leaves_no_rule(void **state)
{
    struct fixture *f = *state;
    struct case_ c = {0};

    assert_int_equal(run(f, ask, &c), ERR_NONE);
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(c.a.state, APPROVAL_APPROVED);
    assert_int_equal(run(f, decide, &c), ERR_CONFLICT);
    assert_int_equal(run(f, list_rules, &c), ERR_NONE);
    assert_int_equal(c.rules.n, 0);
}

static void an_answer_for_longer_is_a_rule(void **state)
{
    struct fixture *f = *state;
    struct case_ c = {.scope = APPROVAL_SANDBOX}, no = {.scope = APPROVAL_SANDBOX, .no = true};

    assert_int_equal(run(f, ask, &c), ERR_NONE);
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(run(f, list_rules, &c), ERR_NONE);
    assert_int_equal(c.rules.n, 1);
    assert_true(str_eq_c(c.rules.v[0].sandbox, "sb_1") && c.rules.v[0].allow);
    assert_int_equal(run(f, ask, &no), ERR_NONE); /* and a later one takes its place */
    assert_int_equal(run(f, decide, &no), ERR_NONE);
    assert_int_equal(run(f, list_rules, &c), ERR_NONE);
    assert_int_equal(c.rules.n, 1);
    assert_false(c.rules.v[0].allow);
    assert_int_equal(run(f, remove_rule, &c), ERR_NONE);
    assert_int_equal(run(f, remove_rule, &c), ERR_NOT_FOUND);
}

static void always_answers_the_whole_tenant(void **state)
{
    struct fixture *f = *state;
    struct case_ c = {.tenant = STR("t"), .scope = APPROVAL_ALWAYS};
    struct case_ same = {.tenant = STR("t"), .sandbox = STR("sb_2")};
    struct case_ other = {.tenant = STR("u"), .sandbox = STR("sb_3")};

    assert_int_equal(run(f, ask, &c), ERR_NONE);
    assert_int_equal(run(f, ask, &same), ERR_NONE);
    assert_int_equal(run(f, ask, &other), ERR_NONE);
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(run(f, list_pending, &c), ERR_NONE);
    assert_int_equal(c.list.n, 1);
    assert_true(str_eq_c(c.list.v[0].sandbox, "sb_3"));
    assert_int_equal(run(f, list_rules, &c), ERR_NONE);
    assert_int_equal(c.rules.n, 1);
    assert_true(c.rules.v[0].sandbox.n == 0 && str_eq_c(c.rules.v[0].tenant, "t"));
}

static void an_agent_decides_nothing(void **state)
{
    struct fixture *f = *state;
    struct case_ c = {.scope = APPROVAL_SANDBOX};

    assert_int_equal(run(f, ask, &c), ERR_NONE);
    f->t.who.agent = STR("a");
    assert_int_equal(run(f, decide, &c), ERR_FORBIDDEN);
    f->t.who.agent = (struct str){0};
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(run(f, list_rules, &c), ERR_NONE);
    f->t.who.agent = STR("a");
    assert_int_equal(run(f, remove_rule, &c), ERR_FORBIDDEN);
}

static void what_came_too_late_is_closed(void **state)
{
    struct fixture *f = *state;
    struct case_ c = {0}, later = {.host = STR("b.test")};

    assert_int_equal(run(f, ask, &c), ERR_NONE);
    f->t.now_ms += 600;
    assert_int_equal(run(f, ask, &later), ERR_NONE);
    f->t.now_ms += 400;
    assert_int_equal(run(f, close_late, NULL), ERR_NONE);
    assert_int_equal(run(f, decide, &c), ERR_CONFLICT);
    assert_int_equal(run(f, list_pending, &c), ERR_NONE);
    assert_int_equal(c.list.n, 1);
    assert_int_equal(run(f, close_of_sandbox, NULL), ERR_NONE);
    assert_int_equal(run(f, decide, &later), ERR_CONFLICT);
}

static void a_sandbox_takes_its_rules_along(void **state)
{
    struct fixture *f = *state;
    struct case_ c = {.scope = APPROVAL_SANDBOX};
    struct case_ always = {.scope = APPROVAL_ALWAYS, .host = STR("b.test")};

    assert_int_equal(run(f, ask, &c), ERR_NONE);
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(run(f, ask, &always), ERR_NONE);
    assert_int_equal(run(f, decide, &always), ERR_NONE);
    assert_int_equal(run(f, close_of_sandbox, NULL), ERR_NONE);
    assert_int_equal(run(f, list_rules, &c), ERR_NONE);
    assert_int_equal(c.rules.n, 1);
    assert_true(str_eq_c(c.rules.v[0].host, "b.test"));
}

static void questions_are_bounded(void **state)
{
    struct fixture *f = *state;
    char name[32];

    for (int i = 0; i < 33; i++) {
        struct case_ c = {0};

        (void)snprintf(name, sizeof name, "h%d.test", i);
        c.host = str_of(name);
        assert_int_equal(run(f, ask, &c), i < 32 ? ERR_NONE : ERR_LIMIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, team_setup, team_teardown)
        TEST(the_same_question_is_one),        TEST(an_answer_for_once_leaves_no_rule),
        TEST(an_answer_for_longer_is_a_rule),  TEST(always_answers_the_whole_tenant),
        TEST(an_agent_decides_nothing),        TEST(what_came_too_late_is_closed),
        TEST(a_sandbox_takes_its_rules_along), TEST(questions_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
