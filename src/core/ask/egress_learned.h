/* egress_learned: the rules (core/approval/egress_rule.h) in memory, and which of them decides for
 * a sandbox.  Private to core/ask/ask.c, which updates them from the event log.  Thread: the
 * loop's. */
#pragma once

#include "core/approval/egress_rule.h"
#include "core/sandbox/sandbox.h"

struct learned_rule;

struct learned {
    struct learned_rule **sorted; /* by id, and so in the order of creation */
    size_t count, size;
};

void learned_done(struct learned *l);
/* copied; a repetition is ignored */
void learned_put(struct learned *l, const struct egress_rule *r);
void learned_drop(struct learned *l, struct str id);
/* The rule that decides; NULL: none.  A sandbox's own wins over its tenant's. */
const struct egress_rule *learned_for(const struct learned *l, const struct sandbox_info *s,
                                      struct str host, int64_t port);
/* whether this sandbox has a rule of its own */
bool learned_names(const struct learned *l, struct str sandbox);
/* In order of id, the first after this one (empty: the first); NULL at the end. */
const struct egress_rule *learned_next(const struct learned *l, struct str after);
/* Adds the rules for s in the form for holt-egress: "+host:port
 * ". */
void learned_write(const struct learned *l, const struct sandbox_info *s, struct buf *to);
