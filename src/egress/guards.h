/* guards: tests leave out one guard by name, to show that an attempt then gets through.  Only in
 * tests/security's own build of holt-egress; elsewhere the question costs nothing and the names are
 * not there. */
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
