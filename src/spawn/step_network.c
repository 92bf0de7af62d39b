/* step_network: the network of a sandbox without an interface: everything leads to holt-egress. */

/* Every address is local (a local default route on lo), every TCP connection is redirected to port
 * 3128, and the sockets there and on port 53 are holt-egress's.  It cannot be bypassed, because
 * there is no other way out.  holt-spawn is in the sandbox's network namespace when it makes them
 * (see step_socket). */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "base/ways.h"
#include "spawn/guards.h"
#include "spawn/inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- listeners ---- */

static int open_listeners(struct sandbox *s, struct err *e)
{
    static const struct {
        int family, type;
        uint16_t port;
    } wanted[SPAWN_LISTENER_COUNT] = {
        [SPAWN_LISTENER_TCP4] = {AF_INET, SOCK_STREAM, SPAWN_PROXY_PORT},
        [SPAWN_LISTENER_TCP6] = {AF_INET6, SOCK_STREAM, SPAWN_PROXY_PORT},
        [SPAWN_LISTENER_DNS_UDP] = {AF_INET, SOCK_DGRAM, 53},
        [SPAWN_LISTENER_DNS_TCP] = {AF_INET, SOCK_STREAM, 53},
    };

    for (size_t i = 0; i < SPAWN_LISTENER_COUNT; i++) {
        int fd;

        if (wanted[i].family == AF_INET6 && !ways_has_ipv6())
            continue;
        fd = ways_listen(wanted[i].family, wanted[i].type, wanted[i].port);
        if (fd < 0)
            return err_set(e, err_code_from_errno(-fd), -fd, "listen on port %u for holt-egress",
                           wanted[i].port);
        s->net[i] = fd;
    }
    return 0;
}

int network_enter(const struct sandbox *s, struct err *e)
{
    /* By the pidfd (Linux 5.8): the pid of an init that is not our child may be reused. */
    if (s->pid == 0 || setns(s->ended.fd, CLONE_NEWNET) < 0)
        return err_set(e, ERR_CONFLICT, s->pid == 0 ? ESRCH : errno, "enter its network");
    return 0;
}

/* For its own request holt-spawn is still there, since step_socket. */
int step_network(struct sandbox *s, struct err *e)
{
    if (!(s->flags & SPAWN_NETWORK))
        return 0;
    if (s->spare != SPARE_NONE && !guard_left_out("network") && network_enter(s, e) < 0)
        return -1;
    if (!guard_left_out("redirect") && ways_make(SPAWN_PROXY_PORT, e) < 0)
        return -1;
    return open_listeners(s, e);
}

int undo_network(struct sandbox *s)
{
    for (size_t i = 0; i < SPAWN_LISTENER_COUNT; i++) {
        fd_close(s->net[i]);
        s->net[i] = -1;
    }
    return 0;
}

int sandbox_listeners(struct sandbox *s, struct spawn_listeners *ret, struct err *e)
{
    if (!(s->flags & SPAWN_NETWORK))
        return err_set(e, ERR_CONFLICT, 0, "sandbox '%s' was made without a network", s->id);
    /* The former owner has ended, or the ports would be taken. */
    if (s->net[SPAWN_LISTENER_TCP4] < 0 && (network_enter(s, e) < 0 || open_listeners(s, e) < 0)) {
        (void)undo_network(s);
        return err_wrap(e, "listen in sandbox '%s'", s->id);
    }
    for (size_t i = 0; i < SPAWN_LISTENER_COUNT; i++)
        ret->kinds |= s->net[i] < 0 ? 0 : 1u << i;
    return 0;
}

/* In the child: an image may have a link there, to a file that does not exist. */
static int write_etc(int root, const char *name, struct str text, struct err *e)
{
    AUTO(fd_close) int etc = inside_make(root, "/etc", false);
    char path[32];
    int r;

    if (etc < 0)
        return err_set(e, ERR_INVALID, -etc, "open /etc");
    (void)snprintf(path, sizeof path, "/etc/%s", name);
    r = inside_replace(root, path, text, STR(""));
    return r < 0 ? err_set(e, ERR_INTERNAL, -r, "write %s", path) : 0;
}

int step_resolver(struct sandbox *s, struct err *e)
{
    char server[INET_ADDRSTRLEN] = "127.0.0.1", text[64];

    if (!(s->flags & (SPAWN_NETWORK | SPAWN_RAW)))
        return 0;
    if (s->flags & SPAWN_RAW)
        interface_gateway(server);
    (void)snprintf(text, sizeof text, "nameserver %s\noptions timeout:5\n", server);
    return write_etc(s->root, "resolv.conf", str_of(text), e);
}

/* After a restart the file exists, maybe with lines added by commands. */
int step_hub(struct sandbox *s, struct err *e)
{
    if (!(s->flags & SPAWN_HUB) || (s->flags & SPAWN_RESTART))
        return 0;
    return write_etc(
        s->root, "hosts",
        STR("127.0.0.1 localhost\n::1 localhost\n" SPAWN_HUB_ADDRESS " " SPAWN_HUB_NAME "\n"), e);
}
