/* approval: questions to people, in one queue.  Kinds (kind.c):
 *
 *   proposal     an advisory agent's claim or move: executed once, by the rules of that time, when
 * a person approves it; if the rules refuse it, it stays pending (core/team/proposal.h) egress a
 * sandbox's connection to a host that its policy does not know; the answer may last
 * (core/ask/ask.h, core/approval/egress_rule.h) ask …        a question of anybody, with what a
 * person needs to decide; a yes about an action is a grant (core/approval/grant.h).  destructive,
 * sensitive and irreversible are asks too: settings may demand two people for them
 *   prompt       a session waits at its terminal; the answer is typed there
 * (core/session/prompts.h)
 *
 * Only people answer, by tokens of their own, never the asker itself.  Time never approves: a
 * question past its deadline is closed or expired.
 * Thread, ownership, errors: core/team/team.h. */
#pragma once

#include "core/team/board.h"

enum approval_state {
    APPROVAL_PENDING,
    APPROVAL_APPROVED,
    APPROVAL_REJECTED,
    APPROVAL_CLOSED,    /* automatically: no connection waits for it, or its object is gone */
    APPROVAL_EXPIRED,   /* an ask past its deadline */
    APPROVAL_CANCELLED, /* an ask that its asker took back */
    APPROVAL_STATES
};

#define APPROVAL_PROPOSAL "proposal"
#define APPROVAL_EGRESS "egress"
#define APPROVAL_ASK "ask"
#define APPROVAL_PROMPT "prompt"
#define APPROVAL_SECRET "secret"  /* a prompt's way: its answer is shown to nobody */
#define APPROVAL_QUESTIONS_MAX 32 /* undecided ones of kind egress, per sandbox */
#define APPROVAL_PEOPLE_MAX 5
/* A member of an attachment: true keeps its content from askers that are no people. */
#define APPROVAL_FOR_PEOPLE "for_people"

enum approval_scope {
    APPROVAL_ONCE,
    APPROVAL_SANDBOX, /* of egress: this sandbox; of an action: the operation in its sandbox */
    APPROVAL_ALWAYS,  /* of egress: every sandbox of the tenant */
    APPROVAL_TIME,    /* of an action: as often as it is asked, for a while */
    APPROVAL_RULE,    /* of an action: the operation on what a pattern matches, for a while */
    APPROVAL_SCOPES
};
extern const char *const approval_scopes[];    /* NULL after the last */
extern const char *const approval_urgencies[]; /* low, medium, high */

struct approval {
    struct str id, kind, agent, action, project, card;
    struct card_move move;            /* of a move; note: what any asker adds */
    struct str sandbox, tenant, host; /* the sandbox; of egress: the destination */
    int64_t port;
    /* Of asks.  Lists and arguments are JSON; hash names the exact action, empty: no grant. */
    struct str asker, person, key, question, alternatives, choice, attachments, arguments, hash;
    /* Of prompts: the command that waits, the way to answer it (core/session/prompt.h), and whether
     * the answer, `choice`, has yet to be typed. */
    struct str exec, way;
    bool owed;
    int64_t urgency;
    int64_t people, votes;     /* who must say yes, who said it so far */
    enum approval_scope scope; /* how far the answer goes */
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
/* a's sandbox, tenant, host, port and expires_ms are the question of kind egress.  Repeating an
 * undecided question returns the same approval, with its own deadline. */
CHECKED int approval_ask(struct team *t, struct approval *a, struct err *e);
/* An ask: a's kind, action, sandbox, note, expires_ms, people and the members of asks are the
 * question; the asker is the caller.  The same key of the same asker returns the same question;
 * another question under it is a conflict. */
CHECKED int question_make(struct team *t, struct approval *a, struct err *e);
/* A session waits: a's sandbox, tenant, exec, way, question, note, alternatives and arguments are
 * set; arguments names the answers for a plain "yes" and "no".  A command has one pending prompt:
 * ERR_CONFLICT. */
CHECKED int prompt_ask(struct team *t, struct approval *a, struct err *e);
/* Closes the pending prompt of a command; its answer need not be typed any more. */
CHECKED int prompt_close(struct team *t, struct str exec, const char *reason, struct err *e);
CHECKED int prompt_typed(struct team *t, struct str id, struct err *e); /* its answer was */
/* Those that are pending, or whose answers have yet to be typed. */
CHECKED int prompt_open(struct team *t, struct approval_list *ret, struct err *e);
/* By its asker, or a person. */
CHECKED int question_cancel(struct team *t, struct str id, struct str reason, struct approval *ret,
                            struct err *e);
/* Ends asks whose deadline has passed. */
CHECKED int questions_expire(struct team *t, struct err *e);
CHECKED int questions_due(struct team *t, bool *ret, struct err *e); /* whether there are any */
struct questions_waiting {
    int64_t count, oldest_ms; /* of all tenants; the oldest: when it was asked */
};
CHECKED int questions_wait(struct team *t, struct questions_waiting *ret, struct err *e);
/* kind NULL: any.  Not found: what the caller may not see (approval_sees). */
CHECKED int approval_need(struct team *t, const char *kind, struct str id, struct approval *ret,
                          struct err *e);
/* People see all (of their tenant); an agent proposals, and what it asked itself. */
bool approval_sees(const struct team *t, const struct approval *a);
struct approval_filter { /* empty members: any */
    const char *kind;
    struct str agent, sandbox;
    struct str key;   /* of the caller's own */
    int state;        /* < 0: any */
    struct str after; /* an id */
    int64_t limit;    /* 0: TEAM_PAGE_MAX */
};
CHECKED int approval_all(struct team *t, const struct approval_filter *f, struct approval_list *ret,
                         struct err *e); /* those the caller sees, oldest first */
struct grant;
struct approval_decision {
    const char *kind; /* the kind it must have; NULL: any */
    bool yes;
    struct str by; /* the name of the decider, if callers have no names; empty: the caller */
    struct str reason;
    struct str choice;         /* one of the alternatives; empty: none; of a prompt: any text */
    bool answered;             /* choice is the answer, even if it is empty */
    enum approval_scope scope; /* for egress and actions only */
    int64_t for_ms;            /* of a wider grant; 0: the default */
    struct str pattern;        /* of APPROVAL_RULE */
    bool preview;              /* only show the grant that it would make */
};
/* The answer of one person; where two must agree, the first yes leaves it pending.  *ret_grant: the
 * grant that follows; its id is empty if there is none, or before it is made. */
CHECKED int approval_decide(struct team *t, struct str id, const struct approval_decision *d,
                            struct approval *ret, struct grant *ret_grant, struct err *e);
/* Closes pending questions of kind egress of this sandbox; empty: of all whose deadline has
 * passed. */
CHECKED int approval_close(struct team *t, struct str sandbox, const char *reason, struct err *e);
