/* guards: reads which guards a test leaves out. */
#include "spawn/guards.h"

#include "base/str.h"

#include <stdlib.h>

#ifdef HOLT_TEST_GUARDS
bool guard_left_out(const char *name)
{
    struct str rest = str_of(getenv("HOLT_OMIT") ? getenv("HOLT_OMIT") : "");

    while (rest.n > 0)
        if (str_eq_c(str_cut(rest, ',', &rest), name))
            return true;
    return false;
}
#endif
