/* filter: compiles the seccomp filters of sandboxes, once. */

/* One for init and everything it starts, and a short one that init adds in each command. */
#include "spawn/host.h"

#include "base/fd.h"
#include "base/filter.h"
#include "spawn/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static int compile(const struct calls *c, struct sock_fprog *ret)
{
    return filter_compile(c->tables, c->count, c->otherwise, ret);
}

/* Sealed: every init shares the file, and must not change what another installs. */
static int command_file(const struct sock_fprog *p)
{
    AUTO(fd_close) int fd = memfd_create("holt-filter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r = fd < 0 ? -errno : fd_write_all(fd, (const char *)p->filter, p->len * sizeof *p->filter);

    if (r == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        r = -errno;
    return r < 0 ? r : TAKE_FD(fd);
}

static int compile_commands(void)
{
    const struct calls c = calls_of_commands();
    struct sock_fprog p;
    int r = compile(&c, &p);

    if (r < 0)
        return r;
    r = command_file(&p);
    filter_done(&p);
    if (r >= 0)
        host.command_filter = r;
    return r < 0 ? r : 0;
}

/* narrow: requests for wide are refused; wide: most requests will be for it. */
int host_syscalls(const char *value, struct err *e)
{
    host.wide_allowed = strcmp(value, "narrow") != 0;
    host.wide_spares = strcmp(value, "wide") == 0;
    if (!host.wide_allowed || host.wide_spares || strcmp(value, "either") == 0)
        return 0;
    return err_set(e, ERR_INVALID, 0, "'--syscalls' is narrow, either or wide, not '%s'", value);
}

int host_compile_filter(struct err *e)
{
    int r = compile_commands();

    for (int kind = 0; r == 0 && kind < CALLS_KIND_COUNT; kind++)
        for (int nests = 0; r == 0 && nests <= (host.nesting ? 1 : 0); nests++) {
            const struct calls c = calls_of((enum calls_kind)kind, nests == 1);

            r = compile(&c, &host.filters[kind][nests]);
        }
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "compile the seccomp filter") : 0;
}
