#include "core/approval/grant.h"

#include "base/wild.h"
#include "team_fixture.h"

/* Asks: who may answer, how often, for how long, and what a yes permits. */

struct asked {
    struct approval a;
    struct grant g;
    struct approval_decision d;
    struct grant_action action;
    struct grant_list grants;
    struct str id;
    int used;
};

static int ask(struct team *t, void *arg, struct err *e)
{
    struct asked *c = arg;

    return question_make(t, &c->a, e);
}

static int decide(struct team *t, void *arg, struct err *e)
{
    struct asked *c = arg;

    return approval_decide(t, c->a.id, &c->d, &c->a, &c->g, e);
}

static int cancel(struct team *t, void *arg, struct err *e)
{
    struct asked *c = arg;

    return question_cancel(t, c->a.id, STR(""), &c->a, e);
}

static int expire(struct team *t, void *arg, struct err *e)
{
    (void)arg;
    return questions_expire(t, e);
}

static int need(struct team *t, void *arg, struct err *e)
{
    struct asked *c = arg;

    return approval_need(t, NULL, c->a.id, &c->a, e);
}

static int use(struct team *t, void *arg, struct err *e)
{
    struct asked *c = arg;

    c->used = grant_use(t, &c->action, &c->g, e);
    return c->used < 0 ? -1 : 0;
}

static int list_grants(struct team *t, void *arg, struct err *e)
{
    struct asked *c = arg;

    return grant_all(t, STR(""), 100, &c->grants, e);
}

static int end_grant(struct team *t, void *arg, struct err *e)
{
    struct asked *c = arg;

    return grant_revoke(t, c->g.id, e);
}

static void as(struct fixture *f, const char *owner, const char *person)
{
    (void)snprintf(f->t.who.actor, sizeof f->t.who.actor, "%s", owner);
    f->t.who.owner = str_of(owner);
    f->t.who.person = str_of(person);
    f->t.who.agent = (struct str){0};
    f->t.who.named = true;
}

static void as_worker(struct fixture *f)
{
    as(f, "token/agent", "");
    f->t.who.agent = STR("worker");
}

static struct asked question(struct fixture *f)
{
    struct asked c = {.a = {.kind = STR("ask"),
                            .question = STR("may I?"),
                            .action = STR("exec.create"),
                            .arguments = STR("{}"),
                            .hash = STR("h1"),
                            .sandbox = STR("sb_1"),
                            .expires_ms = f->t.now_ms + 1000},
                      .d = {.yes = true}};

    as_worker(f);
    assert_int_equal(run(f, ask, &c), ERR_NONE);
    c.action = (struct grant_action){.asker = STR("token/agent"),
                                     .operation = STR("exec.create"),
                                     .hash = STR("h1"),
                                     .sandbox = STR("sb_1"),
                                     .text = STR("git push origin")};
    return c;
}

static void a_key_finds_the_question_again(void **state)
{
    struct fixture *f = *state;
    struct asked c = {.a = {.kind = STR("ask"), .question = STR("a?"), .key = STR("k")}};
    struct asked same = c, other = c, theirs = c;

    as_worker(f);
    assert_int_equal(run(f, ask, &c), ERR_NONE);
    assert_int_equal(run(f, ask, &same), ERR_NONE);
    assert_true(str_eq(same.a.id, c.a.id));
    other.a.question = STR("b?");
    assert_int_equal(run(f, ask, &other), ERR_CONFLICT);
    as(f, "token/other", "");
    assert_int_equal(run(f, ask, &theirs), ERR_NONE);
    assert_false(str_eq(theirs.a.id, c.a.id));
}

static void only_others_with_a_name_answer(void **state)
{
    struct fixture *f = *state;
    struct asked c = question(f);

    assert_int_equal(run(f, decide, &c), ERR_FORBIDDEN); /* an agent */
    as(f, "token/agent", "");
    assert_int_equal(run(f, decide, &c), ERR_FORBIDDEN); /* the asker, as a person */
    as(f, "token/alice", "");
    f->t.who.named = false;
    assert_int_equal(run(f, decide, &c), ERR_FORBIDDEN); /* nobody knows who */
    f->t.who.named = true;
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(c.a.state, APPROVAL_APPROVED);
    assert_int_equal(run(f, decide, &c), ERR_CONFLICT);
}

static void a_person_is_one_whatever_the_token(void **state)
{
    struct fixture *f = *state;
    struct asked c = {.a = {.kind = STR("ask"), .question = STR("a?"), .people = 2},
                      .d = {.yes = true}};

    as(f, "token/1", "alice");
    assert_int_equal(run(f, ask, &c), ERR_NONE);
    as(f, "token/2", "alice");
    assert_int_equal(run(f, decide, &c), ERR_FORBIDDEN); /* asked with another token */
    as(f, "token/3", "bob");
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(c.a.state, APPROVAL_PENDING);
    as(f, "token/4", "bob");
    assert_int_equal(run(f, decide, &c), ERR_CONFLICT);
    as(f, "token/5", "carol");
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(c.a.state, APPROVAL_APPROVED);
}

static void a_setting_asks_for_two(void **state)
{
    struct fixture *f = *state;
    struct asked c = {.a = {.kind = STR("destructive"), .question = STR("a?")}, .d = {.yes = true}};
    struct asked no = c;

    f->t.conf.two_people = 1U << 3;
    as_worker(f);
    assert_int_equal(run(f, ask, &c), ERR_NONE);
    assert_int_equal(run(f, ask, &no), ERR_NONE);
    as(f, "token/1", "alice");
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(c.a.state, APPROVAL_PENDING);
    no.d.yes = false; /* one no is enough */
    assert_int_equal(run(f, decide, &no), ERR_NONE);
    assert_int_equal(no.a.state, APPROVAL_REJECTED);
}

