/* approval_internal: shared by the files of approval. */
#pragma once

#include "core/approval/approval.h"

#define APPROVAL_SELECT                                                                            \
    "SELECT id, kind, agent, action, project, card, note, blocked_reason, blocked_by, "            \
    "decided_by, reason, status_to, state, created_ms, decided_ms, sandbox, tenant, host, port, "  \
    "scope, expires_ms FROM approvals "

static inline struct str approval_text(struct str s) /* absent is "" */
{
    return s.p ? s : STR("");
}

/* sql begins with APPROVAL_SELECT. */
CHECKED int approval_read(struct team *t, const char *sql, const struct store_param *p, size_t n,
                          struct approval_list *ret, struct err *e);
/* Adds a row; a's kind and its fields are set. */
CHECKED int approval_new(struct team *t, struct approval *a, struct err *e);
CHECKED int approvals_close(struct team *t, const struct approval_list *l, const char *reason,
                            struct err *e);
/* Does what an approved proposal asks for. */
CHECKED int proposal_execute(struct team *t, struct approval *a, struct err *e);
