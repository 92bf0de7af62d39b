/* ways: the routes, rules and sockets of a network without an interface. */
#include "base/ways.h"

#include "base/fd.h"
#include "base/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define LO 1 /* the loopback interface is the first in every namespace */
#define TABLE "holt"
#define CHAIN "out"
#define REG NFT_REG_1
#define IP6T_SO_ORIGINAL_DST 80

/* ---- addresses and routes ---- */

static void add_address(struct nl_batch *b)
{
    const struct ifaddrmsg m = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = LO};
    uint32_t own = htonl(WAYS_OWN_ADDRESS);

    nl_begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, &m, sizeof m);
    nl_attr(b, IFA_LOCAL, &own, sizeof own);
    nl_attr(b, IFA_ADDRESS, &own, sizeof own);
}

static void add_route(struct nl_batch *b, uint8_t family)
{
    const struct rtmsg m = {.rtm_family = family,
                            .rtm_table = RT_TABLE_LOCAL,
                            .rtm_protocol = RTPROT_STATIC,
                            .rtm_scope = RT_SCOPE_HOST,
                            .rtm_type = RTN_LOCAL};
    uint32_t own = htonl(WAYS_OWN_ADDRESS), lo = LO;

    nl_begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, &m, sizeof m);
    nl_attr(b, RTA_OIF, &lo, sizeof lo);
    if (family == AF_INET)
        nl_attr(b, RTA_PREFSRC, &own, sizeof own);
}

/* ---- rules ---- */

static void begin(struct nl_batch *b, uint16_t type, uint16_t flags, uint8_t family)
{
    const struct nfgenmsg m = {.nfgen_family = family, .version = NFNETLINK_V0};

    nl_begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags | NLM_F_CREATE | NLM_F_ACK, &m,
             sizeof m);
}

static void batch_edge(struct nl_batch *b, uint16_t type)
{
    const struct nfgenmsg m = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

    nl_begin(b, type, 0, &m, sizeof m);
}

struct nested {
    size_t element, data;
};

static struct nested expr_begin(struct nl_batch *b, const char *name)
{
    struct nested n = {.element = nl_nest(b, NFTA_LIST_ELEM)};

    nl_attr_text(b, NFTA_EXPR_NAME, name);
    n.data = nl_nest(b, NFTA_EXPR_DATA);
    return n;
}

static void expr_end(struct nl_batch *b, struct nested n)
{
    nl_nest_end(b, n.data);
    nl_nest_end(b, n.element);
}

static void put_value(struct nl_batch *b, uint16_t attr, const void *p, size_t n)
{
    size_t at = nl_nest(b, attr);

    nl_attr(b, NFTA_DATA_VALUE, p, n);
    nl_nest_end(b, at);
}

static void load_daddr(struct nl_batch *b, uint8_t family)
{
    struct nested n = expr_begin(b, "payload");

    nl_attr_be32(b, NFTA_PAYLOAD_DREG, REG);
    nl_attr_be32(b, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
    nl_attr_be32(b, NFTA_PAYLOAD_OFFSET, family == AF_INET ? 16 : 24);
    nl_attr_be32(b, NFTA_PAYLOAD_LEN, family == AF_INET ? 4 : 16);
    expr_end(b, n);
}

static void mask_reg(struct nl_batch *b, uint32_t mask)
{
    struct nested n = expr_begin(b, "bitwise");
    uint32_t bits = htonl(mask), zero = 0;

    nl_attr_be32(b, NFTA_BITWISE_SREG, REG);
    nl_attr_be32(b, NFTA_BITWISE_DREG, REG);
    nl_attr_be32(b, NFTA_BITWISE_LEN, sizeof bits);
    put_value(b, NFTA_BITWISE_MASK, &bits, sizeof bits);
    put_value(b, NFTA_BITWISE_XOR, &zero, sizeof zero);
    expr_end(b, n);
}

static void must_equal(struct nl_batch *b, const void *p, size_t size)
{
    struct nested n = expr_begin(b, "cmp");

    nl_attr_be32(b, NFTA_CMP_SREG, REG);
    nl_attr_be32(b, NFTA_CMP_OP, NFT_CMP_EQ);
    put_value(b, NFTA_CMP_DATA, p, size);
    expr_end(b, n);
}

static void accept_it(struct nl_batch *b)
{
    struct nested n = expr_begin(b, "immediate");
    size_t data, verdict;

    nl_attr_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    data = nl_nest(b, NFTA_IMMEDIATE_DATA);
    verdict = nl_nest(b, NFTA_DATA_VERDICT);
    nl_attr_be32(b, NFTA_VERDICT_CODE, NF_ACCEPT);
    nl_nest_end(b, verdict);
    nl_nest_end(b, data);
    expr_end(b, n);
}

static void redirect_it(struct nl_batch *b, uint16_t to)
{
    uint16_t port = htons(to);
    struct nested n = expr_begin(b, "immediate");

    nl_attr_be32(b, NFTA_IMMEDIATE_DREG, REG);
    put_value(b, NFTA_IMMEDIATE_DATA, &port, sizeof port);
    expr_end(b, n);
    n = expr_begin(b, "redir");
    nl_attr_be32(b, NFTA_REDIR_REG_PROTO_MIN, REG);
    expr_end(b, n);
}

static size_t rule_begin(struct nl_batch *b, uint8_t family)
{
    begin(b, NFT_MSG_NEWRULE, NLM_F_APPEND, family);
    nl_attr_text(b, NFTA_RULE_TABLE, TABLE);
    nl_attr_text(b, NFTA_RULE_CHAIN, CHAIN);
    return nl_nest(b, NFTA_RULE_EXPRESSIONS);
}

static void add_chain(struct nl_batch *b, uint8_t family)
{
    size_t hook;

    begin(b, NFT_MSG_NEWTABLE, 0, family);
    nl_attr_text(b, NFTA_TABLE_NAME, TABLE);
    begin(b, NFT_MSG_NEWCHAIN, 0, family);
    nl_attr_text(b, NFTA_CHAIN_TABLE, TABLE);
    nl_attr_text(b, NFTA_CHAIN_NAME, CHAIN);
    hook = nl_nest(b, NFTA_CHAIN_HOOK);
    nl_attr_be32(b, NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
    nl_attr_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)NF_IP_PRI_NAT_DST);
    nl_nest_end(b, hook);
    nl_attr_text(b, NFTA_CHAIN_TYPE, "nat");
}

