/* ask: questions of sandboxes to people: a connection to a host that its policy does not know waits
 * in holt-egress while a pending approval (core/team/approval.h) stands for it.  Connections of one
 * sandbox to one host and port are one question.  Decisions are heard from the log of events, so
 * whoever took them, and a question whose time is over is closed.  Answers that last are rules
 * (core/network/egress_rule.h), told to holt-egress with the sandbox's policy.
 * After a restart pending approvals go on, and holt-egress asks again.  Thread: the loop's. */
#pragma once

#include "core/network/egress_rule.h"
#include "core/sandbox/sandbox.h"

struct asks;

struct asks_config {
    struct store *store;
    struct events *events;
    struct sandboxes *sandboxes;
    const int64_t *wait_ms; /* how long a person has; read at each question */
};

/* Reads what is pending and the rules; blocking: at start-up only.  Right after sandboxes_open. */
CHECKED int asks_open(const struct asks_config *c, struct asks **ret, struct err *e);
struct asks *asks_close(struct asks *a); /* before sandboxes_close; takes NULL; returns NULL */
void asks_tick(struct asks *a);          /* once a second: what nobody decided in time */

/* In order of id, the first after this one (empty: from the start); NULL at the end. */
const struct egress_rule *asks_rule_next(const struct asks *a, struct str after);
/* by: a person; others are refused.  The rule acts no more when it is done. */
void asks_rule_remove(struct asks *a, struct str id, const struct principal *by, store_done done,
                      void *arg);
