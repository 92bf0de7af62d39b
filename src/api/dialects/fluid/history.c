/* history: the commands of a sandbox with their output. */
#include "api/dialects/fluid/fluid.h"

#include "api/share/collect.h"
#include "base/mem.h"

#define OUTPUT_MAX (64 * 1024) /* of each stream of a command in a list */
#define LIST_MAX 1000

struct history {
    struct waiter waiter;
    struct sandbox *s; /* of a reply with its sandbox; else NULL */
    struct exec **v;   /* newest first */
    size_t n, at;
    struct collect collect;
    bool collecting;
    struct buf reply;
    struct jw w;
};

static void history_free(struct history *h)
{
    if (h->collecting)
        collect_done(&h->collect);
    for (size_t i = 0; i < h->n; i++)
        exec_unref(h->v[i]);
    mem_free(h->v);
    sandbox_unref(h->s);
    buf_done(&h->reply);
    mem_free(h);
}

static void client_gone(struct waiter *w)
{
    history_free(CONTAINER_OF(w, struct history, waiter));
}

static void send_history(struct history *h)
{
    struct request *r = waiter_end(&h->waiter);
    struct jw w = request_json(r);

    jw_object(&w);
    if (h->s) {
        jw_key(&w, "sandbox");
        fluid_write_sandbox(&w, h->s);
    }
    jw_key(&w, "commands");
    jw_raw(&w, buf_str(&h->reply));
    if (!h->s)
        jw_kint(&w, "total", (int64_t)h->n);
    jw_object_end(&w);
    fluid_send(r, 200);
    history_free(h);
}

static void next_command(struct history *h);

static void output_collected(void *arg, const struct err *e)
{
    struct history *h = arg;

    fluid_write_command(&h->w, h->v[h->at], e->code == ERR_NONE ? &h->collect : NULL, STR(""));
    h->collecting = false;
    collect_done(&h->collect);
    h->at++;
    next_command(h);
}

static void next_command(struct history *h)
{
    if (h->at < h->n) {
        h->collecting = true;
        collect_start(&h->collect, h->v[h->at], OUTPUT_MAX, output_collected, h);
        return;
    }
    jw_array_end(&h->w);
    send_history(h);
}

static size_t ended_commands(struct sandbox *s, struct exec **to, size_t max)
{
    struct exec_info i;
    size_t n = 0;

    for (struct exec *x = exec_next(s, STR("")); x && n < max; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        if (fluid_is_command(&i))
            to[n++] = x;
    }
    return n;
}

/* Ids are in the order of creation. */
static void history_begin(struct request *r, struct sandbox *s, const struct fluid_page *page,
                          bool with_sandbox)
{
    struct history *h = xzalloc(sizeof *h);
    struct exec **all = arena_alloc(xchg_arena(r->x), LIST_MAX * sizeof *all);
    size_t count = ended_commands(s, all, LIST_MAX);
    struct sandbox_info i;

    sandbox_info(s, &i);
    request_audit(r, "request.read", arena_printf(xchg_arena(r->x), "sandbox/%s", i.id), 200);
    h->s = with_sandbox ? sandbox_ref(s) : NULL;
    h->v = xzalloc((count + 1) * sizeof *h->v);
    for (size_t k = 0; k < count; k++)
        if (fluid_on_page(page, (int64_t)k))
            h->v[h->n++] = exec_ref(all[count - 1 - k]);
    h->w.to = &h->reply;
    h->waiter.gone = client_gone;
    request_wait(r, &h->waiter);
    jw_array(&h->w);
    next_command(h);
}

void fluid_commands(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    struct fluid_page page;

    if (s && fluid_read_page(r, &page))
        history_begin(r, s, &page, false);
}

void fluid_get_with_commands(struct request *r, struct sandbox *s)
{
    history_begin(r, s, &(struct fluid_page){0}, true);
}
