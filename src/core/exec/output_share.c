/* output_share: limits the disk use of all logs of one owner's commands. */
#include "core/exec/output_share.h"

#include "base/mem.h"
#include "core/exec/exec_internal.h"

struct output_share {
    struct execs *all;
    struct list execs; /* by share_link, the oldest first */
    int64_t bytes;     /* the sum of their `counted` */
    struct timer trim;
    char owner[]; /* the key in execs->shares */
};

static struct output_share *share_of(struct execs *all, const char *owner)
{
    struct output_share *h = map_get(&all->shares, str_of(owner));
    size_t n = strlen(owner) + 1;

    if (h)
        return h;
    h = xzalloc(sizeof *h + n);
    h->all = all;
    list_init(&h->execs);
    memcpy(h->owner, owner, n);
    (void)map_set(&all->shares, str_of(h->owner), h);
    return h;
}

/* --- making room --- */

static bool is_over(const struct output_share *h)
{
    int64_t max = sandboxes_ceilings(h->all->sandboxes)->agent_output;

    return max > 0 && h->bytes > max;
}

/* A log with readers or waits is kept until they end. */
static bool is_removable(const struct exec *x)
{
    return x->ended_saved && x->counted > 0 && list_is_empty(&x->readers) &&
           list_is_empty(&x->waits) && !timer_is_set(&x->tell);
}

static struct exec *oldest_ended(const struct output_share *h)
{
    struct exec *found = NULL;

    LIST_EACH (&h->execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, share_link);

        if (is_removable(x) && (!found || x->ended_us < found->ended_us))
            found = x;
    }
    return found;
}

static struct exec *largest_running(const struct output_share *h)
{
    struct exec *found = NULL;

    LIST_EACH (&h->execs, node) {
        struct exec *x = LIST_ENTRY(node, struct exec, share_link);

        if (exec_is_live(x) && x->log.keep > LOG_KEEP_MIN &&
            (!found || x->counted > found->counted))
            found = x;
    }
    return found;
}

static void cut(struct exec *x)
{
    x->log.keep = i64_max(x->log.keep / 2, LOG_KEEP_MIN);
    exec_log_retain(&x->log);
    output_share_count(x);
    if (x->cut)
        return;
    x->cut = true;
    exec_save(x, "exec.output_cut", NULL, NULL);
}

static void make_room(struct timer *t)
{
    struct output_share *h = CONTAINER_OF(t, struct output_share, trim);
    struct exec *x;

    while (is_over(h) && (x = oldest_ended(h)) != NULL) {
        bool last = h->execs.next == h->execs.prev;

        exec_erase(x);
        if (last) /* the share was freed with it */
            return;
    }
    while (is_over(h) && (x = largest_running(h)) != NULL)
        cut(x);
    timer_stop(&h->trim); /* what cannot shrink now is checked when it next grows */
}

/* --- counting --- */

void output_share_count(struct exec *x)
{
    struct output_share *h = x->share;
    int64_t now;

    if (!h)
        return;
    now = x->log_cold ? exec_log_kept(&x->log) : exec_log_disk(&x->log);
    h->bytes += now - x->counted;
    assert(now >= 0 && h->bytes >= now);
    x->counted = now;
    if (is_over(h) && !timer_is_set(&h->trim))
        timer_set(h->all->timers, &h->trim, TIMER_SOON, make_room);
}

void output_share_join(struct exec *x)
{
    const char *owner = sandbox_owner(x->sandbox);

    if (!(x->flags & EXEC_OF_SHARE) || !owner)
        return;
    x->share = share_of(x->set->all, owner);
    list_push(&x->share->execs, &x->share_link);
    output_share_count(x);
}

void output_share_leave(struct exec *x)
{
    struct output_share *h = TAKE(x->share);

    if (!h)
        return;
    assert(h->bytes >= x->counted);
    h->bytes -= x->counted;
    x->counted = 0;
    list_unlink(&x->share_link);
    if (!list_is_empty(&h->execs))
        return;
    assert(h->bytes == 0);
    timer_stop(&h->trim);
    (void)map_remove(&h->all->shares, str_of(h->owner));
    mem_free(h);
}
