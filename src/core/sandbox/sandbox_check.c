/* sandbox_check: whether a caller may use a sandbox (the rule is core/identity/owner.h). */
#include "core/sandbox/sandbox_internal.h"

int sandbox_check(const struct sandbox *s, const struct principal *by, struct err *e)
{
    const struct owned o = sandbox_owned(s);

    return owner_check(by, &o, OWNER_CHANGE, "sandbox", s->id, e);
}
