/* journal: merges the logs of a sandbox's commands into one order. */
#include "core/exec/journal.h"

#include "base/mem.h"
#include "core/exec/exec_internal.h"

#define TURN_BYTES (4 * LOG_BLOCK) /* delivered by one journal per turn of the loop */
#define ENTRY_COST 256             /* the cost of an entry without bytes */

struct cursor { /* the position of a journal in one log */
    struct list link;
    struct exec *x;   /* NULL: the notes */
    int64_t pos;      /* of block's first byte */
    struct buf block; /* records */
    size_t used;      /* bytes of block */
    bool gap;
};

struct journal {
    struct list link; /* in set->journals */
    struct exec_set *set;
    struct sandbox *s; /* a reference: it owns the set */
    int refs;          /* held by the owner and the call that is delivering */
    int64_t after_us;
    int64_t erased_us; /* its reader knows that commands up to this moment may be missing */
    size_t last;       /* start this many entries before the end; 0: the position is set */
    bool tail;         /* it started that way */
    bool paused, ended;
    struct list cursors;
    struct timer wake;
    const struct journal_ops *ops;
    void *arg;
};

/* --- the object --- */

static void cursor_free(struct cursor *c)
{
    list_unlink(&c->link);
    exec_unref(c->x);
    buf_done(&c->block);
    mem_free(c);
}

static void journal_unref(struct journal *j)
{
    assert(j->refs > 0);
    if (--j->refs > 0)
        return;
    assert(j->ended && !timer_is_set(&j->wake));
    while (!list_is_empty(&j->cursors))
        cursor_free(LIST_ENTRY(j->cursors.next, struct cursor, link));
    sandbox_unref(j->s);
    mem_free(j);
}

static void leave(struct journal *j)
{
    j->ended = true;
    timer_stop(&j->wake);
    list_unlink(&j->link);
}

static void finish(struct journal *j, const struct err *e)
{
    if (j->ended)
        return;
    leave(j);
    j->ops->end(j->arg, e);
    journal_unref(j);
}

void journal_close(struct journal *j)
{
    if (!j || j->ended)
        return;
    leave(j);
    journal_unref(j);
}

void journals_end(struct exec_set *set, const struct err *e)
{
    while (!list_is_empty(&set->journals))
        finish(LIST_ENTRY(set->journals.next, struct journal, link), e);
}

/* --- the notes --- */

static int open_notes(struct exec_set *set, struct err *e)
{
    AUTO(mem_free) char *path = NULL;
    struct exec_log *g;

    if (set->notes)
        return 0;
    path = xasprintf("%s/%s/notes.log", set->all->dir, sandbox_id(set->sandbox));
    g = xzalloc(sizeof *g);
    exec_log_init(g, path, JOURNAL_NOTES_KEEP);
    if (exec_log_recover(g, e) < 0) {
        exec_log_done(g);
        mem_free(g);
        return err_wrap(e, "read the journal of sandbox '%s'", sandbox_id(set->sandbox));
    }
    execs_moment_was(set->all, g->last_us);
    set->has_logs = set->has_logs || g->in_file;
    set->notes = g;
    return 0;
}

void notes_close(struct exec_set *set)
{
    if (!set->notes)
        return;
    exec_log_done(set->notes);
    mem_free(set->notes);
    set->notes = NULL;
}

/* A note is one record: the rest of a block without room for it is filled with a record of the
 * other stream, which is not delivered. */
static int fill_block(struct exec_log *g, size_t need, int64_t *moment, struct err *e)
{
    static const char zeros[JOURNAL_NOTE_MAX];
    size_t left = LOG_BLOCK - (size_t)(g->size % LOG_BLOCK);

    if (left <= LOG_HEAD || left >= LOG_HEAD + need)
        return 0;
    if (exec_log_append(g, LOG_ERR, moment, str_make(zeros, left - LOG_HEAD), e) < 0)
        return -1;
    (*moment)++;
    return 0;
}

