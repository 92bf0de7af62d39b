/* A helper program for tests of link/helper.c: toy_helper SOCKET VERSION.  Serves one client at a
 * time. */
#include "base/fd.h"
#include "toy_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void say(int fd, struct toy_msg *m)
{
    uint8_t bytes[256];
    struct wire_out o = {.p = bytes, .size = sizeof bytes};
    struct err e;

    if (packet_encode(&toy_protocol, m, PACKET_HELPER, &o, &e) < 0 ||
        send(fd, bytes, o.n, MSG_NOSIGNAL) < 0)
        exit(3);
}

static void obey(int fd, const struct toy_msg *m)
{
    struct toy_msg reply = {.type = TOY_REPLY, .tag = m->tag, .u.number = m->u.number};
    struct toy_msg event = {.type = TOY_EVENT, .u.number = m->u.number};

    if (m->type == TOY_ASK && m->u.number.n == TOY_DIE)
        _exit(0);
    if (m->type == TOY_ASK && m->u.number.n == TOY_SILENT)
        return;
    say(fd, m->type == TOY_ASK ? &reply : &event);
}

static void serve(int fd, uint16_t version)
{
    struct toy_msg m, welcome = {.type = TOY_WELCOME, .tag = PACKET_HELLO_TAG};
    char bytes[PACKET_MAX];
    ssize_t n;
    struct err e;

    welcome.u.number = (struct toy_number){version, (uint32_t)getpid()};
    while ((n = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        if (packet_decode(&toy_protocol, str_make(bytes, (size_t)n), 0, PACKET_HOST, &m, &e) < 0)
            exit(4);
        if (m.type == TOY_HELLO)
            say(fd, &welcome);
        else
            obey(fd, &m);
    }
}

/* Waits for a client; false: the test is over, which removes the socket, or has started another. */
static bool has_client(int s, const char *path)
{
    struct pollfd p = {.fd = s, .events = POLLIN};
    struct stat was, is;

    if (stat(path, &was) < 0)
        return false;
    while (poll(&p, 1, 100) == 0)
        if (stat(path, &is) < 0 || is.st_ino != was.st_ino)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd;

    if (argc < 3 || strcmp(argv[2], "0") == 0) {
        (void)fprintf(stderr, "level=error error=\"the toy is broken\"\n");
        return 1;
    }
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", argv[1]);
    (void)unlink(argv[1]);
    if (s < 0 || bind(s, (struct sockaddr *)&at, sizeof at) < 0 || listen(s, 4) < 0)
        return 2;
    while (has_client(s, argv[1]) && (fd = accept4(s, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        serve(fd, (uint16_t)strtoul(argv[2], NULL, 10));
        fd_close(fd);
    }
    return 0;
}
