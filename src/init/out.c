/* out: accepts the connections and DNS queries of a machine, and leads them to holtd. */
#include "init/out.h"

#include "base/fd.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/ways.h"
#include "init/conn.h"
#include "init/dial.h"
#include "wire/spawn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define ACCEPTS 32 /* per turn */
#define QUERIES_MAX 64
#define MESSAGE_MAX 4096

/* ---- connections ---- */

static void lead(int fd, bool v6)
{
    struct sockaddr_storage to;
    const struct sockaddr_in *in4 = (void *)&to;
    const struct sockaddr_in6 *in6 = (void *)&to;
    struct guest_relay r = {.service = GUEST_EGRESS, .uid = GUEST_NO_ID, .host = STR("")};
    char text[INET6_ADDRSTRLEN];

    if (ways_original(fd, v6, &to)) {
        (void)inet_ntop(v6 ? AF_INET6 : AF_INET, v6 ? (void *)&in6->sin6_addr : &in4->sin_addr,
                        text, sizeof text);
        r.host = str_of(text);
        r.port = ntohs(v6 ? in6->sin6_port : in4->sin_port);
    }
    relay_to(fd, &r);
}

static int accept_one(struct watch *w)
{
    int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        conn_spare_accept(w->fd);
    return fd;
}

static void on_tcp4(struct watch *w, uint32_t events)
{
    int fd;

    (void)events;
    for (int i = 0; i < ACCEPTS && (fd = accept_one(w)) >= 0; i++)
        lead(fd, false);
}

static void on_tcp6(struct watch *w, uint32_t events)
{
    int fd;

    (void)events;
    for (int i = 0; i < ACCEPTS && (fd = accept_one(w)) >= 0; i++)
        lead(fd, true);
}

static void on_dns_tcp(struct watch *w, uint32_t events)
{
    const struct guest_relay r = {.service = GUEST_DNS, .uid = GUEST_NO_ID, .host = STR("")};
    int fd = accept_one(w);

    (void)events;
    if (fd >= 0)
        relay_to(fd, &r);
}

/* ---- DNS datagrams: a channel for each, as over TCP (RFC 1035 section 4.2.2) ---- */

union dns_control {
    char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
    struct cmsghdr align;
};

struct query {
    struct channel ch;
    struct flow_out out;
    struct flow_in in;
    struct sockaddr_in from;
    union dns_control control; /* to reply from the address that was asked */
    bool opened;
    struct buf ask, answer;
};

static struct watch dns_udp = {.fd = -1};
static unsigned queries;

static void query_gone(struct channel *ch)
{
    struct query *q = CONTAINER_OF(ch, struct query, ch);

    queries--;
    buf_done(&q->ask);
    buf_done(&q->answer);
    mem_free(q);
}

static bool query_fill(struct channel *ch)
{
    struct query *q = CONTAINER_OF(ch, struct query, ch);
    size_t n;

    if (!q->opened || buf_len(&q->ask) == 0)
        return false;
    n = conn_data(ch, GUEST_OUT, q->out.sent, buf_str(&q->ask), false);
    flow_sent(&q->out, n);
    buf_take(&q->ask, n);
    return true;
}

static void reply(struct query *q)
{
    const uint8_t *p = (const uint8_t *)buf_data(&q->answer);
    size_t have = buf_len(&q->answer), n = have < 2 ? 0 : (size_t)(p[0] << 8 | p[1]);
    struct iovec iov = {.iov_base = (void *)(uintptr_t)(p + 2), .iov_len = n};
    struct msghdr h = {.msg_name = &q->from,
                       .msg_namelen = sizeof q->from,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = q->control.bytes,
                       .msg_controllen = sizeof q->control.bytes};

    if (have < 2 || have < n + 2)
        return;
    (void)sendmsg(dns_udp.fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
    channel_close(&q->ch, NULL);
}

static void query_msg(struct channel *ch, const struct guest_msg *m)
{
    struct query *q = CONTAINER_OF(ch, struct query, ch);
    struct str fresh;
    struct err e;

    if (m->type == GUEST_OPENED) {
        q->opened = true;
    } else if (m->type == GUEST_ACK) {
        if (flow_on_ack(&q->out, &m->u.ack, &e) < 0)
            channel_close(ch, &e);
    } else if (m->type == GUEST_DATA) {
        if (flow_on_data(&q->in, &m->u.data, &fresh, &e) < 0) {
            channel_close(ch, &e);
            return;
        }
        buf_add_str(&q->answer, fresh);
        reply(q);
    }
}

static void ask(struct query *q, struct str message)
{
    static const struct channel_ops ops = {query_msg, query_fill, query_gone};
    struct guest_msg m = {.type = GUEST_RELAY, .channel = channel_number()};

    if (m.channel == 0) {
        mem_free(q);
        return;
    }
    m.u.relay = (struct guest_relay){.service = GUEST_DNS, .uid = GUEST_NO_ID, .host = STR("")};
    queries++;
    buf_add_char(&q->ask, (char)(message.n >> 8));
    buf_add_char(&q->ask, (char)message.n);
    buf_add_str(&q->ask, message);
    flow_out_init(&q->out, 0, GUEST_WINDOW_UP);
    flow_in_init(&q->in, 0, GUEST_WINDOW_DOWN);
    channel_open(&q->ch, m.channel, &ops);
    (void)conn_send(&m);
}

static void on_dns_udp(struct watch *w, uint32_t events)
{
    char message[MESSAGE_MAX];
    struct iovec iov = {.iov_base = message, .iov_len = sizeof message};
    struct query *q = xzalloc(sizeof *q);
    struct msghdr h = {.msg_name = &q->from,
                       .msg_namelen = sizeof q->from,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = q->control.bytes,
                       .msg_controllen = sizeof q->control.bytes};
    ssize_t n = recvmsg(w->fd, &h, MSG_DONTWAIT);
    struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&h);
    struct in_pktinfo info;

    (void)events;
    if (n <= 0 || (h.msg_flags & MSG_TRUNC) || queries >= QUERIES_MAX || !c ||
        c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO) {
        mem_free(q); /* the program asks again */
        return;
    }
    memcpy(&info, CMSG_DATA(c), sizeof info);
    info = (struct in_pktinfo){.ipi_spec_dst = info.ipi_addr};
    memcpy(CMSG_DATA(c), &info, sizeof info);
    ask(q, str_make(message, (size_t)n));
}

/* ---- start ---- */

int out_open(struct err *e)
{
    static struct watch tcp4, tcp6, dns_tcp;
    static const struct {
        struct watch *w;
        int family, type;
        uint16_t port;
        void (*ready)(struct watch *w, uint32_t events);
    } wanted[] = {
        {&tcp4, AF_INET, SOCK_STREAM, SPAWN_PROXY_PORT, on_tcp4},
        {&tcp6, AF_INET6, SOCK_STREAM, SPAWN_PROXY_PORT, on_tcp6},
        {&dns_udp, AF_INET, SOCK_DGRAM, 53, on_dns_udp},
        {&dns_tcp, AF_INET, SOCK_STREAM, 53, on_dns_tcp},
    };

    if (ways_make(SPAWN_PROXY_PORT, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        int fd;

        if (wanted[i].family == AF_INET6 && !ways_has_ipv6())
            continue;
        fd = ways_listen(wanted[i].family, wanted[i].type, wanted[i].port);
        if (fd < 0)
            return err_set(e, err_code_from_errno(-fd), -fd, "listen on port %u", wanted[i].port);
        loop_add(wanted[i].w, fd, wanted[i].ready);
        loop_want(wanted[i].w, EPOLLIN);
    }
    return 0;
}