/* No output, and no note. */
static bool is_filler(const struct exec_log *g, const struct log_record *r,
                      const struct exec_set *set)
{
    return r->stream >= LOG_STREAMS || (g == set->notes && r->stream == LOG_ERR);
}

int journal_add(struct sandbox *s, struct str bytes, struct err *e)
{
    struct exec_set *set = exec_set_of(s);
    int64_t moment;

    assert(bytes.n > 0 && bytes.n <= JOURNAL_NOTE_MAX);
    if (!sandbox_is_listed(s))
        return err_set(e, ERR_GONE, 0, "sandbox '%s' was destroyed", sandbox_id(s));
    if (open_notes(set, e) < 0)
        return -1;
    moment = execs_moment(set->all);
    set->has_logs = true;
    if (exec_log_spill(set->notes, e) < 0 || fill_block(set->notes, bytes.n, &moment, e) < 0 ||
        exec_log_append(set->notes, LOG_OUT, &moment, bytes, e) < 0)
        return -1;
    execs_moment_was(set->all, moment);
    journals_wake(set);
    return 0;
}

/* --- one log --- */

static struct cursor *cursor_of(struct journal *j, struct exec *x, struct exec_log *g,
                                struct err *e)
{
    struct cursor *c;
    int64_t pos;

    LIST_EACH (&j->cursors, node) {
        c = LIST_ENTRY(node, struct cursor, link);
        if (c->x == x)
            return c;
    }
    if (exec_log_seek_time(g, j->after_us, &pos, e) < 0)
        return NULL;
    c = xzalloc(sizeof *c);
    c->x = x ? exec_ref(x) : NULL;
    c->pos = pos;
    c->gap = !j->tail && g->first > 0 && pos == g->first;
    list_push(&j->cursors, &c->link);
    return c;
}

/* 1: *ret is the next undelivered record; 0: there is none. */
static int peek(struct journal *j, struct cursor *c, struct exec_log *g, struct log_record *ret,
                struct err *e)
{
    for (;;) {
        struct str left = str_skip(buf_str(&c->block), c->used), bytes;
        int64_t pos;
        size_t used;
        int n;

        if (left.n > 0) {
            n = exec_log_next(left, ret, &used, e);
            if (n < 0 || (n > 0 && ret->time_us > j->after_us && !is_filler(g, ret, j->set)))
                return n;
            c->used += used;
            c->gap = c->gap && n == 0;
            continue;
        }
        c->pos += (int64_t)buf_len(&c->block);
        buf_clear(&c->block);
        c->used = 0;
        if (c->pos >= g->size)
            return 0;
        pos = c->pos;
        if (exec_log_block(g, &c->pos, j->set->all->block, &bytes, e) < 0)
            return -1;
        c->gap = c->gap || pos != c->pos;
        buf_add_str(&c->block, bytes);
    }
}

/* --- the next entry of all logs --- */

struct candidate {
    struct journal_entry n; /* us 0: none */
    struct cursor *c;
    bool wait; /* it is not available yet, and nothing later may be delivered before it */
};

static const enum exec_which which_of[LOG_STREAMS] = {EXEC_STDOUT, EXEC_STDERR};

static int look_at_log(struct journal *j, struct exec *x, struct exec_log *g, struct candidate *k,
                       struct err *e)
{
    struct log_record r;
    int n;

    k->c = cursor_of(j, x, g, e);
    n = k->c ? peek(j, k->c, g, &r, e) : -1;
    if (n > 0)
        k->n = (struct journal_entry){.us = r.time_us,
                                      .kind = x ? JOURNAL_OUTPUT : JOURNAL_NOTE,
                                      .x = x,
                                      .stream = which_of[r.stream],
                                      .bytes = r.bytes,
                                      .gap = k->c->gap};
    return n;
}

