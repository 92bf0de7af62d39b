/* approval_internal: shared by the files of approval. */
#pragma once

#include "core/approval/approval.h"
#include "core/approval/grant.h"

#define APPROVAL_SELECT                                                                            \
    "SELECT id, kind, agent, action, project, card, note, blocked_reason, blocked_by, "            \
    "decided_by, reason, status_to, state, created_ms, decided_ms, sandbox, tenant, host, port, "  \
    "scope, expires_ms, asker, person, ask_key, question, urgency, alternatives, choice, "         \
    "attachments, arguments, hash, people, exec, way, owed, "                                      \
    "(SELECT COUNT(*) FROM approval_votes WHERE approval = approvals.id) FROM approvals "

struct approval_kind {
    const char *name;
    const char *noun; /* in messages: "question" */
    bool ask;         /* made by question_make: only people with a token of their own answer */
    bool free;        /* its answer is a text, not only one of the alternatives */
    unsigned scopes;  /* bits of enum approval_scope that an answer may have */
    void (*put)(struct jw *w, const struct approval *a); /* its members of an event */
    /* Does what the answer says; may be NULL. */
    int (*execute)(struct team *t, struct approval *a, struct err *e);
};
const struct approval_kind *approval_kind(struct str name); /* NULL: there is none */
bool approval_needs_two(const struct team *t, const struct approval_kind *k);

static inline struct str approval_text(struct str s) /* absent is "" */
{
    return s.p ? s : STR("");
}

/* sql begins with APPROVAL_SELECT. */
CHECKED int approval_read(struct team *t, const char *sql, const struct store_param *p, size_t n,
                          struct approval_list *ret, struct err *e);
/* Adds a row; a's kind and its fields are set. */
CHECKED int approval_new(struct team *t, struct approval *a, struct err *e);
/* Ends one: a's state and reason are set, the caller decides.  ERR_CONFLICT: it has ended. */
CHECKED int approval_end(struct team *t, struct approval *a, struct err *e);
CHECKED int approvals_close(struct team *t, const struct approval_list *l, const char *reason,
                            struct err *e);
void approval_event(struct team *t, const char *type, const struct approval *a);
/* Deletes old decided ones of a's sandbox; refuses if too many are undecided. */
CHECKED int approval_make_room(struct team *t, const struct approval *a, struct err *e);
/* Does what an approved proposal asks for. */
CHECKED int proposal_execute(struct team *t, struct approval *a, struct err *e);
/* Chooses the answer to a prompt if the person only said yes or no, and owes it to its session. */
CHECKED int prompt_execute(struct team *t, struct approval *a, struct err *e);
/* The grant of an approved action; d has its scope. */
CHECKED int grant_plan(struct team *t, const struct approval *a, const struct approval_decision *d,
                       struct grant *ret, struct err *e);
CHECKED int grant_make(struct team *t, struct grant *g, struct err *e);
