/* tls_hello: reads the server name out of a TLS ClientHello. */
#include "proto/tls_hello.h"

#define RECORD_HEAD 5
#define RECORD_MAX 16384

struct reader { /* reads length-prefixed bytes; once failed, it stays failed */
    struct str in;
    bool bad;
};

static uint32_t number(struct reader *r, size_t bytes)
{
    uint32_t v = 0;

    if (r->bad || r->in.n < bytes) {
        r->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | (uint8_t)r->in.p[i];
    r->in = str_skip(r->in, bytes);
    return v;
}

static struct reader part(struct reader *r, size_t length_bytes)
{
    size_t n = number(r, length_bytes);
    struct reader inner = {.bad = r->bad || r->in.n < n};

    if (inner.bad) {
        r->bad = true;
        return inner;
    }
    inner.in = str_make(r->in.p, n);
    r->in = str_skip(r->in, n);
    return inner;
}

static enum tls_hello read_server_name(struct reader ext, char *ret)
{
    struct reader list = part(&ext, 2), name;
    struct err e;

    if (ext.bad || ext.in.n > 0 || number(&list, 1) != 0)
        return TLS_HELLO_NOT;
    name = part(&list, 2);
    if (list.bad || list.in.n > 0 || host_name_canonical(name.in, ret, &e) < 0)
        return TLS_HELLO_NOT;
    return TLS_HELLO_NAMED;
}

static enum tls_hello read_hello(struct reader r, char *ret)
{
    enum tls_hello found = TLS_HELLO_UNNAMED;
    struct reader extensions;

    (void)number(&r, 2);            /* legacy version */
    for (size_t i = 0; i < 32; i++) /* random */
        (void)number(&r, 1);
    (void)part(&r, 1); /* session id */
    (void)part(&r, 2); /* cipher suites */
    (void)part(&r, 1); /* compression */
    if (r.bad)
        return TLS_HELLO_NOT;
    if (r.in.n == 0)
        return found;
    extensions = part(&r, 2);
    while (!extensions.bad && extensions.in.n > 0) {
        uint32_t type = number(&extensions, 2);
        struct reader ext = part(&extensions, 2);

        if (extensions.bad || type != 0)
            continue;
        if (found != TLS_HELLO_UNNAMED)
            return TLS_HELLO_NOT;
        found = read_server_name(ext, ret);
        if (found == TLS_HELLO_NOT)
            return found;
    }
    return r.bad || r.in.n > 0 || extensions.bad ? TLS_HELLO_NOT : found;
}

/* Joins the handshake bytes of the records so far into `to`; false: not TLS records. */
static bool join_records(struct str in, char *to, size_t *ret_n)
{
    size_t n = 0;

    while (in.n > 0) {
        size_t len, have;

        if (in.p[0] != 0x16 || (in.n > 1 && in.p[1] != 3))
            return false;
        if (in.n < RECORD_HEAD)
            break;
        len = (size_t)(uint8_t)in.p[3] << 8 | (uint8_t)in.p[4];
        if (len == 0 || len > RECORD_MAX)
            return false;
        have = size_min(len, in.n - RECORD_HEAD);
        if (n + have > TLS_HELLO_MAX)
            return false;
        memcpy(to + n, in.p + RECORD_HEAD, have);
        n += have;
        in = str_skip(in, RECORD_HEAD + have);
        /* Ignore what follows a complete hello. */
        if (n >= 4 &&
            n >= 4 + ((size_t)(uint8_t)to[1] << 16 | (size_t)(uint8_t)to[2] << 8 | (uint8_t)to[3]))
            break;
    }
    *ret_n = n;
    return true;
}

enum tls_hello tls_hello_name(struct str in, char ret[static HOST_NAME_MAX_LEN + 1])
{
    char joined[TLS_HELLO_MAX];
    size_t n = 0, len;

    if (!join_records(in, joined, &n))
        return TLS_HELLO_NOT;
    if (n > 0 && joined[0] != 1)
        return TLS_HELLO_NOT;
    if (n < 4)
        return TLS_HELLO_MORE;
    len = (size_t)(uint8_t)joined[1] << 16 | (size_t)(uint8_t)joined[2] << 8 | (uint8_t)joined[3];
    if (len > TLS_HELLO_MAX - 4)
        return TLS_HELLO_NOT;
    if (n < 4 + len)
        return TLS_HELLO_MORE;
    return read_hello((struct reader){.in = str_make(joined + 4, len)}, ret);
}
