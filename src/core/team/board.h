/* board: projects and their cards: six states, limits on work in progress, one owner per card.
 *
 *   backlog → ready → in_progress → in_review → done       (and back, see card_states)
 *      └────────┴──────────┴──→ blocked
 *
 * A claimed card stays in ready, with an owner, and counts against in_progress.  The card of an
 * absent owner returns to ready (board_release).  The store has one writer, so changes are serial;
 * each is one event with the whole card.
 * Thread, ownership, errors: core/team/team.h. */
#pragma once

#include "base/id.h"
#include "core/team/agent.h"

enum card_status {
    CARD_BACKLOG,
    CARD_READY,
    CARD_IN_PROGRESS,
    CARD_IN_REVIEW,
    CARD_BLOCKED,
    CARD_DONE,
    CARD_STATUSES
};
#define CARD_PRIORITIES 4 /* P0 (critical) to P3 */
#define CARD_PRIORITY_DEFAULT 2
#define CARD_ANY (-1)

const char *card_status_name(enum card_status s);
bool card_status_parse(struct str s, enum card_status *ret);
int64_t card_limit_default(enum card_status s); /* -1: none */

struct project {
    struct str id, name, creator, members; /* members: comma-joined, the creator first */
    int64_t created_ms;
    int64_t limits[CARD_STATUSES]; /* per agent in that column; -1: none */
    bool limit_set[CARD_STATUSES]; /* it was set, not the default */
};
struct project_list {
    struct project *v;
    size_t n;
};

struct card {
    struct str id, project, title, description, assigned_to, claimed_by, tags;
    struct str blocked_reason, blocked_by, parent, created_by, reviewers;
    struct str taken_from; /* it has no owner because this agent was gone or revoked */
    enum card_status status;
    int64_t priority, reviews, moves;
    bool reviews_asked; /* the number of reviews was requested explicitly, and is kept */
    int64_t created_ms, updated_ms, started_ms, review_ms, completed_ms;
};
struct card_list {
    struct card *v;
    size_t n;
};

CHECKED int project_create(struct team *t, struct str name, struct str creator, struct project *ret,
                           struct err *e);
CHECKED int project_need(struct team *t, struct str id, struct project *ret, struct err *e);
CHECKED int project_all(struct team *t, struct str member, struct project_list *ret,
                        struct err *e); /* member empty: all; oldest first */
CHECKED int project_remove(struct team *t, struct str id, struct err *e); /* its cards too */
CHECKED int project_join(struct team *t, struct str id, struct str agent, struct err *e);
CHECKED int project_set_limit(struct team *t, struct str id, enum card_status s, int64_t cards,
                              struct err *e);

/* c's title, description, assigned_to, priority, tags, parent, reviews and created_by are the
 * input; the rest is set. */
CHECKED int card_create(struct team *t, struct card *c, struct err *e);
/* project empty: any. */
CHECKED int card_need(struct team *t, struct str project, struct str id, struct card *ret,
                      struct err *e);
struct card_filter {
    struct str project, owner; /* empty: any; claiming a card assigns it */
    int status;                /* or CARD_ANY */
    bool no_blocked;
};
/* By priority, then age. */
CHECKED int card_all(struct team *t, const struct card_filter *f, struct card_list *ret,
                     struct err *e);
/* The cards that agent (empty: anybody) may claim; tags empty: the agent's own. */
CHECKED int card_queue(struct team *t, struct str project, struct str agent, struct str tags,
                       struct card_list *ret, struct err *e);
CHECKED int card_subtasks(struct team *t, struct str id, struct str *ret, struct err *e);

/* 0: done; 1: the agent is advisory, and *ret_proposal waits for a person's decision. */
CHECKED int card_claim(struct team *t, struct str project, struct str id, struct str agent,
                       struct str *ret_proposal, struct err *e);
CHECKED int card_assign(struct team *t, struct str project, struct str id, struct str agent,
                        struct str by, struct err *e);
CHECKED int card_unassign(struct team *t, struct str project, struct str id, struct err *e);
struct card_move {
    enum card_status to;
    struct str agent; /* who moves it; empty: the caller */
    struct str blocked_reason, blocked_by, note;
};
CHECKED int card_move(struct team *t, struct str project, struct str id, const struct card_move *m,
                      struct card *ret, struct str *ret_proposal,
                      struct err *e); /* as card_claim */
CHECKED int card_add_reviewer(struct team *t, struct str project, struct str id, struct str name,
                              struct err *e);
/* Finds the agent of this name: 1; 0: a person's name, or none. */
CHECKED int board_actor(struct team *t, struct str name, struct agent *ret, struct err *e);
/* Returns the cards of an absent agent to ready, without an owner. */
CHECKED int board_release(struct team *t, struct str agent, struct str why, struct err *e);
/* The same, and its cards in review: its work is no longer trusted. */
CHECKED int board_flush(struct team *t, struct str agent, struct str why, struct err *e);

struct card_step { /* one entry of a card's history */
    enum card_status from, to;
    struct str actor, note;
    int64_t at_ms;
};
struct card_step_list {
    struct card_step *v;
    size_t n;
};
CHECKED int card_history(struct team *t, struct str id, int64_t last, struct card_step_list *ret,
                         struct err *e); /* oldest first */

struct board_metrics {
    int64_t total, by_status[CARD_STATUSES], completed;
    double cycle_avg_min, cycle_p50_min, cycle_p90_min, cycle_p99_min;
    struct board_agent {
        struct str name;
        int64_t done, in_progress, in_review;
    } *agents;
    size_t agent_count;
};
CHECKED int board_metrics(struct team *t, struct str project, struct board_metrics *ret,
                          struct err *e);
