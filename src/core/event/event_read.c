/* event_read: reads pages of events from the store. */
#include "core/event/event_internal.h"

#include "base/mem.h"

#define CLOCK_SLACK_MS                                                                             \
    3600000 /* how far the clock may have been set back without `since` missing events */

static const struct event_filter no_filter;

void page_init(struct page *p, const struct event_filter *f)
{
    *p = (struct page){.filter = f ? *f : no_filter};
    p->filter.type = arena_str(&p->arena, p->filter.type);
    p->filter.object = arena_str(&p->arena, p->filter.object);
    p->filter.actor = arena_str(&p->arena, p->filter.actor);
    if (p->filter.limit <= 0 || p->filter.limit > EVENT_PAGE_MAX)
        p->filter.limit = p->filter.limit <= 0 ? 100 : EVENT_PAGE_MAX;
}

void page_done(struct page *p)
{
    arena_done(&p->arena);
}

static void copy_hash(unsigned char to[EVENT_HASH_SIZE], struct str from)
{
    memset(to, 0, EVENT_HASH_SIZE);
    if (from.n == EVENT_HASH_SIZE)
        memcpy(to, from.p, from.n);
}

void event_from_row(const struct store_rows *r, struct event *ev)
{
    *ev = (struct event){.seq = rows_int(r, 0), .time_ms = rows_int(r, 1)};
    ev->type = rows_text(r, 2);
    ev->object = rows_text(r, 3);
    ev->actor = rows_text(r, 4);
    ev->audit = rows_int(r, 5) != 0;
    ev->count = rows_int(r, 6);
    ev->data = rows_text(r, 7);
    copy_hash(ev->prev, rows_blob(r, 8));
    copy_hash(ev->hash, rows_blob(r, 9));
}

static int one_int(struct store_tx *tx, const char *sql, int64_t *ret, struct err *e)
{
    struct store_rows *r;
    int more;

    if (tx_query(tx, sql, NO_PARAMS, &r, e) < 0)
        return -1;
    more = rows_step(r, e);
    *ret = more > 0 ? rows_int(r, 0) : 0;
    rows_end(r);
    return more < 0 ? -1 : 0;
}

/* The first row at or after seq: 1 if there is one. */
static int row_at(struct store_tx *tx, int64_t seq, int64_t *ret_seq, int64_t *ret_ms,
                  struct err *e)
{
    struct store_rows *r;
    int more;

    if (tx_query(tx, "SELECT seq, time_ms FROM events WHERE seq >= :seq ORDER BY seq LIMIT 1",
                 PARAMS(P_INT("seq", seq)), &r, e) < 0)
        return -1;
    more = rows_step(r, e);
    if (more > 0) {
        *ret_seq = rows_int(r, 0);
        *ret_ms = rows_int(r, 1);
    }
    rows_end(r);
    return more;
}

/* Times grow with seq, unless the clock was set: binary search instead of an index. */
static int skip_before(struct store_tx *tx, struct page *p, struct err *e)
{
    int64_t low = p->filter.since_seq, high = p->head_seq + 1;
    int64_t want = p->filter.since_ms - CLOCK_SLACK_MS;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2, seq = 0, ms = 0;
        int found = row_at(tx, middle, &seq, &ms, e);

        if (found < 0)
            return -1;
        if (found == 0 || ms >= want)
            high = middle;
        else
            low = seq;
    }
    p->filter.since_seq = i64_max(low, p->filter.since_seq);
    return 0;
}

struct page_sql {
    char text[640];
    struct store_param params[8];
    size_t n;
};

static void condition(struct page_sql *q, const char *text, struct store_param p)
{
    size_t n = strlen(q->text);

    (void)snprintf(q->text + n, sizeof q->text - n, "%s", text);
    if (p.name)
        q->params[q->n++] = p;
}

static void build_sql(const struct event_filter *f, struct page_sql *q)
{
    bool kind = str_ends(f->object, STR("/")), family = str_ends(f->type, STR(".*"));
    struct str type = str_make(f->type.p, family ? f->type.n - 1 : f->type.n);

    q->n = 0;
    q->text[0] = '\0';
    condition(q, "SELECT " EVENT_COLUMNS " FROM events WHERE seq > :after",
              (struct store_param)P_INT("after", f->since_seq));
    if (f->since_ms > 0)
        condition(q, " AND time_ms >= :since", (struct store_param)P_INT("since", f->since_ms));
    if (f->type.n > 0)
        condition(q, family ? " AND substr(type, 1, length(:type)) = :type" : " AND type = :type",
                  (struct store_param)P_TEXT("type", type));
    if (f->object.n > 0)
        condition(
            q, kind ? " AND substr(object, 1, length(:object)) = :object" : " AND object = :object",
            (struct store_param)P_TEXT("object", f->object));
    if (f->actor.n > 0)
        condition(q, " AND actor = :actor", (struct store_param)P_TEXT("actor", f->actor));
    if (f->audit_only)
        condition(q, " AND audit = 1", (struct store_param){0});
    else if (!f->audit_too)
        condition(q, " AND audit = 0", (struct store_param){0});
    condition(q, " ORDER BY seq LIMIT :limit", (struct store_param)P_INT("limit", f->limit));
}

static size_t keep_row(struct page *p, const struct store_rows *r)
{
    struct event *ev = &p->events[p->count++];

    event_from_row(r, ev);
    ev->type = arena_str(&p->arena, ev->type);
    ev->object = arena_str(&p->arena, ev->object);
    ev->actor = arena_str(&p->arena, ev->actor);
    ev->data = arena_str(&p->arena, ev->data);
    return ev->data.n + ev->object.n + sizeof *ev;
}

int page_read(struct store_tx *tx, struct page *p, struct err *e)
{
    struct page_sql q;
    struct store_rows *r;
    size_t bytes = 0;
    int more;

    if (one_int(tx, "SELECT head_seq FROM chain WHERE id = 1", &p->head_seq, e) < 0)
        return -1;
    if (p->filter.since_ms > 0 && skip_before(tx, p, e) < 0)
        return -1;
    build_sql(&p->filter, &q);
    p->events = arena_alloc(&p->arena, (size_t)p->filter.limit * sizeof p->events[0]);
    if (tx_query(tx, q.text, q.params, q.n, &r, e) < 0)
        return -1;
    while (bytes < PAGE_BYTES && (more = rows_step(r, e)) != 0) {
        if (more < 0)
            return err_wrap(e, "read the event log");
        bytes += keep_row(p, r);
    }
    p->more = bytes >= PAGE_BYTES || (int64_t)p->count == p->filter.limit;
    return 0;
}

/* --- events_read --- */

struct reading {
    struct page page;
    struct events *log;
    event_each each;
    store_done done;
    void *arg;
};

static int read_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct reading *r = arg;

    return page_read(tx, &r->page, e);
}

static void read_done(void *arg, const struct err *e)
{
    AUTO(mem_free) struct reading *r = arg;

    if (e->code == ERR_NONE)
        for (size_t i = 0; i < r->page.count; i++)
            r->each(r->arg, &r->page.events[i]);
    r->done(r->arg, e);
    page_done(&r->page);
    events_unref(r->log);
}

void events_read(struct events *l, const struct event_filter *f, event_each each, store_done done,
                 void *arg)
{
    struct reading *r = xzalloc(sizeof *r);

    page_init(&r->page, f);
    r->log = events_ref(l);
    r->each = each;
    r->done = done;
    r->arg = arg;
    store_read(l->store, read_work, read_done, r);
}