static int look_at_exec(struct journal *j, struct exec *x, struct candidate *k, struct err *e)
{
    int n;

    if (x->created_us > j->after_us) {
        k->n = (struct journal_entry){.us = x->created_us, .kind = JOURNAL_START, .x = x};
        k->wait = x->row != ROW_SAVED;
        return 1;
    }
    if (x->ended_saved && x->ended_us <= j->after_us)
        return 0;
    if (!exec_is_there(x)) {
        k->n = (struct journal_entry){.us = 1, .x = x};
        k->wait = true;
        return 1;
    }
    n = look_at_log(j, x, &x->log, k, e);
    if (n != 0 || exec_is_live(x))
        return n;
    k->n = (struct journal_entry){.us = x->ended_us, .kind = JOURNAL_END, .x = x};
    k->wait = !x->ended_saved;
    return 1;
}

static void take_earlier(struct candidate *best, const struct candidate *k)
{
    if (best->n.us == 0 || k->n.us < best->n.us)
        *best = *k;
}

static int pick(struct journal *j, struct candidate *best, struct err *e)
{
    struct candidate k = {0};
    int n = j->set->notes ? look_at_log(j, NULL, j->set->notes, &k, e) : 0;

    if (n < 0)
        return -1;
    if (n > 0)
        take_earlier(best, &k);
    LIST_EACH (&j->set->list, node) {
        k = (struct candidate){0};
        n = look_at_exec(j, LIST_ENTRY(node, struct exec, link), &k, e);
        if (n < 0 || j->ended)
            return -1;
        if (n > 0)
            take_earlier(best, &k);
    }
    return 0;
}

/* --- starting before the last N --- */

struct tail { /* the latest moments, ascending */
    int64_t *v;
    size_t n, max;
};

static bool is_early(const struct tail *t, int64_t us)
{
    return t->n == t->max && us <= t->v[0];
}

static void tail_add(struct tail *t, int64_t us)
{
    size_t at;

    if (is_early(t, us))
        return;
    if (t->n == t->max)
        memmove(t->v, t->v + 1, --t->n * sizeof *t->v);
    for (at = t->n; at > 0 && t->v[at - 1] > us; at--)
        t->v[at] = t->v[at - 1];
    t->v[at] = us;
    t->n++;
}

/* Backwards by blocks, as far as needed. */
static int tail_of_log(struct journal *j, struct exec_log *g, struct tail *t, struct err *e)
{
    int64_t at = g->size > 0 ? (g->size - 1) / LOG_BLOCK * LOG_BLOCK : -1;

    for (; at >= g->first; at -= LOG_BLOCK) {
        int64_t pos = at;
        struct str bytes;
        struct log_record r;
        size_t used;
        bool first = true, early = false;
        int n;

        if (exec_log_block(g, &pos, j->set->all->block, &bytes, e) < 0)
            return -1;
        while (bytes.n > 0 && (n = exec_log_next(bytes, &r, &used, e)) != 0) {
            if (n < 0)
                return -1;
            early = early || (first && is_early(t, r.time_us));
            first = false;
            if (!is_filler(g, &r, j->set))
                tail_add(t, r.time_us);
            bytes = str_skip(bytes, used);
        }
        if (early)
            break;
    }
    return 0;
}

/* 1: the position is set; 0: a log is being fetched. */
static int place(struct journal *j, struct err *e)
{
    AUTO(mem_free) int64_t *v = xzalloc(j->last * sizeof *v);
    struct tail t = {.v = v, .max = j->last};

    if (j->set->notes && tail_of_log(j, j->set->notes, &t, e) < 0)
        return -1;
    for (struct list *node = j->set->list.prev; node != &j->set->list; node = node->prev) {
        struct exec *x = LIST_ENTRY(node, struct exec, link);

        if (x->ended_saved && is_early(&t, x->ended_us))
            continue;
        if (!exec_is_there(x))
            return j->ended ? -1 : 0;
        tail_add(&t, x->created_us);
        if (!exec_is_live(x))
            tail_add(&t, x->ended_us);
        if (tail_of_log(j, &x->log, &t, e) < 0)
            return -1;
    }
    j->after_us = t.n == t.max ? t.v[0] - 1 : 0;
    j->last = 0;
    j->tail = true;
    j->erased_us = j->set->erased_us;
    return 1;
}

