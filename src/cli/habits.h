/* habits: flags of Docker's commands that holt does not have, and the equivalent in holt. */
#pragma once

#include "base/str.h"

struct habit {
    const char *verbs; /* "run,create" */
    const char *flags; /* "-p,--publish" */
    const char *hint;  /* at most as long as a hint of struct err */
};
extern const struct habit habits[];
extern const size_t habit_count;

/* The hint for a flag ("--privileged", "-p") of a verb; NULL: none. */
const char *habit_hint(const char *verb, struct str flag);
