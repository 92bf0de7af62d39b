#include "core/sandbox.h"

int sandbox_check(const struct sandbox *s, const struct principal *by, struct err *e)
{
    struct sandbox_info i;

    if (by->role != ROLE_AGENT && !principal_is_inside(by))
        return 0;
    sandbox_info(s, &i);
    if (principal_is_inside(by) ? str_eq_c(principal_sandbox(by), i.id)
                                : str_eq_c(i.owner, by->actor))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "sandbox '%s' is not yours: an agent touches only what it made",
            i.id);
    err_object(e, "sandbox", i.id);
    return err_hint(e, "see yours: holt ls");
}
