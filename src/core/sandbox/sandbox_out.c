/* sandbox_out: connections that a sandbox's init leads out, handed over to holt-egress. */
#include "core/sandbox/sandbox_internal.h"

#include "base/fd.h"
#include "link/guest_join.h"

#include <errno.h>
#include <sys/socket.h>

/* Init could ask without being allowed: what the sandbox was made with decides, and holt-egress
 * judges the destination. */
int sandbox_lead_out(struct sandbox *s, struct guest_pipe *p, const struct guest_relay *from,
                     struct err *e)
{
    int pair[2];

    if (!sandbox_is_networked(s) || !(s->driver->ops->caps & DRIVER_LEADS_OUT))
        return err_set(e, ERR_FORBIDDEN, 0, "sandbox '%s' leads no connections out", s->id);
    if (!egress_knows(s->all->egress, s->id))
        return err_set(e, ERR_UNAVAILABLE, 0, "holt-egress does not serve sandbox '%s' now", s->id);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
        (void)err_set(e, ERR_LIMIT, errno, "make a socket for a connection of '%s'", s->id);
        return err_hint(e, "raise the limit of holtd's open files (LimitNOFILE=, ulimit -n)");
    }
    sandbox_touch(s);
    egress_lead(s->all->egress, s->id, from, pair[1]);
    return guest_join(s->all->loop, p, pair[0], e);
}
