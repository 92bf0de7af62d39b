/* point: names a moment at which a process may die, so that a test can kill it (or another) just
 * there.  Programs that tests/soak builds with -DHOLT_TEST_POINTS link a point_reached() that stops
 * the process; elsewhere it costs nothing and the names are not there. */
#pragma once

#ifdef HOLT_TEST_POINTS
void point_reached(const char *name);
#else
#define point_reached(name) ((void)0)
#endif
