/* agent: the registered workers of a team: their skills, how far they may act alone, whether they
 * are alive, and people's directives to them.
 *
 * Status is derived: an open revocation, then an open pause, then heartbeats (offline), missed
 * checkpoints (stalled), work in hand (busy).  No heartbeat or registration ends a pause or a
 * revocation: only people resume, only an acknowledgement ends a revocation.
 * Thread, ownership, errors: core/team/team.h. */
#pragma once

#include "base/id.h"
#include "core/team/team.h"

enum agent_mode { AGENT_MANUAL, AGENT_ADVISORY, AGENT_AUTONOMOUS, AGENT_MODES };
enum agent_status {
    AGENT_OFFLINE,
    AGENT_ONLINE,
    AGENT_BUSY,
    AGENT_STALLED,
    AGENT_PAUSED,
    AGENT_REVOKED,
    AGENT_STATUSES
};

const char *agent_mode_name(enum agent_mode m);
bool agent_mode_parse(struct str s, enum agent_mode *ret);
const char *agent_status_name(enum agent_status s);

struct agent {
    struct str name, type, description, tags, metadata, card;
    enum agent_mode mode, mode_max;
    enum agent_status status;
    bool paused, revoked;
    int64_t in_hand; /* cards in progress */
    int64_t task_max, ticks, sequence, registered_ms, heartbeat_ms;
};

struct agent_list {
    struct agent *v;
    size_t n;
};

struct agent_spec {
    struct str name, type, metadata, tags;
    const enum agent_mode *mode; /* NULL: the default */
    bool by_itself;              /* the mode is the agent's own request: limited, not refused */
    int64_t task_max;            /* -1: the default for a new agent */
};

/* 1: found, 0: there is none. */
CHECKED int agent_find(struct team *t, struct str name, struct agent *ret, struct err *e);
CHECKED int agent_need(struct team *t, struct str name, struct agent *ret, struct err *e);
CHECKED int agent_all(struct team *t, struct agent_list *ret, struct err *e); /* by name */
CHECKED int agent_register(struct team *t, const struct agent_spec *s, struct agent *ret,
                           struct err *e);
CHECKED int agent_heartbeat(struct team *t, struct str name, struct agent *ret, struct err *e);
/* It did something: counts as a heartbeat, but makes no checkpoint due. */
CHECKED int agent_heard(struct team *t, struct str name, struct err *e);
CHECKED int agent_remove(struct team *t, struct str name, struct err *e);
CHECKED int agent_set_mode(struct team *t, struct str name, enum agent_mode m, struct err *e);
/* For all agents of a type (empty: all), and for those that register later. */
CHECKED int agent_set_default_mode(struct team *t, enum agent_mode m, struct str type,
                                   struct agent_list *ret, struct err *e);
CHECKED int agent_set_tags(struct team *t, struct str name, struct str tags, struct str description,
                           int64_t task_max, struct err *e); /* -1: unchanged */
CHECKED int agent_set_card(struct team *t, struct str name, struct str card, struct err *e);
/* A directive or a card changed: publishes the agent's status if that changed too.  1: *ret is the
 * agent as it is now, 0: it is not registered. */
CHECKED int agent_refresh(struct team *t, struct str name, struct agent *ret, struct err *e);
/* Publishes status changes caused by time; returns cards of owners that have been gone too long. */
CHECKED int agent_watch(struct team *t, struct err *e);
/* Whether agent_watch has anything to do. */
CHECKED int agent_watch_due(struct team *t, bool *ret, struct err *e);

struct checkpoint {
    struct str id, agent, card, state, rationale, metadata;
    int64_t sequence, created_ms;
};
struct checkpoint_list {
    struct checkpoint *v;
    size_t n;
};
/* sets c's id, sequence and time. */
CHECKED int agent_checkpoint(struct team *t, struct checkpoint *c, struct err *e);
CHECKED int agent_checkpoints(struct team *t, struct str agent, int64_t limit,
                              struct checkpoint_list *ret, struct err *e); /* newest first */

struct directive {
    struct str id, agent, kind, reason, actor;
    bool flush;
    int64_t issued_ms, ended_ms;
};
struct directive_list {
    struct directive *v;
    size_t n;
};
CHECKED int agent_pause(struct team *t, struct str name, struct str reason, struct err *e);
CHECKED int agent_resume(struct team *t, struct str name, struct agent *ret, struct err *e);
CHECKED int agent_revoke(struct team *t, struct str name, struct str reason, bool flush,
                         struct directive *ret, struct err *e);
/* The open revocation: 1, or 0.  It stays until it is acknowledged. */
CHECKED int agent_revocation(struct team *t, struct str name, struct directive *ret, struct err *e);
/* id empty: all open ones.  Returns the number ended. */
CHECKED int agent_acknowledge(struct team *t, struct str name, struct str id, struct err *e);
CHECKED int agent_directives(struct team *t, const char *kind, int64_t limit,
                             struct directive_list *ret, struct err *e); /* newest first */

/* Whether it may take new work (claims, assignments); whether it may act at all (moves,
 * messages). */
CHECKED int agent_may_take(struct team *t, const struct agent *a, struct err *e);
CHECKED int agent_may_act(struct team *t, const struct agent *a, struct err *e);
/* agent_may_take for an agent that need not be registered: leaving ends neither a pause nor a
 * revocation. */
CHECKED int agent_may_be_given(struct team *t, struct str name, struct err *e);
/* Returns -1 with who revoked it, when and why, and what a person can do. */
int agent_refuse_revoked(const struct directive *d, struct err *e);
/* Whether it may give itself work: only a fully autonomous one, and only work it has the tags
 * for. */
CHECKED int agent_may_choose(struct team *t, const struct agent *a, struct str needed_tags,
                             struct err *e);
/* Whether it has the tags. */
CHECKED int agent_can_do(const struct agent *a, struct str needed_tags, struct err *e);
/* Whether a person must approve its actions. */
bool agent_must_propose(const struct agent *a);
/* team_act_as, refused while that agent is revoked, even if it has removed itself. */
CHECKED int agent_act_as(struct team *t, struct str name, struct str *ret, struct err *e);
