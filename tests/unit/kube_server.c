/* kube_server: serves the steps of a script, one connection each. */
#include "kube_server.h"

#include "proto/ws.h"

static void read_head(int fd, struct buf *got)
{
    char c;
    const char *length;
    size_t body = 0, head;

    while (!(buf_len(got) > 4 && strstr(buf_cstr(got), "\r\n\r\n")) && read(fd, &c, 1) == 1)
        buf_add_char(got, c);
    length = strstr(buf_cstr(got), "content-length: ");
    if (length)
        body = strtoul(length + strlen("content-length: "), NULL, 10);
    head = buf_len(got);
    while (buf_len(got) < head + body && read(fd, &c, 1) == 1)
        buf_add_char(got, c);
}

static void send_all(int fd, struct str bytes)
{
    while (bytes.n > 0) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        bytes = str_skip(bytes, (size_t)n);
    }
}

static void send_upgrade(int fd, const char *request, const char *protocol)
{
    AUTO(buf_done) struct buf reply = {0};
    const char *key = strstr(request, "sec-websocket-key: ");
    char accept[WS_ACCEPT_SIZE];

    if (!key)
        return;
    key += strlen("sec-websocket-key: ");
    ws_accept_key(str_make(key, strcspn(key, "\r")), accept);
    buf_printf(&reply,
               "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
               "sec-websocket-accept: %s\r\nsec-websocket-protocol: %s\r\n\r\n",
               accept, protocol);
    send_all(fd, buf_str(&reply));
}

static void note(struct kube_server *s, size_t at, const char *what, const char *part)
{
    if (!s->fault[0])
        (void)snprintf(s->fault, sizeof s->fault, "step %zu: the request %s '%s'", at, what, part);
}

static void serve_step(struct kube_server *s, size_t at, int fd)
{
    const struct kube_step *p = &s->steps[at];
    AUTO(buf_done) struct buf got = {0};
    char block[4096];

    read_head(fd, &got);
    if (p->wants && !strstr(buf_cstr(&got), p->wants))
        note(s, at, "lacks", p->wants);
    if (p->lacks && strstr(buf_cstr(&got), p->lacks))
        note(s, at, "has", p->lacks);
    if (p->accepts)
        send_upgrade(fd, buf_cstr(&got), p->accepts);
    else if (p->reply)
        send_all(fd, str_of(p->reply));
    while (buf_len(&s->frames_in) < p->reads) {
        ssize_t n = read(fd, block, sizeof block);

        if (n <= 0)
            break;
        buf_add(&s->frames_in, block, (size_t)n);
    }
    send_all(fd, p->frames);
    memset(block, 'x', sizeof block);
    for (size_t sent = 0; sent < p->endless; sent += sizeof block)
        if (send(fd, block, sizeof block, MSG_NOSIGNAL) <= 0)
            break;
    while (p->hold && read(fd, block, sizeof block) > 0)
        ;
}

static void *serve(void *arg)
{
    struct kube_server *s = arg;

    for (size_t i = 0; i < s->count; i++) {
        struct pollfd p = {.fd = s->listener, .events = POLLIN};
        AUTO(fd_close) int fd = -1;

        if (poll(&p, 1, 10000) <= 0)
            return NULL;
        fd = accept(s->listener, NULL, NULL);
        serve_step(s, i, fd);
        s->served++;
    }
    return NULL;
}

void kube_server_start(struct kube_server *s, const struct kube_step *steps, size_t count)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;

    *s = (struct kube_server){.steps = steps, .count = count};
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (const struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->listener, 8), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &n), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

void kube_server_end(struct kube_server *s)
{
    pthread_join(s->thread, NULL);
    fd_close(s->listener);
    buf_done(&s->frames_in);
    assert_string_equal(s->fault, "");
    assert_int_equal(s->served, s->count);
}
