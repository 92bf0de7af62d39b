/* team_job: private to src/api: a request that is one piece of work on the team (core/team/team.h),
 * for the native API and dialects alike: the caller is copied, the work runs on the store's thread
 * and writes the reply, tokens of agents are created and revoked with it, then the reply is
 * sent. */
#pragma once

#include "api/team/team.h"

enum team_class { TEAM_READ, TEAM_RELAXED, TEAM_DURABLE };

struct team_job { /* in the caller's heap memory, zeroed */
    struct waiter waiter;
    struct api *api;
    struct principal by;    /* without its token */
    struct team *t;         /* the caller's, by team_of */
    struct buf *reply;      /* the caller's; one JSON object if give_token is set */
    struct str give_token;  /* an agent being registered: a person gets a token for it */
    struct str take_tokens; /* an agent being removed: its tokens are revoked if a person does it */
    struct idem *idem;      /* or NULL; by team_job_start */
    char object[96];        /* what a creating one made: "project/pj_…" */
    int status;             /* of the reply; 0: 200 */
    bool token_given;       /* the reply holds a token: it is not kept */
    struct str stop_boxes;  /* an agent whose sandboxes are to be stopped */
    /* On the store's thread, maybe twice. */
    int (*run)(struct team_job *j, struct err *e);
    /* On the loop's thread; only if the client still waits. */
    void (*answer)(struct request *r, struct team_job *j, const struct err *e);
    void (*free)(struct team_job *j);
};

/* Always replies, then frees j. */
void team_job_start(struct team_job *j, struct request *r, enum team_class class);
/* Whether the team's rules refused it (not a malformed request or a missing object). */
bool team_is_refusal(const struct err *e);
/* For every refusal by the team's rules: adds an audit row and Retry-After. */
void team_refused(struct request *r, const struct team *t, const struct err *e);
