/* bench_team: many clients of a hub in one process, over epoll, so that the server is what is
 * timed. Usage: bench_team PORT TOKEN_FILE calls CLIENTS < LINES each line is METHOD, PATH and a
 * JSON body or "-", with tabs between; CLIENTS at once take them in order.  Prints how many,
 * seconds, median and p95 in us; then each reply's body. bench_team PORT TOKEN_FILE fan SUBSCRIBERS
 * EVENTS SUBSCRIBERS read /events while EVENTS messages are sent, one after the other.  Prints
 *            deliveries, seconds from the first send to the last delivery, and median and p95 of
 * the us from a send to its last delivery, of EVENTS further messages sent one at a time. A failure
 * ends the program with its reason. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE 65536
#define WAIT_MS 30000
#define MARK "event: message_sent\n"

struct line {
    const char *method, *path, *body; /* body NULL: none */
    char *reply;
    int64_t ns;
};

struct client {
    int fd; /* -1: not connected */
    struct buf in, out;
    size_t line; /* the one it waits for */
    int64_t from_ns;
    size_t events; /* that a subscriber has seen */
};

static struct sockaddr_in server;
static char token[160]; /* "" or a header */
static int epoll;
static struct line *lines;
static size_t line_count, next_line, replies;

static NORETURN void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* --- connections --- */

static void reach(struct client *c)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    int on = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&server, sizeof server) < 0)
        fail("connect", strerror(errno));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &ev) < 0)
        fail("epoll", strerror(errno));
}

static void hang_up(struct client *c)
{
    fd_close(c->fd);
    c->fd = -1;
    buf_clear(&c->in);
}

/* Requests are small: one write takes them. */
static void ask(struct client *c, const char *method, const char *path, const char *body)
{
    ssize_t n;

    if (c->fd < 0)
        reach(c);
    buf_clear(&c->out);
    buf_printf(&c->out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s", method, path,
               ntohs(server.sin_port), token);
    if (body)
        buf_printf(&c->out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                   strlen(body));
    buf_printf(&c->out, "\r\n%s", body ? body : "");
    n = write(c->fd, buf_data(&c->out), buf_len(&c->out));
    if (n != (ssize_t)buf_len(&c->out))
        fail(path, n < 0 ? strerror(errno) : "the request was cut short");
}

/* Reads what is there: false at the connection's end. */
static bool more(struct client *c)
{
    char *to;
    ssize_t n;

    if (buf_reserve(&c->in, READ_SIZE, &to) < 0)
        fail("read", "no memory");
    n = read(c->fd, to, READ_SIZE);
    if (n < 0)
        fail("read", strerror(errno));
    buf_added(&c->in, (size_t)n);
    return n > 0;
}

static void open_all(struct client *c, size_t n)
{
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0)
        fail("epoll", strerror(errno));
    for (size_t i = 0; i < n; i++)
        c[i].fd = -1;
}

/* Calls `each` for connections that have something to read until `done` says so. */
static void serve(void (*each)(struct client *c), bool (*done)(void))
{
    struct epoll_event ev[256];

    while (!done()) {
        int n = epoll_wait(epoll, ev, (int)ARRAY_LEN(ev), WAIT_MS);

        if (n == 0)
            fail("wait", "the server says nothing any more");
        for (int i = 0; i < n; i++)
            each(ev[i].data.ptr);
    }
}

/* --- calls --- */

