/* The one place where steps are applied: tests/fault links another in its stead that fails on
 * demand. */
#include "spawn/sandbox.h"

int setup_apply(const struct setup_step *step, struct sandbox *s, struct err *e)
{
    return step->apply(s, e);
}
