/* agent_internal: shared by the files of agent. */
#pragma once

#include "core/team/agent.h"

/* Writes the row and the event, which holds all of it; derives the status again. */
CHECKED int agent_save(struct team *t, struct agent *a, const char *event, struct err *e);
enum agent_status agent_status_of(const struct team *t, const struct agent *a);
/* An agent that removes itself and registers again keeps its limits: meanwhile they are stored as a
 * directive.  Taking it removes it: 1; 0: there was none. */
CHECKED int agent_keep_bounds(struct team *t, const struct agent *a, struct err *e);
CHECKED int agent_take_bounds(struct team *t, struct agent *a, struct err *e);
/* Changes the mode for all agents of a type (empty: all), also for those not registered now. */
CHECKED int agent_change_bounds(struct team *t, enum agent_mode m, struct str type, struct err *e);
