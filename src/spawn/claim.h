/* claim: how a create reaches the process that builds its root: the child that becomes init, or the
 * builder of a shell.  One packet: the create as holtd sent it, and the trees it is made of. */
#pragma once

#include "spawn/sandbox.h"

/* In spawn.  -1: the other side is gone. */
CHECKED int claim_send(const struct sandbox *s, struct err *e);
void claim_more(struct sandbox *s); /* init's last arguments: it goes on */
/* In the child: s->ask and all that comes with it.  Does not return when spawn is gone. */
CHECKED int claim_receive(struct sandbox *s, struct err *e);
void claim_tell(int fd, const struct err *e); /* the child's word, good or bad */
/* It, read from a socket or pipe: 1; 0: the end, without a word; -1: not yet. */
int claim_hear(int fd, struct err *ret);
