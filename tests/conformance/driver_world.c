#include "driver_world.h"

#include "../scratch.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "unit.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_MS 2

static const char *needle;
static size_t hits;

/* ---- the world ---- */

static void on_ended(void *arg, const char *id, int status, bool known)
{
    struct world *w = arg;

    w->ended++;
    w->ended_status = status;
    w->ended_known = known;
    (void)snprintf(w->ended_id, sizeof w->ended_id, "%s", id);
}

static void on_health(void *arg, const struct err *e)
{
    struct world *w = arg;

    *(e->code == ERR_NONE ? &w->well : &w->ill) += 1;
}

static void on_late(uv_timer_t *t)
{
    struct world *w = t->data;

    w->late = --w->ticks <= 0;
}

static void driver_start(struct world *w)
{
    struct driver_config c = {
        .ops = w->suite->ops,
        .loop = &w->loop,
        .state = w->state,
        .installation = "in_test",
        .bindir = w->suite->bindir,
        .allows = {.machines = {.accel = "tcg"}},
        .host = w->suite->host,
        .events = {.init_ended = on_ended, .health = on_health, .arg = w},
    };
    struct err e = {0};

    if (w->suite->ops->open(&c, &w->driver, &e) < 0)
        fail_msg("open driver: %s", e.msg);
}

void world_open(struct world *w, const struct driver_suite *s)
{
    *w = (struct world){.suite = s};
    assert_int_equal(scratch_make(w->state, "driver"), 0);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(uv_timer_init(&w->loop, &w->deadline), 0);
    w->deadline.data = w;
    if (s->prepare)
        s->prepare(w->state);
    driver_start(w);
}

void world_close(struct world *w)
{
    w->driver->ops->close(w->driver);
    uv_close((uv_handle_t *)&w->deadline, NULL);
    for (int i = 0; i < WORLD_WAIT_MS && uv_run(&w->loop, UV_RUN_NOWAIT) != 0; i++)
        (void)usleep(1000); /* bounded: a test that failed has left handles open */
    assert_int_equal(uv_loop_close(&w->loop), 0);
    if (w->suite->leave)
        w->suite->leave(w->state);
    (void)scratch_remove(w->state);
}

void world_reopen(struct world *w)
{
    w->driver->ops->close(w->driver);
    world_pass(w, 20);
    driver_start(w);
}

void world_until(struct world *w, const bool *flag)
{
    w->late = false;
    w->ticks = WORLD_WAIT_MS / TICK_MS;
    /* A tick now and then, since UV_RUN_ONCE may wait after the timers that it ran. */
    (void)uv_timer_start(&w->deadline, on_late, TICK_MS, TICK_MS);
    while (!*flag && !w->late)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&w->deadline);
    assert_true(*flag);
}

void world_pass(struct world *w, int64_t ms)
{
    w->late = false;
    w->ticks = 1;
    (void)uv_timer_start(&w->deadline, on_late, (uint64_t)ms, TICK_MS);
    while (!w->late)
        (void)uv_run(&w->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&w->deadline);
}

/* ---- the driver's calls ---- */

static void got_done(void *arg, const struct err *e)
{
    struct answer *a = arg;

    assert_false(a->done);
    a->done = true;
    a->err = *e;
}

static void got_made(void *arg, const struct driver_made *m, const struct err *e)
{
    got_done(arg, e);
    if (m)
        ((struct answer *)arg)->made = *m;
}

static void got_stats(void *arg, const struct driver_stats *s, const struct err *e)
{
    got_done(arg, e);
    if (s)
        ((struct answer *)arg)->stats = *s;
}

static void got_pooled(void *arg, const struct driver_pooled *p, const struct err *e)
{
    got_done(arg, e);
    if (p)
        ((struct answer *)arg)->pooled = *p;
}

static void got_list(void *arg, const struct driver_found *f, size_t n, const struct err *e)
{
    struct answer *a = arg;

    got_done(arg, e);
    a->found_count = size_min(n, ARRAY_LEN(a->found));
    if (n > 0)
        memcpy(a->found, f, a->found_count * sizeof *f);
}

