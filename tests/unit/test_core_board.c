#include "core/approval/grant.h"
#include "team_fixture.h"

struct board { /* what a rule is asked, and says */
    struct str project, card, agent, proposal;
    struct card c;
    struct card_move m;
    struct card_list cards;
    int64_t limit;
};

static int make_project(struct team *t, void *arg, struct err *e)
{
    struct board *b = arg;
    struct project p;

    if (project_create(t, STR("p"), STR("boss"), &p, e) < 0)
        return -1;
    b->project = p.id;
    return 0;
}

static int make_card(struct team *t, void *arg, struct err *e)
{
    struct board *b = arg;

    b->c.project = b->project;
    b->c.title = STR("t");
    if (card_create(t, &b->c, e) < 0)
        return -1;
    b->card = b->c.id;
    return 0;
}

static int claim(struct team *t, void *arg, struct err *e)
{
    struct board *b = arg;

    return card_claim(t, b->project, b->card, b->agent, &b->proposal, e);
}

static int assign(struct team *t, void *arg, struct err *e)
{
    struct board *b = arg;

    return card_assign(t, b->project, b->card, b->agent, STR(""), e);
}

static int move(struct team *t, void *arg, struct err *e)
{
    struct board *b = arg;

    b->m.agent = b->agent;
    return card_move(t, b->project, b->card, &b->m, &b->c, &b->proposal, e);
}

static int get(struct team *t, void *arg, struct err *e)
{
    struct board *b = arg;

    return card_need(t, b->project, b->card, &b->c, e);
}

static int limit(struct team *t, void *arg, struct err *e)
{
    struct board *b = arg;

    return project_set_limit(t, b->project, CARD_IN_PROGRESS, b->limit, e);
}

static int watch(struct team *t, void *arg, struct err *e)
{
    (void)arg;
    return agent_watch(t, e);
}

static int approve(struct team *t, void *arg, struct err *e)
{
    struct board *b = arg;
    struct approval a;
    struct grant none;

    return approval_decide(t, b->proposal, &(struct approval_decision){.yes = true}, &a, &none, e);
}

static int advise(struct team *t, void *arg, struct err *e)
{
    return agent_set_mode(t, ((struct board *)arg)->agent, AGENT_ADVISORY, e);
}

static struct board open_board(struct fixture *f)
{
    struct board b = {.agent = STR("a")};

    assert_int_equal(run(f, make_project, &b), ERR_NONE);
    assert_int_equal(run(f, do_register, (void *)(uintptr_t)"a"), ERR_NONE);
    assert_int_equal(run(f, do_register, (void *)(uintptr_t)"b"), ERR_NONE);
    return b;
}

static void new_card(struct fixture *f, struct board *b)
{
    b->c = (struct card){.priority = 2};
    assert_int_equal(run(f, make_card, b), ERR_NONE);
}

static enum err_code move_to(struct fixture *f, struct board *b, enum card_status to)
{
    b->m = (struct card_move){.to = to};
    return run(f, move, b);
}

static void a_claim_has_one_winner(void **state)
{
    struct fixture *f = *state;
    struct board b = open_board(f);

    new_card(f, &b);
    assert_int_equal(run(f, claim, &b), ERR_NONE);
    assert_int_equal(run(f, claim, &b), ERR_NONE);
    b.agent = STR("b");
    assert_int_equal(run(f, claim, &b), ERR_CONFLICT);
    b.agent = STR("ghost");
    assert_int_equal(run(f, claim, &b), ERR_NOT_FOUND);
    assert_int_equal(run(f, get, &b), ERR_NONE);
    assert_true(str_eq_c(b.c.claimed_by, "a") && b.c.status == CARD_READY && b.c.moves == 1);
}

static void claims_count_as_work(void **state)
{
    struct fixture *f = *state;
    struct board b = open_board(f);

    b.limit = 2;
    assert_int_equal(run(f, limit, &b), ERR_NONE);
    for (int i = 0; i < 2; i++) {
        new_card(f, &b);
        assert_int_equal(run(f, claim, &b), ERR_NONE);
    }
    assert_int_equal(move_to(f, &b, CARD_IN_PROGRESS), ERR_NONE); /* it is counted already */
    new_card(f, &b);
    assert_int_equal(run(f, claim, &b), ERR_PRECONDITION);
    assert_int_equal(run(f, assign, &b), ERR_PRECONDITION);
    b.agent = STR("b");
    assert_int_equal(run(f, claim, &b), ERR_NONE);
}

