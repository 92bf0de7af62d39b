/* store_internal: shared by the files of the store: the queues between the loop and the threads.
 *
 *   store_write_later → later (the loop's) ↓ with the next write
 *   store_write → writes ┐ writer thread: one group = one transaction ┐
 *   store_read  → reads  ┘ reader threads: one read = one snapshot    ┴→ finished → loop
 *
 * Thread: members under `lock` are shared; the writer's connection is the writer's. */
#pragma once

#include "base/arena.h"
#include "base/metric.h"
#include "core/event/event.h"
#include "store/engine.h"

#define READERS 2

struct job {
    struct list link;
    enum store_class class;
    store_work work;
    store_done done;
    void *arg;
    struct err err;
    struct list events; /* struct noted, in the order of the works */
    bool wait;          /* store_now: a thread waits for `finished`; not passed to the loop */
    bool finished;
};

struct noted { /* an event added by a work; in the batch's arena */
    struct list link;
    struct event ev; /* without seq, time and hashes */
    int64_t *ret_seq;
};

struct batch { /* the result of one transaction; from a thread to the loop */
    struct list link;
    struct list jobs;
    struct arena arena;
    struct event *events; /* committed, in order */
    size_t event_count;
};

struct store_tx {
    struct engine_conn *conn;
    struct job *job;
    struct arena *arena;
    struct list rows; /* running queries */
    bool failed;      /* a statement failed */
    bool writes;      /* in a group: needs a savepoint */
    bool saved;       /* has one: made at the first statement, since many works only add an event */
};

struct handles { /* on the loop; outlives the store until all are closed */
    struct store *store;
    uv_async_t finished; /* a thread has added to `finished` */
    uv_prepare_t wake;   /* wakes the writer before the loop sleeps, see store.c */
    uv_timer_t later;    /* runs while works are in `later` */
    int open;
};

struct store {
    uv_loop_t *loop;
    int64_t told_ms; /* when a failure was last logged */
    const struct store_engine *engine;
    struct engine_db *db;
    struct engine_conn *conn; /* the writer's connection */
    struct engine_conn *read_conns[READERS];
    uv_thread_t writer, readers[READERS];
    bool running; /* the threads are running */
    struct handles *handles;
    store_events on_events;
    void *on_events_arg;
    size_t pending;    /* callbacks due; counted by the loop */
    struct list later; /* the loop's: works that wait for the next write, in order */

    uv_mutex_t lock;
    uv_cond_t write_wake, read_wake, now_wake;
    struct list writes, reads, finished;
    size_t write_count, read_count, write_max, read_max;
    bool closing;
    struct err health; /* result of the newest commit */

    uint64_t unsynced_ns; /* the writer's: time of the oldest commit that is not synced; 0: none */
    struct batch *doubt;  /* the writer's: the result of its commit is unknown */
    bool doubt_durable;
    bool doubtful; /* the writer's: a commit has failed, so the shutdown is not marked as clean */
    uint64_t checked_ns; /* the writer's: the last check of an idle database */
};

extern struct metric store_commits, store_commit_seconds, store_group_size, store_queue_length,
    store_errors;

/* --- store.c --- */
struct batch *batch_new(void);
void store_finish(struct store *s, struct batch *b); /* any thread: hands it to the loop */

/* --- tx.c --- */
int job_run(struct store_tx *tx, struct job *j); /* sets j->err when it fails */

/* --- group.c, reader.c: the threads --- */
void writer_main(void *store);
void writer_give_up_doubt(struct store *s); /* at the end, if the result is still unknown */
struct reader {
    struct store *store;
    struct engine_conn *conn;
};
void reader_main(void *reader); /* frees it */

/* --- chain.c --- */
/* Assigns seq and hash to the batch's events and writes them; the last step of a group. */
CHECKED int chain_append(struct engine_conn *c, struct batch *b, struct err *e);
/* A synced change without meaning: it syncs everything before it too. */
CHECKED int chain_touch(struct engine_conn *c, struct err *e);
/* At start-up: writes the first row, or skips numbers after an unclean shutdown; then marks it as
 * open. */
CHECKED int chain_start(struct engine_conn *c, struct err *e);
CHECKED int chain_stop(struct engine_conn *c, struct err *e); /* marks the shutdown as clean */
