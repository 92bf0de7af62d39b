/* change_list: all records of a diff, kept. */
#include "base/mem.h"
#include "core/change/change_internal.h"

struct collect {
    struct buf bytes;
    size_t bytes_max, count;
    change_list_cb done;
    void *arg;
    struct err err;
};

void change_list_done(struct change_list *l)
{
    buf_done(&l->bytes);
    buf_done(&l->index);
    *l = (struct change_list){0};
}

static int on_change(void *arg, const struct change *c)
{
    struct collect *k = arg;

    if (k->err.code != ERR_NONE || change_put(&k->bytes, c, &k->err) < 0)
        return 0;
    k->count++;
    if (buf_len(&k->bytes) <= k->bytes_max)
        return 0;
    (void)err_set(&k->err, ERR_TOO_LARGE, 0, "the changes are over %zu MiB", k->bytes_max >> 20);
    buf_done(&k->bytes);
    return 0;
}

/* The views point into the bytes, which do not move any more. */
static int make_index(struct collect *k, struct change_list *l, struct err *e)
{
    struct str in = buf_str(&k->bytes);
    struct change c;
    int r;

    while ((r = change_get(&in, &c, e)) > 0)
        buf_add(&l->index, &c, sizeof c);
    l->v = (const void *)buf_data(&l->index);
    l->count = buf_len(&l->index) / sizeof c;
    return r;
}

static void on_done(void *arg, const struct change_counts *n, const struct err *e)
{
    struct collect *k = arg;
    struct change_list l = {.counts = *n};
    struct err why = e->code != ERR_NONE ? *e : k->err;

    if (why.code == ERR_NONE)
        (void)make_index(k, &l, &why);
    l.bytes = k->bytes;
    k->done(k->arg, &l, &why);
    change_list_done(&l);
    mem_free(k);
}

static void on_cancelled(void *arg)
{
    struct collect *k = arg;

    buf_done(&k->bytes);
    mem_free(k);
}

struct change_diff *change_collect(struct changes *l, const struct change_spec *s, size_t bytes_max,
                                   change_list_cb done, void *arg, struct err *e)
{
    struct collect *k = xzalloc(sizeof *k);
    struct change_diff *d;

    *k = (struct collect){.bytes_max = bytes_max, .done = done, .arg = arg};
    d = change_diff(l, s,
                    &(struct change_events){
                        .change = on_change, .done = on_done, .cancelled = on_cancelled, .arg = k},
                    e);
    if (!d)
        mem_free(k);
    return d;
}
