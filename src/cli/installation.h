/* installation: the programs that serve a state directory of this machine, found by their locks and
 * sockets, and ended.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#include <sys/types.h>

enum installation_part { PART_HOLTD, PART_SPAWN, PART_EGRESS, PART_COUNT };
extern const char *const part_names[PART_COUNT];

struct installation {
    const char *state;
    char user[64]; /* who holtd runs as, where holt-spawn is root's; or "" */
};

/* Whether we may end it: it is ours, or we are root and it is the service's.  0: there is none. */
CHECKED int installation_open(const char *state, struct installation *ret, struct err *e);
/* The process that serves as this part; 0: nobody does. */
pid_t installation_find(const struct installation *i, enum installation_part part);
/* Asks it to end, waits, and kills it in the end.  Returns its pid, or 0: there was none. */
CHECKED int installation_end(const struct installation *i, enum installation_part part,
                             struct err *e);
/* holt-spawn --end how; *ret: how many sandboxes were running. */
CHECKED int installation_run_end(const struct installation *i, const char *how, unsigned *ret,
                                 struct err *e);
