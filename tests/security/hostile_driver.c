/* hostile_driver: holtd's end (link/guest) with a hostile init on one connection and a good one on
 * another, on one loop.  Prints what became of both and what the hostile one cost us.
 * usage: hostile_driver HOSTILE_SOCKET GOOD_SOCKET MILLISECONDS [hold] [ends]
 * hold: the hostile one's output is not acknowledged, as when the disk is slow.
 * ends: it goes on until the hostile one's connection has ended. */
#include "link/guest.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RETRY_MS 10
#define GOOD_MIN 10
#define TURNS_MAX 50

struct side {
    const char *path;
    uv_loop_t *loop;
    uv_timer_t again; /* connects anew, or starts the next command */
    struct guest *g;
    bool hold;
    int connections, ready, lost, exited, gone, commands;
    uint64_t bytes;
    int64_t started_ms, slowest_ms;
    struct err last;
};

static void side_connect(struct side *s);
static void command_start(struct side *s);

static void on_ready(struct guest *g, const struct guest_hello_init *h)
{
    struct side *s = guest_arg(g);

    (void)h;
    s->ready++;
    command_start(s);
}

static void on_again(uv_timer_t *t)
{
    struct side *s = t->data;

    if (!s->g)
        side_connect(s);
    else
        command_start(s);
}

static void on_lost(struct guest *g, const struct err *e)
{
    struct side *s = guest_arg(g);

    s->lost++;
    s->last = *e;
    guest_close(g);
    s->g = NULL;
    (void)uv_timer_start(&s->again, on_again, RETRY_MS, 0);
}

static const struct guest_ops ops = {on_ready, on_lost};

static void x_running(struct guest_exec *x, const struct guest_exec_running *r)
{
    (void)x;
    (void)r;
}

static void x_output(struct guest_exec *x, enum guest_stream stream, uint64_t at, struct str bytes)
{
    struct side *s = guest_exec_arg(x);

    s->bytes += bytes.n;
    if (!s->hold)
        guest_exec_ack(x, stream, at + bytes.n);
}

static void x_room(struct guest_exec *x)
{
    (void)x;
}

static void x_exited(struct guest_exec *x, const struct guest_exec_exit *how)
{
    struct side *s = guest_exec_arg(x);

    (void)how;
    s->exited++;
    s->slowest_ms = i64_max(s->slowest_ms, clock_mono_ms() - s->started_ms);
    guest_exec_forget(x);
    (void)uv_timer_start(&s->again, on_again, RETRY_MS, 0);
}

static void x_gone(struct guest_exec *x, const struct err *e)
{
    struct side *s = guest_exec_arg(x);

    s->gone++;
    s->last = *e;
}

static const struct guest_exec_ops exec_ops = {x_running, x_output, x_room, x_exited, x_gone};

static void command_start(struct side *s)
{
    static const struct wire_text argv[] = {{{"echo", 4}}, {{"on", 2}}},
                                  env[] = {{{"PATH=/usr/bin", 13}}};
    char id[32];
    struct guest_exec_start start = {
        .cwd = STR("/"), .argv = {.count = 2, .items = argv}, .env = {.count = 1, .items = env}};
    struct guest_exec *x;
    struct err e = {0};

    (void)snprintf(id, sizeof id, "ex_%d_%d", getpid(), s->commands++);
    start.id = str_of(id);
    s->started_ms = clock_mono_ms();
    if (guest_exec_start(s->g, &start, &exec_ops, s, &x, &e) < 0)
        s->last = e;
}

static void side_connect(struct side *s)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", s->path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        fd_close(fd); /* its queue is full: later */
        (void)uv_timer_start(&s->again, on_again, RETRY_MS, 0);
        return;
    }
    s->connections++;
    s->g = guest_open(s->loop, fd, &ops, s);
}

static void side_open(struct side *s, uv_loop_t *loop, const char *path)
{
    *s = (struct side){.path = path, .loop = loop};
    (void)uv_timer_init(loop, &s->again);
    s->again.data = s;
    side_connect(s);
}

static long memory_kib(void)
{
    struct rusage ru;

    (void)getrusage(RUSAGE_SELF, &ru);
    return ru.ru_maxrss;
}

struct run {
    const struct side *hostile, *good;
    bool ends; /* the hostile one's connection must */
    uint64_t ms;
    int turns;
};

static bool is_seen(const struct run *r)
{
    return r->good->exited >= GOOD_MIN && r->hostile->connections > 0 &&
           (!r->ends || r->hostile->lost + r->hostile->gone > 0);
}

/* A busy machine gets more time to show what is asked for. */
static void on_end(uv_timer_t *t)
{
    struct run *r = t->data;

    if (!r || is_seen(r) || ++r->turns > TURNS_MAX)
        uv_stop(t->loop);
    else
        (void)uv_timer_start(t, on_end, r->ms, 0);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct side hostile, good;
    struct run run = {.hostile = &hostile, .good = &good};
    uv_timer_t end = {0};
    long before;

    if (argc < 4)
        return 2;
    side_open(&good, loop, argv[2]);
    (void)uv_timer_init(loop, &end);
    (void)uv_timer_start(&end, on_end, 200, 0);
    (void)uv_run(loop, UV_RUN_DEFAULT); /* what the good one costs is not the question */
    before = memory_kib();
    side_open(&hostile, loop, argv[1]);
    for (int i = 4; i < argc; i++) {
        hostile.hold |= strcmp(argv[i], "hold") == 0;
        run.ends |= strcmp(argv[i], "ends") == 0;
    }
    run.ms = strtoul(argv[3], NULL, 10);
    end.data = &run;
    (void)uv_timer_start(&end, on_end, run.ms, 0);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    (void)printf("connections %d\nready %d\nlost %d\nbytes %" PRIu64 "\nexited %d\ngone %d\n",
                 hostile.connections, hostile.ready, hostile.lost, hostile.bytes, hostile.exited,
                 hostile.gone);
    (void)printf("grown_kib %ld\ngood_exited %d\ngood_lost %d\ngood_slowest_ms %" PRId64
                 "\nlast %s\ngood_last %s\n",
                 memory_kib() - before, good.exited, good.lost, good.slowest_ms, hostile.last.msg,
                 good.last.msg);
    guest_close(hostile.g);
    guest_close(good.g);
    return 0;
}