/* --- delivering --- */

static void drop_stale(struct journal *j)
{
    LIST_EACH (&j->cursors, node) {
        struct cursor *c = LIST_ENTRY(node, struct cursor, link);

        if (c->x && list_is_empty(&c->x->link))
            cursor_free(c);
    }
}

/* Whether commands were erased whose entries it should still deliver. */
static bool lacks_commands(struct journal *j)
{
    int64_t known = i64_max(j->after_us, j->erased_us);

    j->erased_us = j->set->erased_us;
    return j->erased_us > known;
}

/* False: nothing more can be delivered now. */
static bool tell_one(struct journal *j, size_t *told, struct err *e)
{
    struct candidate k = {0};

    if (pick(j, &k, e) < 0 || k.n.us == 0 || k.wait)
        return false;
    /* Output that only init has is sent again after a crash, with other moments. */
    if (k.n.kind == JOURNAL_OUTPUT && exec_is_live(k.n.x) && !k.n.x->log.in_file &&
        exec_spill(k.n.x) < 0)
        return false;
    k.n.gap = lacks_commands(j) || k.n.gap;
    j->after_us = k.n.us;
    if (k.c)
        k.c->gap = false;
    *told += ENTRY_COST + k.n.bytes.n;
    if (j->ops->entry(j->arg, &k.n) != 0)
        j->paused = true;
    if (!j->ended && k.n.kind == JOURNAL_END && k.c)
        cursor_free(k.c);
    return true;
}

static void journal_tell(struct journal *j)
{
    struct err e = {0};
    size_t told = 0;

    j->refs++;
    drop_stale(j);
    if (j->last > 0 && place(j, &e) <= 0) {
        if (e.code != ERR_NONE)
            finish(j, &e);
        journal_unref(j);
        return;
    }
    while (!j->ended && !j->paused && told < TURN_BYTES && tell_one(j, &told, &e))
        ;
    if (e.code != ERR_NONE)
        finish(j, &e);
    if (!j->ended && !j->paused && told >= TURN_BYTES)
        journals_wake(j->set);
    journal_unref(j);
}

static void journal_woken(struct timer *t)
{
    journal_tell(CONTAINER_OF(t, struct journal, wake));
}

void journals_wake(struct exec_set *set)
{
    LIST_EACH (&set->journals, node) {
        struct journal *j = LIST_ENTRY(node, struct journal, link);

        if (!j->paused && !timer_is_set(&j->wake))
            timer_set(set->all->timers, &j->wake, TIMER_SOON, journal_woken);
    }
}

static void failed_to_open(struct timer *t)
{
    struct err e = {.code = ERR_GONE,
                    .msg = "the sandbox was destroyed, or its journal cannot be read"};

    finish(CONTAINER_OF(t, struct journal, wake), &e);
}

struct journal *journal_open(struct sandbox *s, const struct journal_from *from,
                             const struct journal_ops *ops, void *arg)
{
    struct journal *j = xzalloc(sizeof *j);
    struct exec_set *set = exec_set_of(s);
    struct err e = {0};
    bool good = sandbox_is_listed(s) && open_notes(set, &e) == 0;

    *j = (struct journal){.set = set,
                          .s = sandbox_ref(s),
                          .refs = 1,
                          .after_us = from->after_us,
                          .last = from->last,
                          .ops = ops,
                          .arg = arg};
    list_init(&j->cursors);
    list_push(&set->journals, &j->link);
    timer_set(set->all->timers, &j->wake, TIMER_SOON, good ? journal_woken : failed_to_open);
    return j;
}

void journal_resume(struct journal *j)
{
    if (!j->paused || j->ended)
        return;
    j->paused = false;
    if (!timer_is_set(&j->wake))
        timer_set(j->set->all->timers, &j->wake, TIMER_SOON, journal_woken);
}
