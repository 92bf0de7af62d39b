/* egress_learned: the rules (core/network/egress_rule.h) in memory, as they act: which of them
 * decides for a sandbox.  Private to core/network/ask.c, who keeps them as the log of events says.
 * Thread: the loop's.
 */
#pragma once

#include "core/network/egress_rule.h"
#include "core/sandbox/sandbox.h"

struct learned_rule;

struct learned {
    struct learned_rule **sorted; /* by id, and so in the order in which they were made */
    size_t count, size;
};

void learned_done(struct learned *l);
void learned_put(struct learned *l, const struct egress_rule *r); /* copied; once if told twice */
void learned_drop(struct learned *l, struct str id);
/* Which decides; NULL: nobody said.  A sandbox's own goes before its tenant's. */
const struct egress_rule *learned_for(const struct learned *l, const struct sandbox_info *s,
                                      struct str host, int64_t port);
bool learned_names(const struct learned *l, struct str sandbox); /* is one this sandbox's own? */
/* In order of id, the first after this one (empty: from the start); NULL at the end. */
const struct egress_rule *learned_next(const struct learned *l, struct str after);
/* Adds those that decide for s, as holt-egress is told them: "+host:port\n". */
void learned_write(const struct learned *l, const struct sandbox_info *s, struct buf *to);
