/* ip: parses and classifies addresses, networks and host names. */
#include "proto/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct ip ip_v4(uint32_t v)
{
    struct ip a;

    memcpy(a.bytes, mapped, sizeof mapped);
    for (int i = 0; i < 4; i++)
        a.bytes[12 + i] = (uint8_t)(v >> (24 - 8 * i));
    return a;
}

bool ip_is_v4(const struct ip *a)
{
    return memcmp(a->bytes, mapped, sizeof mapped) == 0;
}

uint32_t ip_to_v4(const struct ip *a)
{
    const uint8_t *b = a->bytes + 12;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool ip_eq(const struct ip *a, const struct ip *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

char *ip_text(const struct ip *a, char to[static IP_TEXT])
{
    if (ip_is_v4(a))
        (void)inet_ntop(AF_INET, a->bytes + 12, to, IP_TEXT);
    else
        (void)inet_ntop(AF_INET6, a->bytes, to, IP_TEXT);
    return to;
}

/* inet_pton takes dotted decimal only, but some versions take leading zeros, which others read as
 * octal. */
static bool has_leading_zero(struct str s)
{
    for (size_t i = 0; i + 1 < s.n; i++)
        if (s.p[i] == '0' && (i == 0 || s.p[i - 1] == '.') && s.p[i + 1] != '.')
            return true;
    return false;
}

bool ip_parse(struct str s, struct ip *ret)
{
    char text[IP_TEXT];
    struct in6_addr a;

    if (s.n == 0 || s.n >= sizeof text || memchr(s.p, '\0', s.n))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    if (str_index(s, ':') >= 0) {
        if (inet_pton(AF_INET6, text, &a) != 1)
            return false;
        memcpy(ret->bytes, &a, sizeof ret->bytes);
        return true;
    }
    if (has_leading_zero(s) || inet_pton(AF_INET, text, &a) != 1)
        return false;
    memcpy(ret->bytes, mapped, sizeof mapped);
    memcpy(ret->bytes + 12, &a, 4);
    return true;
}

static void mask(struct ip *a, unsigned bits)
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned left = bits > 8 * i ? bits - 8 * i : 0;

        if (left < 8)
            a->bytes[i] = (uint8_t)(a->bytes[i] & (0xff00u >> left));
    }
}

int ip_net_parse(struct str s, struct ip_net *ret, struct err *e)
{
    struct str bits_text, address = str_cut(s, '/', &bits_text);
    struct ip masked;
    struct ip_net n;
    uint64_t bits;
    bool v4;

    if (!ip_parse(address, &n.base))
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not a network", (int)size_min(s.n, 64),
                       s.p ? s.p : "");
    v4 = str_index(address, ':') < 0;
    bits = v4 ? 32 : 128;
    if (address.n != s.n && (str_parse_u64(bits_text, &bits) < 0 || bits > (v4 ? 32u : 128u)))
        return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' has an invalid prefix length", STR_ARG(s));
    n.bits = (unsigned)bits + (v4 ? 96 : 0);
    masked = n.base;
    mask(&masked, n.bits);
    if (!ip_eq(&masked, &n.base)) {
        char text[IP_TEXT];

        (void)err_set(e, ERR_INVALID, 0, "'" STR_FMT "' has bits set after its prefix", STR_ARG(s));
        return err_hint(e, "the network is %s/%u", ip_text(&masked, text), (unsigned)bits);
    }
    *ret = n;
    return 0;
}

bool ip_net_has(const struct ip_net *n, const struct ip *a)
{
    struct ip m = *a;

    if (n->bits < 96 && ip_is_v4(a))
        return false; /* "::/0" means IPv6: it does not match IPv4 addresses */
    mask(&m, n->bits);
    return ip_eq(&m, &n->base);
}

struct special {
    struct ip_net net;
    const char *why;
};

#define V4(a, b, c, d, bits) {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}}, 96 + (bits)}
#define V6(bits, ...) {{{__VA_ARGS__}}, bits}

/* The IANA registries of special-purpose addresses (RFC 6890), and the public address by which
 * Azure's hosts talk to their machines.  IPv6: everything but global unicast, and within that the
 * addresses that embed another address or are unassigned. */
