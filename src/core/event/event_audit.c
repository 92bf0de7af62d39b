/* event_audit: audit rows, folded when they come in floods. */
#include "core/event/event_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define FOLD_MS 10000
#define FOLDS_MAX 10000 /* rows counted at a time; beyond that, one per type counts for all */
#define FOLD_DATA 4096  /* limit of a counted row's data; longer data is left out */
#define MANY "(many)"   /* object and actor of a row that counts for all */

struct fold {               /* a row was written; similar ones until `until` are counted */
    struct event_spec spec; /* of the newest; the fold owns the texts */
    int64_t count;
    uint64_t until; /* uv_now of the loop */
};

struct audit_row { /* being written to the store */
    struct events *log;
    struct event_spec spec;
};

static void spec_done(struct event_spec *s)
{
    mem_free((void *)(uintptr_t)s->type);
    mem_free((void *)(uintptr_t)s->object);
    mem_free((void *)(uintptr_t)s->actor);
    mem_free((void *)(uintptr_t)s->data.p);
}

static void spec_copy(struct event_spec *to, const struct event_spec *from)
{
    *to = (struct event_spec){.audit = true, .count = from->count};
    to->type = xstrdup(from->type);
    to->object = xstrdup(from->object);
    to->actor = xstrdup(from->actor);
    to->data = str_make(str_dup(from->data.n > 0 ? from->data : STR("{}")),
                        from->data.n > 0 ? from->data.n : 2);
}

static int row_write(struct store_tx *tx, void *arg, struct err *e)
{
    struct audit_row *row = arg;

    (void)e;
    tx_event(tx, &row->spec, NULL);
    return 0;
}

/* Losses of audit rows are counted, and logged at most once a second. */
static void row_done(void *arg, const struct err *e)
{
    static int64_t logged_ms;
    struct audit_row *row = arg;

    if (e->code != ERR_NONE) {
        metric_inc(&events_audit_lost, 1);
        if (clock_mono_ms() - logged_ms >= 1000) {
            logged_ms = clock_mono_ms();
            log_warn("an audit row could not be written", LOG_C("type", row->spec.type), LOG_E(e));
        }
    }
    spec_done(&row->spec);
    events_unref(row->log);
    free(row);
}

static void row_send(struct events *l, const struct event_spec *spec)
{
    struct audit_row *row = xzalloc(sizeof *row);

    row->log = events_ref(l);
    spec_copy(&row->spec, spec);
    store_write(l->store, STORE_RELAXED, row_write, row_done, row);
}

static char *fold_key(const struct event_spec *s)
{
    struct str data = s->apart ? s->data : STR("");

    return xasprintf("%s\n%s\n%s\n" STR_FMT, s->type, s->object, s->actor, STR_ARG(data));
}

static void fold_free(struct events *l, struct fold *f)
{
    if (f->count > 0) {
        f->spec.count = f->count;
        row_send(l, &f->spec);
    }
    spec_done(&f->spec);
    free(f);
}

static void on_timer(uv_timer_t *t)
{
    struct events *l = t->data;
    uint64_t now = uv_now(t->loop), next = UINT64_MAX;
    struct str key;
    void *value;
    size_t at = 0;

    while (map_next(&l->folds, &at, &key, &value)) {
        struct fold *f = value;

        if (f->until <= now) {
            map_remove(&l->folds, key);
            fold_free(l, f);
        } else if (f->until < next) {
            next = f->until;
        }
    }
    if (next != UINT64_MAX)
        (void)uv_timer_start(t, on_timer, next - now, 0);
}

static struct fold *fold_add(struct events *l, const char *key, const struct event_spec *spec)
{
    struct fold *f = xzalloc(sizeof *f);

    spec_copy(&f->spec, spec);
    f->until = uv_now(l->timer->loop) + (uint64_t)i64_max(l->fold_ms, spec->fold_ms);
    map_set(&l->folds, str_of(key), f);
    if (!uv_is_active((uv_handle_t *)l->timer))
        (void)uv_timer_start(l->timer, on_timer, (uint64_t)l->fold_ms, 0);
    return f;
}

static void fold_count(struct fold *f, const struct event_spec *spec)
{
    struct event_spec newest = *spec;

    f->count++;
    if (newest.data.n > FOLD_DATA)
        newest.data = STR("{}");
    spec_done(&f->spec);
    spec_copy(&f->spec, &newest);
}

void events_audit(struct events *l, const struct event_spec *ev)
{
    struct event_spec spec = *ev;
    AUTO(mem_free) char *key = fold_key(&spec);
    struct fold *f = map_get(&l->folds, str_of(key));

    spec.audit = true;
    spec.count = 1;
    if (l->fold_ms <= 0) {
        row_send(l, &spec);
        return;
    }
    if (!f && l->folds.count >= FOLDS_MAX) {
        spec.object = spec.actor = MANY;
        spec.apart = false;
        mem_free(key);
        key = fold_key(&spec);
        f = map_get(&l->folds, str_of(key));
    }
    if (f) {
        fold_count(f, &spec);
        return;
    }
    row_send(l, &spec);
    if (spec.data.n > FOLD_DATA)
        spec.data = STR("{}");
    (void)fold_add(l, key, &spec);
}

void events_set_fold(struct events *l, int64_t window_ms)
{
    l->fold_ms = window_ms;
}

void folds_init(struct events *l)
{
    l->fold_ms = FOLD_MS;
    l->timer = xzalloc(sizeof *l->timer);
    l->timer->data = l;
    (void)uv_timer_init(store_loop(l->store), l->timer);
    uv_unref((uv_handle_t *)l->timer);
}

static void timer_free(uv_handle_t *h)
{
    free(h);
}

void folds_close(struct events *l)
{
    struct str key;
    void *value;
    size_t at = 0;

    while (map_next(&l->folds, &at, &key, &value))
        fold_free(l, value);
    map_done(&l->folds);
    uv_close((uv_handle_t *)l->timer, timer_free);
    l->timer = NULL;
}
