/* step_interface: the interface of a sandbox with a raw network. */

/* One end of a veth pair, the other on a bridge that the operator made and named (--bridge).  What
 * is behind the bridge is the operator's: holt-spawn changes no forwarding and no NAT of the
 * host.  The kernel removes the pair with the sandbox's namespace; we remove it before, so that
 * nothing is left when destroy is replied.  Before the clone, holt-spawn is in the sandbox's
 * network namespace (see step_socket). */
#include "spawn/sandbox.h"

#include "base/fd.h"
#include "base/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSIDE "eth0"
#define TAIL 10 /* random characters of an id */

/* ---- the operator's setting ---- */

int host_bridge(const char *value, struct err *e)
{
    char text[sizeof host.bridge.name + 32], *net, *slash;
    struct in_addr base;
    long bits;

    (void)snprintf(text, sizeof text, "%s", value);
    net = strchr(text, ',');
    slash = net ? strchr(net, '/') : NULL;
    bits = slash ? strtol(slash + 1, NULL, 10) : 0;
    if (slash)
        *net++ = *slash = '\0';
    if (!slash || !text[0] || strlen(text) >= sizeof host.bridge.name || bits < 8 || bits > 29 ||
        inet_pton(AF_INET, net, &base) != 1)
        return err_set(e, ERR_INVALID, 0, "'%s' is not BRIDGE,ADDRESS/BITS with 8 to 29 bits",
                       value);
    (void)snprintf(host.bridge.name, sizeof host.bridge.name, "%s", text);
    host.bridge.bits = (uint8_t)bits;
    host.bridge.base = ntohl(base.s_addr) & ~(UINT32_MAX >> bits);
    return 0;
}

/* The bridge has the first address; 0: none is left. */
static uint32_t address_of(const struct sandbox *s)
{
    uint32_t last = host.bridge.base | (UINT32_MAX >> host.bridge.bits);
    uint32_t own = host.bridge.base + 1 + s->ids.slot;

    return s->ids.slot > 0 && own < last ? own : 0;
}

static void outer_name(const struct sandbox *s, char to[IF_NAMESIZE])
{
    size_t n = strlen(s->id);

    (void)snprintf(to, IF_NAMESIZE, "hv%s", s->id + (n > TAIL ? n - TAIL : 0));
}

/* ---- netlink ---- */

static void add_pair(struct nl_batch *b, const char *outside)
{
    const struct ifinfomsg any = {.ifi_family = AF_UNSPEC};
    uint32_t home = (uint32_t)host.home_net;
    size_t info, data, peer;

    nl_begin(b, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &any, sizeof any);
    nl_attr_text(b, IFLA_IFNAME, INSIDE);
    info = nl_nest(b, IFLA_LINKINFO);
    nl_attr_text(b, IFLA_INFO_KIND, "veth");
    data = nl_nest(b, IFLA_INFO_DATA);
    peer = nl_nest(b, VETH_INFO_PEER);
    nl_raw(b, &any, sizeof any);
    nl_attr_text(b, IFLA_IFNAME, outside);
    nl_attr(b, IFLA_NET_NS_FD, &home, sizeof home);
    nl_nest_end(b, peer);
    nl_nest_end(b, data);
    nl_nest_end(b, info);
}

static void set_up(struct nl_batch *b, unsigned index, uint32_t master)
{
    const struct ifinfomsg up = {.ifi_family = AF_UNSPEC,
                                 .ifi_index = (int)index,
                                 .ifi_flags = IFF_UP,
                                 .ifi_change = IFF_UP};

    nl_begin(b, RTM_NEWLINK, NLM_F_ACK, &up, sizeof up);
    if (master > 0)
        nl_attr(b, IFLA_MASTER, &master, sizeof master);
}

static void add_address(struct nl_batch *b, unsigned index, uint32_t address)
{
    const struct ifaddrmsg m = {
        .ifa_family = AF_INET, .ifa_prefixlen = host.bridge.bits, .ifa_index = index};
    uint32_t own = htonl(address);

    nl_begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, &m, sizeof m);
    nl_attr(b, IFA_LOCAL, &own, sizeof own);
    nl_attr(b, IFA_ADDRESS, &own, sizeof own);
}

