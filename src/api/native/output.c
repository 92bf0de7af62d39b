/* output: the output of a command, and the logs of a sandbox. */
#include "api/native/handlers.h"
#include "api/share/revocable_stream.h"
#include "api/share/sandbox.h"

#include <inttypes.h>

struct output { /* in the exchange's arena */
    struct request *r;
    struct exec *x;
    struct exec_reader *reader;
    struct revocable_stream live;
    bool logs; /* both streams, for people: gaps are marked */
    bool over;
};

static struct http_header header(struct request *r, const char *name, int64_t v)
{
    return (struct http_header){str_of(name),
                                str_of(arena_printf(xchg_arena(r->x), "%" PRId64, v))};
}

/* The state of the command: as headers, and as trailers of followed output. */
static size_t how_it_ended(struct output *o, struct http_header *h)
{
    struct exec_info i;
    size_t n = 0;

    exec_info(o->x, &i);
    h[n++] = (struct http_header){STR("x-holt-state"), str_of(exec_state_name(i.state))};
    if (i.exit_code >= 0)
        h[n++] = header(o->r, "x-holt-exit-code", i.exit_code);
    if (i.signal > 0)
        h[n++] = header(o->r, "x-holt-signal", i.signal);
    return n;
}

static void output_over(struct output *o)
{
    o->over = true;
    exec_reader_end(o->reader);
    o->reader = NULL;
    revocable_stream_end(&o->live);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct output *o = arg;

    (void)stream, (void)offset, (void)time_us;
    return xchg_write(o->r->x, bytes.p, bytes.n);
}

/* The size limit has dropped output before it was read.  Bytes alone cannot show that, so the reply
 * is cut; the next request learns where the kept output starts. */
static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct output *o = arg;
    char text[160];
    int n;

    if (!o->logs) {
        o->over = true;
        xchg_abort(o->r->x);
        return 1;
    }
    n = snprintf(text, sizeof text,
                 "\n[holt: bytes %" PRId64 " to %" PRId64 " of %s are no longer kept]\n", from, to,
                 op_streams[stream == EXEC_STDERR]);
    return xchg_write(o->r->x, text, (size_t)n);
}

static void on_end(void *arg, const struct err *e)
{
    struct output *o = arg;
    struct http_header h[4];

    o->reader = NULL;
    if (o->over)
        return;
    output_over(o);
    if (e->code == ERR_NONE)
        xchg_end(o->r->x, h, how_it_ended(o, h));
    else
        xchg_abort(o->r->x);
}

static void on_drained(struct xchg *x)
{
    struct output *o = xchg_arg(x);

    if (o->reader)
        exec_reader_resume(o->reader);
}

static void on_closed(struct xchg *x, bool done)
{
    struct output *o = xchg_arg(x);

    output_over(o);
    o->x = exec_unref(o->x);
    request_end(o->r, done);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct output *o = CONTAINER_OF(l, struct output, live);

    (void)ws_code, (void)why;
    output_over(o);
    xchg_abort(o->r->x); /* a regular end would mean that this was all */
}

/* Takes the reference to x. */
static void send_output(struct request *r, struct exec *x, enum exec_which which,
                        const int64_t offsets[2], bool follow)
{
    static const struct xchg_ops ops = {.drained = on_drained, .closed = on_closed};
    static const struct exec_reader_ops reads = {.bytes = on_bytes, .gap = on_gap, .end = on_end};
    struct output *o = arena_zalloc(xchg_arena(r->x), sizeof *o);
    struct http_header h[10];
    size_t n = 0;

    *o = (struct output){.r = r, .x = x, .logs = which == EXEC_BOTH};
    h[n++] = (struct http_header){STR("content-type"), STR("application/octet-stream")};
    h[n++] = (struct http_header){STR("x-content-type-options"), STR("nosniff")};
    h[n++] = (struct http_header){STR("content-disposition"), STR("attachment")};
    h[n++] = (struct http_header){STR("cache-control"), STR("no-store")};
    if (!o->logs)
        h[n++] = header(r, "x-holt-offset", offsets[which == EXEC_STDERR]);
    n += how_it_ended(o, h + n);
    r->status = 200;
    xchg_handle(r->x, &ops, o);
    revocable_stream_begin(&o->live, r, on_live_end);
    xchg_head(r->x, 200, h, n);
    if (str_eq_c(xchg_req(r->x)->method, "HEAD"))
        xchg_end(r->x, NULL, 0);
    else
        o->reader = exec_read(x, which, offsets[0], offsets[1], follow, &reads, o);
}

/* --- one stream --- */

static int find_offset(int64_t asked, int64_t from, int64_t end, const char *stream, int64_t *ret,
                       struct err *e)
{
    *ret = asked < 0 ? i64_max(end + asked, from) : asked;
    if (*ret < from) {
        err_set(e, ERR_GONE, 0, "%s is kept from byte %" PRId64 " on, byte %" PRId64 " is gone",
                stream, from, *ret);
        return err_hint(e, "read from offset=%" PRId64, from);
    }
    if (*ret <= end)
        return 0;
    err_set(e, ERR_RANGE, 0, "%s has %" PRId64 " bytes, there is no byte %" PRId64, stream, end,
            *ret);
    return err_hint(e, "read from offset=%" PRId64 " with follow=true", end);
}

void exec_output_run(struct request *r)
{
    const struct exec_output_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, in->id, in->exec);
    bool out = in->stream == OP_STREAM_STDOUT;
    int64_t offsets[2] = {0};
    struct exec_info i;
    struct err e = {0};

    if (!x)
        return;
    exec_info(x, &i);
    if (find_offset(in->offset, out ? i.out_from : i.err_from, out ? i.out_end : i.err_end,
                    op_streams[in->stream], &offsets[in->stream], &e) < 0) {
        err_object(&e, "exec", i.id);
        request_fail(r, &e);
        return;
    }
    send_output(r, TAKE(x), out ? EXEC_STDOUT : EXEC_STDERR, offsets, in->follow);
}

/* --- both, for people --- */

static struct exec *exec_of_logs(struct request *r)
{
    const struct exec_logs_in *in = r->in;

    return request_exec(r, in->id, in->exec.p ? in->exec : STR(OP_EXEC_NEWEST));
}

void sandbox_logs_run(struct request *r)
{
    const struct exec_logs_in *in = r->in;
    AUTO(exec_unref) struct exec *x = exec_of_logs(r);
    int64_t offsets[2] = {0, 0}; /* dropped output is shown as a gap */
    struct exec_info i;

    if (!x)
        return;
    exec_info(x, &i);
    if (in->tail != OP_ABSENT) {
        offsets[0] = i64_max(i.out_end - in->tail, i.out_from);
        offsets[1] = i64_max(i.err_end - in->tail, i.err_from);
    }
    send_output(r, TAKE(x), EXEC_BOTH, offsets, in->follow);
}