static void cards_of_the_lost_come_back(void **state)
{
    struct fixture *f = *state;
    struct board b = open_board(f);

    new_card(f, &b);
    assert_int_equal(run(f, claim, &b), ERR_NONE);
    assert_int_equal(move_to(f, &b, CARD_IN_PROGRESS), ERR_NONE);
    f->t.now_ms += 30000 + 59999;
    assert_int_equal(run(f, watch, &b), ERR_NONE);
    assert_int_equal(run(f, get, &b), ERR_NONE);
    assert_int_equal(b.c.status, CARD_IN_PROGRESS);
    f->t.now_ms += 2;
    assert_int_equal(run(f, watch, &b), ERR_NONE);
    assert_int_equal(run(f, get, &b), ERR_NONE);
    assert_int_equal(b.c.status, CARD_READY);
    assert_int_equal(b.c.assigned_to.n + b.c.claimed_by.n, 0);
    assert_int_equal(b.c.moves, 3);
}

static void cards_wait_for_those_who_were_not_heard(void **state)
{
    struct fixture *f = *state;
    struct board b = open_board(f);

    new_card(f, &b);
    assert_int_equal(run(f, claim, &b), ERR_NONE);
    f->t.now_ms += 3600000; /* holtd was away */
    f->t.since_ms = f->t.now_ms;
    assert_int_equal(run(f, watch, &b), ERR_NONE);
    assert_int_equal(run(f, get, &b), ERR_NONE);
    assert_true(b.c.assigned_to.n > 0);
    f->t.now_ms += 30000 + 60001;
    assert_int_equal(run(f, watch, &b), ERR_NONE);
    assert_int_equal(run(f, get, &b), ERR_NONE);
    assert_int_equal(b.c.assigned_to.n, 0);
}

static void a_proposal_is_executed_once(void **state)
{
    struct fixture *f = *state;
    struct board b = open_board(f);

    new_card(f, &b);
    assert_int_equal(run(f, advise, &b), ERR_NONE);
    assert_int_equal(run(f, claim, &b), ERR_NONE);
    assert_true(b.proposal.n > 0);
    assert_int_equal(run(f, get, &b), ERR_NONE);
    assert_int_equal(b.c.assigned_to.n, 0);
    as_agent(f, "a");
    assert_int_equal(run(f, approve, &b), ERR_FORBIDDEN);
    as_agent(f, NULL);
    assert_int_equal(run(f, approve, &b), ERR_NONE);
    assert_int_equal(run(f, approve, &b), ERR_CONFLICT);
    assert_int_equal(run(f, get, &b), ERR_NONE);
    assert_true(str_eq_c(b.c.claimed_by, "a"));
    assert_int_equal(b.c.moves, 1);
}

static void a_refused_approval_stays_pending(void **state)
{
    struct fixture *f = *state;
    struct board b = open_board(f);

    new_card(f, &b);
    assert_int_equal(run(f, advise, &b), ERR_NONE);
    assert_int_equal(run(f, claim, &b), ERR_NONE);
    b.agent = STR("b");
    assert_int_equal(run(f, assign, &b), ERR_NONE);
    assert_int_equal(run(f, approve, &b), ERR_CONFLICT);
    b.agent = STR("a");
    assert_int_equal(run(f, assign, &b), ERR_NONE);
    assert_int_equal(run(f, approve, &b), ERR_NONE);
}

static void agents_move_what_is_theirs(void **state)
{
    struct fixture *f = *state;
    struct board b = open_board(f);

    new_card(f, &b);
    assert_int_equal(run(f, claim, &b), ERR_NONE);
    as_agent(f, "b");
    b.agent = STR("");
    assert_int_equal(move_to(f, &b, CARD_IN_PROGRESS), ERR_FORBIDDEN);
    assert_int_equal(run(f, assign, &b), ERR_FORBIDDEN);
    b.agent = STR("a");
    assert_int_equal(move_to(f, &b, CARD_IN_PROGRESS), ERR_FORBIDDEN);
    as_agent(f, "a");
    assert_int_equal(move_to(f, &b, CARD_IN_PROGRESS), ERR_NONE);
    assert_int_equal(move_to(f, &b, CARD_DONE), ERR_PRECONDITION);
    as_agent(f, "stranger"); /* a token whose agent is not registered */
    b.agent = STR("");
    assert_int_equal(move_to(f, &b, CARD_IN_REVIEW), ERR_NOT_FOUND);
}

static void boards_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct board b = open_board(f);

    for (int i = 0; i < 5; i++)
        new_card(f, &b);
    assert_int_equal(run(f, make_card, &b), ERR_LIMIT);
    for (int i = 0; i < 4; i++)
        assert_int_equal(run(f, make_project, &b), ERR_NONE);
    assert_int_equal(run(f, make_project, &b), ERR_LIMIT);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, team_setup, team_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_claim_has_one_winner),      TEST(claims_count_as_work),
        TEST(cards_of_the_lost_come_back), TEST(cards_wait_for_those_who_were_not_heard),
        TEST(a_proposal_is_executed_once), TEST(a_refused_approval_stays_pending),
        TEST(agents_move_what_is_theirs),  TEST(boards_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
