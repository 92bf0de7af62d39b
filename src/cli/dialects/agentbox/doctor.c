/* holt doctor: which runtime agentbox's sessions would get on this machine. */
#include "cli/dialects/agentbox/agentbox.h"

#include "conf/dialects/agentbox/runtime.h"

#include <stdlib.h>

/* Of the holtd that is started from here. */
static enum check_state probe_runtime(struct finding *f)
{
    const char *asked = getenv("SANDBOX_RUNTIME");
    const struct agentbox_host h = agentbox_host("native");
    struct agentbox_runtime r;
    struct err e;

    if (agentbox_runtime_choose(asked && *asked ? asked : "auto", &h, &r, &e) < 0) {
        finding_detail(f, "%s", e.msg);
        finding_remedy(f, "%s", e.hint);
        return CHECK_MISSING;
    }
    finding_detail(f, "%s%s%s: %s", r.runtime, r.program ? " with " : "",
                   r.program ? r.program : "", r.why);
    return CHECK_OK;
}

const struct check agentbox_check = {
    "agentbox's runtime",   "sessions of agentbox's interface (SANDBOX_RUNTIME)",
    "holtd does not start", "unset SANDBOX_RUNTIME",
    probe_runtime,          false};