/* A whole reply is in c->in: its body (with a length; neither server sends these in chunks). */
static bool reply_is_there(struct client *c, struct str *ret_body, bool *ret_closes)
{
    struct str in = buf_str(&c->in), rest = in;
    uint64_t length = 0, status = 0;
    const char *end = in.n ? memmem(in.p, in.n, "\r\n\r\n", 4) : NULL;

    if (!end)
        return false;
    *ret_closes = false;
    (void)str_cut(str_cut(rest, '\n', &rest), ' ', ret_body);
    if (str_parse_u64(str_cut(*ret_body, ' ', ret_body), &status) < 0 || status < 200 ||
        status > 299)
        fail(lines[c->line].path, buf_cstr(&c->in));
    while (rest.p < end + 2) {
        struct str value, header = str_cut(rest, '\n', &rest), key;

        key = str_cut(str_cut(header, '\r', &value), ':', &value);
        if (str_case_eq_c(key, "content-length") && str_parse_u64(str_trim(value), &length) < 0)
            fail("a reply", "its length is no number");
        else if (str_case_eq_c(key, "connection"))
            *ret_closes = str_case_eq_c(str_trim(value), "close");
    }
    *ret_body = str_make(end + 4, length);
    return in.n >= (size_t)(end + 4 - in.p) + length;
}

static void take_line(struct client *c)
{
    if (next_line == line_count)
        return;
    c->line = next_line++;
    c->from_ns = clock_mono_ns();
    ask(c, lines[c->line].method, lines[c->line].path, lines[c->line].body);
}

static void call_readable(struct client *c)
{
    bool there = more(c), closes;
    struct str body;

    if (!reply_is_there(c, &body, &closes)) {
        if (!there)
            fail(lines[c->line].path, "the connection ended without a reply");
        return;
    }
    lines[c->line].ns = clock_mono_ns() - c->from_ns;
    lines[c->line].reply = xstrndup(body.p, body.n);
    replies++;
    buf_clear(&c->in);
    if (closes)
        hang_up(c);
    take_line(c);
}

static bool all_replied(void)
{
    return replies == line_count;
}

