/* habits: flags of Docker's commands that holt does not have, and what does the same here. */
#pragma once

#include "base/str.h"

struct habit {
    const char *verbs; /* "run,create" */
    const char *flags; /* "-p,--publish" */
    const char *hint;  /* as long as a struct err holds */
};
extern const struct habit habits[];
extern const size_t habit_count;

/* The remedy for a flag ("--privileged", "-p") of a verb; NULL: none is known. */
const char *habit_hint(const char *verb, struct str flag);
