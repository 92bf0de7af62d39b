/* address: checks listen addresses and recognises loopback. */
#include "conf/conf.h"
#include "conf/setting.h"

#include <arpa/inet.h>

/* Both loopbacks: many clients resolve `localhost` to ::1 first. */
const char *const conf_seed_listen[] = {
    "127.0.0.1:8120", "[::1]:8120",     "127.0.0.1:8121", "[::1]:8121", "127.0.0.1:8122",
    "[::1]:8122",     "127.0.0.1:5173", "[::1]:5173",     NULL,
};

static struct str without_tls(struct str s)
{
    struct str prefix = STR("tls://");

    return str_starts(s, prefix) ? str_skip(s, prefix.n) : s;
}

/* Cuts "host:port" or "[v6]:port" in two; false: another form. */
static bool split(struct str s, struct str *host, struct str *port)
{
    ptrdiff_t colon = -1;

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ':')
            colon = (ptrdiff_t)i;
    if (colon < 0)
        return false;
    *host = str_make(s.p, (size_t)colon);
    *port = str_skip(s, (size_t)colon + 1);
    if (host->n >= 2 && host->p[0] == '[' && host->p[host->n - 1] == ']') {
        *host = str_make(host->p + 1, host->n - 2);
        return host->n > 0;
    }
    return host->n > 0 && str_index(*host, ':') < 0; /* a bare IPv6 address is ambiguous */
}

int address_check(const char *address, struct err *e)
{
    struct str s = without_tls(str_of(address)), host, port;
    uint64_t n;

    if (str_starts(s, STR("unix:"))) {
        if (s.n > 5 && s.p[5] == '/' && s.n - 5 < 108) /* sun_path, unix(7) */
            return 0;
    } else if (split(s, &host, &port) && str_parse_u64(port, &n) == 0 && n <= 65535) {
        return 0;
    }
    return err_set(e, ERR_INVALID, 0,
                   "'%.100s' is not an address; it must be 'host:port', '[v6]:port' or "
                   "'unix:/PATH', with 'tls://' before it for TLS only",
                   address);
}

/* 127.0.0.0/8; "127.example.org" is an ordinary name. */
static bool is_127(struct str host)
{
    struct in_addr a;
    char text[INET_ADDRSTRLEN];

    if (host.n >= sizeof text)
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return inet_pton(AF_INET, text, &a) == 1 && ntohl(a.s_addr) >> 24 == 127;
}

bool conf_is_loopback(const char *address)
{
    struct str s = without_tls(str_of(address)), host, port;

    if (str_starts(s, STR("unix:")))
        return true;
    if (!split(s, &host, &port))
        return false;
    return is_127(host) || str_eq_c(host, "::1") || str_case_eq_c(host, "localhost") ||
           str_ends(host, STR(".localhost"));
}
