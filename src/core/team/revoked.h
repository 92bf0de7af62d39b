/* revoked: the agents that people have revoked, in memory, so that every request can be held to it
 * without asking the store.  Read at the start, then kept by the log: its events come before the
 * reply to whoever revoked, so that nothing is let through after that.
 * Thread: the loop's.  Errors: 0, or -1 with *e set. */
#pragma once

#include "core/team/agent.h"
#include "ops/op.h"

struct revoked;

/* Blocking: at start-up only. */
CHECKED int revoked_open(struct store *s, struct events *events, struct revoked **ret,
                         struct err *e);
struct revoked *revoked_close(struct revoked *l); /* takes NULL; returns NULL */
/* Told of each new revocation: for what has begun and would go on. */
void revoked_on_new(struct revoked *l, void (*told)(void *arg), void *arg);
/* May this agent do what needs this permission?  While it is revoked: read, and speak for itself
 * (PERM_TEAM_REPORT). */
CHECKED int revoked_check(const struct revoked *l, struct str agent, enum perm p, struct err *e);
