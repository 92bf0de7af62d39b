/* claim: how a create request reaches the process that builds its root: the child that becomes
 * init, or the builder of a spare.  One packet: the create as sent by holtd, and the trees it
 * needs. */
#pragma once

#include "spawn/sandbox.h"

/* In holt-spawn.  -1: the other side has ended. */
CHECKED int claim_send(const struct sandbox *s, struct err *e);
void claim_more(struct sandbox *s); /* sends init's last arguments: it continues */
/* In the child: receives s->ask and everything with it.  Does not return if holt-spawn has
 * ended. */
CHECKED int claim_receive(struct sandbox *s, struct err *e);
void claim_tell(int fd, const struct err *e); /* the child's reply, success or failure */
/* Reads that reply from a socket or pipe: 1; 0: the end, without a reply; -1: not yet. */
int claim_hear(int fd, struct err *ret);
