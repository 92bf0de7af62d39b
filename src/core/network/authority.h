/* authority: holt's own certificate authority, with which holt-egress intercepts connections, and
 * which sandboxes with a network trust.  Two files of the state directory, ca.key (0600) and
 * ca.crt, made at the first start.  Blocking: at start-up only.  Errors: -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct authority {
    struct buf cert, key; /* PEM */
};

CHECKED int authority_open(const char *state, const char *node, struct authority *ret,
                           struct err *e);
void authority_done(struct authority *a); /* wipes; accepts a zeroed one */