const char *ip_special(const struct ip *a)
{
    static const struct special all[] = {
        {V4(0, 0, 0, 0, 8), "this host"},
        {V4(10, 0, 0, 0, 8), "private"},
        {V4(100, 64, 0, 0, 10), "carrier's"},
        {V4(127, 0, 0, 0, 8), "loopback"},
        {V4(168, 63, 129, 16, 32), "metadata"},
        {V4(169, 254, 0, 0, 16), "link-local"},
        {V4(172, 16, 0, 0, 12), "private"},
        {V4(192, 0, 0, 0, 24), "reserved"},
        {V4(192, 0, 2, 0, 24), "documentation"},
        {V4(192, 88, 99, 0, 24), "reserved"},
        {V4(192, 168, 0, 0, 16), "private"},
        {V4(198, 18, 0, 0, 15), "benchmarking"},
        {V4(198, 51, 100, 0, 24), "documentation"},
        {V4(203, 0, 113, 0, 24), "documentation"},
        {V4(224, 0, 0, 0, 4), "multicast"},
        {V4(240, 0, 0, 0, 4), "reserved"},
        {V6(128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), "loopback"},
        {V6(7, 0xfc), "private"},                          /* fc00::/7 */
        {V6(10, 0xfe, 0x80), "link-local"},                /* fe80::/10 */
        {V6(10, 0xfe, 0xc0), "private"},                   /* fec0::/10 */
        {V6(8, 0xff), "multicast"},                        /* ff00::/8 */
        {V6(96, 0, 0x64, 0xff, 0x9b), "translated"},       /* 64:ff9b::/96 */
        {V6(48, 0, 0x64, 0xff, 0x9b, 0, 1), "translated"}, /* 64:ff9b:1::/48 */
        {V6(23, 0x20, 0x01), "reserved"},                  /* 2001::/23 */
        {V6(32, 0x20, 0x01, 0x0d, 0xb8), "documentation"}, /* 2001:db8::/32 */
        {V6(16, 0x20, 0x02), "translated"},                /* 2002::/16 */
        {V6(20, 0x3f, 0xff), "documentation"},             /* 3fff::/20 */
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (ip_net_has(&all[i].net, a))
            return all[i].why;
    return ip_is_v4(a) || (a->bytes[0] & 0xe0) == 0x20 ? NULL : "reserved";
}

/* ---- names ---- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* WHATWG URL "ends in a number": some libraries read such names as an address in another form. */
static bool ends_in_number(const char *name)
{
    const char *last = strrchr(name, '.');
    size_t n;

    last = last ? last + 1 : name;
    n = strspn(last, "0123456789");
    if (last[n] == '\0')
        return true;
    return last[0] == '0' && last[1] == 'x' &&
           last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
}

static int check_labels(const char *name, struct err *e)
{
    for (const char *label = name;; label++) {
        size_t n = strcspn(label, ".");

        if (n == 0 || n > 63 || label[0] == '-' || label[n - 1] == '-')
            return err_set(
                e, ERR_INVALID, 0,
                "'%s' is not a host name: a label is empty, too long or begins or ends with '-'",
                name);
        label += n;
        if (*label == '\0')
            return 0;
    }
}

int host_name_canonical(struct str s, char to[static HOST_NAME_MAX_LEN + 1], struct err *e)
{
    if (s.n > 0 && s.p[s.n - 1] == '.')
        s.n--;
    if (s.n == 0 || s.n > HOST_NAME_MAX_LEN)
        return err_set(e, ERR_INVALID, 0, "a host name of %zu bytes", s.n);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        to[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        if (is_name_char(to[i]) || c == '.')
            continue;
        (void)err_set(e, ERR_INVALID, 0, "byte 0x%02x is not allowed in a host name",
                      (unsigned char)c);
        if ((unsigned char)c >= 0x80)
            return err_hint(e, "write it in its ASCII form, as in xn--bcher-kva.example");
        return -1;
    }
    to[s.n] = '\0';
    if (check_labels(to, e) < 0)
        return -1;
    if (ends_in_number(to)) {
        (void)err_set(e, ERR_INVALID, 0, "'%s' is neither a host name nor an address", to);
        return err_hint(e, "write an IPv4 address as four decimal numbers without leading zeros");
    }
    return 0;
}

int host_parse(struct str s, struct host *ret, struct err *e)
{
    struct host h = {0};

    if (s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']') {
        h.is_ip = ip_parse(str_make(s.p + 1, s.n - 2), &h.ip) && str_index(s, ':') >= 0;
        if (!h.is_ip)
            return err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not an IPv6 address",
                           (int)size_min(s.n, 64), s.p);
    } else {
        h.is_ip = ip_parse(s, &h.ip);
    }
    if (h.is_ip)
        (void)ip_text(&h.ip, h.name);
    else if (host_name_canonical(s, h.name, e) < 0)
        return -1;
    *ret = h;
    return 0;
}