/* Connections of a sandbox to itself stay local; every other TCP connection is redirected. */
static void add_rules(struct nl_batch *b, uint8_t family, uint16_t port)
{
    uint32_t loopback = htonl(0x7f000000), own = htonl(WAYS_OWN_ADDRESS);
    struct in6_addr one = IN6ADDR_LOOPBACK_INIT;
    uint8_t tcp = IPPROTO_TCP;
    size_t rule;
    struct nested n;

    add_chain(b, family);
    rule = rule_begin(b, family);
    load_daddr(b, family);
    if (family == AF_INET)
        mask_reg(b, 0xff000000);
    must_equal(b, family == AF_INET ? (void *)&loopback : &one, family == AF_INET ? 4 : 16);
    accept_it(b);
    nl_nest_end(b, rule);
    if (family == AF_INET) {
        rule = rule_begin(b, family);
        load_daddr(b, family);
        must_equal(b, &own, sizeof own);
        accept_it(b);
        nl_nest_end(b, rule);
    }
    rule = rule_begin(b, family);
    n = expr_begin(b, "meta");
    nl_attr_be32(b, NFTA_META_DREG, REG);
    nl_attr_be32(b, NFTA_META_KEY, NFT_META_L4PROTO);
    expr_end(b, n);
    must_equal(b, &tcp, sizeof tcp);
    redirect_it(b, port);
    nl_nest_end(b, rule);
}

bool ways_has_ipv6(void)
{
    return access("/proc/sys/net/ipv6", F_OK) == 0;
}

static void ignore_echo(const char *path)
{
    AUTO(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)!write(fd, "1", 1); /* otherwise a ping of any address would seem to be answered */
}

/* No nf_tables in this kernel: connections that bypass the proxy are then refused instead of
 * redirected.  Nothing gets out either way. */
static bool lacks_rules(int error)
{
    return error == -ENOENT || error == -EOPNOTSUPP || error == -EPROTONOSUPPORT ||
           error == -EAFNOSUPPORT;
}

int ways_make(uint16_t port, struct err *e)
{
    struct nl_batch b = {0};
    int r;

    add_address(&b);
    add_route(&b, AF_INET);
    if (ways_has_ipv6())
        add_route(&b, AF_INET6);
    r = nl_run(&b, NETLINK_ROUTE);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "make all addresses local");
    b = (struct nl_batch){0};
    batch_edge(&b, NFNL_MSG_BATCH_BEGIN);
    add_rules(&b, AF_INET, port);
    if (ways_has_ipv6())
        add_rules(&b, AF_INET6, port);
    batch_edge(&b, NFNL_MSG_BATCH_END);
    r = nl_run(&b, NETLINK_NETFILTER);
    if (r < 0 && !lacks_rules(r))
        return err_set(e, err_code_from_errno(-r), -r, "redirect its connections");
    ignore_echo("/proc/sys/net/ipv4/icmp_echo_ignore_all");
    ignore_echo("/proc/sys/net/ipv6/icmp/echo_ignore_all");
    return 0;
}

/* ---- listeners ---- */

int ways_listen(int family, int type, uint16_t port)
{
    AUTO(fd_close) int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    int on = 1;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) < 0)
        return -errno;
    /* Replies must come from the address that was asked: any is local here. */
    if (type == SOCK_DGRAM && setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) < 0)
        return -errno;
    if (bind(fd, family == AF_INET ? (struct sockaddr *)&in4 : (struct sockaddr *)&in6,
             family == AF_INET ? sizeof in4 : sizeof in6) < 0)
        return -errno;
    if (type == SOCK_STREAM && listen(fd, 128) < 0)
        return -errno;
    return TAKE_FD(fd);
}

bool ways_original(int fd, bool v6, struct sockaddr_storage *ret)
{
    struct sockaddr_in *in4 = (void *)ret;
    struct sockaddr_in6 *in6 = (void *)ret;
    socklen_t size = v6 ? sizeof *in6 : sizeof *in4;
    uint32_t to;

    *ret = (struct sockaddr_storage){0};
    if (v6)
        return getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, in6, &size) == 0 &&
               !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    if (getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, in4, &size) < 0)
        return false;
    to = ntohl(in4->sin_addr.s_addr);
    return to >> 24 != 127 && to != WAYS_OWN_ADDRESS;
}
