/* report: what this machine says of itself, from /proc.  Thread: the loop's. */
#pragma once

#include "api/agentic.pb.h"
#include "base/arena.h"

void report_system(struct arena *a, struct agentic_system_info *to);
/* All but the agent's id and the time. */
void report_metrics(struct arena *a, struct agentic_metrics *to);
/* Also its status: provisioning while /run/agentic-setup-progress.json is there without
 * /run/agentic-setup-complete. */
void report_heartbeat(struct arena *a, struct agentic_heartbeat *to, bool busy);
