/* proposal: a claim or move that an advisory agent may not make itself: a question to people.
 * The team makes and closes them; the queue of approvals is above it and holds them
 * (core/approval/proposal.c).
 * Thread, ownership, errors: core/team/team.h. */
#pragma once

#include "core/team/board.h"

struct proposal {
    struct str agent, action, project, card;
    struct card_move move; /* of a move */
};

/* Repeating a request returns the same proposal.  Returns 1, which means "a proposal, not done". */
CHECKED int proposal_make(struct team *t, const struct proposal *p, struct str *ret_id,
                          struct err *e);
/* Closes pending proposals of an agent, or about a project (empty: any) that no longer exists. */
CHECKED int proposals_close(struct team *t, struct str agent, struct str project,
                            const char *reason, struct err *e);
