/* verb_build: what other commands need of builds. */
#pragma once

#include "cli/cli.h"

/* The loadout of the arguments is built, if there is one and it is not.  Errors: -1 with *e set. */
CHECKED int loadout_ready(struct cli *c, const json_t *args, struct err *e);
/* Runs its steps in a sandbox that is there, with their progress. */
CHECKED int loadout_put(struct cli *c, const char *sandbox, const char *loadout, struct err *e);
