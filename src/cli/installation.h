/* installation: the programs that serve a state directory of this machine; finds them by their
 * locks and sockets, and ends them.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"
#include "base/macro.h"

#include <sys/types.h>

enum installation_part { PART_HOLTD, PART_SPAWN, PART_EGRESS, PART_VIRT, PART_COUNT };
extern const char *const part_names[PART_COUNT];

struct installation {
    const char *state;
    char user[64]; /* the user of holtd if holt-spawn is root's; or "" */
};

/* Whether we may end it: it is ours, or we are root and it is the service's.  0: there is none. */
CHECKED int installation_open(const char *state, struct installation *ret, struct err *e);
/* The process of this part; 0: none is running. */
pid_t installation_find(const struct installation *i, enum installation_part part);
/* Ends it with SIGTERM, waits, and finally kills it.  Returns its pid, or 0: none was running. */
CHECKED int installation_end(const struct installation *i, enum installation_part part,
                             struct err *e);
/* Runs holt-virt --end `how`, if it ever served here; *ret: the number of running machines. */
CHECKED int installation_end_machines(const struct installation *i, const char *how, unsigned *ret,
                                      struct err *e);
/* Runs holt-spawn --end `how`; *ret: the number of running sandboxes. */
CHECKED int installation_run_end(const struct installation *i, const char *how, unsigned *ret,
                                 struct err *e);
