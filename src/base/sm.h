/* sm: life cycles as tables.  A state lists the states it may move to; one hook per object sees
 * each move (logs, persists, publishes). */
#pragma once

#include "base/str.h"

#define SM_TO(state) (1U << (state))

struct sm_state {
    const char *name;
    uint32_t to; /* SM_TO(…) | SM_TO(…) */
};

struct sm {
    const struct sm_state *table;
    void (*on_move)(struct sm *m, int from); /* may be NULL; m->state is the new one */
    int state;
};

bool sm_may(const struct sm *m, int to);
void sm_move(struct sm *m, int to);        /* our own move: aborts when not allowed */
bool sm_try(struct sm *m, int to) CHECKED; /* a move caused from outside: false when not allowed */
const char *sm_name(const struct sm *m);
/* Finds the state of this name among the first count; false: none. */
bool sm_find(const struct sm_state *table, int count, struct str name, int *ret);
