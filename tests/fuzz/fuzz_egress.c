#include "base/buf.h"
#include "proto/dns.h"
#include "proto/jwt.h"
#include "proto/socks.h"
#include "proto/tls_hello.h"
#include "wire/egress.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static uint32_t address(void *arg, const char *name)
{
    char same[HOST_NAME_MAX_LEN + 1];
    struct err e;
    int r = host_name_canonical(str_of(name), same, &e);

    (void)arg;
    assert(r == 0 && strcmp(same, name) == 0);
    return 1;
}

static void packet(struct str in, enum egress_side from)
{
    static uint8_t bytes[EGRESS_PACKET_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct egress_msg m;
    struct err e;

    for (size_t fds = 0; fds <= EGRESS_FDS_MAX; fds++)
        if (egress_decode(in, fds, from, &m, &e) == 0) {
            int r = egress_encode(&m, from, &o, &e);

            assert(r == 0 && o.n == in.n);
            /* An error's text is cleaned on the way in; everything else is kept. */
            assert(m.type == EGRESS_DONE || memcmp(bytes, in.p, in.n) == 0);
            return;
        }
}

static void credentials(struct str in)
{
    AUTO(buf_done) struct buf hold = {0};
    struct str token;
    struct jwt t;
    struct err e;

    if (jwt_from_basic(in, &hold, &token, &e) == 0 && jwt_check(token, STR("key"), 1, &t, &e) == 0)
        assert(t.session[0] && t.exp_s >= 1);
}

/* The first byte says which parser: what sandboxes send to the proxy, and the link's packets. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    uint8_t answer[DNS_MESSAGE_MAX];
    char name[HOST_NAME_MAX_LEN + 1];
    enum socks_code code = SOCKS_OK;
    struct host h;
    struct str in;
    unsigned port;
    bool ok;

    if (n == 0)
        return 0;
    in = str_make(p + 1, n - 1);
    if (p[0] == 'd')
        assert(dns_answer(in, address, NULL, answer) <= sizeof answer);
    else if (p[0] == 't' && tls_hello_name(in, name) == TLS_HELLO_NAMED)
        (void)address(NULL, name);
    else if (p[0] == 'g')
        assert(socks_greeting(in, &ok) <= (int)in.n);
    else if (p[0] == 's')
        assert(socks_request(in, &h, &port, &code) <= (int)in.n);
    else if (p[0] == 'j')
        credentials(in);
    else if (p[0] == 'h')
        packet(in, EGRESS_HOST);
    else if (p[0] == 'e')
        packet(in, EGRESS_EGRESS);
    return 0;
}
