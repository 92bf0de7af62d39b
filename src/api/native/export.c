/* export: the operation change.export: a patch, an archive, or what repeats a change. */
#include "core/change/change.h"

#include "api/native/generate_secrets.h"
#include "api/native/handlers.h"
#include "api/share/change_patch.h"
#include "api/share/revocable_stream.h"
#include "base/mem.h"
#include "core/playbook/generate.h"
#include "core/playbook/playbook.h"
#include "ops/change.h"
#include "ops/playbook.h"
#include "proto/scrub.h"

#define BYTES_MAX (64 * 1024 * 1024)

/* --- patch and tar: as they come --- */

struct out { /* in the exchange's arena */
    struct request *r;
    struct change_diff *d; /* either, until it has ended */
    struct change_tar *t;
    struct revocable_stream live;
};

static void out_over(struct out *o)
{
    struct change_diff *d = o->d;
    struct change_tar *t = o->t;

    o->d = NULL;
    o->t = NULL;
    if (d)
        change_cancel(d);
    if (t)
        change_tar_cancel(t);
    revocable_stream_end(&o->live);
}

static void out_head(struct out *o)
{
    const struct export_in *in = o->r->in;
    const struct http_header h[] = {
        {STR("content-type"),
         in->format == EXPORT_TAR ? STR("application/x-tar") : STR("text/plain; charset=utf-8")},
        {STR("content-disposition"), STR("attachment")},
        {STR("x-content-type-options"), STR("nosniff")},
        {STR("cache-control"), STR("no-store")},
    };

    if (xchg_head_sent(o->r->x))
        return;
    o->r->status = 200;
    xchg_head(o->r->x, 200, h, ARRAY_LEN(h));
}

static int out_change(void *arg, const struct change *c)
{
    struct out *o = arg;
    AUTO(buf_done) struct buf patch = {0};

    change_write_patch(&patch, c);
    if (buf_len(&patch) == 0)
        return 0;
    out_head(o);
    return xchg_write(o->r->x, buf_data(&patch), buf_len(&patch));
}

static int out_bytes(void *arg, struct str bytes)
{
    struct out *o = arg;

    out_head(o);
    return xchg_write(o->r->x, bytes.p, bytes.n);
}

/* After the head, a failure cuts the reply: a regular end would mean that this was all. */
static void out_end(struct out *o, const struct err *e)
{
    o->d = NULL;
    o->t = NULL;
    out_over(o);
    if (e->code != ERR_NONE) {
        o->r->status = err_table[e->code].http;
        xchg_fail(o->r->x, e);
        return;
    }
    out_head(o);
    xchg_end(o->r->x, NULL, 0);
}

static void out_diff_done(void *arg, const struct change_counts *n, const struct err *e)
{
    (void)n;
    out_end(arg, e);
}

static void out_tar_done(void *arg, const struct err *e)
{
    out_end(arg, e);
}

static void out_cancelled(void *arg)
{
    ((struct out *)arg)->d = NULL;
}

static void out_drained(struct xchg *x)
{
    struct out *o = xchg_arg(x);

    if (o->d)
        change_resume(o->d);
    else if (o->t)
        change_tar_resume(o->t);
}

static void out_closed(struct xchg *x, bool done)
{
    struct out *o = xchg_arg(x);

    out_over(o);
    request_end(o->r, done);
}

static void on_live_end(struct revocable_stream *s, int ws_code, const char *why)
{
    struct out *o = CONTAINER_OF(s, struct out, live);

    (void)ws_code, (void)why;
    out_over(o);
    xchg_abort(o->r->x);
}

static void send_stream(struct request *r, const struct change_spec *s)
{
    static const struct xchg_ops ops = {.drained = out_drained, .closed = out_closed};
    const struct export_in *in = r->in;
    struct out *o = arena_zalloc(xchg_arena(r->x), sizeof *o);
    struct err e = {0};

    o->r = r;
    if (in->format == EXPORT_TAR)
        o->t = change_tar(r->api->c.changes, s,
                          &(struct change_tar_events){out_bytes, out_tar_done, o}, &e);
    else
        o->d = change_diff(
            r->api->c.changes, s,
            &(struct change_events){
                .change = out_change, .done = out_diff_done, .cancelled = out_cancelled, .arg = o},
            &e);
    if (!o->d && !o->t) {
        request_fail(r, &e);
        return;
    }
    xchg_handle(r->x, &ops, o);
    revocable_stream_begin(&o->live, r, on_live_end);
}

