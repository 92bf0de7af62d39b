/* task_cards: moves the cards of boards that tasks work on. */
#include "api/team/task_cards.h"

#include "api/team/team.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/task/task.h"
#include "core/team/board.h"

#include <stdio.h>

struct card_job {
    struct team t;
    struct arena arena;
    struct str card, note, agent; /* agent: who moves it */
    enum card_status to;
};

static int step_to(struct card_job *j, enum card_status to, struct card *ret, struct err *e)
{
    struct str proposal;
    const struct card_move m = {.to = to,
                                .agent = j->agent,
                                .note = j->note,
                                .blocked_reason = to == CARD_BLOCKED ? j->note : STR("")};

    return card_move(&j->t, STR(""), j->card, &m, ret, &proposal, e) < 0 ? -1 : 0;
}

static int card_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct card_job *j = arg;
    struct card c;

    team_enter(&j->t, tx);
    if (card_need(&j->t, STR(""), j->card, &c, e) < 0)
        return -1;
    if (j->to == CARD_IN_PROGRESS && (c.status == CARD_BACKLOG || c.status == CARD_BLOCKED) &&
        step_to(j, CARD_READY, &c, e) < 0)
        return -1;
    return c.status == j->to ? 0 : step_to(j, j->to, &c, e);
}

static void card_moved(void *arg, const struct err *e)
{
    struct card_job *j = arg;

    if (e->code != ERR_NONE)
        log_warn("the card of a task could not be moved", LOG_S("card", j->card), LOG_E(e));
    arena_done(&j->arena);
    mem_free(j);
}

/* An agent's task moves what the agent itself may move, as it may; boards are not for tenants. */
static void take_mover(struct card_job *j, const struct principal *by)
{
    j->agent = STR("system");
    if (by->role != ROLE_AGENT)
        return;
    (void)snprintf(j->t.who.actor, sizeof j->t.who.actor, "%s", by->actor);
    j->t.who.agent = j->agent = arena_str(&j->arena, str_of(by->agent));
}

static void move_card(void *arg, const struct principal *by, const char *card, enum task_state s,
                      const char *note)
{
    struct api *a = arg;
    struct card_job *j;

    if (by->tenant[0])
        return;
    j = xzalloc(sizeof *j);
    j->t = team_of_system(a, &j->arena);
    take_mover(j, by);
    j->card = arena_str(&j->arena, str_of(card));
    j->note = arena_str(&j->arena, str_of(note));
    j->to = s == TASK_RUNNING     ? CARD_IN_PROGRESS
            : s == TASK_COMPLETED ? CARD_IN_REVIEW
                                  : CARD_BLOCKED;
    store_write(a->c.store, STORE_DURABLE, card_work, card_moved, j);
}

void task_cards_open(struct api *a)
{
    if (a->c.tasks)
        tasks_set_cards(a->c.tasks, &(struct task_cards){move_card, a});
}
