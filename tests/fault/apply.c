/* Fails the step that the sandbox's hostname names: "before-3" in its stead, "after-3" once it is
 * applied; "die-3" kills the process that runs it (a child's step only).  The error names the
 * step's phase: whoever walks the table learns it so. */
#include "spawn/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static bool is_at(const struct sandbox *s, const char *when, size_t i)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%s-%zu", when, i);
    return strcmp(s->hostname, text) == 0;
}

static int inject(const struct setup_step *step, struct err *e)
{
    return err_set(e, ERR_INTERNAL, EIO, "injected in phase %d", (int)step->phase);
}

int setup_apply(const struct setup_step *step, struct sandbox *s, struct err *e)
{
    size_t i = (size_t)(step - setup_steps);

    if (is_at(s, "before", i))
        return inject(step, e);
    if (is_at(s, "die", i) && step->phase >= SETUP_CHILD_AHEAD)
        (void)kill(getpid(), SIGKILL);
    if (is_at(s, "die", i))
        return inject(step, e);
    if (step->apply(s, e) < 0)
        return -1;
    return is_at(s, "after", i) ? inject(step, e) : 0;
}