static void got_fd(void *arg, int fd, const struct err *e)
{
    got_done(arg, e);
    ((struct answer *)arg)->fd = fd;
}

static enum err_code wait_for(struct world *w, struct answer *a)
{
    assert_false(a->done); /* never from within the call */
    world_until(w, &a->done);
    return a->err.code;
}

struct driver_spec world_spec(struct world *w, const char *id)
{
    return (struct driver_spec){.id = id,
                                .hostname = "otter",
                                .traits = {.limits = {.memory_bytes = w->suite->memory_bytes}}};
}

void world_begin(struct world *w, const struct driver_spec *s, struct answer *a)
{
    *a = (struct answer){.fd = -1};
    w->driver->ops->create(w->driver, s, got_made, a);
}

enum err_code world_create(struct world *w, const struct driver_spec *s, struct answer *a)
{
    struct answer own;

    a = a ? a : &own;
    world_begin(w, s, a);
    return wait_for(w, a);
}

void world_begin_remove(struct world *w, const char *id, bool keep, struct answer *a)
{
    *a = (struct answer){.fd = -1};
    w->driver->ops->remove(w->driver, id, keep, got_done, a);
}

enum err_code world_remove(struct world *w, const char *id, bool keep)
{
    struct answer a;

    world_begin_remove(w, id, keep, &a);
    return wait_for(w, &a);
}

enum err_code world_kill(struct world *w, const char *id, enum driver_scope scope)
{
    struct answer a = {0};

    w->driver->ops->kill(w->driver, id, scope, got_done, &a);
    return wait_for(w, &a);
}

enum err_code world_pause(struct world *w, const char *id, bool on)
{
    struct answer a = {0};

    w->driver->ops->pause(w->driver, id, on, got_done, &a);
    return wait_for(w, &a);
}

enum err_code world_stats(struct world *w, const char *id, struct answer *a)
{
    *a = (struct answer){0};
    w->driver->ops->stats(w->driver, id, got_stats, a);
    return wait_for(w, a);
}

void world_pool(struct world *w, uint32_t size, const struct sandbox_limits *limits)
{
    struct driver_want want = {.size = size};
    struct answer a = {0};

    if (limits)
        want.kind.limits = *limits;
    for (int i = 0; i < WORLD_WAIT_MS / 10 && (i == 0 || a.pooled.ready != size); i++) {
        world_pass(w, i == 0 ? 0 : 10);
        a = (struct answer){0};
        w->driver->ops->pool(w->driver, &want, got_pooled, &a);
        assert_int_equal(wait_for(w, &a), ERR_NONE);
    }
    assert_int_equal(a.pooled.ready, size);
}

enum err_code world_list(struct world *w, struct answer *a)
{
    *a = (struct answer){0};
    w->driver->ops->list(w->driver, got_list, a);
    return wait_for(w, a);
}

enum err_code world_adopt(struct world *w, const char *id, struct answer *a)
{
    *a = (struct answer){0};
    w->driver->ops->adopt(w->driver, id, got_made, a);
    return wait_for(w, a);
}

enum err_code world_connect(struct world *w, const char *id, struct answer *a)
{
    *a = (struct answer){.fd = -1};
    w->driver->ops->connect(w->driver, id, got_fd, a);
    return wait_for(w, a);
}

/* ---- the guest ---- */

static void on_ready(struct guest *g, const struct guest_hello_init *h)
{
    struct link *l = guest_arg(g);

    l->ready = true;
    l->execs = h->execs.count;
}

static void on_lost(struct guest *g, const struct err *e)
{
    struct link *l = guest_arg(g);

    l->lost = l->ready = true;
    l->err = *e;
}

static const struct guest_ops link_ops = {on_ready, on_lost};

struct link *link_open(struct world *w, const char *id)
{
    struct link *l = xzalloc(sizeof *l);
    struct answer a;

    l->w = w;
    if (world_connect(w, id, &a) != ERR_NONE)
        fail_msg("connect: %s", a.err.msg);
    l->g = guest_open(&w->loop, a.fd, &link_ops, l);
    world_until(w, &l->ready);
    if (l->lost)
        fail_msg("lost: %s", l->err.msg);
    return l;
}

