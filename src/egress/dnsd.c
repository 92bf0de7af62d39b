/* dnsd: the DNS server of a sandbox; answers from its own table, sends no query. */
#include "egress/egress.h"

#include "base/fd.h"
#include "base/mem.h"
#include "proto/dns.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define DATAGRAMS 64 /* per turn */
#define TCP_MAX 32   /* connections of one sandbox */
#define TCP_MS 10000
#define QUERY_MAX 4096

static uint32_t address_of(void *arg, const char *name)
{
    struct box *b = arg;

    return names_address(b->names, name);
}

/* ---- UDP ---- */

/* Replies from the address that was asked: the received control message is sent back. */
static bool one_datagram(struct listener *l)
{
    union {
        char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
        struct cmsghdr align;
    } control = {0};
    char query[QUERY_MAX];
    uint8_t answer[DNS_MESSAGE_MAX];
    struct sockaddr_in from;
    struct iovec iov = {.iov_base = query, .iov_len = sizeof query};
    struct msghdr h = {.msg_name = &from,
                       .msg_namelen = sizeof from,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n = recvmsg(l->fd, &h, MSG_DONTWAIT);
    struct in_pktinfo info = {0};
    struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&h);

    if (n < 0)
        return false;
    if (h.msg_flags & MSG_TRUNC)
        return true;
    if (c && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
        memcpy(&info, CMSG_DATA(c), sizeof info);
        info = (struct in_pktinfo){.ipi_spec_dst = info.ipi_addr};
        memcpy(CMSG_DATA(c), &info, sizeof info);
    }
    iov.iov_base = answer;
    iov.iov_len = dns_answer(str_make(query, (size_t)n), address_of, l->box, answer);
    if (iov.iov_len > 0)
        (void)sendmsg(l->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
    return true;
}

void dnsd_datagrams(struct listener *l)
{
    for (int i = 0; i < DATAGRAMS && one_datagram(l); i++)
        ;
}

/* ---- TCP ---- */

struct dns_conn {
    struct list link;
    struct box *box;
    int fd, handles;
    uv_poll_t poll;
    uv_timer_t timer;
    struct buf in;
};

static void on_closed(uv_handle_t *h)
{
    struct dns_conn *c = h->data;

    if (--c->handles > 0)
        return;
    buf_done(&c->in);
    box_unref(c->box);
    mem_free(c);
}

static void end(struct dns_conn *c)
{
    if (c->fd < 0)
        return;
    list_unlink(&c->link);
    c->box->dns_count--;
    uv_close((uv_handle_t *)&c->poll, on_closed);
    uv_close((uv_handle_t *)&c->timer, on_closed);
    fd_close(TAKE_FD(c->fd));
}

void dnsd_close_all(struct box *b)
{
    while (!list_is_empty(&b->dns_conns))
        end(LIST_ENTRY(b->dns_conns.next, struct dns_conn, link));
}

/* RFC 1035 section 4.2.2: two bytes of length before each message.  False: it has ended. */
static bool answer_all(struct dns_conn *c)
{
    while (buf_len(&c->in) >= 2) {
        const char *p = buf_data(&c->in);
        size_t n = (size_t)(uint8_t)p[0] << 8 | (uint8_t)p[1], size;
        uint8_t answer[DNS_MESSAGE_MAX + 2];

        if (n > QUERY_MAX)
            return false;
        if (buf_len(&c->in) < n + 2)
            return true;
        size = dns_answer(str_make(p + 2, n), address_of, c->box, answer + 2);
        answer[0] = (uint8_t)(size >> 8);
        answer[1] = (uint8_t)size;
        /* No queue for a client that does not read its replies. */
        if (size == 0 || send(c->fd, answer, size + 2, MSG_NOSIGNAL) != (ssize_t)(size + 2))
            return false;
        buf_take(&c->in, n + 2);
    }
    return true;
}

static void on_ready(uv_poll_t *p, int status, int events)
{
    struct dns_conn *c = p->data;
    char bytes[QUERY_MAX];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);

    (void)events;
    if (status == 0 && n < 0 && errno == EAGAIN)
        return;
    if (status < 0 || n <= 0) {
        end(c);
        return;
    }
    buf_add(&c->in, bytes, (size_t)n);
    if (!answer_all(c))
        end(c);
}

static void on_timer(uv_timer_t *t)
{
    end(t->data);
}

void dnsd_led(struct box *b, int fd)
{
    struct dns_conn *c = xzalloc(sizeof *c);

    if (b->dns_count >= TCP_MAX || uv_poll_init_socket(&b->all->loop, &c->poll, fd) < 0) {
        fd_close(fd);
        mem_free(c);
        return;
    }
    c->box = box_ref(b);
    c->fd = fd;
    c->handles = 2;
    (void)uv_timer_init(&b->all->loop, &c->timer);
    c->poll.data = c->timer.data = c;
    list_push(&b->dns_conns, &c->link);
    b->dns_count++;
    (void)uv_timer_start(&c->timer, on_timer, TCP_MS, 0);
    (void)uv_poll_start(&c->poll, UV_READABLE, on_ready);
}

void dnsd_accept(struct listener *l)
{
    int fd = box_accept(l);

    if (fd >= 0)
        dnsd_led(l->box, fd);
}
