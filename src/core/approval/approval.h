/* approval: questions to people, in one queue.  An advisory agent's claim or move is a proposal:
 * pending, until a person approves it (then it is executed, once, by the rules and the board of
 * that time) or rejects it.  If the rules refuse its execution, it stays pending with the reason.
 * A sandbox that may ask for hosts makes questions of kind egress (core/network/ask.h): they have a
 * deadline, and the answer may last (core/approval/egress_rule.h).
 * Thread, ownership, errors: core/team/team.h. */
#pragma once

#include "core/team/board.h"

enum approval_state {
    APPROVAL_PENDING,
    APPROVAL_APPROVED,
    APPROVAL_REJECTED,
    APPROVAL_CLOSED, /* automatically: it expired, or no connection waits for it */
    APPROVAL_STATES
};

#define APPROVAL_PROPOSAL "proposal"
#define APPROVAL_EGRESS "egress"
#define APPROVAL_QUESTIONS_MAX 32 /* undecided ones, per sandbox */

enum approval_scope { APPROVAL_ONCE, APPROVAL_SANDBOX, APPROVAL_ALWAYS, APPROVAL_SCOPES };
extern const char *const approval_scopes[]; /* NULL after the last */

struct approval {
    struct str id, kind, agent, action, project, card;
    struct card_move move;            /* of a move */
    struct str sandbox, tenant, host; /* of egress: the sandbox and the destination */
    int64_t port;
    enum approval_scope scope; /* of egress: how long the answer lasts */
    enum approval_state state;
    struct str decided_by, reason;
    int64_t created_ms, decided_ms, expires_ms; /* 0: not yet; never */
};
struct approval_list {
    struct approval *v;
    size_t n;
};

const char *approval_state_name(enum approval_state s);
bool approval_state_parse(struct str s, enum approval_state *ret);
/* a's sandbox, tenant, host, port and expires_ms are the question.  Repeating an undecided question
 * returns the same approval, with its own deadline. */
CHECKED int approval_ask(struct team *t, struct approval *a, struct err *e);
/* kind NULL: any. */
CHECKED int approval_need(struct team *t, const char *kind, struct str id, struct approval *ret,
                          struct err *e);
struct approval_filter { /* empty members: any */
    const char *kind;
    struct str agent, sandbox;
    int state;        /* < 0: any */
    struct str after; /* an id */
    int64_t limit;    /* 0: TEAM_PAGE_MAX */
};
CHECKED int approval_all(struct team *t, const struct approval_filter *f, struct approval_list *ret,
                         struct err *e); /* oldest first */
struct approval_decision {
    const char *kind; /* the kind it must have; NULL: any */
    bool yes;
    struct str by; /* the name of the decider, if callers have no names; empty: the caller */
    struct str reason;
    enum approval_scope scope; /* for egress only */
};
CHECKED int approval_decide(struct team *t, struct str id, const struct approval_decision *d,
                            struct approval *ret, struct err *e);
/* Closes pending questions of this sandbox; empty: of all whose deadline has passed. */
CHECKED int approval_close(struct team *t, struct str sandbox, const char *reason, struct err *e);
