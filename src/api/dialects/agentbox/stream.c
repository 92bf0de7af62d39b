/* stream: streams the output of a command to an agentbox client. */
#include "api/dialects/agentbox/agentbox.h"
#include "api/idempotency.h"
#include "api/share/revocable_stream.h"
#include "api/share/sandbox.h"
#include "api/share/tracer.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/exec/feed.h"
#include "net/sse.h"
#include "proto/ws.h"

#define KEEPALIVE_MS 15000

/* one ExecStream; it lives until the client has disconnected and the command has started */
struct stream {
    struct waiter waiter;
    struct sse *sse; /* NULL: a gRPC call */
    struct revocable_stream live;
    struct api *api;
    struct sandbox *s;
    struct exec *x;
    struct exec_reader *reader;
    struct buf cut[2]; /* the beginning of a character that is not complete yet */
    struct buf input;
    char *workdir;
    bool starting, explaining;
};

static void stream_free(struct stream *t)
{
    exec_reader_end(t->reader);
    revocable_stream_end(&t->live);
    buf_done(&t->cut[0]);
    buf_done(&t->cut[1]);
    buf_done(&t->input);
    exec_unref(t->x);
    sandbox_unref(t->s);
    mem_free(t->workdir);
    mem_free(t);
}

/* --- replies --- */

static int send_one(struct stream *t, const struct agentbox_exec_stream_response *a)
{
    AUTO(buf_done) struct buf text = {0};

    if (!t->sse)
        return rpc_send(t->waiter.r, a);
    process_event(a, &text);
    return sse_send(t->sse, STR(""), STR(""), buf_str(&text));
}

static int give(struct stream *t, const char *type, struct str data, struct str raw)
{
    const struct agentbox_exec_stream_response a = {.type = str_of(type), .data = data, .raw = raw};

    return send_one(t, &a);
}

static void finish(struct stream *t)
{
    struct request *r = waiter_end(&t->waiter);

    if (r && t->sse)
        sse_end(t->sse);
    else if (r)
        rpc_end(r);
    stream_free(t);
}

static void finish_with_error(struct stream *t, const char *text)
{
    if (t->waiter.r)
        (void)!give(t, "error", str_of(text), (struct str){0});
    finish(t);
}

static const char *const names[] = {"stdout", "stderr"};

static int send_text(struct stream *t, bool err, struct str bytes, bool last)
{
    struct buf *cut = &t->cut[err];
    AUTO(buf_done) struct buf text = {0};
    size_t taken;
    struct str all;

    buf_add_str(cut, bytes);
    all = buf_str(cut);
    taken = utf8_replace(&text, all, last);
    all.n = taken;
    if (taken > 0 &&
        give(t, names[err], buf_str(&text), str_is_utf8(all) ? (struct str){0} : all) > 0) {
        buf_take(cut, taken);
        return 1;
    }
    buf_take(cut, taken);
    return 0;
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct stream *t = arg;

    (void)offset, (void)time_us;
    return t->waiter.r ? send_text(t, stream == EXEC_STDERR, bytes, false) : 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct stream *t = arg;
    AUTO(buf_done) struct buf text = {0};

    buf_printf(&text, "bytes %lld to %lld of %s are no longer kept", (long long)from, (long long)to,
               names[stream == EXEC_STDERR]);
    return t->waiter.r ? give(t, "error", buf_str(&text), (struct str){0}) : 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct stream *t = arg;
    struct agentbox_exec_stream_response a = {.type = STR("exit"), .has_exit_code = true};
    struct exec_info i;

    t->reader = NULL;
    if (e->code != ERR_NONE) {
        finish_with_error(t, e->msg);
        return;
    }
    exec_info(t->x, &i);
    (void)!send_text(t, false, (struct str){0}, true);
    (void)!send_text(t, true, (struct str){0}, true);
    if (i.timed_out || i.state == EXEC_LOST) {
        finish_with_error(t, i.timed_out ? "Command timed out" : "the sandbox's init ended");
        return;
    }
    a.exit_code = i.signal > 0 ? -i.signal : i.exit_code;
    (void)!send_one(t, &a);
    finish(t);
}

/* --- the command --- */

static void command_cancelled(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* it has already ended, or its end will be reported */
}

static void asker_gone(struct waiter *w)
{
    struct stream *t = CONTAINER_OF(w, struct stream, waiter);

    if (t->starting || t->explaining)
        return; /* their callbacks notice it */
    if (t->x)
        exec_cancel(t->x, command_cancelled, NULL);
    stream_free(t);
}

