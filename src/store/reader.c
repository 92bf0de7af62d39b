/* reader: the reader threads. */
#include "base/mem.h"
#include "store/store_internal.h"

static void read_one(struct reader *r, struct job *j)
{
    const struct store_engine *en = r->store->engine;
    struct batch *b = batch_new();
    struct store_tx tx = {.conn = r->conn, .arena = &b->arena};

    list_init(&tx.rows);
    list_push(&b->jobs, &j->link);
    if (en->begin(r->conn, false, &j->err) == 0) {
        (void)job_run(&tx, j); /* j->err has the result */
        en->rollback(r->conn);
    } else {
        (void)err_private(&j->err);
    }
    store_finish(r->store, b);
}

void reader_main(void *arg)
{
    AUTO(mem_free) struct reader *r = arg;
    struct store *s = r->store;

    for (;;) {
        struct list *l;

        uv_mutex_lock(&s->lock);
        while ((l = list_pop(&s->reads)) == NULL && !s->closing)
            uv_cond_wait(&s->read_wake, &s->lock);
        if (l)
            s->read_count--;
        uv_mutex_unlock(&s->lock);
        if (!l)
            return;
        read_one(r, LIST_ENTRY(l, struct job, link));
    }
}
