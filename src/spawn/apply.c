/* apply: applies one set-up step; tests/fault links another version that fails on demand. */
#include "spawn/sandbox.h"

int setup_apply(const struct setup_step *step, struct sandbox *s, struct err *e)
{
    return step->apply(s, e);
}
