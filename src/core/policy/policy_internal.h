/* policy_internal: shared by the files of core/policy/policy.h. */
#pragma once

#include "base/arena.h"
#include "core/policy/policy.h"

struct policy {
    struct policies *all;
    enum { POLICY_MAKING, POLICY_READY, POLICY_CHANGING, POLICY_REMOVING } state;
    char id[ID_SIZE];
    char *name, *text; /* text: the rules as JSON */
    char created_by[64];
    int64_t created_ms, updated_ms;
    bool shipped;
    size_t sandboxes;
    struct policy_rules rules;
    struct arena mem; /* of the rules */
};

/* --- policy_rules.c --- */

/* Checks them; *ret is in the arena. */
CHECKED int policy_read_rules(const json_t *o, struct arena *a, struct policy_rules *ret,
                              struct err *e);
json_t *policy_defaults(void); /* of POLICY_DEFAULTS */
