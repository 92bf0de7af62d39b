/* guards: tests leave out one guard by name, to show that an attack then succeeds.  Only in
 * tests/security's own build of holt-egress; other builds contain neither checks nor names. */
#pragma once

#ifdef HOLT_TEST_GUARDS
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool guard_left_out(const char *name)
{
    const char *omit = getenv("EGRESS_OMIT");

    return omit && strcmp(omit, name) == 0;
}
#else
#define guard_left_out(name) false
#endif
