/* exec_prune: removes the commands that ended long ago, with their output. */
#include "core/exec/exec_internal.h"

#include "base/clock.h"

#define AT_ONCE 1000 /* rows written for one call: the store's queue is shared */

static bool is_old(const struct exec *x, int64_t older_ms)
{
    return x->ended_saved && list_is_empty(&x->readers) && list_is_empty(&x->waits) &&
           clock_wall_ms() - x->ended_us / 1000 > older_ms;
}

static int64_t kept_bytes(const struct exec *x)
{
    struct exec_info i;

    exec_info(x, &i);
    return i.out_end - i.out_from + i.err_end - i.err_from;
}

static void prune_set(struct exec_set *set, int64_t older_ms, bool dry, struct execs_pruned *ret)
{
    for (struct list *node = set->list.next, *next; node != &set->list; node = next) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        next = node->next;
        if (!is_old(x, older_ms))
            continue;
        if (!dry && ret->commands >= AT_ONCE) {
            ret->more = true;
            return;
        }
        ret->commands++;
        ret->bytes += kept_bytes(x);
        if (!dry)
            exec_erase(x);
    }
}

void execs_prune(struct sandboxes *l, int64_t older_ms, bool dry, struct execs_pruned *ret)
{
    struct sandbox_info i;

    *ret = (struct execs_pruned){0};
    for (struct sandbox *s = sandbox_next(l, &principal_system, STR("")); s && !ret->more;
         s = sandbox_next(l, &principal_system, str_of(i.id))) {
        sandbox_info(s, &i);
        prune_set(exec_set_of(s), older_ms, dry, ret);
    }
}

void exec_set_retain(struct exec_set *set)
{
    struct execs_pruned done = {0};

    if (set->all->output_keep_ms > 0)
        prune_set(set, set->all->output_keep_ms, false, &done);
}