void link_close(struct link *l)
{
    guest_close(l->g);
    mem_free(l);
}

static void x_running(struct guest_exec *x, const struct guest_exec_running *r)
{
    struct command *c = guest_exec_arg(x);

    c->running = true;
    c->got[0] = r->out_from;
    c->got[1] = r->err_from;
}

static void x_output(struct guest_exec *x, enum guest_stream s, uint64_t at, struct str bytes)
{
    struct command *c = guest_exec_arg(x);

    assert_int_equal(at, c->got[s - GUEST_OUT]);
    c->got[s - GUEST_OUT] += bytes.n;
    buf_add_str(s == GUEST_OUT ? &c->out : &c->err, bytes);
    guest_exec_ack(x, s, at + bytes.n);
}

static void x_exited(struct guest_exec *x, const struct guest_exec_exit *how)
{
    struct command *c = guest_exec_arg(x);

    c->exited = true;
    c->how = *how;
}

static void x_gone(struct guest_exec *x, const struct err *e)
{
    struct command *c = guest_exec_arg(x);

    c->gone = c->exited = c->running = true;
    c->x = NULL;
    c->why = *e;
}

const struct guest_exec_ops command_ops = {
    .running = x_running, .output = x_output, .exited = x_exited, .gone = x_gone};

void command_start(struct link *l, const char *id, uint32_t flags, const char *shell,
                   struct command *c)
{
    const struct wire_text argv[] = {{STR("/bin/sh")}, {STR("-c")}, {str_of(shell)}};
    const struct wire_text env[] = {{STR("PATH=/usr/bin:/bin")}};
    struct guest_exec_start s = {
        .id = str_of(id),
        .flags = flags,
        .cwd = STR("/"),
        .argv = {.count = 3, .items = argv},
        .env = {.count = 1, .items = env},
    };
    struct err e = {0};

    *c = (struct command){0};
    if (guest_exec_start(l->g, &s, &command_ops, c, &c->x, &e) < 0)
        fail_msg("start: %s", e.msg);
}

void command_attach(struct link *l, const char *id, struct command *c)
{
    struct guest_exec_attach s = {.id = str_of(id), .out_from = c->got[0], .err_from = c->got[1]};
    struct err e = {0};

    c->running = c->exited = c->gone = false;
    if (guest_exec_attach(l->g, &s, &command_ops, c, &c->x, &e) < 0)
        fail_msg("attach: %s", e.msg);
}

void command_end(struct link *l, struct command *c)
{
    world_until(l->w, &c->exited);
    if (c->gone)
        fail_msg("gone: %s", c->why.msg);
    guest_exec_forget(c->x);
    c->x = NULL;
}

void command_done(struct command *c)
{
    buf_done(&c->out);
    buf_done(&c->err);
}

/* ---- files ---- */

static void push(struct transfer *t)
{
    t->rest = str_skip(t->rest, guest_pipe_write(t->p, t->rest));
    if (t->rest.n == 0)
        guest_pipe_eof(t->p);
}

static void p_opened(struct guest_pipe *p)
{
    ((struct transfer *)guest_pipe_arg(p))->opened = true;
}

static void p_data(struct guest_pipe *p, struct str bytes)
{
    struct transfer *t = guest_pipe_arg(p);

    buf_add_str(&t->got, bytes);
    guest_pipe_consume(p, bytes.n);
}

static void p_eof(struct guest_pipe *p)
{
    ((struct transfer *)guest_pipe_arg(p))->eof = true;
}

static void p_room(struct guest_pipe *p)
{
    push(guest_pipe_arg(p));
}

static void p_done(struct guest_pipe *p, const struct guest_file_done *info, const struct err *e)
{
    struct transfer *t = guest_pipe_arg(p);

    (void)info;
    t->done = true;
    t->p = NULL;
    t->err = *e;
}

const struct guest_pipe_ops transfer_ops = {p_opened, p_data, p_eof, p_room, p_done};

void transfer_begin(struct link *l, const struct guest_file_call *call, struct str bytes,
                    struct transfer *t)
{
    struct err e = {0};

