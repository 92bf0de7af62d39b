/* team_job: private to src/api: a request that is one piece of work on the team (core/team/team.h),
 * for the native API and the hub alike: who asks is copied, the work runs on the store's thread and
 * writes the reply, tokens of agents come and go with it, then the request is answered. */
#pragma once

#include "api/team/team.h"

enum team_class { TEAM_READ, TEAM_RELAXED, TEAM_DURABLE };

struct team_job { /* in the caller's heap memory, zeroed */
    struct waiter waiter;
    struct api *api;
    struct principal by;    /* without its token */
    struct team *t;         /* the caller's, by team_of */
    struct buf *reply;      /* the caller's: one JSON object when give_token is set */
    struct str give_token;  /* an agent that is registered: a person gets a token for it */
    struct str take_tokens; /* an agent that is removed: its tokens go when a person does it */
    struct str stop_boxes;  /* an agent whose sandboxes are to stop */
    /* On the store's thread, maybe twice. */
    int (*run)(struct team_job *j, struct err *e);
    /* On the loop's; only when somebody still waits. */
    void (*answer)(struct request *r, struct team_job *j, const struct err *e);
    void (*free)(struct team_job *j);
};

/* Answers in any case, then frees j. */
void team_job_start(struct team_job *j, struct request *r, enum team_class class);
/* Is it the team's rules that say no, not the form of the request or what is not there? */
bool team_is_refusal(const struct err *e);
/* What every refusal of the team's rules needs: an audit row, Retry-After. */
void team_refused(struct request *r, const struct team *t, const struct err *e);
