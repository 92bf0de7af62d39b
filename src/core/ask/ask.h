/* ask: questions of sandboxes to people: a connection to a host that its policy does not know waits
 * in holt-egress for a pending approval (core/approval/approval.h).  Connections of one sandbox to
 * one host and port are one question.  Decisions arrive through the event log, whoever made them,
 * and a question past its deadline is closed.  Answers that last are rules
 * (core/approval/egress_rule.h), sent to holt-egress with the sandbox's policy. After a restart
 * pending approvals continue, and holt-egress asks again.  Thread: the loop's. */
#pragma once

#include "core/approval/egress_rule.h"
#include "core/sandbox/sandbox.h"

struct asks;

struct asks_config {
    struct store *store;
    struct events *events;
    struct sandboxes *sandboxes;
    const int64_t *wait_ms; /* the deadline for a person; read at each question */
};

/* Reads pending questions and rules.  Blocking: at start-up only, right after sandboxes_open. */
CHECKED int asks_open(const struct asks_config *c, struct asks **ret, struct err *e);
struct asks *asks_close(struct asks *a); /* before sandboxes_close; takes NULL; returns NULL */
void asks_tick(struct asks *a);          /* once a second: closes expired questions */

/* In order of id, the first after this one (empty: the first); NULL at the end. */
const struct egress_rule *asks_rule_next(const struct asks *a, struct str after);
/* by: a person; others are refused.  When it is done, the rule has no effect any more. */
void asks_rule_remove(struct asks *a, struct str id, const struct principal *by, store_done done,
                      void *arg);
