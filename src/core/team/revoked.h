/* revoked: the agents that people have revoked, in memory, so that every request can be checked
 * without the store.  Read at start-up, then updated from the event log, whose events come before
 * the reply to the revoking request, so that nothing is allowed after that.
 * Thread: the loop's.  Errors: 0, or -1 with *e set. */
#pragma once

#include "core/team/agent.h"
#include "ops/op.h"

struct revoked;

/* Blocking: at start-up only. */
CHECKED int revoked_open(struct store *s, struct events *events, struct revoked **ret,
                         struct err *e);
struct revoked *revoked_close(struct revoked *l); /* takes NULL; returns NULL */
/* Called for each new revocation: to end work in progress. */
void revoked_on_new(struct revoked *l, void (*told)(void *arg), void *arg);
/* Whether this agent may use this permission.  While it is revoked: only reads, and reports about
 * itself (PERM_TEAM_REPORT). */
CHECKED int revoked_check(const struct revoked *l, struct str agent, enum perm p, struct err *e);