static void add_default_route(struct nl_batch *b)
{
    const struct rtmsg m = {.rtm_family = AF_INET,
                            .rtm_table = RT_TABLE_MAIN,
                            .rtm_protocol = RTPROT_STATIC,
                            .rtm_scope = RT_SCOPE_UNIVERSE,
                            .rtm_type = RTN_UNICAST};
    uint32_t gateway = htonl(host.bridge.base + 1);

    nl_begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, &m, sizeof m);
    nl_attr(b, RTA_GATEWAY, &gateway, sizeof gateway);
}

/* ---- both ends ---- */

static int make_inside(const char *outside, uint32_t address)
{
    struct nl_batch b = {0};
    unsigned index;
    int r;

    add_pair(&b, outside);
    r = nl_run(&b, NETLINK_ROUTE);
    index = r < 0 ? 0 : if_nametoindex(INSIDE);
    if (index == 0)
        return r < 0 ? r : -errno;
    b = (struct nl_batch){0};
    add_address(&b, index, address);
    set_up(&b, index, 0);
    add_default_route(&b);
    return nl_run(&b, NETLINK_ROUTE);
}

static int join_bridge(const char *outside)
{
    unsigned index = if_nametoindex(outside), bridge = if_nametoindex(host.bridge.name);
    struct nl_batch b = {0};

    if (index == 0 || bridge == 0)
        return -ENODEV;
    set_up(&b, index, bridge);
    return nl_run(&b, NETLINK_ROUTE);
}

static int remove_pair(const char *outside)
{
    const struct ifinfomsg any = {.ifi_family = AF_UNSPEC};
    struct nl_batch b = {0};
    int r;

    nl_begin(&b, RTM_DELLINK, NLM_F_ACK, &any, sizeof any);
    nl_attr_text(&b, IFLA_IFNAME, outside);
    r = nl_run(&b, NETLINK_ROUTE);
    return r == -ENODEV ? 0 : r; /* the kernel was faster */
}

/* In the namespace holt-spawn was started in, and back. */
static int at_home(const char *outside, int (*act)(const char *outside))
{
    AUTO(fd_close) int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int r;

    if (here < 0 || setns(host.home_net, CLONE_NEWNET) < 0)
        return -errno;
    r = act(outside);
    return setns(here, CLONE_NEWNET) < 0 ? -errno : r;
}

/* ---- the steps ---- */

static int check(const struct sandbox *s, struct err *e)
{
    if (host.rootless) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "a raw network needs holt-spawn to run as root");
        return err_hint(e, "use mode 'open', which works without root");
    }
    if (!host.bridge.name[0]) {
        (void)err_set(e, ERR_UNSUPPORTED, 0, "no bridge is set for raw networks");
        return err_hint(e, "create one and set 'raw_bridge', or use mode 'open'");
    }
    if (address_of(s) == 0) {
        (void)err_set(e, ERR_LIMIT, 0, "the network of bridge '%s' has no free address",
                      host.bridge.name);
        return err_limit(e, "raw_bridge", UINT32_MAX >> host.bridge.bits,
                         "destroy a sandbox, or give the bridge a larger network");
    }
    return 0;
}

int step_interface(struct sandbox *s, struct err *e)
{
    char outside[IF_NAMESIZE];
    int r;

    if (!(s->flags & SPAWN_RAW))
        return 0;
    if (check(s, e) < 0 || (s->pid > 0 && network_enter(s, e) < 0))
        return -1;
    outer_name(s, outside);
    r = make_inside(outside, address_of(s));
    if (r == 0)
        r = at_home(outside, join_bridge);
    if (r == 0)
        return 0;
    (void)at_home(outside, remove_pair);
    return err_set(e, err_code_from_errno(-r), -r, "give it an interface on bridge '%s'",
                   host.bridge.name);
}

int undo_interface(struct sandbox *s)
{
    char outside[IF_NAMESIZE];

    if (!(s->flags & SPAWN_RAW) || host.home_net < 0)
        return 0;
    outer_name(s, outside);
    return at_home(outside, remove_pair);
}

void interface_gateway(char to[INET_ADDRSTRLEN])
{
    struct in_addr gateway = {.s_addr = htonl(host.bridge.base + 1)};

    (void)inet_ntop(AF_INET, &gateway, to, INET_ADDRSTRLEN);
}
