/* live: screens that follow the output of commands. */
#include "core/session/live.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

/* A screen without watchers is kept for the next look; one that takes long to make again, longer.
 */
#define LINGER_MS 5000
#define LINGER_LARGE_MS (60 * 60 * 1000)
#define LARGE (1LL << 20) /* bytes of output */

struct lives {
    struct timers *timers;
    struct map by_exec;           /* to struct live: those of now */
    struct list idle, idle_large; /* without watchers, the longest first */
    struct timer sweep;
    size_t count;
    bool closed;
};

struct live {
    struct lives *all;
    struct list idle;
    int64_t idle_since_ms;
    int refs; /* of the registry, and of a call that is going through its watchers */
    struct exec *x;
    char id[ID_SIZE];
    struct exec_reader *reader; /* NULL: the log has ended */
    struct screen *screen;
    int64_t offset, ready_at, until;
    bool ready, dropped, over;
    struct list watches;
};

/* --- its life --- */

static void live_unref(struct live *v)
{
    assert(v->refs > 0);
    if (--v->refs > 0)
        return;
    assert(v->all->count > 0);
    exec_reader_end(v->reader);
    exec_unref(v->x);
    screen_free(v->screen);
    v->all->count--;
    mem_free(v);
}

static bool is_shared(const struct live *v)
{
    return v->until == INT64_MAX;
}

static void live_drop(struct live *v)
{
    list_unlink(&v->idle);
    if (is_shared(v) && map_get(&v->all->by_exec, str_of(v->id)) == v)
        (void)map_remove(&v->all->by_exec, str_of(v->id));
    exec_reader_end(TAKE(v->reader));
    live_unref(v);
}

/* Returns when the next one of this list is due; INT64_MAX: there is none. */
static int64_t sweep_list(struct list *idle, int64_t linger_ms)
{
    int64_t now = clock_mono_ms();

    while (!list_is_empty(idle)) {
        struct live *v = LIST_ENTRY(idle->next, struct live, idle);

        if (v->idle_since_ms + linger_ms > now)
            return v->idle_since_ms + linger_ms;
        live_drop(v);
    }
    return INT64_MAX;
}

static void sweep_idle(struct timer *t)
{
    struct lives *all = CONTAINER_OF(t, struct lives, sweep);
    int64_t next =
        i64_min(sweep_list(&all->idle, LINGER_MS), sweep_list(&all->idle_large, LINGER_LARGE_MS));

    if (next != INT64_MAX)
        timer_set(all->timers, &all->sweep, next, sweep_idle);
}

struct lives *lives_new(uv_loop_t *loop)
{
    struct lives *all = xzalloc(sizeof *all);

    all->timers = timers_new(loop);
    list_init(&all->idle);
    list_init(&all->idle_large);
    return all;
}

void lives_close(struct lives *all)
{
    all->closed = true;
    while (!list_is_empty(&all->idle))
        live_drop(LIST_ENTRY(all->idle.next, struct live, idle));
    while (!list_is_empty(&all->idle_large))
        live_drop(LIST_ENTRY(all->idle_large.next, struct live, idle));
    timer_stop(&all->sweep);
}

struct lives *lives_free(struct lives *all)
{
    if (!all)
        return NULL;
    lives_close(all);
    assert(all->count == 0);
    timers_free(all->timers);
    map_done(&all->by_exec);
    mem_free(all);
    return NULL;
}

struct timers *lives_timers(struct lives *all)
{
    return all->timers;
}

size_t lives_count(const struct lives *all)
{
    return all->count;
}

/* --- its watchers --- */

/* Each of them may leave, and the last one may end the screen. */
static void tell_watches(struct live *v, const struct err *e)
{
    struct list round;

    list_init(&round);
    while (!list_is_empty(&v->watches))
        list_push(&round, list_pop(&v->watches));
    assert(v->refs > 0);
    v->refs++;
    while (!list_is_empty(&round)) {
        struct live_watch *w = LIST_ENTRY(list_pop(&round), struct live_watch, link);

        list_push(&v->watches, &w->link);
        if (e)
            w->failed(w, e);
        else
            w->changed(w);
    }
    live_unref(v);
}

static void tell_changed(struct live *v)
{
    v->ready = v->ready || v->offset >= v->ready_at || v->over;
    if (v->ready)
        tell_watches(v, NULL);
}

