/* exec_read: readers of a command's output, and waits for its end. */
#include "core/exec/exec_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#define TURN_BYTES (4 * LOG_BLOCK) /* delivered to one reader per turn of the loop */

struct held_size {
    int rows, cols;
    int64_t time_us;
};

struct exec_reader {
    struct list link;
    struct exec *x;
    int refs; /* held by the owner and the call that is delivering */
    enum exec_which which;
    bool follow, paused, ended, placed;
    int64_t want[LOG_STREAMS]; /* the next byte; INT64_MAX: not wanted */
    int64_t pos;               /* of the next record */
    int rows, cols;            /* of the terminal, as its reader knows it */
    struct held_size held;     /* set before the first byte wanted, not told yet; rows 0: none */
    const struct exec_reader_ops *ops;
    void *arg;
};

static const enum exec_which which_of[LOG_STREAMS] = {EXEC_STDOUT, EXEC_STDERR};

static void reader_unref(struct exec_reader *r)
{
    assert(r->refs > 0);
    if (--r->refs > 0)
        return;
    assert(r->ended && list_is_empty(&r->link));
    exec_unref(r->x);
    mem_free(r);
}

/* --- a log in a row, whose memory was freed --- */

struct load {
    struct exec *x;
    char id[ID_SIZE];
    struct buf records;
};

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct load *l = arg;
    struct store_rows *rows;
    int r;

    if (tx_query(tx, "SELECT output FROM execs WHERE id = :id", PARAMS(P_C("id", l->id)), &rows,
                 e) < 0)
        return -1;
    r = rows_step(rows, e);
    if (r > 0)
        buf_add_str(&l->records, rows_blob(rows, 0));
    rows_end(rows);
    if (r == 0)
        return err_set(e, ERR_GONE, 0, "its row was removed");
    return r < 0 ? -1 : 0;
}

static void load_done(void *arg, const struct err *e)
{
    struct load *l = arg;
    struct err why = *e;

    assert(l->x->loading && thread_is_loop());
    l->x->loading = false;
    if (why.code == ERR_NONE && exec_log_load(&l->x->log, buf_str(&l->records), &why) == 0)
        exec_wake(l->x);
    journals_wake(l->x->set);
    if (why.code != ERR_NONE) {
        err_wrap(&why, "read the output of '%s'", l->x->id);
        readers_end(l->x, &why);
        journals_end(l->x->set, &why);
    }
    buf_done(&l->records);
    exec_unref(l->x);
    mem_free(l);
}

bool exec_is_there(struct exec *x)
{
    struct load *l;
    struct err e = {0};

    if (exec_warm(x, &e) < 0) {
        readers_end(x, &e);
        journals_end(x->set, &e);
        return false;
    }
    if (x->log.in_file || (int64_t)buf_len(&x->log.mem) == x->log.size)
        return true;
    if (x->loading)
        return false;
    x->loading = true;
    l = xzalloc(sizeof *l);
    l->x = exec_ref(x);
    memcpy(l->id, x->id, sizeof l->id);
    store_read(x->set->all->store, load_work, load_done, l);
    return false;
}

/* --- delivering --- */

static void finish(struct exec_reader *r, const struct err *e)
{
    if (r->ended)
        return;
    r->ended = true;
    list_unlink(&r->link);
    r->ops->end(r->arg, e);
    reader_unref(r);
}

static void tell_size(struct exec_reader *r, int64_t offset, int64_t time_us, int rows, int cols)
{
    if (!r->ops->size || rows == 0 || (rows == r->rows && cols == r->cols))
        return;
    r->rows = rows;
    r->cols = cols;
    if (r->ops->size(r->arg, offset, time_us, rows, cols) != 0)
        r->paused = true;
}

/* The size that the terminal has where the reader begins. */
static void tell_held_size(struct exec_reader *r)
{
    struct held_size h = r->held;

    r->held = (struct held_size){0};
    if (h.rows > 0)
        tell_size(r, r->want[LOG_OUT], h.time_us, h.rows, h.cols);
}

static void tell_gap(struct exec_reader *r, enum log_stream s, int64_t to)
{
    int64_t from = r->want[s];

    if (r->want[s] == INT64_MAX || from >= to)
        return;
    r->want[s] = to;
    if (r->ops->gap && r->ops->gap(r->arg, which_of[s], from, to) != 0)
        r->paused = true;
}