    *t = (struct transfer){.rest = bytes};
    if (guest_file(l->g, call, &transfer_ops, t, &t->p, &e) < 0)
        fail_msg("file: %s", e.msg);
    if (call->op == GUEST_FILE_WRITE)
        push(t);
}

static struct guest_file_call call_of(enum guest_file_op op, const char *path)
{
    return (struct guest_file_call){.op = (uint8_t)op,
                                    .path = str_of(path),
                                    .flags = op == GUEST_FILE_WRITE ? GUEST_FILE_PARENTS : 0,
                                    .length = GUEST_NO_LIMIT,
                                    .uid = GUEST_NO_ID,
                                    .gid = GUEST_NO_ID};
}

enum err_code file_put(struct link *l, const char *path, struct str bytes)
{
    struct guest_file_call c = call_of(GUEST_FILE_WRITE, path);
    struct transfer t;

    transfer_begin(l, &c, bytes, &t);
    world_until(l->w, &t.done);
    return t.err.code;
}

enum err_code file_get(struct link *l, const char *path, struct buf *to)
{
    struct guest_file_call c = call_of(GUEST_FILE_READ, path);
    struct transfer t;

    transfer_begin(l, &c, STR(""), &t);
    world_until(l->w, &t.done);
    buf_add_str(to, buf_str(&t.got));
    buf_done(&t.got);
    return t.err.code;
}

/* ---- helpers ---- */

/* Those of this state directory, and holt-spawn's children on their way to be an init.  Returns how
 * many there are. */
static size_t helper_signal(const char *program, const char *state, int signal)
{
    DIR *dir = opendir("/proc");
    struct dirent *d;
    size_t n = 0;

    while (dir && (d = readdir(dir))) {
        AUTO(buf_done) struct buf line = {0};
        char path[300];

        (void)snprintf(path, sizeof path, "/proc/%s/cmdline", d->d_name);
        if (d->d_name[0] < '1' || d->d_name[0] > '9' || file_read(path, 4096, &line) < 0)
            continue;
        if (str_starts(buf_str(&line), str_of(program)) &&
            memmem(buf_data(&line), buf_len(&line), state, strlen(state)))
            n += kill((pid_t)strtol(d->d_name, NULL, 10), signal) == 0;
    }
    if (dir)
        (void)closedir(dir);
    return n;
}

void helper_end(const char *program, const char *state, int signal)
{
    (void)helper_signal(program, state, signal);
    /* A zombie has no command line: nobody is left, or nobody goes within a minute. */
    for (int i = 0; i < 6000 && helper_signal(program, state, 0) > 0; i++)
        (void)usleep(10 * 1000);
}

/* ---- what is left ---- */

/* Those whose command line fits: NUL-separated, as the kernel shows it. */
static size_t count_lines(bool (*fits)(const struct buf *line, const char *text), const char *text)
{
    DIR *dir = opendir("/proc");
    struct dirent *d;
    size_t n = 0;

    while ((d = readdir(dir))) {
        AUTO(buf_done) struct buf line = {0};
        char path[300];

        (void)snprintf(path, sizeof path, "/proc/%s/cmdline", d->d_name);
        if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && file_read(path, 65536, &line) == 0)
            n += fits(&line, text);
    }
    (void)closedir(dir);
    return n;
}

static bool holds(const struct buf *line, const char *text)
{
    return memmem(buf_data(line), buf_len(line), text, strlen(text)) != NULL;
}

static bool is_sleep(const struct buf *line, const char *time)
{
    static const char name[] = "sleep"; /* with its NUL */

    return buf_len(line) == sizeof name + strlen(time) + 1 &&
           memcmp(buf_data(line), name, sizeof name) == 0 &&
           memcmp(buf_data(line) + sizeof name, time, strlen(time)) == 0;
}

size_t count_processes(const char *text)
{
    return count_lines(holds, text);
}

size_t count_sleepers(const char *time)
{
    return count_lines(is_sleep, time);
}

static int look_at(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    hits += strstr(path + at->base, needle) != NULL;
    return 0;
}

size_t count_files(const char *dir, const char *text)
{
    needle = text;
    hits = 0;
    (void)nftw(dir, look_at, 16, FTW_PHYS);
    return hits;
}
