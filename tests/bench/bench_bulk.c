/* bench_bulk: how many bytes a second get through: a command's output to a client, files in and
 * out; beside each the least that does the same.  All in turns.
 * Usage: bench_bulk DIR PORT TOKEN_FILE MIB ROUNDS
 * Prints per line: NAME, median MB/s, least MB/s. */
#include "http_client.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP 65536
#define ROUNDS_MAX 50

static struct http_client http;
static struct buf reply;
static char box[64];
static const char *dir;
static size_t total;
static char block[STEP];

static NORETURN void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void must(bool ok, const char *what)
{
    if (!ok)
        fail(what, strerror(errno));
}

static void call(const char *method, const char *path, const char *body)
{
    int status = http_client_call(&http, method, path, body, &reply);

    if (status < 200 || status > 299)
        fail(path, buf_cstr(&reply));
}

static void take_id(char id[static 64])
{
    const char *at = strstr(buf_cstr(&reply), "\"id\":\"");

    if (!at)
        fail("no id", buf_cstr(&reply));
    (void)snprintf(id, 64, "%.*s", (int)strcspn(at + 6, "\""), at + 6);
}

/* --- the same without holt --- */

static void copy(int from, int to)
{
    ssize_t n;

    while ((n = read(from, block, sizeof block)) > 0)
        must(to < 0 || fd_write_all(to, block, (size_t)n) == 0, "write");
    must(n == 0, "read");
}

static void send_all(int fd)
{
    for (size_t left = total; left > 0;) {
        size_t n = size_min(left, sizeof block);

        must(fd_write_all(fd, block, n) == 0, "write");
        left -= n;
    }
}

static pid_t child(void)
{
    pid_t pid = fork();

    must(pid >= 0, "fork");
    return pid;
}

static void wait_all(void)
{
    int status;

    while (wait(&status) > 0)
        must(status == 0, "a child");
}

/* The same command as holt's, a relay and a reader, with a pipe between each. */
static void relay(void)
{
    char count[32];
    int a[2], b[2];

    (void)snprintf(count, sizeof count, "%zu", total);
    must(pipe2(a, O_CLOEXEC) == 0 && pipe2(b, O_CLOEXEC) == 0, "pipe");
    if (child() == 0) {
        (void)dup2(a[1], STDOUT_FILENO);
        (void)execlp("head", "head", "-c", count, "/dev/zero", (char *)NULL);
        _exit(127);
    }
    if (child() == 0) {
        fd_close(a[1]);
        copy(a[0], b[1]);
        _exit(0);
    }
    fd_close(a[0]);
    fd_close(a[1]);
    fd_close(b[1]);
    copy(b[0], -1);
    fd_close(b[0]);
    wait_all();
}

static void tcp_pair(int ends[static 2])
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    AUTO(fd_close) int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0 &&
             getsockname(listener, (struct sockaddr *)&at, &size) == 0 &&
             connect(ends[0], (struct sockaddr *)&at, size) == 0,
         "loopback");
    ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    must(ends[1] >= 0, "accept");
}

/* A process that writes what a connection brings to a file, or the other way round. */
static void bare_file(bool in)
{
    AUTO(mem_free) char *path = xasprintf("%s/bulk", dir);
    int ends[2];

    tcp_pair(ends);
    if (child() == 0) {
        int fd = open(path, in ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0600);

        fd_close(ends[0]);
        copy(in ? ends[1] : fd, in ? fd : ends[1]);
        _exit(0);
    }
    fd_close(ends[1]);
    if (in)
        send_all(ends[0]);
    else
        copy(ends[0], -1);
    fd_close(ends[0]);
    wait_all();
}

static void bare_in(void)
{
    bare_file(true);
}

static void bare_out(void)
{
    bare_file(false);
}

/* --- holt --- */

static void drain(void)
{
    size_t got = 0, n;

    if (http_client_head(&http) != 200)
        fail("a download", "not 200");
    while ((n = http_client_body(&http, block, sizeof block)) > 0)
        got += n;
    if (got != total)
        fail("a download", "not all bytes came");
}

static void holt_stream(void)
{
    char path[200], body[200], id[64];

    (void)snprintf(path, sizeof path, "/holt/v1/sandboxes/%s/execs", box);
    (void)snprintf(body, sizeof body,
                   "{\"command\":[\"head\",\"-c\",\"%zu\",\"/dev/zero\"],\"background\":true,"
                   "\"on_full\":\"block\"}",
                   total);
    call("POST", path, body);
    take_id(id);
    (void)snprintf(path, sizeof path,
                   "/holt/v1/sandboxes/%s/execs/%s/output?stream=stdout&follow=true", box, id);
    http_client_send(&http, "GET", path, 0);
    drain();
}

static void holt_in(void)
{
    char path[200];
    int status;

    (void)snprintf(path, sizeof path, "/holt/v1/sandboxes/%s/files?path=/root/bulk", box);
    http_client_send(&http, "PUT", path, total);
    send_all(http.fd);
    status = http_client_head(&http);
    block[http_client_body(&http, block, sizeof block - 1)] = '\0';
    if (status / 100 != 2)
        fail("an upload", block);
    memset(block, 0, sizeof block);
}

static void holt_out(void)
{
    char path[200];

    (void)snprintf(path, sizeof path, "/holt/v1/sandboxes/%s/files?path=/root/bulk", box);
    http_client_send(&http, "GET", path, 0);
    drain();
}

/* --- in turns --- */

static struct {
    const char *name;
    void (*run)(void);
    double rate[ROUNDS_MAX];
} rows[] = {
    {"relay", relay, {0}},     {"stream", holt_stream, {0}}, {"bare-in", bare_in, {0}},
    {"file-in", holt_in, {0}}, {"bare-out", bare_out, {0}},  {"file-out", holt_out, {0}},
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    uint64_t port, mib, rounds;
    char path[160];

    if (argc != 6 || str_parse_u64(str_of(argv[2]), &port) < 0 ||
        str_parse_u64(str_of(argv[4]), &mib) < 0 || str_parse_u64(str_of(argv[5]), &rounds) < 0 ||
        rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    dir = argv[1];
    total = (size_t)mib << 20;
    http_client_init(&http, (uint16_t)port, argv[3]);
    call("POST", "/holt/v1/sandboxes", "{}");
    take_id(box);
    for (uint64_t i = 0; i < rounds; i++)
        for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
            int64_t from = clock_mono_ns();

            rows[k].run();
            rows[k].rate[i] = (double)total * 1e3 / (double)(clock_mono_ns() - from);
        }
    (void)snprintf(path, sizeof path, "/holt/v1/sandboxes/%s", box);
    call("DELETE", path, NULL);
    for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
        qsort(rows[k].rate, rounds, sizeof(double), by_value);
        (void)printf("%s\t%.0f\t%.0f\n", rows[k].name, rows[k].rate[rounds / 2], rows[k].rate[0]);
    }
    http_client_done(&http);
    buf_done(&reply);
    return 0;
}
