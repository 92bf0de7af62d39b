/* timers: many deadlines on one libuv timer. */
#include "link/timers.h"

#include "base/clock.h"
#include "base/mem.h"

#define BEAT_MS 500  /* interval of a check whether the loop was stopped */
#define STOOD_MS 500 /* later than that: it was */
#define REPRIEVE_MS 2000
#define HELD_MS 50 /* interval of the check while timers are held */

struct timers {
    uv_timer_t handle;
    struct list soon;  /* in the order they were set */
    struct list timed; /* by at_ms */
    uint64_t due_ns;   /* when the handle should fire; 0: not armed.  By the system's own clock */
    uint64_t held_ns;  /* timed ones are held until then; 0: they are not */
};

static void timers_fired(uv_timer_t *h)
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

static void timers_closed(uv_handle_t *h)
{
    mem_free(h->data);
}

struct timers *timers_free(struct timers *all)
{
    if (!all)
        return NULL;
    while (list_pop(&all->soon) || list_pop(&all->timed))
        ;
    uv_close((uv_handle_t *)&all->handle, timers_closed);
    return NULL;
}

static void arm(struct timers *all)
{
    int64_t wait = 0;

    if (list_is_empty(&all->soon)) {
        if (list_is_empty(&all->timed)) {
            (void)uv_timer_stop(&all->handle);
            all->due_ns = 0;
            return;
        }
        wait = LIST_ENTRY(all->timed.next, struct timer, link)->at_ms - clock_mono_ms();
        wait = i64_min(i64_max(wait, all->held_ns ? HELD_MS : 1), BEAT_MS);
        uv_update_time(all->handle.loop);
    }
    all->due_ns = uv_hrtime() + (uint64_t)wait * 1000000;
    (void)uv_timer_start(&all->handle, timers_fired, (uint64_t)wait, 0);
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
        /* Most deadlines are later than the existing ones: search from the end. */
        for (before = all->timed.prev; before != &all->timed; before = before->prev)
            if (LIST_ENTRY(before, struct timer, link)->at_ms <= at_ms)
                break;
        /* appending to the list whose head is `next` inserts before it */
        list_push(before->next, &t->link);
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

/* Whether timed ones are held.  If we were stopped (SIGSTOP, a debugger, a machine that was paused
 * or starved), replies that arrived in time are unread, and the loop calls timers before it
 * reads.  So timeouts of others get some time in which we run. */
static bool are_held(struct timers *all)
{
    uint64_t now = uv_hrtime();

    if (all->held_ns == 0 && all->due_ns > 0 && now > all->due_ns + STOOD_MS * 1000000ULL)
        all->held_ns = now + REPRIEVE_MS * 1000000ULL;
    else if (now >= all->held_ns)
        all->held_ns = 0; /* they run now, even if we are late again */
    return all->held_ns > 0;
}

void timers_run(struct timers *all)
{
    int64_t now = clock_mono_ms();
    bool held = are_held(all);
    struct list due;

    list_init(&due); /* moved to a list of its own: timers set meanwhile wait for the next turn */
    while (!list_is_empty(&all->soon))
        list_push(&due, list_pop(&all->soon));
    while (!held && !list_is_empty(&all->timed) &&
           LIST_ENTRY(all->timed.next, struct timer, link)->at_ms <= now)
        list_push(&due, list_pop(&all->timed));
    while (!list_is_empty(&due)) {
        struct timer *t = LIST_ENTRY(list_pop(&due), struct timer, link);

        t->fn(t);
    }
    arm(all);
}
