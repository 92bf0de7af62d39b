/* guards: tests leave out one guard by name, to show that an attack then works.  Only in a build
 * with -Dtest_guards=true; other builds contain neither checks nor names. */
#pragma once

#include "base/macro.h"

#ifdef HOLT_TEST_GUARDS
bool guard_left_out(const char *name); /* whether it is in the environment's HOLT_OMIT, a,b,c */
#else
#define guard_left_out(name) false
#endif
