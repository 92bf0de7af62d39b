/* prompts_internal: one watched session (prompts.c), and how its answer is typed (prompts_type.c).
 */
#pragma once

#include "core/session/prompts.h"

#define TYPE_KEYS 64   /* presses of one answer, at most */
#define TYPE_GAP_MS 60 /* between two: a program that reads both at once takes them for a paste */

struct typist { /* the presses of one answer */
    struct timers *timers;
    struct consoles *consoles;
    struct exec *x;
    struct timer next;
    struct buf bytes;
    size_t ends[TYPE_KEYS], count, at;
    void (*done)(struct typist *t);
};

/* Types the answer to a prompt; p NULL: a plain line.  drawn: by a full-screen program, for which
 * Enter is a press of its own; others get text and Enter in one piece, so that a kill of holtd
 * never leaves half of it.  x must live until done. */
void type_answer(struct typist *t, const struct prompt *p, bool drawn, bool application,
                 struct str answer);
void type_stop(struct typist *t);
