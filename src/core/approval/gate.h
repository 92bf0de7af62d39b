/* gate: which actions need a person's approval before they are done.  A gate names an operation (a
 * pattern) and may narrow it: by the caller's role, a label of the sandbox, a pattern of the
 * command line or path.  An action that a gate matches is refused unless its caller has a grant for
 * it (core/approval/grant.h).  Each change is an event ("gate.added", "gate.removed"). Thread,
 * ownership, errors: core/team/team.h; gate_matches is pure. */
#pragma once

#include "core/team/team.h"

#define GATES_MAX 1000

struct gate { /* empty members match everything */
    struct str id, operation, role, label, command, path, reason, created_by;
    int64_t people; /* who must approve */
    int64_t created_ms;
};
struct gate_list {
    struct gate *v;
    size_t n;
};

struct gate_action { /* what somebody wants to do */
    struct str operation, role, command, path;
    bool (*has_label)(void *arg, struct str key, struct str value);
    void *arg;
};

bool gate_matches(const struct gate *g, const struct gate_action *a);
/* Operations on approvals, grants and gates never need approval: nobody could give it. */
bool gate_is_exempt(struct str operation);
/* g's members but id and created_* are the gate. */
CHECKED int gate_add(struct team *t, struct gate *g, struct err *e);
CHECKED int gate_remove(struct team *t, struct str id, struct err *e);
CHECKED int gate_all(struct team *t, struct gate_list *ret, struct err *e); /* oldest first */
