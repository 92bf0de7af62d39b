/* socks: parses SOCKS5 greetings and CONNECT requests. */
#include "proto/socks.h"

#define VERSION 5

int socks_greeting(struct str in, bool *ret_ok)
{
    size_t n;

    if (in.n > 0 && in.p[0] != VERSION)
        return -1;
    if (in.n < 2)
        return 0;
    n = (uint8_t)in.p[1];
    if (n == 0)
        return -1;
    if (in.n < 2 + n)
        return 0;
    *ret_ok = memchr(in.p + 2, 0, n) != NULL;
    return (int)(2 + n);
}

static size_t address_size(struct str in)
{
    switch (in.p[3]) {
    case 1:
        return 4;
    case 3:
        return in.n > 4 ? 1 + (size_t)(uint8_t)in.p[4] : 1;
    case 4:
        return 16;
    default:
        return 0;
    }
}

static bool take_host(struct str in, struct host *h)
{
    struct err e;

    *h = (struct host){.is_ip = true};
    if (in.p[3] == 3)
        return host_parse(str_make(in.p + 5, (uint8_t)in.p[4]), h, &e) == 0;
    if (in.p[3] == 1)
        h->ip = ip_v4((uint32_t)(uint8_t)in.p[4] << 24 | (uint32_t)(uint8_t)in.p[5] << 16 |
                      (uint32_t)(uint8_t)in.p[6] << 8 | (uint8_t)in.p[7]);
    else
        memcpy(h->ip.bytes, in.p + 4, sizeof h->ip.bytes);
    (void)ip_text(&h->ip, h->name);
    return true;
}

int socks_request(struct str in, struct host *ret_host, unsigned *ret_port,
                  enum socks_code *ret_code)
{
    size_t n;

    if (in.n > 0 && in.p[0] != VERSION)
        return -1;
    if (in.n < 4)
        return 0;
    if (in.p[2] != 0)
        return -1;
    n = address_size(in);
    if (n == 0) {
        *ret_code = SOCKS_NO_ADDRESS;
        return (int)in.n;
    }
    if (in.n < 4 + n + 2 || (in.p[3] == 3 && in.n < 5))
        return 0;
    *ret_port = (unsigned)(uint8_t)in.p[4 + n] << 8 | (uint8_t)in.p[5 + n];
    if (in.p[1] != 1)
        *ret_code = SOCKS_NO_COMMAND;
    else
        *ret_code = take_host(in, ret_host) && *ret_port > 0 ? SOCKS_OK : SOCKS_NO_ADDRESS;
    return (int)(4 + n + 2);
}

void socks_reply(enum socks_code code, uint8_t to[static SOCKS_REPLY])
{
    memset(to, 0, SOCKS_REPLY);
    to[0] = VERSION;
    to[1] = (uint8_t)code;
    to[3] = 1; /* 0.0.0.0:0: our own address stays private */
}
