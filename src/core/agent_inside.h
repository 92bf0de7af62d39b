/* agent_inside: private to src/core: what the files of agent share. */
#pragma once

#include "core/agent.h"

/* Writes the row and the event, which holds all of it; the status is made anew. */
CHECKED int agent_save(struct team *t, struct agent *a, const char *event, struct err *e);
enum agent_status agent_status_of(const struct team *t, const struct agent *a);
