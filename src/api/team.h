/* team: private to src/api: the team's work on the store's thread, for every dialect. */
#pragma once

#include "api/request.h"
#include "core/team.h"

struct team_conf team_settings(const struct config *c);
/* Who asks, as the team's rules see it; the agent's name is copied into a. */
struct team_asker team_asker(const struct request *r, struct arena *a);
/* Once a second: what time does to agents and their cards. */
void team_tick(struct api *a);
