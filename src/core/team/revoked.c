/* revoked: the revoked agents, kept in memory from the event log. */
#include "core/team/revoked.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/identity/identity.h"

#define REASON_KEPT 160 /* bytes: more does not fit into an error */

struct open { /* one unacknowledged revocation */
    struct open *older;
    struct directive d; /* its texts are in `texts` */
    struct arena texts;
};

struct revoked {
    struct map agents; /* name → the newest struct open */
    struct subscription *sub;
    void (*told)(void *arg);
    void *told_arg;
};

static void open_free(struct open *o)
{
    arena_done(&o->texts);
    mem_free(o);
}

static struct str short_reason(struct str reason)
{
    if (reason.n > REASON_KEPT)
        for (reason.n = REASON_KEPT; (reason.p[reason.n] & 0xC0) == 0x80;) /* RFC 3629 */
            reason.n--;
    return reason;
}

static void add(struct revoked *l, const struct directive *d)
{
    struct open *newest = map_get(&l->agents, d->agent), *o;

    for (o = newest; o; o = o->older) /* read as a row, then received as an event */
        if (str_eq(o->d.id, d->id))
            return;
    o = xzalloc(sizeof *o);
    o->d = (struct directive){.id = arena_str(&o->texts, d->id),
                              .agent = arena_str(&o->texts, d->agent),
                              .actor = arena_str(&o->texts, d->actor),
                              .reason = arena_str(&o->texts, short_reason(d->reason)),
                              .issued_ms = d->issued_ms};
    o->older = newest;
    (void)map_set(&l->agents, d->agent, o);
}

static void drop(struct revoked *l, const struct directive *d)
{
    struct open *newest = map_get(&l->agents, d->agent), *gone, **at = &newest;

    while (*at && !str_eq((*at)->d.id, d->id))
        at = &(*at)->older;
    gone = *at;
    if (!gone)
        return;
    *at = gone->older;
    if (newest)
        (void)map_set(&l->agents, d->agent, newest);
    else
        (void)map_remove(&l->agents, d->agent);
    open_free(gone);
}

/* --- the log --- */

static struct str member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return str_make(json_string_value(v), json_string_length(v));
}

static int on_event(void *arg, const struct event *ev)
{
    struct revoked *l = arg;
    bool begins = str_eq_c(ev->type, "agent.revoked");
    AUTO(json_decref) json_t *o = NULL;
    struct directive d;
    struct err e;

    if ((!begins && !str_eq_c(ev->type, "agent.recovered")) || json_read(ev->data, &o, &e) < 0)
        return 0;
    d = (struct directive){.id = member(o, "id"),
                           .agent = member(o, "agent"),
                           .actor = member(o, "issued_by"),
                           .reason = member(o, "reason")};
    if (clock_parse(member(o, "issued_at"), &d.issued_ms) < 0)
        d.issued_ms = ev->time_ms;
    if (!begins) {
        drop(l, &d);
        return 0;
    }
    add(l, &d);
    if (l->told)
        l->told(l->told_arg);
    return 0;
}

/* --- life --- */

static int load_revoked(struct store_tx *tx, void *arg, struct err *e)
{
    struct revoked *l = arg;
    struct store_rows *rows;
    int r;

    if (tx_query(tx,
                 "SELECT id, agent, actor, reason, issued_ms FROM directives "
                 "WHERE kind = 'revoke' AND ended_ms = 0 ORDER BY id",
                 NO_PARAMS, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0)
        add(l, &(struct directive){.id = rows_text(rows, 0),
                                   .agent = rows_text(rows, 1),
                                   .actor = rows_text(rows, 2),
                                   .reason = rows_text(rows, 3),
                                   .issued_ms = rows_int(rows, 4)});
    rows_end(rows);
    return r;
}

int revoked_open(struct store *s, struct events *events, struct revoked **ret, struct err *e)
{
    struct revoked *l = xzalloc(sizeof *l);

    if (store_now(s, load_revoked, l, e) < 0) {
        revoked_close(l);
        return err_wrap(e, "read the revocations");
    }
    /* From the head on, and never paused: notified by commits, it reads no pages. */
    l->sub = events_subscribe(
        events,
        &(struct event_filter){.type = STR("agent.*"), .since_seq = events_head(events, NULL)},
        on_event, NULL, l);
    *ret = l;
    return 0;
}

struct revoked *revoked_close(struct revoked *l)
{
    struct str agent;
    size_t at = 0;
    void *newest;

    if (!l)
        return NULL;
    subscription_end(l->sub);
    while (map_next(&l->agents, &at, &agent, &newest))
        for (struct open *o = newest, *older; o; o = older) {
            older = o->older;
            open_free(o);
        }
    map_done(&l->agents);
    mem_free(l);
    return NULL;
}

void revoked_on_new(struct revoked *l, void (*told)(void *arg), void *arg)
{
    l->told = told;
    l->told_arg = arg;
}

int revoked_check(const struct revoked *l, struct str agent, enum perm p, struct err *e)
{
    const struct open *o = perm_is_safe(p) || agent.n == 0 ? NULL : map_get(&l->agents, agent);

    return o ? agent_refuse_revoked(&o->d, e) : 0;
}
