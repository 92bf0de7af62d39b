/* identity_use: stores when tokens were last used. */
#include "core/identity/identity_internal.h"

#include "base/log.h"
#include "base/mem.h"

struct use {
    char id[ID_SIZE];
    int64_t at_ms;
};

struct use_job {
    size_t count;
    struct use uses[];
};

static int write_uses(struct store_tx *tx, void *arg, struct err *e)
{
    const struct use_job *j = arg;

    for (size_t k = 0; k < j->count; k++)
        if (tx_run(tx, "UPDATE tokens SET last_used_ms = :at WHERE id = :id",
                   PARAMS(P_INT("at", j->uses[k].at_ms), P_C("id", j->uses[k].id)), e) < 0)
            return -1;
    return 0;
}

static void uses_written(void *arg, const struct err *e)
{
    if (e->code != ERR_NONE)
        log_warn("the last use of tokens could not be stored", LOG_E(e));
    mem_free(arg);
}

void identity_flush(struct identity *i)
{
    struct use_job *j;
    size_t count = 0;

    for (size_t k = 0; k < i->count; k++)
        count += i->sorted[k]->used;
    if (count == 0)
        return;
    j = xzalloc(sizeof *j + count * sizeof j->uses[0]);
    for (size_t k = 0; k < i->count; k++) {
        struct entry *n = i->sorted[k];
        struct use *u = &j->uses[j->count];

        if (!n->used)
            continue;
        n->used = false;
        memcpy(u->id, n->t.id, sizeof u->id);
        u->at_ms = n->t.last_used_ms;
        j->count++;
    }
    store_write(i->store, STORE_RELAXED, write_uses, uses_written, j);
}
