/* change_tar: what has changed, as an archive that is passed on as it comes. */
#include "base/mem.h"
#include "core/change/change_internal.h"
#include "core/exec/tool.h"

struct change_tar {
    struct list link; /* in changes->tars */
    struct changes *l;
    struct change_tar_events events;
    struct change_state before, after;
    struct buf request;
    struct tool *tool;
};

static void tar_free(struct change_tar *t)
{
    list_unlink(&t->link);
    t->l->count--;
    change_state_done(t->l, &t->before);
    change_state_done(t->l, &t->after);
    buf_done(&t->request);
    mem_free(t);
}

static int on_bytes(void *arg, struct str bytes)
{
    struct change_tar *t = arg;

    return t->events.bytes(t->events.arg, bytes);
}

static void on_done(void *arg, const struct tool_result *r, const struct err *e)
{
    struct change_tar *t = arg;
    struct change_tar_events ev = t->events;
    struct err why = *e;
    size_t n = size_min(r->err.n, 160);

    while (n > 0 && r->err.p[n - 1] == '\n')
        n--;
    if (why.code == ERR_NONE && r->timed_out)
        (void)err_set(&why, ERR_TIMEOUT, 0, "the export took too long");
    else if (why.code == ERR_NONE && r->exit_code != 0)
        (void)err_set(&why, ERR_INTERNAL, 0, "export: %.*s", (int)n, n > 0 ? r->err.p : "");
    tar_free(t);
    ev.done(ev.arg, &why);
}

struct change_tar *change_tar(struct changes *l, const struct change_spec *s,
                              const struct change_tar_events *ev, struct err *e)
{
    struct change_mounts m = {0};
    struct change_tar *t;

    if (change_check(l, e) < 0)
        return NULL;
    t = xzalloc(sizeof *t);
    t->l = l;
    t->events = *ev;
    list_push(&l->tars, &t->link);
    l->count++;
    if (change_prepare(l, s, &t->before, &t->after, &m, e) < 0) {
        buf_done(&m.request);
        tar_free(t);
        return NULL;
    }
    buf_add(&m.request, "tar=", sizeof "tar=");
    buf_add(&m.request, "whiteouts=", sizeof "whiteouts=");
    t->request = m.request;
    t->tool = change_tool(l, &m, buf_str(&t->request), s->time_ms,
                          &(struct tool_events){.piped = on_bytes, .done = on_done, .arg = t});
    return t;
}

void change_tar_resume(struct change_tar *t)
{
    tool_go_on(t->tool);
}

void change_tar_cancel(struct change_tar *t)
{
    tool_cancel(t->tool);
    tar_free(t);
}

void change_tars_free(struct changes *l)
{
    while (!list_is_empty(&l->tars))
        change_tar_cancel(LIST_ENTRY(l->tars.next, struct change_tar, link));
}
