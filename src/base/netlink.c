/* netlink: builds and sends netlink messages in one batch. */
#include "base/netlink.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* All lengths of messages and attributes are padded to a multiple of 4. */
static uint8_t *room(struct nl_batch *b, size_t n)
{
    size_t padded = NLMSG_ALIGN(n);
    uint8_t *p = b->bytes + b->n;

    if (b->full || padded > sizeof b->bytes - b->n) {
        b->full = true;
        return NULL;
    }
    memset(p, 0, padded);
    b->n += padded;
    return p;
}

static void grow_message(struct nl_batch *b)
{
    struct nlmsghdr h;

    if (b->full)
        return;
    memcpy(&h, b->bytes + b->message, sizeof h);
    h.nlmsg_len = (uint32_t)(b->n - b->message);
    memcpy(b->bytes + b->message, &h, sizeof h);
}

void nl_begin(struct nl_batch *b, uint16_t type, uint16_t flags, const void *head, size_t n)
{
    struct nlmsghdr h = {.nlmsg_type = type,
                         .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
                         .nlmsg_seq = ++b->seq};
    size_t at = b->n;
    uint8_t *p = room(b, sizeof h + n);

    if (!p)
        return;
    memcpy(p, &h, sizeof h);
    memcpy(p + sizeof h, head, n);
    b->message = at;
    b->acks += (flags & NLM_F_ACK) != 0;
    grow_message(b);
}

void nl_raw(struct nl_batch *b, const void *p, size_t n)
{
    uint8_t *to = room(b, n);

    if (!to)
        return;
    memcpy(to, p, n);
    grow_message(b);
}

void nl_attr(struct nl_batch *b, uint16_t type, const void *p, size_t n)
{
    struct nlattr a = {.nla_len = (uint16_t)(sizeof a + n), .nla_type = type};
    uint8_t *to = room(b, sizeof a + n);

    if (!to)
        return;
    memcpy(to, &a, sizeof a);
    memcpy(to + sizeof a, p, n);
    grow_message(b);
}

void nl_attr_text(struct nl_batch *b, uint16_t type, const char *text)
{
    nl_attr(b, type, text, strlen(text) + 1);
}

void nl_attr_be32(struct nl_batch *b, uint16_t type, uint32_t v)
{
    uint32_t be = htonl(v);

    nl_attr(b, type, &be, sizeof be);
}

size_t nl_nest(struct nl_batch *b, uint16_t type)
{
    size_t at = b->n;

    nl_attr(b, type | NLA_F_NESTED, "", 0);
    return at;
}

void nl_nest_end(struct nl_batch *b, size_t at)
{
    struct nlattr a;

    if (b->full)
        return;
    memcpy(&a, b->bytes + at, sizeof a);
    a.nla_len = (uint16_t)(b->n - at);
    memcpy(b->bytes + at, &a, sizeof a);
}

/* The number of acknowledgements in it; the first error, negative. */
static int read_acks(const uint8_t *p, size_t n)
{
    int acks = 0;

    while (n >= sizeof(struct nlmsghdr)) {
        struct nlmsghdr h;
        struct nlmsgerr e;

        memcpy(&h, p, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > n)
            return -EBADMSG;
        if (h.nlmsg_type == NLMSG_ERROR && h.nlmsg_len >= sizeof h + sizeof e.error) {
            memcpy(&e.error, p + sizeof h, sizeof e.error);
            if (e.error != 0)
                return e.error;
            acks++;
        }
        n -= size_min(n, NLMSG_ALIGN(h.nlmsg_len));
        p += NLMSG_ALIGN(h.nlmsg_len);
    }
    return acks;
}

int nl_run(struct nl_batch *b, int protocol)
{
    AUTO(fd_close) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    uint8_t answer[NETLINK_BATCH];
    uint32_t acks = 0;

    if (b->full)
        return -ENOBUFS;
    if (fd < 0 || sendto(fd, b->bytes, b->n, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        return -errno;
    while (acks < b->acks) {
        ssize_t n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
        int r = n < 0 ? -errno : read_acks(answer, (size_t)n);

        if (r < 0)
            return r;
        acks += (uint32_t)r;
    }
    return 0;
}
