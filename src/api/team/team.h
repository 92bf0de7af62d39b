/* team: private to src/api: the team's work on the store's thread, for every dialect. */
#pragma once

#include "api/request.h"
#include "core/team/team.h"

/* The team as the caller of a request sees it; what it needs is copied into a. */
CHECKED int team_of(const struct request *r, struct arena *a, struct team *ret, struct err *e);
/* The same for questions to people: also a sandbox that is no agent of the team. */
CHECKED int team_of_anyone(const struct request *r, struct arena *a, struct team *ret,
                           struct err *e);
/* After a commit: removes the blobs that no row names any more. */
/* holtd itself, for what it does on its own. */
struct team team_of_system(const struct api *a, struct arena *arena);
void team_settle(struct api *api, const struct team *t);
/* An agent made a request, whatever the result: it is alive. */
void team_heard(struct api *a, struct str name);
/* Adds a heartbeat to the audit log, folded with those that follow. */
void team_beat(struct api *a, const struct team *t);
/* Once a second: applies the passing of time to agents and their cards. */
void team_tick(struct api *a);
