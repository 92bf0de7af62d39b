#include "core/run.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"

/* create ─▶ start ─▶ { read to the end, wait for the end } ─▶ destroy ─▶ told.
 * What fails on the way goes straight to destroy. */
struct run {
    struct sandboxes *all;
    struct sandbox *s;
    struct exec *x;
    struct exec_reader *reader;
    bool read, ended, abandoned;
    struct buf out[2];
    bool cut[2];
    struct principal by;
    run_cb done;
    void *arg;
    struct err e;
    /* the command, until the sandbox is there */
    struct exec_spec spec;
    struct arena texts;
};

static void copy_spec(struct run *r, const struct exec_spec *from)
{
    struct str *argv = arena_zalloc(&r->texts, (from->argc + 1) * sizeof *argv);
    struct pair *env = arena_zalloc(&r->texts, (from->env_count + 1) * sizeof *env);

    for (size_t i = 0; i < from->argc; i++)
        argv[i] = arena_str(&r->texts, from->argv[i]);
    for (size_t i = 0; i < from->env_count; i++) {
        env[i].key = arena_str(&r->texts, from->env[i].key);
        env[i].value = arena_str(&r->texts, from->env[i].value);
    }
    r->spec = *from;
    r->spec.argv = argv;
    r->spec.env = env;
    r->spec.shell = arena_str(&r->texts, from->shell);
    r->spec.cwd = arena_str(&r->texts, from->cwd);
    r->spec.user = arena_str(&r->texts, from->user);
    r->spec.idempotency = arena_str(&r->texts, from->idempotency);
}

static void run_free(struct run *r)
{
    exec_unref(r->x);
    sandbox_unref(r->s);
    buf_done(&r->out[0]);
    buf_done(&r->out[1]);
    arena_done(&r->texts);
    mem_free(r);
}

static void tell(struct run *r)
{
    struct run_result res = {.out = buf_str(&r->out[0]),
                             .err = buf_str(&r->out[1]),
                             .out_truncated = r->cut[0],
                             .err_truncated = r->cut[1]};

    if (!r->abandoned && r->x && r->ended) {
        exec_info(r->x, &res.exec);
        r->done(r->arg, &res, &(struct err){0});
    } else if (!r->abandoned) {
        r->done(r->arg, NULL, &r->e);
    }
    run_free(r);
}

static void destroyed(void *arg, struct sandbox *s, const struct err *e)
{
    struct run *r = arg;

    (void)s;
    (void)e; /* it goes on being tried; the command's end is what was asked for */
    tell(r);
}

static void finish(struct run *r)
{
    exec_reader_end(TAKE(r->reader));
    sandbox_destroy(r->s, &r->by, destroyed, r);
}

static void over_if_all(struct run *r)
{
    if (r->read && r->ended)
        finish(r);
}

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_ms,
                    struct str bytes)
{
    struct run *r = arg;
    int i = stream == EXEC_STDOUT ? 0 : 1;
    size_t n = size_min(bytes.n, RUN_OUTPUT_MAX - buf_len(&r->out[i]));

    (void)offset;
    (void)time_ms;
    buf_add(&r->out[i], bytes.p, n);
    r->cut[i] = r->cut[i] || n < bytes.n;
    return 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct run *r = arg;

    (void)from;
    (void)to;
    r->cut[stream == EXEC_STDOUT ? 0 : 1] = true;
    return 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct run *r = arg;

    r->reader = NULL;
    r->read = true;
    if (e->code != ERR_NONE)
        r->cut[0] = r->cut[1] = true;
    over_if_all(r);
}

static void on_ended(void *arg, struct exec *x, const struct err *e)
{
    struct run *r = arg;

    if (!x) { /* holtd is ending, or somebody else destroyed it */
        r->e = *e;
        r->read = true;
        finish(r);
        return;
    }
    r->ended = true;
    over_if_all(r);
}

static void on_started(void *arg, struct exec *x, const struct err *e)
{
    static const struct exec_reader_ops ops = {on_bytes, on_gap, on_end};
    struct run *r = arg;

    if (!x) {
        r->e = *e;
        finish(r);
        return;
    }
    r->x = exec_ref(x);
    r->reader = exec_read(x, EXEC_BOTH, 0, 0, true, &ops, r);
    (void)exec_wait(x, on_ended, r);
    if (r->abandoned)
        exec_cancel(x, NULL, NULL);
}

static void on_created(void *arg, struct sandbox *s, const struct err *e)
{
    struct run *r = arg;

    if (!s) {
        r->e = *e;
        tell(r);
        return;
    }
    r->s = sandbox_ref(s);
    if (r->abandoned)
        finish(r);
    else
        exec_start(s, &r->spec, &r->by, on_started, r);
}

struct run *sandbox_run(struct sandboxes *all, const struct sandbox_spec *ss,
                        const struct exec_spec *xs, const struct principal *by, run_cb done,
                        void *arg)
{
    struct run *r = xzalloc(sizeof *r);
    struct sandbox_spec spec = *ss;

    r->all = all;
    r->by = *by;
    r->by.token = NULL;
    r->done = done;
    r->arg = arg;
    copy_spec(r, xs);
    spec.one_shot = true;
    sandbox_create(all, &spec, by, on_created, r);
    return r;
}

void run_abandon(struct run *r)
{
    r->abandoned = true;
    if (r->x)
        exec_cancel(r->x, NULL, NULL);
}
