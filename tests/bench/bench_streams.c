/* bench_streams: many WebSocket readers of one sbx stream, on one loop.
 * usage: bench_streams PORT TOKEN_FILE SANDBOX READERS
 * Prints "ready" when all are connected; whoever started it then runs a command there.  A reader
 * has done when it saw an exit.  Then one line: readers that had everything, events of one,
 * deliveries, seconds from the first to the last, and the delay (from an event's moment to its
 * arrival) in microseconds, at the median, at 95 and 99 % and at most. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/client.h"
#include "net/ws_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#define DELAYS_MAX (16u << 20)

struct reader {
    uint64_t seqs, sum; /* how many events, and a sum over their moments */
    bool done;
};

static struct {
    struct reader *readers;
    size_t count, opened, done;
    uint32_t *delays;
    size_t delay_count;
    uint64_t deliveries;
    int64_t first_ns, last_ns;
    uv_loop_t *loop;
} all;

static void give_up(const char *what, const struct err *e)
{
    (void)fprintf(stderr, "bench_streams: %s: %s\n", what, e->msg);
    exit(1);
}

static int64_t wall_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t seq_of(struct str event)
{
    static const char key[] = "\"seq\":";
    const char *at = memmem(event.p, event.n, key, strlen(key));
    int64_t n = 0;

    for (at = at ? at + strlen(key) : NULL; at && *at >= '0' && *at <= '9'; at++)
        n = n * 10 + (*at - '0');
    return n;
}

static void on_opened(struct ws_client *w)
{
    (void)w;
    if (++all.opened < all.count)
        return;
    (void)printf("ready\n");
    (void)fflush(stdout);
}

static void on_message(struct ws_client *w, enum ws_op kind, struct str event)
{
    struct reader *r = ws_client_arg(w);
    int64_t seq = seq_of(event), delay = wall_us() - seq;

    (void)kind;
    all.last_ns = clock_mono_ns();
    if (all.deliveries++ == 0)
        all.first_ns = all.last_ns;
    if (all.delay_count < DELAYS_MAX)
        all.delays[all.delay_count++] = delay < 0 ? 0 : (uint32_t)delay;
    r->seqs++;
    r->sum += (uint64_t)seq * r->seqs;
    if (r->done || !memmem(event.p, event.n, "\"type\":\"exit\"", 13))
        return;
    r->done = true;
    if (++all.done == all.count)
        uv_stop(all.loop);
}

static void on_closed(struct ws_client *w, const struct ws_client_end *end)
{
    const struct reader *r = ws_client_arg(w);

    if (!r->done)
        give_up("a reader was cut off", &end->e);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void report(void)
{
    size_t whole = 0, n = all.delay_count;

    for (size_t i = 0; i < all.count; i++)
        whole +=
            all.readers[i].seqs == all.readers[0].seqs && all.readers[i].sum == all.readers[0].sum;
    qsort(all.delays, n, sizeof *all.delays, by_size);
    (void)printf("%zu %" PRIu64 " %" PRIu64 " %.6f %u %u %u %u\n", whole, all.readers[0].seqs,
                 all.deliveries, (double)(all.last_ns - all.first_ns) / 1e9, all.delays[n / 2],
                 all.delays[n * 95 / 100], all.delays[n * 99 / 100], all.delays[n - 1]);
}

static void start(const char *port, const char *token_file, const char *sandbox)
{
    static const struct ws_client_ops ops = {
        .opened = on_opened, .message = on_message, .closed = on_closed};
    AUTO(buf_done) struct buf token = {0};
    AUTO(mem_free) char *url = xasprintf("http://127.0.0.1:%s", port);
    AUTO(mem_free) char *target = xasprintf("/sandboxes/%s/stream", sandbox);
    AUTO(mem_free) char *bearer = NULL;
    struct http_header h = {.name = STR("authorization")};
    AUTO(client_url_done) struct client_url to = {0};
    struct ws_client *w;
    struct err e = {0};

    if (file_read(token_file, 4096, &token) < 0 || client_url_parse(url, &to, &e) < 0)
        give_up("start", &e);
    bearer =
        xasprintf("Bearer " STR_FMT, STR_ARG(str_cut(buf_str(&token), '\n', &(struct str){0})));
    h.value = str_of(bearer);
    for (size_t i = 0; i < all.count; i++)
        if (ws_client_start(&(struct ws_client_request){.loop = all.loop,
                                                        .url = &to,
                                                        .target = target,
                                                        .headers = &h,
                                                        .header_count = 1,
                                                        .message_max = 1 << 20,
                                                        .ops = &ops,
                                                        .arg = &all.readers[i]},
                            &w, &e) < 0)
            give_up("connect", &e);
}

int main(int argc, char **argv)
{
    struct rlimit files = {.rlim_cur = 0};
    uint64_t count = 0;

    if (argc != 5 || str_parse_u64(str_of(argv[4]), &count) < 0 || count == 0 || count > 100000) {
        (void)fprintf(stderr, "usage: bench_streams PORT TOKEN_FILE SANDBOX READERS\n");
        return 64;
    }
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    all.count = count;
    all.readers = xzalloc(count * sizeof *all.readers);
    all.delays = xmalloc(DELAYS_MAX * sizeof *all.delays);
    all.loop = uv_default_loop();
    start(argv[1], argv[2], argv[3]);
    (void)uv_run(all.loop, UV_RUN_DEFAULT);
    report();
    return 0;
}
