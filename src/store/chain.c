/* chain: appends events to the hash chain, and its start and end. */
#include "base/clock.h"
#include "core/event/event_hash.h"
#include "store/store_internal.h"

static int read_head(struct engine_conn *c, struct event *head, struct err *e)
{
    const struct store_engine *en = c->db->engine;
    struct store_rows *r;
    struct str hash;
    int more;

    if (en->query(c, en->lock_chain, NO_PARAMS, &r, e) < 0)
        return -1;
    more = en->step(r, e);
    if (more > 0) {
        hash = en->get_bytes(r, 1);
        head->seq = en->get_int(r, 0);
        if (hash.n == sizeof head->hash)
            memcpy(head->hash, hash.p, hash.n);
        else
            more = err_set(e, ERR_UNAVAILABLE, 0, "the head of the event log is damaged");
    } else if (more == 0) {
        more = err_set(e, ERR_UNAVAILABLE, 0, "the head of the event log is missing");
    }
    en->end(r);
    return more < 0 ? -1 : 0;
}

static int write_head(struct engine_conn *c, const struct event *head, struct err *e)
{
    return c->db->engine->later(
        c, "UPDATE chain SET head_seq = :seq, head_hash = :hash WHERE id = 1",
        PARAMS(P_INT("seq", head->seq), P_BLOB("hash", str_make(head->hash, sizeof head->hash))),
        e);
}

static int write_event(struct engine_conn *c, const struct event *ev, struct err *e)
{
    return c->db->engine->later(
        c,
        "INSERT INTO events (seq, time_ms, type, object, actor, audit, times, data, prev, hash)"
        " VALUES (:seq, :time, :type, :object, :actor, :audit, :times, :data, :prev, :hash)",
        PARAMS(P_INT("seq", ev->seq), P_INT("time", ev->time_ms), P_TEXT("type", ev->type),
               P_TEXT("object", ev->object), P_TEXT("actor", ev->actor), P_INT("audit", ev->audit),
               P_INT("times", ev->count), P_TEXT("data", ev->data),
               P_BLOB("prev", str_make(ev->prev, sizeof ev->prev)),
               P_BLOB("hash", str_make(ev->hash, sizeof ev->hash))),
        e);
}

/* Links ev to head, `step` later, and makes it the head. */
static int append(struct engine_conn *c, struct event *head, struct event *ev, int64_t step,
                  struct err *e)
{
    ev->seq = head->seq + step;
    memcpy(ev->prev, head->hash, sizeof ev->prev);
    event_hash(ev, ev->hash);
    if (write_event(c, ev, e) < 0)
        return -1;
    head->seq = ev->seq;
    memcpy(head->hash, ev->hash, sizeof head->hash);
    return 0;
}

static size_t count_events(const struct batch *b)
{
    size_t n = 0;

    LIST_EACH (&b->jobs, node) {
        const struct job *j = LIST_ENTRY(node, struct job, link);

        if (j->err.code == ERR_NONE)
            LIST_EACH (&j->events, l)
                n++;
    }
    return n;
}

static int append_job(struct engine_conn *c, struct batch *b, struct event *head, struct job *j,
                      struct err *e)
{
    int64_t now = clock_wall_ms();

    LIST_EACH (&j->events, l) {
        struct noted *n = LIST_ENTRY(l, struct noted, link);

        n->ev.time_ms = now;
        if (append(c, head, &n->ev, 1, e) < 0)
            return -1;
        if (n->ret_seq)
            *n->ret_seq = n->ev.seq;
        b->events[b->event_count++] = n->ev;
    }
    return 0;
}

int chain_append(struct engine_conn *c, struct batch *b, struct err *e)
{
    size_t n = count_events(b);
    struct event head = {0};

    if (n == 0)
        return 0;
    if (read_head(c, &head, e) < 0)
        return -1;
    b->events = arena_zalloc(&b->arena, n * sizeof b->events[0]);
    LIST_EACH (&b->jobs, node) {
        struct job *j = LIST_ENTRY(node, struct job, link);

        if (j->err.code == ERR_NONE && append_job(c, b, &head, j, e) < 0)
            return err_wrap(e, "append to the event log");
    }
    return write_head(c, &head, e);
}

