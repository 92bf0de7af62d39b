/* Writes of both classes while the power goes at a random operation; then: class 1 is complete,
 * class 2 at most 100 ms short, the chain valid, no seq given twice. */
#include "base/log.h"
#include "base/mem.h"
#include "core/event/event.h"
#include "cut_vfs.h"
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#define IN_FLIGHT 8
#define WRITES_MAX 20000
#define SHORT_NS 100000000ULL

static char directory[] = "/tmp/holt-cut-XXXXXX";
static char url[64];
static uv_loop_t loop;
static struct store *store;
static struct events *events;

struct written {
    enum store_class class;
    char name[32];
    int64_t seq;
    uint64_t told_ns; /* 0: not acknowledged */
};

static struct written writes[WRITES_MAX];
static int asked, answered;
static bool failed;
static int relaxed_percent; /* of class 2 */
static int64_t newest_seq;  /* ever acknowledged */
static uint64_t state_of_random;

static uint64_t roll(uint64_t below)
{
    state_of_random = state_of_random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state_of_random >> 33) % below;
}

static int put(struct store_tx *tx, void *arg, struct err *e)
{
    struct written *w = arg;

    if (tx_run(tx, "INSERT INTO meta (name, value) VALUES (:name, 'x')",
               PARAMS(P_C("name", w->name)), e) < 0)
        return -1;
    tx_event(tx, &(struct event_spec){.type = "test.put", .object = w->name, .actor = "test"},
             &w->seq);
    return 0;
}

static void ask_more(void);

static void put_done(void *arg, const struct err *e)
{
    struct written *w = arg;

    answered++;
    if (e->code != ERR_NONE) {
        failed = true;
        return;
    }
    w->told_ns = uv_hrtime();
    newest_seq = i64_max(newest_seq, w->seq);
    ask_more();
}

static void ask_more(void)
{
    while (!failed && asked < WRITES_MAX && asked - answered < IN_FLIGHT && store) {
        struct written *w = &writes[asked++];

        w->class = (int)roll(100) < relaxed_percent ? STORE_RELAXED : STORE_DURABLE;
        store_write(store, w->class, put, put_done, w);
    }
}

static int try_open(void)
{
    struct store_config c = {.loop = &loop, .url = url, .vfs = "cut"};
    struct err e = {0};

    if (store_open(&c, &store, &e) < 0)
        return -1;
    if (events_open(store, &events, &e) == 0)
        return 0;
    store_close(TAKE(store));
    return -1;
}

static void close_all(void)
{
    struct store *s = TAKE(store);

    failed = true;
    events = events_close(events);
    store_close(s);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
}

/* Writes until the power goes.  Where all is class 2 it pauses, so that the sync has to come by
 * itself and not with a checkpoint. */
static void write_until_dark(void)
{
    uint64_t end = uv_hrtime() + (50 + roll(400)) * 1000000;

    failed = false;
    while (cut_vfs_time() == 0) {
        ask_more();
        (void)uv_run(&loop, UV_RUN_ONCE);
        if (relaxed_percent == 100 || roll(8) == 0)
            uv_sleep((unsigned)roll(25));
        if (uv_hrtime() > end || asked == WRITES_MAX)
            cut_vfs_cut();
    }
    close_all();
}

static int check_all(struct store_tx *tx, void *arg, struct err *e)
{
    uint64_t cut = *(uint64_t *)arg;

    for (int i = 0; i < asked; i++) {
        const struct written *w = &writes[i];
        bool must = w->told_ns != 0 && (w->class == STORE_DURABLE || w->told_ns + SHORT_NS <= cut);
        struct store_rows *r;
        int more;

        if (tx_query(tx, "SELECT seq FROM events WHERE object = :name",
                     PARAMS(P_C("name", w->name)), &r, e) < 0)
            return -1;
        more = rows_step(r, e);
        if (more < 0)
            return -1;
        if (more == 0 && must)
            return err_set(e, ERR_INTERNAL, 0,
                           "%s of class %d, told %.1f ms before the cut, is lost", w->name,
                           w->class, (double)(int64_t)(cut - w->told_ns) / 1e6);
        if (more == 1 && w->told_ns != 0 && rows_int(r, 0) != w->seq)
            return err_set(e, ERR_INTERNAL, 0, "%s has another seq now", w->name);
        rows_end(r);
        if (tx_query(tx, "SELECT 1 FROM meta WHERE name = :name", PARAMS(P_C("name", w->name)), &r,
                     e) < 0 ||
            rows_step(r, e) != more)
            return err_set(e, ERR_INTERNAL, 0, "%s: its row and its event disagree", w->name);
        rows_end(r);
    }
    return 0;
}

