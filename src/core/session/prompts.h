/* prompts: sessions that wait for a person, as approvals of kind "prompt" in the one queue.  Every
 * running session is watched, whether or not anybody is attached: when its output has been quiet
 * for a moment, its screen is searched for a prompt (core/session/prompt.h).  A session has one
 * pending prompt at most; it is closed when the prompt is gone or the session ends.  The answer is
 * in the store until it was typed: a holtd that was killed types it after its restart, if the
 * prompt still stands there.
 * Ownership: prompts_open and prompts_close.  Thread: the loop's. */
#pragma once

#include "core/approval/approval.h"
#include "core/exec/console.h"
#include "core/session/live.h"
#include "core/session/prompt.h"

struct prompts;

struct prompts_config {
    struct store *store;
    struct events *events;
    struct sandboxes *sandboxes;
    struct lives *lives;
    struct consoles *consoles;
    const bool *on; /* read at each use */
};

/* Reads pending prompts and answers.  Blocking: at start-up only, after sandboxes_open. */
CHECKED int prompts_open(const struct prompts_config *c, struct prompts **ret, struct err *e);
/* No watch is left after it: before lives_close.  The memory goes with prompts_unref. */
void prompts_close(struct prompts *p);
struct prompts *prompts_unref(struct prompts *p); /* takes NULL; returns NULL */
void prompts_tick(struct prompts *p);             /* once a second */

/* A caller says that a session waits, with this question: such a prompt stays until it is answered
 * or its session ends.  done gets the approval's id.  ERR_CONFLICT: it has one already. */
typedef void (*prompts_asked)(void *arg, struct str id, const struct err *e);
void prompts_ask(struct prompts *p, struct exec *x, struct str question, struct str context,
                 prompts_asked done, void *arg);
