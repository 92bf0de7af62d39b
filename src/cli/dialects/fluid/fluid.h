/* fluid: the commands of fluid.sh's programs: `holt fluid …` and `holt virsh-sandbox …`, and links
 * to holt of these names.  Replies are printed as JSON; failures are {"error": "text"} on standard
 * error. */
#pragma once

#include "cli/cli.h"

extern const struct verb fluid_verb, virsh_sandbox_verb;