struct verdict {
    bool came;
    struct audit_result r;
    struct err err;
};

static void judged(void *arg, const struct audit_result *r, const struct err *e)
{
    *(struct verdict *)arg = (struct verdict){.came = true, .r = *r, .err = *e};
}

static void check_round(int round, uint64_t cut)
{
    struct verdict v = {0};
    struct err e = {0};
    struct written probe = {0};

    if (try_open() < 0)
        fail_msg("round %d: the store does not open after the cut", round);
    if (store_now(store, check_all, &cut, &e) < 0)
        fail_msg("round %d: %s", round, e.msg);
    events_verify(events, NULL, judged, &v);
    while (!v.came)
        (void)uv_run(&loop, UV_RUN_ONCE);
    if (v.err.code != ERR_NONE || v.r.broken_seq != 0)
        fail_msg("round %d: %s%s", round, v.err.msg, v.r.broken_why);
    (void)snprintf(probe.name, sizeof probe.name, "w/%d/probe", round);
    if (store_now(store, put, &probe, &e) < 0)
        fail_msg("round %d: %s", round, e.msg);
    if (probe.seq <= newest_seq)
        fail_msg("round %d: seq %lld was given before", round, (long long)probe.seq);
    newest_seq = probe.seq;
    close_all();
}

static void name_writes(int round)
{
    asked = answered = 0;
    for (int i = 0; i < WRITES_MAX; i++) {
        writes[i] = (struct written){0};
        (void)snprintf(writes[i].name, sizeof writes[i].name, "w/%d/%d", round, i);
    }
}

static void wipe(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", ".lock"};

    cut_vfs_forget();
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        AUTO(mem_free) char *name = xasprintf("%s/holt.db%s", directory, ends[i]);

        (void)unlink(name);
    }
}

static void power_cuts_lose_only_what_they_may(void **state)
{
    static const int percents[] = {0, 50, 90, 100};
    int rounds = getenv("HOLT_SOAK") ? 300 : 30;
    int64_t told = 0;

    (void)state;
    wipe(); /* the names below are another test's too */
    newest_seq = 0;
    for (int round = 0; round < rounds; round++) {
        uint64_t cut;

        state_of_random = ((uint64_t)round + 1) * 0x9e3779b97f4a7c15ULL;
        relaxed_percent = percents[(size_t)round % ARRAY_LEN(percents)];
        name_writes(round);
        cut_vfs_arm((int64_t)(1 + roll(round % 8 < 4 ? 1500 : 40000)),
                    roll(3) == 0 ? CUT_DROP_ALL : CUT_DROP_SOME, roll(UINT32_MAX));
        if (try_open() == 0)
            write_until_dark();
        cut = cut_vfs_time();
        if (cut == 0)
            fail_msg("round %d: the store does not open", round);
        for (int i = 0; i < asked; i++)
            told += writes[i].told_ns != 0;
        cut_vfs_restore();
        check_round(round, cut);
    }
    print_message("%d cuts, %lld acknowledged writes\n", rounds, (long long)told);
    assert_true(told > rounds * 10);
}

static void a_cut_while_the_database_is_made(void **state)
{
    bool opened = false;
    int n;

    (void)state;
    for (n = 1; !opened && n < 1000; n++) {
        wipe();
        newest_seq = 0;
        name_writes(n);
        cut_vfs_arm(n, n % 3 ? CUT_DROP_SOME : CUT_DROP_ALL, (uint64_t)n * 7919);
        opened = try_open() == 0;
        if (opened)
            close_all();
        cut_vfs_cut(); /* should it not have come to it */
        cut_vfs_restore();
        check_round(n, 0);
    }
    print_message("%d operations until it is open\n", n);
    assert_true(opened && n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_while_the_database_is_made),
        cmocka_unit_test(power_cuts_lose_only_what_they_may),
    };
    int bad;

    if (!mkdtemp(directory))
        return 1;
    (void)snprintf(url, sizeof url, "sqlite:%s/holt.db", directory);
    log_setup(LOG_ERROR, LOG_LOGFMT);
    cut_vfs_register();
    (void)uv_loop_init(&loop);
    bad = cmocka_run_group_tests(tests, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    wipe();
    (void)rmdir(directory);
    return bad;
}
