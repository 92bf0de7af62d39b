/* power: the orders that a machine takes on its power port. */
#include "base/clock.h"
#include "base/enc.h"
#include "base/rnd.h"
#include "virt/virt.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#define POWER_PORT "holt.power"
#define LOOK_MS 10
#define PING_MS 1000 /* init says by itself that it is up */
#define KEPT 16
#define RANDOM_BYTES 64

virStreamPtr port_open(virConnectPtr c, virDomainPtr d, const char *port, struct err *e)
{
    const char *name = virDomainGetName(d); /* asked now: every call forgets the last error */
    virStreamPtr st = virStreamNew(c, VIR_STREAM_NONBLOCK);

    if (st && virDomainOpenChannel(d, port, st, VIR_DOMAIN_CHANNEL_FORCE) == 0)
        return st;
    (void)host_error(e, "open port '%s' of '%s'", port, name);
    if (st)
        (void)virStreamFree(st);
    return NULL;
}

virStreamPtr power_open(virConnectPtr c, virDomainPtr d, struct err *e)
{
    return port_open(c, d, POWER_PORT, e);
}

void power_close(virStreamPtr st)
{
    if (!st)
        return;
    (void)virStreamAbort(st);
    (void)virStreamFree(st);
}

static int send_all(virStreamPtr st, struct str bytes, int64_t until)
{
    while (bytes.n > 0) {
        int n = virStreamSend(st, bytes.p, bytes.n);

        if (n == -1 || clock_mono_ms() >= until)
            return -1;
        bytes = str_skip(bytes, n > 0 ? (size_t)n : 0);
        if (n < 0)
            (void)poll(NULL, 0, LOOK_MS);
    }
    return 0;
}

int power_ask(virStreamPtr st, struct str order, const char *answer, bool again, int64_t ms)
{
    char got[256];
    size_t n = 0;
    int64_t until = clock_mono_ms() + ms, ping = 0;

    while (clock_mono_ms() < until) {
        int r;

        if (clock_mono_ms() >= ping) {
            if (send_all(st, order, until) < 0)
                return -1;
            ping = again ? clock_mono_ms() + PING_MS : INT64_MAX;
        }
        r = virStreamRecv(st, got + n, sizeof got - 1 - n);
        if (r == 0 || r == -1)
            return -1;
        n += r > 0 ? (size_t)r : 0;
        got[n] = '\0';
        if (answer && strstr(got, answer))
            return 1;
        if (n == sizeof got - 1) { /* noise; the answer may have begun */
            memmove(got, got + n - KEPT, KEPT);
            n = KEPT;
        }
        if (r < 0)
            (void)poll(NULL, 0, LOOK_MS);
    }
    return 0;
}

static void add_base64(struct buf *to, const char *order, const void *p, size_t n)
{
    buf_add_c(to, order);
    enc_base64(to, p, n);
    buf_add_char(to, '\n');
}

/* A machine that was saved while it waited for this has its sibling's memory: its clock and its
 * random numbers come from here. */
void power_describe(const struct virt_create *c, struct buf *to)
{
    unsigned char seed[RANDOM_BYTES];

    rnd_bytes(seed, sizeof seed);
    add_base64(to, "random ", seed, sizeof seed);
    buf_printf(to, "clock %" PRId64 "\nhostname " STR_FMT "\n", clock_wall_ms(),
               STR_ARG(c->hostname));
    if (c->ca.n > 0)
        add_base64(to, "trust ", c->ca.p, c->ca.n);
    if (c->flags & VIRT_NETWORK)
        buf_add_c(to, "resolver\noption --out\noption 1\n");
    if (c->flags & VIRT_RELAY)
        buf_add_c(to, "option --relay\noption /run/holt.sock\n");
    if (c->flags & VIRT_HUB)
        buf_add_c(to, "option --hub\noption 127.0.0.80:8080\n");
    if (c->flags & VIRT_PROCESS)
        buf_add_c(to, "option --process-port\noption 2024\n");
    if (c->files > 0)
        buf_printf(to, "option --files\noption %u\n", c->files);
    buf_add_c(to, "go\n");
}