int chain_touch(struct engine_conn *c, struct err *e)
{
    const struct store_engine *en = c->db->engine;

    if (en->begin(c, true, e) < 0)
        return -1;
    if (en->run(c, "UPDATE chain SET touched = touched + 1 WHERE id = 1", NO_PARAMS, e) < 0) {
        en->rollback(c);
        return -1;
    }
    return en->commit(c, e) == 0 ? 0 : -1;
}

/* Events lost in a power cut may have been published already: their numbers are never reused. */
static int jump(struct engine_conn *c, int64_t epoch, struct err *e)
{
    struct event head = {0}, ev = {.type = STR(EVENT_EPOCH), .object = STR("system/store")};
    char data[128];

    if (read_head(c, &head, e) < 0)
        return -1;
    (void)snprintf(data, sizeof data, "{\"epoch\":%lld,\"after\":%lld,\"reason\":\"unclean end\"}",
                   (long long)epoch, (long long)head.seq);
    ev.actor = STR("system");
    ev.data = str_of(data);
    ev.count = 1;
    ev.time_ms = clock_wall_ms();
    if (append(c, &head, &ev, EVENT_EPOCH_JUMP, e) < 0 || write_head(c, &head, e) < 0)
        return -1;
    return 0;
}

static int read_state(struct engine_conn *c, int64_t *ret_epoch, bool *ret_clean, struct err *e)
{
    const struct store_engine *en = c->db->engine;
    struct store_rows *r;
    int more;

    if (en->query(c, "SELECT epoch, clean FROM chain WHERE id = 1", NO_PARAMS, &r, e) < 0)
        return -1;
    more = en->step(r, e);
    if (more > 0) {
        *ret_epoch = en->get_int(r, 0);
        *ret_clean = en->get_int(r, 1) != 0;
    }
    en->end(r);
    return more;
}

static int first_row(struct engine_conn *c, struct err *e)
{
    static const unsigned char zero[EVENT_HASH_SIZE];

    return c->db->engine->run(
               c,
               "INSERT INTO chain (id, head_seq, head_hash, anchor_seq, anchor_hash, epoch, clean,"
               " touched) VALUES (1, 0, :zero, 0, :zero, 0, 1, 0)",
               PARAMS(P_BLOB("zero", str_make(zero, sizeof zero))), e) < 0
               ? -1
               : 0;
}

static int start_in_tx(struct engine_conn *c, bool *ret_clean, struct err *e)
{
    int64_t epoch = 0;
    bool clean = true;
    int found = read_state(c, &epoch, &clean, e);

    if (found < 0 || (found == 0 && first_row(c, e) < 0))
        return -1;
    if (!clean && jump(c, ++epoch, e) < 0)
        return -1;
    *ret_clean = clean;
    return c->db->engine->run(c, "UPDATE chain SET clean = 0, epoch = :epoch WHERE id = 1",
                              PARAMS(P_INT("epoch", epoch)), e) < 0
               ? -1
               : 0;
}

int chain_start(struct engine_conn *c, struct err *e)
{
    const struct store_engine *en = c->db->engine;
    bool clean;

    if (en->begin(c, true, e) < 0)
        return -1;
    if (start_in_tx(c, &clean, e) < 0) {
        en->rollback(c);
        return -1;
    }
    if (en->commit(c, e) != 0)
        return -1;
    return clean ? 0 : en->examine(c, e);
}

int chain_stop(struct engine_conn *c, struct err *e)
{
    const struct store_engine *en = c->db->engine;

    if (en->begin(c, true, e) < 0)
        return -1;
    if (en->run(c, "UPDATE chain SET clean = 1 WHERE id = 1", NO_PARAMS, e) < 0) {
        en->rollback(c);
        return -1;
    }
    return en->commit(c, e) == 0 ? 0 : -1;
}