/* --- the log --- */

static int on_bytes(void *arg, enum exec_which stream, int64_t offset, int64_t time_us,
                    struct str bytes)
{
    struct live *v = arg;
    bool enough;

    (void)stream, (void)time_us;
    if (offset >= v->until)
        return 1;
    if ((int64_t)bytes.n > v->until - offset)
        bytes.n = (size_t)(v->until - offset);
    screen_feed(v->screen, bytes);
    v->offset = offset + (int64_t)bytes.n;
    enough = v->offset >= v->until;
    tell_changed(v); /* may free it */
    return enough;
}

static int on_size(void *arg, int64_t offset, int64_t time_us, int rows, int cols)
{
    struct live *v = arg;

    (void)time_us;
    if (offset > v->until)
        return 1;
    screen_resize(v->screen, (struct screen_size){rows, cols});
    if (v->ready)
        tell_changed(v);
    return 0;
}

static int on_gap(void *arg, enum exec_which stream, int64_t from, int64_t to)
{
    struct live *v = arg;

    (void)stream, (void)from;
    v->dropped = true;
    v->offset = to;
    if (!v->ready)
        tell_changed(v); /* may free it */
    return 0;
}

static void on_end(void *arg, const struct err *e)
{
    struct live *v = arg;

    v->reader = NULL;
    v->over = true;
    if (v->ready || e->code == ERR_NONE)
        tell_changed(v);
    else
        tell_watches(v, e);
}

static const struct exec_reader_ops reads = {
    .bytes = on_bytes, .gap = on_gap, .end = on_end, .size = on_size};

static struct live *live_new(struct lives *all, struct exec *x, int64_t until)
{
    struct live *v = xzalloc(sizeof *v);
    struct exec_info i;

    exec_info(x, &i);
    *v = (struct live){.all = all, .refs = 1, .x = exec_ref(x), .until = until};
    (void)snprintf(v->id, sizeof v->id, "%s", i.id);
    list_init(&v->idle);
    list_init(&v->watches);
    v->ready_at = i64_min(i.out_end, until);
    v->screen = screen_new((struct screen_size){i.rows, i.cols}, LIVE_HISTORY);
    v->reader = exec_read(x, EXEC_STDOUT, 0, 0, is_shared(v), &reads, v);
    all->count++;
    return v;
}

/* There is no output to wait for: it tells in the next turn, as a reader would. */
static void tell_at_once(struct timer *t)
{
    struct live_watch *w = CONTAINER_OF(t, struct live_watch, soon);

    if (w->live->offset >= w->live->ready_at)
        w->live->ready = true;
    if (w->live->ready)
        w->changed(w);
}

void live_watch(struct lives *all, struct exec *x, int64_t until, struct live_watch *w)
{
    struct exec_info i;
    struct live *v;

    exec_info(x, &i);
    v = until == INT64_MAX ? map_get(&all->by_exec, str_of(i.id)) : NULL;
    if (!v) {
        v = live_new(all, x, until);
        if (is_shared(v))
            (void)map_set(&all->by_exec, str_of(v->id), v);
    }
    list_unlink(&v->idle);
    w->live = v;
    list_push(&v->watches, &w->link);
    timer_set(all->timers, &w->soon, TIMER_SOON, tell_at_once);
}

void live_leave(struct live_watch *w)
{
    struct live *v = TAKE(w->live);

    if (!v)
        return;
    timer_stop(&w->soon);
    list_unlink(&w->link);
    if (!list_is_empty(&v->watches) || !list_is_empty(&v->idle))
        return;
    if (!is_shared(v) || v->all->closed) {
        live_drop(v);
        return;
    }
    v->idle_since_ms = clock_mono_ms();
    list_push(v->offset > LARGE ? &v->all->idle_large : &v->all->idle, &v->idle);
    timer_set(v->all->timers, &v->all->sweep, TIMER_SOON, sweep_idle);
}

const struct screen *live_screen(const struct live_watch *w)
{
    return w->live->ready ? w->live->screen : NULL;
}

int64_t live_offset(const struct live_watch *w)
{
    return w->live->offset;
}

bool live_is_whole(const struct live_watch *w)
{
    return !w->live->dropped;
}

bool live_is_over(const struct live_watch *w)
{
    return w->live->over;
}
