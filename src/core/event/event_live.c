/* event_live: subscriptions: replay from the store, then live events. */
#include "core/event/event_internal.h"

#include "base/mem.h"

#define LIVE_PAGE 200
/* Events passed to one subscriber before the next one's turn: few, so that subscribers that format
 * the same text can share it, however many events a commit has. */
#define TELL_AT_ONCE 64

/* A subscription is at `at`: every event up to there was delivered or did not match.
 *
 *   reading (a page is requested) ──page delivered, at < head──▶ reading
 *      ▲   └──each returned 1──▶ paused      └──at ≥ head──▶ live: notified by commits
 *      └──────resume, at < head────┘ ◀──────each returned 1──────┘
 *
 * Commits are ignored while it is not live: the next page has their events. */
enum sub_state { SUB_READING, SUB_LIVE, SUB_PAUSED, SUB_ENDED };

struct subscription {
    struct list link;
    int refs; /* held by the owner, the read in progress, and the call that is delivering */
    struct events *log;
    enum sub_state state;
    bool reading; /* a page is requested, even if it was ended meanwhile */
    struct page page;
    struct event_filter filter; /* its texts are in `texts` */
    struct arena texts;
    int64_t at;
    /* Its since_seq is beyond our head: the store may have that event already; else it is from
     * another log, or from before this one was restored, and we begin at our end. */
    bool ahead;
    event_live each;
    void (*failed)(void *arg, const struct err *e);
    void *arg;
};

static void sub_unref(struct subscription *s)
{
    assert(s->refs > 0);
    if (--s->refs > 0)
        return;
    events_unref(s->log);
    arena_done(&s->texts);
    free(s);
}

/* Delivers ev if it matches; false when the subscription takes no more now. */
static bool tell(struct subscription *s, const struct event *ev)
{
    if (ev->seq <= s->at)
        return true;
    s->at = ev->seq;
    if (!event_matches(&s->filter, ev))
        return true;
    if (s->each(s->arg, ev) != 0 && s->state != SUB_ENDED)
        s->state = SUB_PAUSED;
    return s->state == SUB_LIVE || s->state == SUB_READING;
}

static void read_on(struct subscription *s);

static int page_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct subscription *s = arg;

    return page_read(tx, &s->page, e);
}

static void page_came(void *arg, const struct err *e)
{
    struct subscription *s = arg;
    struct page page = s->page; /* a callback may request the next one */
    bool all = true;

    s->reading = false;
    if (e->code != ERR_NONE && s->state == SUB_READING) {
        s->state = SUB_PAUSED; /* resume tries again */
        if (s->failed)
            s->failed(s->arg, e);
    } else if (s->state == SUB_READING) {
        if (s->ahead)
            s->at = s->filter.since_seq = i64_min(s->at, page.head_seq);
        s->ahead = false;
        for (size_t i = 0; all && i < page.count; i++)
            all = tell(s, &page.events[i]);
        if (all && !page.more)
            s->at = i64_max(s->at, page.head_seq);
    }
    page_done(&page);
    if (s->state == SUB_READING)
        read_on(s);
    sub_unref(s);
}

static void read_on(struct subscription *s)
{
    struct event_filter f = s->filter;

    if (s->reading)
        return;
    if (s->at >= s->log->head_seq && !s->ahead) {
        s->state = SUB_LIVE;
        return;
    }
    s->state = SUB_READING;
    s->reading = true;
    s->refs++;
    f.since_seq = s->at;
    f.limit = LIVE_PAGE;
    page_init(&s->page, &f);
    store_read(s->log->store, page_work, page_came, s);
}

struct subscription *events_subscribe(struct events *l, const struct event_filter *f,
                                      event_live each,
                                      void (*failed)(void *arg, const struct err *e), void *arg)
{
    struct subscription *s = xzalloc(sizeof *s);

    s->refs = 1;
    s->log = events_ref(l);
    s->filter = *f;
    s->filter.type = arena_str(&s->texts, f->type);
    s->filter.object = arena_str(&s->texts, f->object);
    s->filter.actor = arena_str(&s->texts, f->actor);
    s->at = f->since_seq;
    s->ahead = s->at > l->head_seq;
    s->each = each;
    s->failed = failed;
    s->arg = arg;
    list_push(&l->subs, &s->link);
    metric_inc(&events_subscribers, 1);
    read_on(s);
    return s;
}

void subscription_resume(struct subscription *s)
{
    if (s->state != SUB_PAUSED || s->log->closed)
        return;
    s->state = SUB_READING; /* a page in progress is delivered; otherwise read_on requests one */
    read_on(s);
}

void subscription_end(struct subscription *s)
{
    if (!s || s->state == SUB_ENDED)
        return;
    s->state = SUB_ENDED;
    list_unlink(&s->link);
    metric_inc(&events_subscribers, -1);
    sub_unref(s);
}

int64_t subscription_at(const struct subscription *s)
{
    return s->at;
}

void subs_end_all(struct events *l)
{
    LIST_EACH (&l->subs, node)
        LIST_ENTRY(node, struct subscription, link)->state = SUB_PAUSED;
}

static void tell_all(struct subscription *s, const struct event *ev, size_t n)
{
    s->refs++;
    for (size_t i = 0; s->state == SUB_LIVE && i < n; i++)
        (void)tell(s, &ev[i]);
    sub_unref(s);
}

/* A callback may end any subscription or make new ones: those already notified are moved to
 * `told`. */
static void tell_some(struct events *l, const struct event *ev, size_t n)
{
    struct list told, *node;

    list_init(&told);
    while ((node = list_pop(&l->subs)) != NULL) {
        list_push(&told, node);
        tell_all(LIST_ENTRY(node, struct subscription, link), ev, n);
    }
    while ((node = list_pop(&told)) != NULL)
        list_push(&l->subs, node);
}

void subs_tell(struct events *l, const struct event *ev, size_t n)
{
    for (size_t at = 0; at < n; at += TELL_AT_ONCE)
        tell_some(l, ev + at, size_min(n - at, TELL_AT_ONCE));
}
