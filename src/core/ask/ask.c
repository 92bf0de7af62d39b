/* ask: questions of sandboxes to people, and the answers that last. */
#include "core/ask/ask.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/approval/approval.h"
#include "core/ask/egress_learned.h"
#include "wire/egress.h"

#include <stdio.h>

#define WAITING_MAX 512 /* connections per question */
#define LATE "nobody decided in time"
#define GONE "its sandbox was destroyed"
#define TOO_MANY "too many questions of this sandbox are undecided"

struct ask { /* one pending approval, or one being stored */
    struct list link;
    char id[ID_SIZE]; /* the approval's; empty until it is stored */
    char *sandbox, *host;
    int64_t port, expires_ms;
    uint64_t *waiting; /* questions of holt-egress */
    size_t count;
};

struct asks {
    int refs; /* held by the owner and each job */
    struct asks_config c;
    struct list all;
    struct learned rules;
    /* one subscription, for the order: a rule, then the questions it answers */
    struct subscription *sub;
    bool stuck;   /* it could not read the log */
    bool closing; /* expired questions are being closed */
    bool closed;
};

static struct asks *asks_unref(struct asks *a)
{
    assert(a->refs > 0);
    if (--a->refs > 0)
        return NULL;
    learned_done(&a->rules);
    mem_free(a);
    return NULL;
}

/* ---- work on the store's thread ---- */

struct job {
    struct asks *asks;
    struct arena arena;
    struct team t;
    struct str sandbox, id; /* the sandbox, the rule */
    struct approval question;
    struct ask *ask; /* the question; NULL: none, or removed meanwhile */
    struct approval_list pending;
    struct egress_rule_list rules;
    store_done done;
    void *arg;
};

static struct job *job_new(struct asks *a)
{
    struct job *j = xzalloc(sizeof *j);

    j->asks = a;
    assert(a->refs > 0 && thread_is_loop());
    a->refs++;
    j->t = (struct team){.arena = &j->arena, .who = {.actor = "system"}, .now_ms = clock_wall_ms()};
    return j;
}

static void job_free(struct job *j)
{
    asks_unref(j->asks);
    arena_done(&j->arena);
    mem_free(j);
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    if (egress_rule_all(&j->t, &j->rules, e) < 0)
        return -1;
    return approval_all(
        &j->t, &(struct approval_filter){.kind = APPROVAL_EGRESS, .state = APPROVAL_PENDING},
        &j->pending, e);
}

static int ask_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    return approval_ask(&j->t, &j->question, e);
}

static int late_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    return approval_close(&j->t, STR(""), LATE, e);
}

static int gone_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    if (approval_close(&j->t, j->sandbox, GONE, e) < 0)
        return -1;
    return egress_rules_forget(&j->t, j->sandbox, e);
}

static int remove_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    j->t.tx = tx;
    return egress_rule_remove(&j->t, j->id, e);
}

/* ---- rules ---- */

static void on_learned(void *arg, const struct sandbox *s, struct buf *to)
{
    const struct asks *a = arg;
    struct sandbox_info info;

    sandbox_info(s, &info);
    learned_write(&a->rules, &info, to);
}

const struct egress_rule *asks_rule_next(const struct asks *a, struct str after)
{
    return learned_next(&a->rules, after);
}

static void rule_removed(void *arg, const struct err *e)
{
    struct job *j = arg;

    j->done(j->arg, e);
    job_free(j);
}

void asks_rule_remove(struct asks *a, struct str id, const struct principal *by, store_done done,
                      void *arg)
{
    struct job *j = job_new(a);

    memcpy(j->t.who.actor, by->actor, sizeof j->t.who.actor);
    if (by->role == ROLE_AGENT)
        j->t.who.agent = str_of(j->t.who.actor);
    j->id = arena_str(&j->arena, id);
    j->done = done;
    j->arg = arg;
    store_write(a->c.store, STORE_DURABLE, remove_work, rule_removed, j);
}

/* ---- questions ---- */

static struct ask *ask_new(struct asks *a, struct str sandbox, struct str host, int64_t port)
{
    struct ask *q = xzalloc(sizeof *q);

    q->sandbox = str_dup(sandbox);
    q->host = str_dup(host);
    q->port = port;
    list_push(&a->all, &q->link);
    return q;
}

static void ask_free(struct ask *q)
{
    list_unlink(&q->link);
    mem_free(q->sandbox);
    mem_free(q->host);
    mem_free(q->waiting);
    mem_free(q);
}

static struct ask *find(const struct asks *a, struct str sandbox, struct str host, int64_t port)
{
    LIST_EACH (&a->all, node) {
        struct ask *q = LIST_ENTRY(node, struct ask, link);

        if (q->port == port && str_eq_c(host, q->host) && str_eq_c(sandbox, q->sandbox))
            return q;
    }
    return NULL;
}

static size_t count_of(const struct asks *a, struct str sandbox)
{
    size_t n = 0;

    LIST_EACH (&a->all, node)
        n += str_eq_c(sandbox, LIST_ENTRY(node, struct ask, link)->sandbox);
    return n;
}