static void tell_record(struct exec_reader *r, const struct log_record *rec)
{
    enum log_stream s = rec->stream;
    int64_t at, end;
    struct str bytes = rec->bytes;
    int rows, cols;

    if (s == LOG_SIZE) {
        exec_log_size(rec, &rows, &cols);
        if (rec->at[LOG_OUT] <= r->want[LOG_OUT] && r->want[LOG_OUT] != INT64_MAX && r->rows == 0)
            r->held = (struct held_size){rows, cols, rec->time_us};
        else
            tell_size(r, rec->at[LOG_OUT], rec->time_us, rows, cols);
        return;
    }
    at = rec->at[s];
    end = at + (int64_t)bytes.n;
    if (r->want[s] == INT64_MAX || end <= r->want[s])
        return;
    tell_held_size(r);
    if (!r->ended && at > r->want[s])
        tell_gap(r, s, at);
    if (r->ended)
        return;
    bytes = str_skip(bytes, (size_t)(r->want[s] - at));
    at = r->want[s];
    r->want[s] = end;
    if (r->ops->bytes(r->arg, which_of[s], at, rec->time_us, bytes) != 0)
        r->paused = true;
}

/* The records of one block; false: enough for now, or the end. */
static bool tell_block(struct exec_reader *r, size_t *told)
{
    struct exec_log *g = &r->x->log;
    struct log_record rec;
    struct str bytes;
    size_t used;
    struct err e = {0};
    int n = 1;

    for (int s = 0; s < LOG_STREAMS && !r->ended; s++)
        if (r->pos < g->first)
            tell_gap(r, (enum log_stream)s, g->from[s]);
    if (r->ended || r->paused)
        return false;
    if (exec_log_block(g, &r->pos, r->x->set->all->block, &bytes, &e) < 0) {
        finish(r, &e);
        return false;
    }
    *told += bytes.n;
    while (bytes.n > 0 && n > 0 && !r->paused && !r->ended) {
        n = exec_log_next(bytes, &rec, &used, &e);
        if (n < 0) {
            finish(r, &e);
            return false;
        }
        bytes = str_skip(bytes, used);
        r->pos += (int64_t)used;
        if (n > 0)
            tell_record(r, &rec);
    }
    return !r->paused && !r->ended && r->pos < g->size;
}

/* True: it needs another turn. */
static bool tell_reader(struct exec_reader *r)
{
    struct exec *x = r->x;
    struct err e = {0};
    size_t told = 0;

    if (!exec_is_there(x))
        return false;
    if (!r->placed) {
        if (exec_log_seek(&x->log, r->want, &r->pos, &e) < 0) {
            finish(r, &e);
            return false;
        }
        r->placed = true;
        if (r->pos == 0)
            r->held = (struct held_size){x->rows, x->cols, 0};
        if (x->log.first == r->pos) /* what was dropped before */
            for (int s = 0; s < LOG_STREAMS && !r->ended; s++)
                tell_gap(r, (enum log_stream)s, i64_min(x->log.from[s], x->log.end[s]));
    }
    while (told < TURN_BYTES && !r->ended && !r->paused && r->pos < x->log.size)
        if (!tell_block(r, &told))
            break;
    if (r->ended || r->paused)
        return false;
    if (r->pos < x->log.size)
        return true;
    tell_held_size(r);
    if (!exec_is_live(x) ? x->ended_saved : !r->follow)
        finish(r, &e);
    return false;
}

/* The position before which a log that waits for its readers may drop. */
static void set_floor(struct exec *x)
{
    int64_t floor = list_is_empty(&x->readers) ? x->log.first : INT64_MAX;

    LIST_EACH (&x->readers, node)
        floor = i64_min(floor, LIST_ENTRY(node, struct exec_reader, link)->pos);
    x->log.floor = floor;
}

/* Calls fn for every reader; a callback may end any of them.  True: one needs another turn. */
static bool readers_each(struct exec *x, bool (*fn)(struct exec_reader *r, const void *arg),
                         const void *arg)
{
    struct list round;
    bool more = false;

    list_init(&round);
    while (!list_is_empty(&x->readers))
        list_push(&round, list_pop(&x->readers));
    while (!list_is_empty(&round)) {
        struct exec_reader *r = LIST_ENTRY(list_pop(&round), struct exec_reader, link);

        list_push(&x->readers, &r->link);
        if (r->paused)
            continue;
        r->refs++;
        if (fn(r, arg))
            more = true;
        reader_unref(r);
    }
    return more;
}

static bool tell_from_log(struct exec_reader *r, const void *arg)
{
    (void)arg;
    return tell_reader(r);
}

