/* claim: sends a create request to the process that builds the root. */
#include "spawn/claim.h"

#include "base/fd.h"
#include "base/mem.h"
#include "spawn/guards.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRUST_BIT (1ULL << 32)
#define FDS_MAX (1 + 1 + 1 + SPAWN_LAYERS_MAX + SPAWN_MOUNTS_MAX)
#define WORD_MAX 1024

union control {
    char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    struct cmsghdr align;
};

/* In the order in which claim_receive takes them. */
static size_t gather(const struct sandbox *s, int *fds)
{
    size_t n = 0;

    if (s->upper >= 0)
        fds[n++] = s->upper;
    for (size_t i = 0; i < s->layer_n; i++)
        fds[n++] = s->layers[i];
    for (size_t i = 0; i < s->mount_n; i++)
        if (s->mounts[i] >= 0)
            fds[n++] = s->mounts[i];
    if (s->trust >= 0)
        fds[n++] = s->trust;
    return n;
}

/* The mounts among them; the child makes the others. */
static uint64_t tree_bits(const struct sandbox *s)
{
    uint64_t bits = s->trust >= 0 ? TRUST_BIT : 0;

    for (size_t i = 0; i < s->mount_n; i++)
        bits |= s->mounts[i] >= 0 ? 1ULL << i : 0;
    return bits;
}
_Static_assert(SPAWN_MOUNTS_MAX <= 32, "a bit for each mount");

int claim_send(const struct sandbox *s, struct err *e)
{
    int fds[FDS_MAX];
    size_t n = gather(s, fds);
    union control control = {0};
    uint64_t trees = tree_bits(s);
    struct iovec iov[] = {{&trees, sizeof trees}, {buf_data(&s->packet), buf_len(&s->packet)}};
    struct msghdr h = {.msg_iov = iov,
                       .msg_iovlen = ARRAY_LEN(iov),
                       .msg_control = control.bytes,
                       .msg_controllen = CMSG_SPACE(n * sizeof *fds)};

    *CMSG_FIRSTHDR(&h) = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof *fds)};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), fds, n * sizeof *fds);
    if (sendmsg(s->go[1], &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return err_set(e, ERR_INTERNAL, errno, "tell its builder");
    return 0;
}

/* NUL-separated, in one write: less than a pipe takes at once. */
void claim_more(struct sandbox *s)
{
    char text[192];
    int n = snprintf(text, sizeof text, "--files%c%u%c", 0,
                     guard_left_out("rlimits") ? 0 : s->nofile, 0);

    if (!guard_left_out("landlock"))
        n += snprintf(text + n, sizeof text - (size_t)n, "--barrier%c%s%c", 0,
                      s->flags & SPAWN_NESTING ? "scopes" : "files", 0);
    if (s->flags & SPAWN_RELAY)
        n += snprintf(text + n, sizeof text - (size_t)n, "--relay%c%s%c", 0, SPAWN_RELAY_PATH, 0);
    if (s->flags & SPAWN_HUB)
        n += snprintf(text + n, sizeof text - (size_t)n, "--hub%c%s%c", 0,
                      SPAWN_HUB_ADDRESS ":" SPAWN_HUB_PORT, 0);
    if (s->flags & SPAWN_PROCESS)
        n += snprintf(text + n, sizeof text - (size_t)n, "--process-port%c%s%c", 0,
                      SPAWN_PROCESS_PORT, 0);
    (void)!write(s->more[1], text, (size_t)n);
    fd_close(s->more[1]);
    s->more[1] = -1;
}

/* ---- in the child ---- */

static void take_trees(struct sandbox *s, uint64_t bits, const int *fds)
{
    s->upper = s->flags & SPAWN_UPPER_DISK ? *fds++ : -1;
    s->layer_n = s->ask->layers.count + 1;
    s->layers = xmemdup(fds, s->layer_n * sizeof *fds);
    fds += s->layer_n;
    s->mount_n = s->ask->mounts.count;
    s->mounts = xzalloc((s->mount_n + 1) * sizeof *s->mounts);
    for (size_t i = 0; i < s->mount_n; i++)
        s->mounts[i] = (bits >> i) & 1 ? *fds++ : -1;
    s->trust = bits & TRUST_BIT ? *fds : -1;
}

/* Without a packet: holt-spawn failed or died, so exit. */
int claim_receive(struct sandbox *s, struct err *e)
{
    static char bytes[SPAWN_PACKET_MAX];
    static struct spawn_msg m;
    int fds[FDS_MAX];
    union control control;
    uint64_t trees = 0;
    struct iovec iov[] = {{&trees, sizeof trees}, {bytes, sizeof bytes}};
    struct msghdr h = {.msg_iov = iov,
                       .msg_iovlen = ARRAY_LEN(iov),
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    ssize_t n;

    do
        n = recvmsg(s->go[0], &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= (ssize_t)sizeof trees)
        _exit(1);
    if (spawn_decode(str_make(bytes, (size_t)n - sizeof trees), 0, SPAWN_HOST, &m, e) < 0 ||
        !CMSG_FIRSTHDR(&h))
        return err_wrap(e, "read the claim");
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&h)), CMSG_FIRSTHDR(&h)->cmsg_len - CMSG_LEN(0));
    s->ask = &m.u.create;
    sandbox_take_request(s, s->ask);
    take_trees(s, trees, fds);
    return 0;
}

/* ---- replies ---- */

void claim_tell(int fd, const struct err *e)
{
    uint8_t bytes[WORD_MAX];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct spawn_msg m = {.type = SPAWN_DONE, .tag = 1};
    struct err ignored;

    m.u.done.err = *e;
    if (spawn_encode(&m, SPAWN_SPAWN, &o, &ignored) == 0)
        (void)!write(fd, bytes, o.n);
}

int claim_hear(int fd, struct err *ret)
{
    char bytes[WORD_MAX];
    ssize_t n = read(fd, bytes, sizeof bytes);
    struct spawn_msg m;
    struct err e;

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? -1 : 0;
    if (spawn_decode(str_make(bytes, (size_t)n), 0, SPAWN_SPAWN, &m, &e) < 0 ||
        m.type != SPAWN_DONE)
        return 0;
    *ret = m.u.done.err;
    return 1;
}