static void failure_explained(void *arg, const char *text)
{
    finish_with_error(arg, text);
}

static void on_drained(void *arg)
{
    struct stream *t = arg;

    if (t->reader)
        exec_reader_resume(t->reader);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    struct stream *t = CONTAINER_OF(l, struct stream, live);
    struct request *r;
    struct err e = {0};

    if (ws_code == WS_POLICY && t->x) /* the command's owner has lost its permission */
        exec_cancel(t->x, command_cancelled, NULL);
    if (t->sse) {
        finish_with_error(t, why);
        return;
    }
    r = waiter_end(&t->waiter);
    err_set(&e, ERR_UNAVAILABLE, 0, "%s", why);
    if (r)
        request_fail(r, &e);
    stream_free(t);
}

static void command_started(void *arg, struct exec *x, const struct err *e)
{
    static const struct exec_reader_ops ops = {.bytes = on_bytes, .gap = on_gap, .end = on_end};
    struct stream *t = arg;
    struct exec_info i = {0};

    t->starting = false;
    if (x)
        exec_info(x, &i);
    if (!x || i.state == EXEC_FAILED) {
        t->explaining = true;
        agentbox_explain(t->s, str_of(t->workdir), x ? i.failure : str_of(e->msg),
                         failure_explained, t);
        return;
    }
    t->x = exec_ref(x);
    if (!t->waiter.r) {
        asker_gone(&t->waiter);
        return;
    }
    if (buf_len(&t->input) > 0)
        feed_start(t->api->consoles, x, buf_str(&t->input), true);
    if (!t->sse)
        rpc_on_drained(t->waiter.r, on_drained, t);
    revocable_stream_begin(&t->live, t->waiter.r, on_live_end);
    t->reader = exec_read(x, EXEC_BOTH, 0, 0, true, &ops, t);
}

/* The stream owns the exchange now; the request lives as long as it. */
static void on_sse_drained(struct sse *sse)
{
    struct request *r = sse_arg(sse);

    if (r->waiter)
        on_drained(CONTAINER_OF(r->waiter, struct stream, waiter));
}

static void on_sse_closed(struct sse *sse)
{
    request_end(sse_arg(sse), true);
}

void agentbox_run_stream(struct request *r, struct sandbox *s, const struct agentbox_line *l)
{
    static const struct sse_ops ops = {.drained = on_sse_drained, .closed = on_sse_closed};
    const struct principal by = request_who(r);
    struct stream *t = xzalloc(sizeof *t);
    struct exec_spec spec;

    t->api = r->api;
    t->s = sandbox_ref(s);
    t->workdir = str_dup(l->workdir);
    t->starting = true;
    t->waiter.gone = asker_gone;
    buf_add_str(&t->input, l->stdin_bytes);
    request_wait(r, &t->waiter);
    if (!r->rpc) {
        r->status = 200;
        t->sse = sse_start(r->x, KEEPALIVE_MS, &ops, r);
    }
    if (agentbox_cannot_start(l)) {
        finish_with_error(t, agentbox_cannot_start(l));
        return;
    }
    agentbox_spec(l, xchg_arena(r->x), &spec);
    /* a slow reader slows the command down; nothing is lost */
    spec.block_when_full = spec.for_reader = true;
    tracer_spec(r, &spec);
    idem_of_exec(r, &spec);
    if (spec.again.n > 0)
        buf_clear(&t->input); /* it got that before */
    exec_start(s, &spec, &by, command_started, t);
}

void agentbox_exec_stream(struct request *r, const void *in)
{
    const struct agentbox_exec_stream_request *q = in;
    struct sandbox *s = agentbox_session(r, q->session_id);
    struct pair *env = arena_alloc(xchg_arena(r->x), size_max(q->env_count, 1) * sizeof *env);
    const struct agentbox_exec_stream_response missing = {.type = STR("error"),
                                                          .data = STR(AGENTBOX_NO_SESSION)};

    for (size_t i = 0; i < q->env_count; i++)
        env[i] = (struct pair){q->env[i].key, q->env[i].value};
    if (!s)
        rpc_reply(r, &missing);
    else if (q->command.n == 0)
        rpc_end(r);
    else
        agentbox_run_stream(r, s,
                            &(struct agentbox_line){
                                .command = q->command,
                                .workdir = q->workdir.n > 0 ? q->workdir : STR("/workspace"),
                                .stdin_bytes = q->stdin,
                                .env = env,
                                .env_count = q->env_count,
                                .timeout_ms = q->timeout > 0 ? (int64_t)q->timeout * 1000 : 0,
                            });
}