static void readers_tell(struct exec *x)
{
    bool more = readers_each(x, tell_from_log, NULL);

    if (x->log.hold) {
        set_floor(x);
        exec_log_read_on(x);
    }
    if (more)
        exec_wake(x);
}

/* A reader that has had everything before takes fresh records from where they lie; others read
 * them from the log. */
static bool offer(struct exec_reader *r, const void *arg)
{
    struct log_cut fresh = *(const struct log_cut *)arg;
    struct log_record rec;

    if (!r->placed || !r->follow || r->pos != fresh.pos)
        return true;
    while (!r->paused && !r->ended && exec_log_cut_next(&fresh, &rec)) {
        r->pos = fresh.pos;
        tell_record(r, &rec);
    }
    return false;
}

void readers_offer(struct exec *x, const struct log_cut *fresh)
{
    if (list_is_empty(&x->readers))
        return;
    if (readers_each(x, offer, fresh))
        exec_wake(x);
    if (x->log.hold) {
        set_floor(x);
        exec_log_read_on(x);
    }
}

void readers_end(struct exec *x, const struct err *e)
{
    while (!list_is_empty(&x->readers))
        finish(LIST_ENTRY(x->readers.next, struct exec_reader, link), e);
}

struct exec_reader *exec_read(struct exec *x, enum exec_which which, int64_t out_offset,
                              int64_t err_offset, bool follow, const struct exec_reader_ops *ops,
                              void *arg)
{
    struct exec_reader *r = xzalloc(sizeof *r);
    const int64_t asked[LOG_STREAMS] = {out_offset, err_offset};

    *r = (struct exec_reader){
        .x = exec_ref(x), .refs = 1, .which = which, .follow = follow, .ops = ops, .arg = arg};
    for (int s = 0; s < LOG_STREAMS; s++) {
        const struct exec_log *g = &x->log;

        r->want[s] = !(which & which_of[s]) ? INT64_MAX
                     : asked[s] < 0         ? i64_max(g->from[s], g->end[s] + asked[s])
                                            : asked[s];
    }
    r->pos = x->log.first;
    list_push(&x->readers, &r->link);
    exec_wake(x);
    return r;
}

void exec_reader_resume(struct exec_reader *r)
{
    if (!r->paused || r->ended)
        return;
    r->paused = false;
    exec_wake(r->x);
}

void exec_reader_end(struct exec_reader *r)
{
    if (!r || r->ended)
        return;
    r->ended = true;
    list_unlink(&r->link);
    r->x->idle_since_ms = clock_mono_ms();
    if (r->x->log.hold)
        exec_wake(r->x);
    reader_unref(r);
}

/* --- waiting for the end --- */

struct exec_wait {
    struct list link;
    struct exec *x;
    exec_cb done;
    void *arg;
};

static void wait_free(struct exec_wait *w)
{
    list_unlink(&w->link);
    exec_unref(w->x);
    mem_free(w);
}

struct exec_wait *exec_wait(struct exec *x, exec_cb done, void *arg)
{
    struct exec_wait *w = xzalloc(sizeof *w);

    *w = (struct exec_wait){.x = exec_ref(x), .done = done, .arg = arg};
    list_push(&x->waits, &w->link);
    if (x->ended_saved)
        exec_wake(x);
    return w;
}

void exec_wait_cancel(struct exec_wait *w)
{
    if (w)
        wait_free(w);
}

void waits_end(struct exec *x, const struct err *e)
{
    struct exec_wait *w;

    while (!list_is_empty(&x->waits)) {
        exec_cb done;
        void *arg;

        w = LIST_ENTRY(x->waits.next, struct exec_wait, link);
        done = w->done;
        arg = w->arg;
        wait_free(w); /* before the call: a cancel from within it would free it twice */
        done(arg, e->code == ERR_NONE ? x : NULL, e);
    }
}

static void readers_woken(struct timer *t)
{
    AUTO(exec_unref) struct exec *x = exec_ref(CONTAINER_OF(t, struct exec, tell));

    readers_tell(x);
    if (x->ended_saved)
        waits_end(x, &(struct err){0});
}

void exec_wake(struct exec *x)
{
    if (!timer_is_set(&x->tell))
        timer_set(x->set->all->timers, &x->tell, TIMER_SOON, readers_woken);
}

int exec_beginning(struct exec *x, bool err, size_t max, struct buf *to, struct err *e)
{
    return exec_log_beginning(&x->log, err ? LOG_ERR : LOG_OUT, max, to, e);
}
