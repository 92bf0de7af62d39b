/* omit: tests leave out one rule of holtd by name, to show that something forbidden then happens:
 * a rule whose test passes without it has none.  Only in programs of tests/security that are built
 * with -DHOLT_TEST_GUARDS; others contain neither checks nor names. */
#pragma once

#include "base/macro.h"

#ifdef HOLT_TEST_GUARDS
bool rule_is_omitted(const char *name); /* whether it is HOLTD_OMIT of the environment */
#else
#define rule_is_omitted(name) false
#endif
