/* point: names a moment at which a process may die, so that a test can kill it (or another) exactly
 * there.  Programs that tests/soak builds with -DHOLT_TEST_POINTS link a point_reached() that stops
 * the process; other builds contain neither calls nor names. */
#pragma once

#ifdef HOLT_TEST_POINTS
void point_reached(const char *name);
#else
#define point_reached(name) ((void)0)
#endif
