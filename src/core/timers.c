#include "core/timers.h"

#include "base/clock.h"
#include "base/mem.h"

struct timers {
    uv_timer_t handle;
    struct list soon;  /* in order of setting */
    struct list timed; /* by at_ms */
};

static void fired(uv_timer_t *h)
{
    timers_run(h->data);
}

struct timers *timers_new(uv_loop_t *loop)
{
    struct timers *all = xzalloc(sizeof *all);

    list_init(&all->soon);
    list_init(&all->timed);
    (void)uv_timer_init(loop, &all->handle);
    all->handle.data = all;
    return all;
}

static void closed(uv_handle_t *h)
{
    mem_free(h->data);
}

struct timers *timers_free(struct timers *all)
{
    if (!all)
        return NULL;
    while (list_pop(&all->soon) || list_pop(&all->timed))
        ;
    uv_close((uv_handle_t *)&all->handle, closed);
    return NULL;
}

static void arm(struct timers *all)
{
    int64_t wait = 0;

    if (list_is_empty(&all->soon)) {
        if (list_is_empty(&all->timed)) {
            (void)uv_timer_stop(&all->handle);
            return;
        }
        wait = LIST_ENTRY(all->timed.next, struct timer, link)->at_ms - clock_mono_ms();
        wait = i64_max(wait, 1);
        uv_update_time(all->handle.loop);
    }
    (void)uv_timer_start(&all->handle, fired, (uint64_t)wait, 0);
}

void timer_set(struct timers *all, struct timer *t, int64_t at_ms, void (*fn)(struct timer *t))
{
    struct list *before;

    timer_stop(t);
    if (!all)
        return;
    t->at_ms = at_ms;
    t->fn = fn;
    if (at_ms == TIMER_SOON) {
        list_push(&all->soon, &t->link);
    } else {
        /* Most deadlines are later than those before them: look from the end. */
        for (before = all->timed.prev; before != &all->timed; before = before->prev)
            if (LIST_ENTRY(before, struct timer, link)->at_ms <= at_ms)
                break;
        list_push(before->next, &t->link); /* at the end of "the list" whose head is the next */
    }
    if (all->soon.next == &t->link || (list_is_empty(&all->soon) && all->timed.next == &t->link))
        arm(all);
}

void timer_stop(struct timer *t)
{
    if (t->link.next)
        list_unlink(&t->link);
}

bool timer_is_set(const struct timer *t)
{
    return t->link.next && t->link.next != &t->link;
}

void timers_run(struct timers *all)
{
    int64_t now = clock_mono_ms();
    struct list due;

    list_init(&due); /* apart: what is set meanwhile waits for the next turn */
    while (!list_is_empty(&all->soon))
        list_push(&due, list_pop(&all->soon));
    while (!list_is_empty(&all->timed) &&
           LIST_ENTRY(all->timed.next, struct timer, link)->at_ms <= now)
        list_push(&due, list_pop(&all->timed));
    while (!list_is_empty(&due)) {
        struct timer *t = LIST_ENTRY(list_pop(&due), struct timer, link);

        t->fn(t);
    }
    arm(all);
}