/* Ends a question: replies to the connections that wait. */
static void answer(struct asks *a, struct ask *q, bool allow, const char *reason)
{
    for (size_t i = 0; i < q->count; i++)
        sandboxes_answer(a->c.sandboxes, q->waiting[i], allow, reason);
    ask_free(q);
}

static bool wait_in(struct ask *q, uint64_t question)
{
    if (q->count >= WAITING_MAX)
        return false;
    if ((q->count & (q->count - 1)) == 0)
        q->waiting = xrealloc(q->waiting, (q->count ? 2 * q->count : 1) * sizeof *q->waiting);
    q->waiting[q->count++] = question;
    return true;
}

static void decision_stored(void *arg, const struct err *e)
{
    struct job *j = arg;
    struct ask *q = j->ask;

    if (!j->asks->closed && e->code != ERR_NONE) {
        if (e->code != ERR_LIMIT)
            log_warn("an approval could not be stored", LOG_C("sandbox", q->sandbox), LOG_E(e));
        answer(j->asks, q, false,
               e->code == ERR_LIMIT ? TOO_MANY : "the approval could not be stored");
    } else if (!j->asks->closed) {
        (void)snprintf(q->id, sizeof q->id, STR_FMT, STR_ARG(j->question.id));
        q->expires_ms = j->question.expires_ms;
    }
    job_free(j);
}

static void store_question(struct asks *a, struct ask *q, const struct sandbox_info *s)
{
    struct job *j = job_new(a);

    j->ask = q;
    j->question = (struct approval){.sandbox = arena_str(&j->arena, str_of(q->sandbox)),
                                    .tenant = arena_str(&j->arena, s->tenant),
                                    .host = arena_str(&j->arena, str_of(q->host)),
                                    .port = q->port,
                                    .expires_ms = j->t.now_ms + *a->c.wait_ms};
    q->expires_ms = j->question.expires_ms;
    store_write(a->c.store, STORE_DURABLE, ask_work, decision_stored, j);
}

static void on_question(void *arg, const struct egress_question *m)
{
    struct asks *a = arg;
    struct err e = {0};
    struct sandbox *s = sandbox_find(a->c.sandboxes, &principal_system, m->id, &e);
    struct ask *q = find(a, m->id, m->host, m->port);
    const struct egress_rule *rule;
    struct sandbox_info info;

    if (!s) {
        sandboxes_answer(a->c.sandboxes, m->question, false, GONE);
        return;
    }
    sandbox_info(s, &info);
    rule = learned_for(&a->rules, &info, m->host, m->port);
    if (rule) {
        sandboxes_answer(a->c.sandboxes, m->question, rule->allow, "a person denied it");
        return;
    }
    /* The store would refuse too, but a sandbox that keeps asking must not keep it busy. */
    if (!q && count_of(a, m->id) >= APPROVAL_QUESTIONS_MAX) {
        sandboxes_answer(a->c.sandboxes, m->question, false, TOO_MANY);
        return;
    }
    if (!q) {
        q = ask_new(a, m->id, m->host, m->port);
        store_question(a, q, &info);
    }
    if (!wait_in(q, m->question))
        sandboxes_answer(a->c.sandboxes, m->question, false,
                         "too many connections wait for this decision");
}

static void on_ready(void *arg)
{
    const struct asks *a = arg;

    LIST_EACH (&a->all, node)
        LIST_ENTRY(node, struct ask, link)->count = 0;
}

/* ---- events ---- */

static struct str member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return str_make(json_string_value(v), json_string_length(v));
}

static struct ask *find_by_id(const struct asks *a, struct str id)
{
    LIST_EACH (&a->all, node) {
        struct ask *q = LIST_ENTRY(node, struct ask, link);

        if (str_eq_c(id, q->id))
            return q;
    }
    return NULL;
}

/* Whether it was closed because another sandbox's question was answered for all. */
static bool is_allowed_by_rule(const struct asks *a, const struct ask *q)
{
    struct err e = {0};
    struct sandbox *s = sandbox_find(a->c.sandboxes, &principal_system, str_of(q->sandbox), &e);
    const struct egress_rule *rule;
    struct sandbox_info info;

    if (!s)
        return false;
    sandbox_info(s, &info);
    rule = learned_for(&a->rules, &info, str_of(q->host), q->port);
    return rule && rule->allow;
}

static void on_approval(struct asks *a, const struct event *ev)
{
    bool closed = str_eq_c(ev->type, "approval.closed");
    AUTO(json_decref) json_t *o = NULL;
    const char *reason;
    struct ask *q;
    struct err e;

    if (str_eq_c(ev->type, "approval.created") || json_read(ev->data, &o, &e) < 0)
        return;
    q = find_by_id(a, member(o, "id"));
    if (!q)
        return;
    reason = closed ? json_string_value(json_object_get(o, "reason")) : "a person denied it";
    answer(a, q, str_eq_c(ev->type, "approval.approved") || (closed && is_allowed_by_rule(a, q)),
           reason ? reason : "");
}

