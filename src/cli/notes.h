/* notes: what a sandbox is not although it was asked for: a line of standard error each. */
#pragma once

#include "cli/cli.h"

/* sandbox: a reply's, or what `started` tells of a run's; args: of the command line. */
void notes_sandbox(const json_t *sandbox, const json_t *args);
