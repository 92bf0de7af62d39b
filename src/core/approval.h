/* approval: questions to people, in one queue.  An advisory agent's claim or move is a proposal:
 * pending, until a person approves it (then it is executed, once, by the rules as the board is
 * then) or rejects it.  An approval whose execution the rules refuse stays pending, and says why.
 * Thread, ownership, errors: core/team.h. */
#pragma once

#include "core/board.h"

enum approval_state { APPROVAL_PENDING, APPROVAL_APPROVED, APPROVAL_REJECTED, APPROVAL_STATES };

struct approval {
    struct str id, kind, agent, action, project, card;
    struct card_move move; /* of a move */
    enum approval_state state;
    struct str decided_by, reason;
    int64_t created_ms, decided_ms;
};
struct approval_list {
    struct approval *v;
    size_t n;
};

const char *approval_state_name(enum approval_state s);
bool approval_state_parse(struct str s, enum approval_state *ret);
/* a's agent, action, project, card and move are the wish.  The same wish again is the same
 * proposal.  Returns 1, which says "a proposal, not done". */
CHECKED int approval_propose(struct team *t, struct approval *a, struct err *e);
CHECKED int approval_need(struct team *t, struct str id, struct approval *ret, struct err *e);
/* state < 0: any; agent empty: any.  Oldest first. */
CHECKED int approval_all(struct team *t, struct str agent, int state, struct approval_list *ret,
                         struct err *e);
CHECKED int approval_decide(struct team *t, struct str id, bool yes, struct str reason,
                            struct approval *ret, struct err *e);
