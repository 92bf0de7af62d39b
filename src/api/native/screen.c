/* screen: the screen of a command's terminal, in one reply. */
#include "api/native/handlers.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/session/live.h"
#include "ops/session.h"

struct look {
    struct waiter waiter;
    struct live_watch watch;
    struct exec_screen_in in; /* its numbers alone: its texts are the request's */
};

static void look_end(struct look *l)
{
    live_leave(&l->watch);
    mem_free(l);
}

static void client_gone(struct waiter *w)
{
    look_end(CONTAINER_OF(w, struct look, waiter));
}

static void send_text(struct request *r, const struct screen *s, const struct exec_screen_in *in)
{
    AUTO(buf_done) struct buf text = {0};

    if (in->format == OP_SCREEN_TEXT)
        screen_put_text(s, in->history, &text);
    else
        screen_put_ansi(s, in->history, &text);
    request_send(r, 200, "text/plain; charset=utf-8", buf_str(&text));
}

static void send_object(struct request *r, const struct look *l)
{
    const struct screen *s = live_screen(&l->watch);
    AUTO(buf_done) struct buf text = {0};
    struct jw w = request_json(r);

    screen_put_text(s, l->in.history, &text);
    jw_object(&w);
    screen_put_view(s, &w);
    jw_kint(&w, "offset", live_offset(&l->watch));
    jw_kbool(&w, "complete", live_is_whole(&l->watch));
    jw_kstr(&w, "text", buf_str(&text));
    if (l->in.cells)
        screen_put_json(s, 0, &w);
    jw_object_end(&w);
    request_send_json(r, 0);
}

static void screen_ready(struct live_watch *w)
{
    struct look *l = CONTAINER_OF(w, struct look, watch);
    struct request *r = waiter_end(&l->waiter);

    if (l->in.format == OP_SCREEN_JSON)
        send_object(r, l);
    else
        send_text(r, live_screen(w), &l->in);
    look_end(l);
}

static void screen_failed(struct live_watch *w, const struct err *e)
{
    struct look *l = CONTAINER_OF(w, struct look, watch);

    request_fail(waiter_end(&l->waiter), e);
    look_end(l);
}

void exec_screen_run(struct request *r)
{
    const struct exec_screen_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_exec(r, in->id, in->exec);
    struct exec_info i;
    struct err e = {0};
    struct look *l;

    if (!x)
        return;
    exec_info(x, &i);
    if (!i.pty) {
        err_set(&e, ERR_CONFLICT, 0, "command '%s' has no terminal, so there is no screen", i.id);
        err_object(&e, "exec", i.id);
        err_hint(&e, "start it with \"pty\": true, or as a session");
        request_fail(r, &e);
        return;
    }
    l = xzalloc(sizeof *l);
    l->in = *in;
    if (in->format == OP_SCREEN_JSON && accept_prefers(r->x, "text/plain"))
        l->in.format = OP_SCREEN_TEXT;
    l->waiter.gone = client_gone;
    l->watch.changed = screen_ready;
    l->watch.failed = screen_failed;
    request_wait(r, &l->waiter);
    live_watch(r->api->screens, x, in->offset == OP_ABSENT ? INT64_MAX : in->offset, &l->watch);
}