static void read_lines(void)
{
    size_t size = 0, room = 0;
    char *text = NULL;

    while (getline(&text, &size, stdin) > 0) {
        struct line *l;
        char *at = TAKE(text);

        size = 0;
        if (line_count == room) {
            room = room ? 2 * room : 1024;
            lines = xrealloc(lines, room * sizeof *lines);
        }
        l = &lines[line_count++];
        *l = (struct line){.method = strsep(&at, "\t"), .path = strsep(&at, "\t")};
        l->body = strsep(&at, "\n");
        if (!l->path || !l->body)
            fail("a line of the input", "it needs a method, a path and a body");
        if (strcmp(l->body, "-") == 0)
            l->body = NULL;
    }
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void print_times(size_t n, int64_t took, int64_t *ns, size_t samples)
{
    qsort(ns, samples, sizeof *ns, by_size);
    printf("%zu\t%.6f\t%.1f\t%.1f\n", n, (double)took / 1e9, (double)ns[samples / 2] / 1e3,
           (double)ns[samples * 95 / 100] / 1e3);
}

static void calls(size_t clients)
{
    struct client *all = xzalloc(clients * sizeof *all);
    int64_t from, *ns;

    read_lines();
    ns = xzalloc((line_count + 1) * sizeof *ns);
    open_all(all, clients);
    from = clock_mono_ns();
    for (size_t i = 0; i < clients; i++)
        take_line(&all[i]);
    serve(call_readable, all_replied);
    from = clock_mono_ns() - from;
    for (size_t i = 0; i < line_count; i++)
        ns[i] = lines[i].ns;
    print_times(line_count, from, ns, line_count);
    for (size_t i = 0; i < line_count; i++)
        printf("%.*s\n", (int)strcspn(lines[i].reply, "\n"), lines[i].reply);
}

/* --- fan-out --- */

static struct client *subscribers;
static size_t subscriber_count, deliveries, deliveries_wanted, ready;

static void subscriber_readable(struct client *c)
{
    const size_t mark = sizeof MARK - 1;
    const char *at, *from;
    size_t kept;

    if (!more(c))
        fail("a subscriber", "the stream ended");
    from = buf_data(&c->in);
    while ((at = memmem(from, buf_len(&c->in) - (size_t)(from - buf_data(&c->in)), MARK, mark))) {
        from = at + mark;
        c->events++;
        deliveries++;
    }
    /* What is left may hold the begin of the next mark. */
    kept = size_min(buf_len(&c->in) - (size_t)(from - buf_data(&c->in)), mark - 1);
    buf_take(&c->in, buf_len(&c->in) - kept);
}

static void head_readable(struct client *c)
{
    if (!more(c))
        fail("subscribe", "the connection ended");
    if (!memmem(buf_data(&c->in), buf_len(&c->in), "\r\n\r\n", 4))
        return;
    if (!str_starts(buf_str(&c->in), STR("HTTP/1.1 200")))
        fail("subscribe", buf_cstr(&c->in));
    buf_clear(&c->in);
    ready++;
}

static bool all_ready(void)
{
    return ready == subscriber_count;
}

static bool all_delivered(void)
{
    return deliveries == deliveries_wanted;
}

static struct client sender = {.fd = -1};
static bool told; /* the sender's request is answered */

static void sender_readable(void)
{
    bool there = more(&sender), closes;
    struct str body;

    if (told && !there) { /* it was idle for longer than the server keeps it */
        hang_up(&sender);
        return;
    }
    if (!reply_is_there(&sender, &body, &closes)) {
        if (!there)
            fail("send", "the connection ended without a reply");
        return;
    }
    told = true;
    buf_clear(&sender.in);
    if (closes)
        hang_up(&sender);
}

static void fan_readable(struct client *c)
{
    if (c == &sender)
        sender_readable();
    else
        subscriber_readable(c);
}

static bool is_told(void)
{
    return told;
}

/* The subscribers are read meanwhile: a server must not be made to wait for its own client. */
static void send_message(void)
{
    static struct line one = {.path = "/messages/send"};

    lines = &one;
    told = false;
    ask(&sender, "POST", one.path,
        "{\"from\":\"bench\",\"to\":\"all\",\"content\":\"to be told to a thousand\"}");
    serve(fan_readable, is_told);
    deliveries_wanted += subscriber_count;
}

static void fan(size_t count, size_t events)
{
    int64_t from, took, *ns = xzalloc(events * sizeof *ns);

    subscribers = xzalloc(count * sizeof *subscribers);
    subscriber_count = count;
    open_all(subscribers, count);
    for (size_t i = 0; i < count; i++) {
        ask(&subscribers[i], "GET", "/events", NULL);
        if (i % 64 == 63 || i + 1 == count) { /* not more at once than a backlog holds */
            subscriber_count = i + 1;
            serve(head_readable, all_ready);
        }
    }
    sender.fd = -1;
    from = clock_mono_ns();
    for (size_t i = 0; i < events; i++)
        send_message();
    serve(fan_readable, all_delivered);
    took = clock_mono_ns() - from;
    for (size_t i = 0; i < events; i++) {
        from = clock_mono_ns();
        send_message();
        serve(fan_readable, all_delivered);
        ns[i] = clock_mono_ns() - from;
    }
    print_times(count * events, took, ns, events);
}

int main(int argc, char **argv)
{
    AUTO(buf_done) struct buf text = {0};
    uint64_t port, n, events = 0;

    if (argc < 5 || str_parse_u64(str_of(argv[1]), &port) < 0 ||
        str_parse_u64(str_of(argv[4]), &n) < 0 || n == 0 ||
        (argc > 5 && str_parse_u64(str_of(argv[5]), &events) < 0))
        fail("usage", "bench_team PORT TOKEN_FILE calls CLIENTS | fan SUBSCRIBERS EVENTS");
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (strcmp(argv[2], "-") != 0) {
        if (file_read(argv[2], 100, &text) < 0)
            fail(argv[2], "cannot be read");
        (void)snprintf(token, sizeof token, "Authorization: Bearer %.*s\r\n",
                       (int)strcspn(buf_cstr(&text), "\n"), buf_cstr(&text));
    }
    if (strcmp(argv[3], "fan") == 0 && events > 0)
        fan(n, events);
    else
        calls(n);
    return 0;
}