static void on_rule(struct asks *a, const struct event *ev)
{
    AUTO(json_decref) json_t *o = NULL;
    struct egress_rule r;
    struct err e;

    if (json_read(ev->data, &o, &e) < 0)
        return;
    r = (struct egress_rule){.id = member(o, "id"),
                             .sandbox = member(o, "sandbox"),
                             .tenant = member(o, "tenant"),
                             .host = member(o, "host"),
                             .port = json_integer_value(json_object_get(o, "port")),
                             .allow = json_is_true(json_object_get(o, "allow")),
                             .created_by = member(o, "created_by"),
                             .created_ms = ev->time_ms};
    if (str_eq_c(ev->type, "rule.added"))
        learned_put(&a->rules, &r);
    else
        learned_drop(&a->rules, r.id);
    sandboxes_learned(a->c.sandboxes, r.sandbox, r.tenant);
}

static void questions_closed(void *arg, const struct err *e)
{
    struct job *j = arg;

    if (e->code != ERR_NONE)
        log_warn("the approvals of a sandbox could not be closed", LOG_E(e));
    job_free(j);
}

static void forget(struct asks *a, struct str sandbox)
{
    struct job *j = job_new(a);

    j->sandbox = arena_str(&j->arena, sandbox);
    store_write(a->c.store, STORE_DURABLE, gone_work, questions_closed, j);
}

static bool concerns(const struct asks *a, struct str sandbox)
{
    LIST_EACH (&a->all, node)
        if (str_eq_c(sandbox, LIST_ENTRY(node, struct ask, link)->sandbox))
            return true;
    return learned_names(&a->rules, sandbox);
}

static void on_destroyed(struct asks *a, const struct event *ev)
{
    struct str id;

    (void)str_cut(ev->object, '/', &id);
    if (concerns(a, id))
        forget(a, id);
}

static int on_event(void *arg, const struct event *ev)
{
    if (str_starts(ev->type, STR("approval.")))
        on_approval(arg, ev);
    else if (str_starts(ev->type, STR("rule.")))
        on_rule(arg, ev);
    else if (str_eq_c(ev->type, "sandbox.destroyed"))
        on_destroyed(arg, ev);
    return 0;
}

static void on_stuck(void *arg, const struct err *e)
{
    struct asks *a = arg;

    log_warn("the log of decisions cannot be read", LOG_E(e));
    a->stuck = true;
}

/* ---- deadlines ---- */

static void late_closed(void *arg, const struct err *e)
{
    struct job *j = arg;

    j->asks->closing = false; /* a failure is tried again at the next tick */
    if (e->code != ERR_NONE)
        log_warn("expired approvals could not be closed", LOG_E(e));
    job_free(j);
}

void asks_tick(struct asks *a)
{
    int64_t now = clock_wall_ms();
    bool late = false;

    if (a->stuck)
        subscription_resume(a->sub);
    a->stuck = false;
    LIST_EACH (&a->all, node) {
        const struct ask *q = LIST_ENTRY(node, struct ask, link);

        late |= q->id[0] && q->expires_ms <= now;
    }
    if (!late || a->closing)
        return;
    a->closing = true;
    store_write(a->c.store, STORE_DURABLE, late_work, late_closed, job_new(a));
}

/* ---- life ---- */

static void take_pending(struct asks *a, const struct approval *p)
{
    struct err e = {0};
    struct ask *q = ask_new(a, p->sandbox, p->host, p->port);

    (void)snprintf(q->id, sizeof q->id, STR_FMT, STR_ARG(p->id));
    q->expires_ms = p->expires_ms;
    if (!sandbox_find(a->c.sandboxes, &principal_system, p->sandbox, &e))
        forget(a, p->sandbox);
}

int asks_open(const struct asks_config *c, struct asks **ret, struct err *e)
{
    static const struct sandbox_asker ops = {on_ready, on_question, on_learned};
    struct asks *a = xzalloc(sizeof *a);
    struct job *j;

    a->refs = 1;
    a->c = *c;
    list_init(&a->all);
    j = job_new(a);
    if (store_now(c->store, load_work, j, e) < 0) {
        job_free(j);
        asks_unref(a);
        return err_wrap(e, "read the questions of sandboxes");
    }
    for (size_t i = 0; i < j->rules.n; i++)
        learned_put(&a->rules, &j->rules.v[i]);
    a->sub = events_subscribe(c->events,
                              &(struct event_filter){.since_seq = events_head(c->events, NULL)},
                              on_event, on_stuck, a);
    for (size_t i = 0; i < j->pending.n; i++)
        take_pending(a, &j->pending.v[i]);
    job_free(j);
    sandboxes_set_asker(c->sandboxes, &ops, a);
    *ret = a;
    return 0;
}

struct asks *asks_close(struct asks *a)
{
    if (!a)
        return NULL;
    a->closed = true;
    sandboxes_set_asker(a->c.sandboxes, NULL, NULL);
    subscription_end(a->sub);
    while (!list_is_empty(&a->all)) /* holt-egress asks the next holtd */
        ask_free(LIST_ENTRY(a->all.next, struct ask, link));
    return asks_unref(a);
}
