/* peer: identifies the peer of an accepted socket. */
#include "net/peer.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

void peer_name_tcp(const uv_tcp_t *h, struct peer *to)
{
    struct sockaddr_storage a;
    const struct sockaddr_in6 *in6 = (const void *)&a;
    struct sockaddr_in in4;
    int n = sizeof a;
    char text[INET6_ADDRSTRLEN] = "?";

    memset(&a, 0, sizeof a);
    if (uv_tcp_getpeername(h, (struct sockaddr *)&a, &n) < 0)
        a.ss_family = AF_UNSPEC;
    memcpy(&in4, &a, sizeof in4);
    if (a.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = in6->sin6_port};
        memcpy(&in4.sin_addr, in6->sin6_addr.s6_addr + 12, 4);
        a.ss_family = AF_INET;
    }
    if (a.ss_family == AF_INET6) {
        (void)uv_ip6_name(in6, text, sizeof text);
        to->loopback = IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
        (void)snprintf(to->address, sizeof to->address, "[%s]:%d", text, ntohs(in6->sin6_port));
        return;
    }
    if (a.ss_family == AF_INET)
        (void)uv_ip4_name(&in4, text, sizeof text);
    to->loopback = a.ss_family == AF_INET && ntohl(in4.sin_addr.s_addr) >> 24 == 127;
    (void)snprintf(to->address, sizeof to->address, "%s:%d", text, ntohs(in4.sin_port));
}

void peer_name_unix(const uv_pipe_t *h, struct peer *to)
{
    struct ucred cred = {.uid = UINT32_MAX};
    socklen_t n = sizeof cred;
    uv_os_fd_t fd;

    if (uv_fileno((const uv_handle_t *)h, &fd) == 0)
        (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n);
    to->pid = (uint32_t)cred.pid;
    to->uid = cred.uid;
    to->loopback = true;
    (void)snprintf(to->address, sizeof to->address, "unix");
}
