/* image_process: runs holt-unpack as a plain child process. */
#include "core/image/image_unpack.h"

#include "base/buf.h"
#include "base/mem.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#define REPORT_MAX 8192
#define WRITE_MAX (256 * 1024) /* bytes being written into the pipe */

struct process_unpacker {
    struct unpacker u;
    uv_loop_t *loop;
    char *state, *program;
};

struct unpack {
    uv_process_t process;
    uv_pipe_t in, out;
    struct unpack_events events; /* zeroed by cancel */
    struct buf report;
    int handles; /* open handles */
    int exit_status;
    bool exited, out_ended, eof, in_closed, wants_room;
    size_t writing;
};

struct write {
    uv_write_t req;
    size_t n;
    char bytes[];
};

static void on_closed(uv_handle_t *h)
{
    struct unpack *x = h->data;

    if (--x->handles > 0)
        return;
    buf_done(&x->report);
    mem_free(x);
}

static void close_in(struct unpack *x)
{
    if (!x->in_closed)
        uv_close((uv_handle_t *)&x->in, on_closed);
    x->in_closed = true;
}

static void finish(struct unpack *x)
{
    struct unpack_events ev = x->events;
    struct unpack_result r = {0};
    struct err e = {0};

    if (!x->exited || !x->out_ended)
        return;
    close_in(x);
    uv_close((uv_handle_t *)&x->out, on_closed);
    uv_close((uv_handle_t *)&x->process, on_closed);
    x->events = (struct unpack_events){0};
    if (!ev.done)
        return;
    if (unpack_result_parse(buf_str(&x->report), &r, &e) == 0 && x->exit_status != 0)
        err_set(&e, ERR_INTERNAL, 0, "holt-unpack exited with status %d", x->exit_status);
    ev.done(ev.arg, &r, &e);
}

static void on_exit_status(uv_process_t *p, int64_t status, int signum)
{
    struct unpack *x = p->data;

    x->exited = true;
    x->exit_status = signum ? 128 + signum : (int)status;
    finish(x);
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
    struct unpack *x = h->data;
    char *to;

    (void)hint;
    b->base = NULL;
    b->len = 0;
    if (buf_reserve(&x->report, 1024, &to) == 0)
        *b = uv_buf_init(to, 1024);
}

static void on_output(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct unpack *x = s->data;

    (void)b;
    if (n > 0)
        buf_added(&x->report, (size_t)n);
    if (n >= 0)
        return;
    x->out_ended = true;
    finish(x);
}

static void on_written(uv_write_t *req, int status)
{
    struct write *w = CONTAINER_OF(req, struct write, req);
    struct unpack *x = req->data;

    (void)status; /* a program that ended early has reported why */
    x->writing -= w->n;
    mem_free(w);
    if (x->eof && x->writing == 0)
        close_in(x);
    else if (x->wants_room && x->writing < WRITE_MAX && x->events.room) {
        x->wants_room = false;
        x->events.room(x->events.arg);
    }
}

static size_t process_write(struct unpack *x, struct str bytes)
{
    size_t n = size_min(bytes.n, WRITE_MAX - size_min(WRITE_MAX, x->writing));
    struct write *w;
    uv_buf_t b;

    x->wants_room = n < bytes.n;
    if (n == 0)
        return 0;
    w = xmalloc(sizeof *w + n);
    w->n = n;
    w->req.data = x;
    memcpy(w->bytes, bytes.p, n);
    b = uv_buf_init(w->bytes, (unsigned)n);
    x->writing += n;
    if (x->in_closed || uv_write(&w->req, (uv_stream_t *)&x->in, &b, 1, on_written) < 0) {
        x->writing -= n;
        mem_free(w);
    }
    return n;
}

static void process_eof(struct unpack *x)
{
    x->eof = true;
    if (x->writing == 0)
        close_in(x);
}

static void process_cancel(struct unpack *x)
{
    x->events = (struct unpack_events){0};
    if (!x->exited)
        (void)uv_process_kill(&x->process, SIGKILL);
}

static int spawn(struct process_unpacker *u, struct unpack *x, const struct unpack_spec *s,
                 const char *dir)
{
    char bytes[48], files[48], seconds[48];
    char *argv[] = {u->program,
                    bytes,
                    files,
                    seconds,
                    (char *)(uintptr_t)unpack_mode_name(s->mode),
                    (char *)(uintptr_t)dir,
                    NULL};
    uv_stdio_container_t io[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&x->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&x->out},
        {.flags = UV_INHERIT_FD, .data.fd = 2},
    };
    uv_process_options_t o = {.file = u->program,
                              .args = argv,
                              .exit_cb = on_exit_status,
                              .stdio = io,
                              .stdio_count = ARRAY_LEN(io)};

    (void)snprintf(bytes, sizeof bytes, "--max-bytes=%lld", (long long)s->limits.bytes_max);
    (void)snprintf(files, sizeof files, "--max-files=%lld", (long long)s->limits.files_max);
    (void)snprintf(seconds, sizeof seconds, "--max-seconds=%lld",
                   (long long)s->limits.time_ms / 1000);
    return uv_spawn(u->loop, &x->process, &o);
}

static int process_start(struct unpacker *base, const struct unpack_spec *s, struct unpack **ret,
                         struct err *e)
{
    struct process_unpacker *u = CONTAINER_OF(base, struct process_unpacker, u);
    AUTO(mem_free) char *dir = xasprintf("%s/layers/%s/fs", u->state, s->layer);
    struct unpack *x = xzalloc(sizeof *x);
    int r;

    if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
        mem_free(x);
        return err_set(e, err_code_from_errno(errno), errno, "make '%s'", dir);
    }
    x->report.limit = REPORT_MAX;
    x->events = s->events;
    (void)uv_pipe_init(u->loop, &x->in, 0);
    (void)uv_pipe_init(u->loop, &x->out, 0);
    x->in.data = x->out.data = x->process.data = x;
    x->handles = 3;
    r = spawn(u, x, s, dir);
    if (r < 0) {
        x->events = (struct unpack_events){0};
        x->exited = x->out_ended = true;
        finish(x);
        return err_set(e, ERR_INTERNAL, -r, "start '%s'", u->program);
    }
    (void)uv_read_start((uv_stream_t *)&x->out, on_alloc, on_output);
    if (s->mode == UNPACK_CLEAR)
        process_eof(x);
    *ret = x;
    return 0;
}

static const struct unpacker_ops process_ops = {
    .start = process_start,
    .write = process_write,
    .eof = process_eof,
    .cancel = process_cancel,
};

struct unpacker *unpacker_process_new(uv_loop_t *loop, const char *state, const char *program)
{
    struct process_unpacker *u = xzalloc(sizeof *u);

    *u = (struct process_unpacker){
        .u = {&process_ops}, .loop = loop, .state = xstrdup(state), .program = xstrdup(program)};
    return &u->u;
}

struct unpacker *unpacker_process_free(struct unpacker *base)
{
    struct process_unpacker *u;

    if (!base)
        return NULL;
    u = CONTAINER_OF(base, struct process_unpacker, u);
    mem_free(u->state);
    mem_free(u->program);
    mem_free(u);
    return NULL;
}
