/* approval_wait: private to src/api: replies that wait for a person's answer.  A wait ends with the
 * answer, its deadline, its client's connection, the loss of its token, or the daemon; none of them
 * but the answer changes the question. */
#pragma once

#include "api/team/team.h"
#include "core/approval/approval.h"
#include "core/approval/grant.h"

/* Replies with the question id once it is decided, or after wait_ms; -1: with the stream of its
 * events.  t: the caller, copied. */
void approval_wait(struct request *r, const struct team *t, struct str id, int64_t wait_ms);
/* The same in a dialect's form: written on the store's thread, sent on the loop's. */
struct approval_form {
    void (*write)(struct jw *w, const struct team *t, const struct approval *a);
    void (*send)(struct request *r, struct str json);
};
void approval_wait_as(struct request *r, const struct team *t, struct str id, int64_t wait_ms,
                      const struct approval_form *form);
void approval_waits_tick(struct api *a); /* once a second: deadlines */
void approval_waits_done(struct api *a); /* before events_close */

/* A question as replies show it (team_approval.c). */
void approval_write(struct jw *w, const struct team *t, const struct approval *a);
