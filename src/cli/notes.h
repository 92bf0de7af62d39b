/* notes: warns on standard error, a line each, where a sandbox differs from the request. */
#pragma once

#include "cli/cli.h"

/* sandbox: from a reply, or from the `started` message of a run; args: of the command line. */
void notes_sandbox(const json_t *sandbox, const json_t *args);