static void time_never_approves(void **state)
{
    struct fixture *f = *state;
    struct asked c = question(f), back = question(f);

    assert_int_equal(run(f, cancel, &back), ERR_NONE);
    assert_int_equal(back.a.state, APPROVAL_CANCELLED);
    f->t.now_ms += 1000;
    assert_int_equal(run(f, expire, NULL), ERR_NONE);
    assert_int_equal(run(f, need, &c), ERR_NONE);
    assert_int_equal(c.a.state, APPROVAL_EXPIRED);
    as(f, "token/alice", "alice");
    assert_int_equal(run(f, decide, &c), ERR_CONFLICT);
    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 0);
}

static void a_grant_is_for_one_exact_use(void **state)
{
    struct fixture *f = *state;
    struct asked c = question(f), other;

    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 0);
    as(f, "token/alice", "alice");
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    other = c;
    other.action.hash = STR("h2");
    assert_int_equal(run(f, use, &other), ERR_NONE);
    assert_int_equal(other.used, 0); /* a changed argument */
    other = c;
    other.action.asker = STR("token/other");
    assert_int_equal(run(f, use, &other), ERR_NONE);
    assert_int_equal(other.used, 0); /* somebody else */
    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 1);
    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 0); /* a second use */
}

static void a_wider_grant_is_shown_first(void **state)
{
    struct fixture *f = *state;
    struct asked c = question(f);

    as(f, "token/alice", "alice");
    c.d = (struct approval_decision){.yes = true, .scope = APPROVAL_RULE, .preview = true};
    assert_int_equal(run(f, decide, &c), ERR_INVALID); /* without its pattern */
    c.d.pattern = STR("git push *");
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(c.a.state, APPROVAL_PENDING);
    assert_true(str_eq_c(c.g.pattern, "git push *") && c.g.id.n == 0);
    c.d.preview = false;
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    c.action.hash = STR("h2");
    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 1);
    c.action.text = STR("git pull");
    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 0);
    c.action.text = STR("git push x");
    c.action.sandbox = STR("sb_2");
    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 0);
}

static void grants_end(void **state)
{
    struct fixture *f = *state;
    struct asked c = question(f), d = question(f);

    as(f, "token/alice", "alice");
    c.d.scope = APPROVAL_TIME;
    c.d.for_ms = 5000;
    d.d.scope = APPROVAL_TIME;
    assert_int_equal(run(f, decide, &c), ERR_NONE);
    assert_int_equal(run(f, decide, &d), ERR_NONE);
    assert_int_equal(run(f, list_grants, &c), ERR_NONE);
    assert_int_equal(c.grants.n, 2);
    assert_int_equal(run(f, end_grant, &d), ERR_NONE);
    assert_int_equal(run(f, end_grant, &d), ERR_NOT_FOUND);
    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 1);
    f->t.now_ms += 5000;
    assert_int_equal(run(f, use, &c), ERR_NONE);
    assert_int_equal(c.used, 0);
    assert_int_equal(run(f, list_grants, &c), ERR_NONE);
    assert_int_equal(c.grants.n, 0);
}

static void undecided_ones_are_bounded(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 4; i++) {
        struct asked c = {.a = {.kind = STR("ask"), .question = STR("a?")}};

        as_worker(f);
        assert_int_equal(run(f, ask, &c), i < 3 ? ERR_NONE : ERR_LIMIT);
    }
}

static void patterns(void **state)
{
    static const struct {
        const char *pattern, *text;
        bool fits;
    } cases[] = {
        {"a*c", "abc", true},     {"a*c", "ac", true},  {"a*c", "abd", false},
        {"*", "", true},          {"?", "", false},     {"git *", "git push", true},
        {"*x*y", "axbxcy", true}, {"a?c", "abc", true}, {"abc", "ABC", false},
        {"git *", "git", false},  {"", "a", false},     {"*a", "ba", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(wild_fits(str_of(cases[i].pattern), str_of(cases[i].text)), cases[i].fits);
}

static void a_hash_is_of_values_not_of_their_order(void **state)
{
    json_t *a = json_pack("{s:s, s:i}", "x", "1", "y", 2);
    json_t *b = json_pack("{s:i, s:s}", "y", 2, "x", "1");
    json_t *c = json_pack("{s:i, s:s}", "y", 3, "x", "1");
    char ha[GRANT_HASH], hb[GRANT_HASH], hc[GRANT_HASH], ho[GRANT_HASH];

    (void)state;
    grant_hash(STR("op"), a, ha);
    grant_hash(STR("op"), b, hb);
    grant_hash(STR("op"), c, hc);
    grant_hash(STR("other"), a, ho);
    assert_string_equal(ha, hb);
    assert_string_not_equal(ha, hc);
    assert_string_not_equal(ha, ho);
    json_decref(a);
    json_decref(b);
    json_decref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, team_setup, team_teardown)
        TEST(a_key_finds_the_question_again),
        TEST(only_others_with_a_name_answer),
        TEST(a_person_is_one_whatever_the_token),
        TEST(a_setting_asks_for_two),
        TEST(time_never_approves),
        TEST(a_grant_is_for_one_exact_use),
        TEST(a_wider_grant_is_shown_first),
        TEST(grants_end),
        TEST(undecided_ones_are_bounded),
        cmocka_unit_test(patterns),
        cmocka_unit_test(a_hash_is_of_values_not_of_their_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
