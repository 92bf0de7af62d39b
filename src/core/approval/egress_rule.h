/* egress_rule: lasting answers of people: what one sandbox, or every sandbox of a tenant, may reach
 * beyond its policy, if the policy asks.  Each change is an event ("rule.added", "rule.removed"),
 * which core/ask/ask.c applies.
 * Thread, ownership, errors: core/team/team.h. */
#pragma once

#include "core/team/team.h"

struct egress_rule {
    struct str id;
    struct str sandbox; /* empty: every sandbox of the tenant */
    struct str tenant;  /* empty: those without one */
    struct str host;
    int64_t port;
    bool allow;
    struct str created_by;
    int64_t created_ms;
};
struct egress_rule_list {
    struct egress_rule *v;
    size_t n;
};

#define EGRESS_RULES_MAX 1024

/* Replaces a rule for the same scope and destination. */
CHECKED int egress_rule_add(struct team *t, const struct egress_rule *r, struct err *e);
CHECKED int egress_rule_remove(struct team *t, struct str id, struct err *e);
/* Removes the rules of a removed sandbox. */
CHECKED int egress_rules_forget(struct team *t, struct str sandbox, struct err *e);
CHECKED int egress_rule_all(struct team *t, struct egress_rule_list *ret, struct err *e);
