/* The dialects that have a verb of their own, or a check of `holt doctor`. */
#include "cli/dialects/agentbox/agentbox.h"
#include "cli/dialects/agentic/sandboxctl.h"
#include "cli/dialects/dialect.h"
#include "cli/dialects/fluid/fluid.h"
#include "cli/dialects/sbx/sbx.h"

const struct cli_dialect cli_dialects[] = {
    {.check = &agentbox_check},    {.verb = &sbx_verb},        {.verb = &fluid_verb},
    {.verb = &virsh_sandbox_verb}, {.verb = &sandboxctl_verb}, {.verb = &agentic_sandbox_verb},
};
const size_t cli_dialect_count = ARRAY_LEN(cli_dialects);
