#include "http_client.h"

#include "base/fd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_SIZE 65536

static NORETURN void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

void http_client_init(struct http_client *h, uint16_t port, const char *token_file)
{
    AUTO(buf_done) struct buf text = {0};
    struct str token;

    *h = (struct http_client){.fd = -1, .port = port};
    if (file_read(token_file, sizeof h->token - 1, &text) < 0)
        fail(token_file, "cannot be read");
    token = str_trim(str_cut(buf_str(&text), '\n', &(struct str){0}));
    memcpy(h->token, token.p, token.n);
}

void http_client_done(struct http_client *h)
{
    fd_close(h->fd);
    h->fd = -1;
    buf_done(&h->in);
}

static void reach(struct http_client *h)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(h->port)};
    int on = 1;

    if (h->fd >= 0 && !h->closes)
        return;
    http_client_done(h);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (h->fd < 0 || connect(h->fd, (struct sockaddr *)&at, sizeof at) < 0)
        fail("connect to holtd", strerror(errno));
    (void)setsockopt(h->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    h->closes = false;
}

static void send_head(struct http_client *h, const char *method, const char *path, struct str body,
                      size_t n)
{
    char head[1024];
    struct iovec iov[] = {{head, 0}, {(void *)body.p, body.n}};
    ssize_t sent;

    reach(h);
    iov[0].iov_len =
        (size_t)snprintf(head, sizeof head,
                         "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                         "Authorization: Bearer %s\r\nContent-Type: %s\r\n"
                         "Content-Length: %zu\r\n\r\n",
                         method, path, h->port, h->token,
                         body.n > 0 ? "application/json" : "application/octet-stream", n);
    sent = writev(h->fd, iov, 2);
    if (sent != (ssize_t)(iov[0].iov_len + body.n))
        fail("send a request", sent < 0 ? strerror(errno) : "it was cut short");
}

void http_client_send(struct http_client *h, const char *method, const char *path, size_t n)
{
    send_head(h, method, path, (struct str){0}, n);
}

static size_t more(struct http_client *h)
{
    char *to;
    ssize_t n;

    if (buf_reserve(&h->in, READ_SIZE, &to) < 0)
        fail("read a reply", "no memory");
    n = read(h->fd, to, READ_SIZE);
    if (n < 0)
        fail("read a reply", strerror(errno));
    buf_added(&h->in, (size_t)n);
    return (size_t)n;
}

/* The next line, without its end; valid until the next read. */
static struct str line(struct http_client *h)
{
    for (;;) {
        char *end = buf_len(&h->in) ? memchr(buf_data(&h->in), '\n', buf_len(&h->in)) : NULL;

        if (end) {
            size_t n = (size_t)(end - buf_data(&h->in));
            struct str s = str_make(buf_data(&h->in), n > 0 && end[-1] == '\r' ? n - 1 : n);

            buf_take(&h->in, n + 1);
            return s;
        }
        if (more(h) == 0)
            fail("read a reply", "the connection ended");
    }
}

int http_client_head(struct http_client *h)
{
    struct str rest, s = line(h);
    uint64_t status = 0, length;

    (void)str_cut(s, ' ', &rest);
    if (str_parse_u64(str_cut(rest, ' ', &rest), &status) < 0)
        fail("read a reply", "no status");
    h->left = -1;
    h->chunked = false;
    while ((s = line(h)).n > 0) {
        struct str value, key = str_cut(s, ':', &value);

        value = str_trim(value);
        if (str_case_eq_c(key, "content-length") && str_parse_u64(value, &length) == 0)
            h->left = (int64_t)length;
        else if (str_case_eq_c(key, "transfer-encoding"))
            h->chunked = true;
        else if (str_case_eq_c(key, "connection"))
            h->closes = str_case_eq_c(value, "close");
    }
    if (h->chunked || status == 204)
        h->left = 0;
    return (int)status;
}

/* RFC 9112, 7.1. */
static void next_chunk(struct http_client *h)
{
    char text[32];
    struct str s = line(h);

    (void)snprintf(text, sizeof text, STR_FMT, (int)size_min(s.n, 20), s.p);
    h->left = strtoll(text, NULL, 16);
    if (h->left > 0)
        return;
    h->chunked = false;
    while (line(h).n > 0)
        ; /* the trailer */
}

size_t http_client_body(struct http_client *h, void *to, size_t size)
{
    size_t n;

    if (h->left == 0 && h->chunked)
        next_chunk(h);
    if (h->left == 0 || (buf_len(&h->in) == 0 && more(h) == 0))
        return 0;
    n = size_min(size, buf_len(&h->in));
    if (h->left > 0) {
        n = size_min(n, (size_t)h->left);
        h->left -= (int64_t)n;
    }
    memcpy(to, buf_data(&h->in), n);
    buf_take(&h->in, n);
    if (h->left == 0 && h->chunked)
        (void)line(h); /* the end of a chunk */
    return n;
}

void http_client_ask(struct http_client *h, const char *method, const char *path, const char *body)
{
    send_head(h, method, path, str_of(body), body ? strlen(body) : 0);
}

int http_client_answer(struct http_client *h, struct buf *reply)
{
    char bytes[4096];
    size_t n;
    int status = http_client_head(h);

    buf_clear(reply);
    while ((n = http_client_body(h, bytes, sizeof bytes)) > 0)
        buf_add(reply, bytes, n);
    return status;
}

int http_client_call(struct http_client *h, const char *method, const char *path, const char *body,
                     struct buf *reply)
{
    http_client_ask(h, method, path, body);
    return http_client_answer(h, reply);
}
