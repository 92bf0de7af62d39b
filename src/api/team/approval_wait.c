/* approval_wait: long polls and streams about questions to people. */
#include "api/team/approval_wait.h"

#include "api/share/event_stream.h"
#include "api/share/revocable_stream.h"
#include "base/clock.h"
#include "base/mem.h"
#include "net/sse.h"

struct approval_waits {
    struct list all;
    struct subscription *sub; /* NULL: nobody waited yet */
    bool stuck;               /* it could not read the log */
};

struct wait {
    struct list link; /* next NULL: it has ended */
    struct waiter waiter;
    struct revocable_stream live;
    struct api *api;
    struct arena arena;
    struct team t;
    struct str id;
    int64_t until_ms;      /* clock_mono_ms */
    bool reading, changed; /* the row is being read; it changed meanwhile */
    const struct approval_form *form;
    struct buf reply;
    bool pending; /* as it was read */
};

static void wait_free(struct wait *w)
{
    if (w->link.next)
        list_unlink(&w->link);
    revocable_stream_end(&w->live);
    buf_done(&w->reply);
    arena_done(&w->arena);
    mem_free(w);
}

/* --- reading the row --- */

static int read_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct wait *w = arg;
    struct jw j = {.to = &w->reply};
    struct approval a;

    team_enter(&w->t, tx);
    buf_clear(&w->reply);
    if (approval_need(&w->t, NULL, w->id, &a, e) < 0)
        return -1;
    w->pending = a.state == APPROVAL_PENDING;
    w->form->write(&j, &w->t, &a);
    return 0;
}

static void look(struct wait *w);

static void looked(void *arg, const struct err *e)
{
    struct wait *w = arg;
    bool over = w->until_ms <= clock_mono_ms();
    struct request *r;

    w->reading = false;
    if (e->code == ERR_NONE && w->pending && !over && w->waiter.r) {
        if (w->changed)
            look(w);
        return;
    }
    r = waiter_end(&w->waiter);
    if (r && e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (r) {
        w->form->send(r, buf_str(&w->reply));
    }
    wait_free(w);
}

static void look(struct wait *w)
{
    if (w->reading) {
        w->changed = true;
        return;
    }
    w->reading = true;
    w->changed = false;
    w->t.now_ms = clock_wall_ms();
    store_read(w->api->c.store, read_work, looked, w);
}

/* --- what ends a wait --- */

static void on_gone(struct waiter *waiter)
{
    struct wait *w = CONTAINER_OF(waiter, struct wait, waiter);

    if (!w->reading) /* else: looked */
        wait_free(w);
}

static void on_lost(struct revocable_stream *l, int ws_code, const char *why)
{
    struct wait *w = CONTAINER_OF(l, struct wait, live);
    struct request *r = waiter_end(&w->waiter);
    struct err e = {0};

    (void)ws_code;
    err_set(&e, ERR_UNAVAILABLE, 0, "the wait for an answer ended: %s", why);
    err_hint(&e, "the question stays: ask for it again by its id or key");
    if (r)
        request_fail(r, &e);
    if (!w->reading)
        wait_free(w);
}

static int on_event(void *arg, const struct event *ev)
{
    struct approval_waits *all = arg;
    struct str id;

    (void)str_cut(ev->object, '/', &id);
    LIST_EACH (&all->all, node) {
        struct wait *w = LIST_ENTRY(node, struct wait, link);

        if (str_eq(id, w->id))
            look(w);
    }
    return 0;
}

static void on_stuck(void *arg, const struct err *e)
{
    struct approval_waits *all = arg;

    (void)e;
    all->stuck = true;
}

void approval_waits_tick(struct api *a)
{
    struct approval_waits *all = a->approval_waits;
    int64_t now = clock_mono_ms();

    if (!all)
        return;
    if (all->stuck)
        subscription_resume(all->sub);
    all->stuck = false;
    LIST_EACH (&all->all, node) {
        struct wait *w = LIST_ENTRY(node, struct wait, link);

        if (w->until_ms <= now)
            look(w);
    }
}

void approval_waits_done(struct api *a)
{
    if (!a->approval_waits)
        return;
    subscription_end(a->approval_waits->sub);
    mem_free(a->approval_waits);
    a->approval_waits = NULL;
}

/* --- beginning --- */

static struct approval_waits *waits_of(struct api *a)
{
    struct approval_waits *all = a->approval_waits;

    if (all)
        return all;
    a->approval_waits = all = xzalloc(sizeof *all);
    list_init(&all->all);
    all->sub = events_subscribe(a->c.events,
                                &(struct event_filter){.type = STR("approval.*"),
                                                       .since_seq = events_head(a->c.events, NULL)},
                                on_event, on_stuck, all);
    return all;
}

/* Its events from the beginning, or after the last that a client saw. */
static void follow(struct request *r, struct str id)
{
    struct arena *a = xchg_arena(r->x);
    struct str last = sse_last_id(r->x);
    struct event_filter f = {.object = str_of(arena_printf(a, "approval/" STR_FMT, STR_ARG(id)))};
    int64_t seq;

    if (last.p && str_parse_i64(last, &seq) == 0)
        f.since_seq = seq;
    event_stream_sse(r, &f, NULL);
}

static void send_native(struct request *r, struct str json)
{
    AUTO(buf_done) struct buf line = {0};

    buf_add_str(&line, json);
    buf_add_char(&line, '\n');
    request_send(r, 0, "application/json", buf_str(&line));
}

void approval_wait(struct request *r, const struct team *t, struct str id, int64_t wait_ms)
{
    static const struct approval_form native = {approval_write, send_native};

    if (wait_ms < 0)
        follow(r, id);
    else
        approval_wait_as(r, t, id, wait_ms, &native);
}

void approval_wait_as(struct request *r, const struct team *t, struct str id, int64_t wait_ms,
                      const struct approval_form *form)
{
    struct wait *w = xzalloc(sizeof *w);

    w->form = form;
    w->api = r->api;
    w->t = *t;
    w->t.arena = &w->arena;
    w->t.who.agent = t->who.agent.p ? arena_str(&w->arena, t->who.agent) : t->who.agent;
    w->t.who.owner = arena_str(&w->arena, t->who.owner);
    w->t.who.person = arena_str(&w->arena, t->who.person);
    w->t.who.tenant = arena_str(&w->arena, t->who.tenant);
    w->id = arena_str(&w->arena, id);
    w->until_ms = clock_mono_ms() + wait_ms;
    list_push(&waits_of(r->api)->all, &w->link);
    w->waiter.gone = on_gone;
    request_wait(r, &w->waiter);
    revocable_stream_begin(&w->live, r, on_lost);
    look(w); /* it may have been decided before it was on the list */
}
