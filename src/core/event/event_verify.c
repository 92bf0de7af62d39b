/* event_verify: checks the hash chain. */
#include "core/event/event_internal.h"

#include "base/mem.h"

/* per read, so that others get a turn and no snapshot is held for long */
#define VERIFY_ROWS 10000

struct verify {
    struct events *log;
    struct audit_result result;
    bool has_head;
    unsigned char want[EVENT_HASH_SIZE];
    bool begun, ended;
    int64_t at;                          /* seq of the last verified row, or the anchor */
    unsigned char hash[EVENT_HASH_SIZE]; /* its hash */
    audit_done done;
    void *arg;
};

struct chain_row {
    int64_t head_seq, anchor_seq;
    unsigned char head_hash[EVENT_HASH_SIZE], anchor_hash[EVENT_HASH_SIZE];
};

static int read_chain(struct store_tx *tx, struct chain_row *c, struct err *e)
{
    struct store_rows *r;
    struct str head, anchor;
    int more;

    if (tx_query(tx, "SELECT head_seq, head_hash, anchor_seq, anchor_hash FROM chain WHERE id = 1",
                 NO_PARAMS, &r, e) < 0)
        return -1;
    more = rows_step(r, e);
    if (more <= 0)
        return more < 0 ? -1
                        : err_set(e, ERR_UNAVAILABLE, 0, "the head of the event log is missing");
    head = rows_blob(r, 1);
    anchor = rows_blob(r, 3);
    if (head.n != sizeof c->head_hash || anchor.n != sizeof c->anchor_hash)
        return err_set(e, ERR_UNAVAILABLE, 0, "the head of the event log is damaged");
    c->head_seq = rows_int(r, 0);
    c->anchor_seq = rows_int(r, 2);
    memcpy(c->head_hash, head.p, head.n);
    memcpy(c->anchor_hash, anchor.p, anchor.n);
    rows_end(r);
    return 0;
}

static void broken(struct verify *v, int64_t seq, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void broken(struct verify *v, int64_t seq, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(v->result.broken_why, sizeof v->result.broken_why, fmt, ap);
    va_end(ap);
    v->result.broken_seq = seq;
    v->ended = true;
}

static void seen(struct verify *v, int64_t seq, const unsigned char *hash)
{
    v->at = seq;
    memcpy(v->hash, hash, sizeof v->hash);
    if (v->has_head && memcmp(hash, v->want, sizeof v->want) == 0) {
        v->result.head_found = true;
        v->result.head_seq = seq;
    }
}

/* Whether a writer could have put this row after the last one. */
static bool follows(const struct verify *v, const struct event *ev)
{
    int64_t step = str_eq_c(ev->type, EVENT_EPOCH) ? EVENT_EPOCH_JUMP : 1;

    return ev->seq == v->at + step;
}

static void check_row(struct verify *v, const struct event *ev)
{
    unsigned char hash[EVENT_HASH_SIZE];

    event_hash(ev, hash);
    if (!follows(v, ev)) {
        broken(v, v->at + 1, "event %lld is missing: after %lld comes %lld", (long long)(v->at + 1),
               (long long)v->at, (long long)ev->seq);
    } else if (memcmp(hash, ev->hash, sizeof hash) != 0) {
        broken(v, ev->seq, "event %lld was altered: its content does not match its hash",
               (long long)ev->seq);
    } else if (memcmp(ev->prev, v->hash, sizeof v->hash) != 0) {
        broken(v, ev->seq,
               "event %lld does not follow event %lld: its hash of the previous event differs",
               (long long)ev->seq, (long long)v->at);
    } else {
        if (v->result.checked++ == 0)
            v->result.first_seq = ev->seq;
        v->result.last_seq = ev->seq;
        seen(v, ev->seq, ev->hash);
    }
}

static void check_end(struct verify *v, const struct chain_row *c)
{
    v->ended = true;
    if (v->at != c->head_seq)
        broken(v, v->at + 1,
               "the log ends at event %lld, but its head is event %lld: the end is missing",
               (long long)v->at, (long long)c->head_seq);
    else if (memcmp(v->hash, c->head_hash, sizeof v->hash) != 0)
        broken(v, v->at, "event %lld is not the head of the log", (long long)v->at);
}

static int verify_some(struct store_tx *tx, void *arg, struct err *e)
{
    struct verify *v = arg;
    struct chain_row c;
    struct store_rows *r;
    int more, n = 0;

    if (read_chain(tx, &c, e) < 0)
        return -1;
    if (!v->begun || v->at < c.anchor_seq) /* or retention has passed us */
        seen(v, c.anchor_seq, c.anchor_hash);
    v->begun = true;
    if (tx_query(
            tx, "SELECT " EVENT_COLUMNS " FROM events WHERE seq > :after ORDER BY seq LIMIT :limit",
            PARAMS(P_INT("after", v->at), P_INT("limit", VERIFY_ROWS)), &r, e) < 0)
        return -1;
    while (!v->ended && (more = rows_step(r, e)) != 0) {
        struct event ev;

        if (more < 0)
            return err_wrap(e, "read the event log after %lld", (long long)v->at);
        event_from_row(r, &ev);
        check_row(v, &ev);
        n++;
    }
    if (!v->ended && n < VERIFY_ROWS)
        check_end(v, &c);
    return 0;
}

static void chain_verified(void *arg, const struct err *e)
{
    struct verify *v = arg;

    if (e->code == ERR_NONE && !v->ended) {
        store_read(v->log->store, verify_some, chain_verified, v);
        return;
    }
    memcpy(v->result.head, v->hash, sizeof v->result.head);
    v->done(v->arg, &v->result, e);
    events_unref(v->log);
    free(v);
}

void events_verify(struct events *l, const unsigned char *head, audit_done done, void *arg)
{
    struct verify *v = xzalloc(sizeof *v);

    v->log = events_ref(l);
    v->done = done;
    v->arg = arg;
    v->has_head = head != NULL;
    if (head)
        memcpy(v->want, head, sizeof v->want);
    store_read(l->store, verify_some, chain_verified, v);
}