/* --- what repeats it --- */

struct text_job {
    struct waiter waiter;
    struct change_diff *d;
    struct scrub values;
};

static void text_job_free(struct text_job *j)
{
    scrub_done(&j->values);
    mem_free(j);
}

static void put_notes(const json_t *notes, struct buf *to)
{
    for (size_t i = 0; i < json_array_size(notes); i++) {
        const json_t *n = json_array_get(notes, i);
        const char *path = json_string_value(json_object_get(n, "path"));
        size_t at = buf_len(to);

        buf_printf(to, "# not in it: %s%s%s", path ? path : "", path ? ": " : "",
                   json_string_value(json_object_get(n, "reason")));
        for (char *c = buf_data(to) + at; c < buf_data(to) + buf_len(to); c++)
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                *c = '?';
        buf_add_char(to, '\n');
    }
}

static void put_text(int format, const json_t *tasks, const json_t *notes, struct buf *to)
{
    if (format == EXPORT_SHELL)
        buf_add_c(to, "#!/bin/sh\n");
    if (format == EXPORT_DOCKERFILE)
        buf_add_c(to, "# syntax=docker/dockerfile:1\n");
    put_notes(notes, to);
    if (format == EXPORT_SHELL)
        buf_add_c(to, "set -e\n");
    if (format == EXPORT_DOCKERFILE)
        buf_add_c(to, "ARG BASE\nFROM ${BASE}\nRUN <<'HOLT_STEP'\nset -e\n");
    if (format == EXPORT_ANSIBLE)
        playbook_yaml(STR("change"), STR("all"), true, tasks, to);
    else if (format == EXPORT_PUPPET)
        generate_puppet(tasks, to);
    else
        generate_shell(tasks, to);
    if (format == EXPORT_DOCKERFILE)
        buf_add_c(to, "HOLT_STEP\n");
}

static void send_text(struct request *r, struct text_job *j, const struct change_list *l)
{
    const struct export_in *in = r->in;
    const struct generate_options o = {.vault = in->secrets == PLAYBOOK_SECRETS_VAULT,
                                       .values = &j->values};
    AUTO(json_decref) json_t *tasks = NULL, *notes = NULL;
    AUTO(buf_done) struct buf text = {0};
    struct err e = {0};

    if (playbook_generate(l, &o, &tasks, &notes, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    put_text(in->format, tasks, notes, &text);
    request_send(r, 200, "text/plain; charset=utf-8", buf_str(&text));
}

static void on_collected(void *arg, struct change_list *l, const struct err *e)
{
    struct text_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r)
        send_text(r, j, l);
    text_job_free(j);
}

static void client_gone(struct waiter *w)
{
    struct text_job *j = CONTAINER_OF(w, struct text_job, waiter);

    change_cancel(j->d);
    text_job_free(j);
}

static void collect_text(struct request *r, struct change_spec *s)
{
    const struct export_in *in = r->in;
    struct text_job *j = xzalloc(sizeof *j);
    struct err e = {0};

    s->no_text = true;
    s->content_max = GENERATE_CONTENT_MAX;
    generate_read_secrets(r, in->to, &j->values);
    j->d = change_collect(r->api->c.changes, s, BYTES_MAX, on_collected, j, &e);
    if (!j->d) {
        text_job_free(j);
        request_fail(r, &e);
        return;
    }
    j->waiter.gone = client_gone;
    request_wait(r, &j->waiter);
}

void export_run(struct request *r)
{
    const struct export_in *in = r->in;
    struct change_spec s = {.from = in->from,
                            .to = in->to,
                            .paths = in->path.v,
                            .path_count = in->path.n,
                            .all = in->all,
                            .no_commands = in->format == EXPORT_PATCH,
                            .text_max = in->format == EXPORT_PATCH ? CHANGE_TEXT_MAX : 0,
                            .by = &r->who};

    if (in->format == EXPORT_PATCH || in->format == EXPORT_TAR)
        send_stream(r, &s);
    else
        collect_text(r, &s);
}
