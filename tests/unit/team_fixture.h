/* A real store in a directory of its own, and rules run in it one piece of work at a time. */
#pragma once

#include "base/clock.h"
#include "base/mem.h"
#include "core/approval.h"
#include "core/message.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    uv_loop_t loop;
    struct store *store;
    struct arena arena;
    struct team t;
};

typedef int (*rule)(struct team *t, void *arg, struct err *e);

struct piece {
    struct fixture *f;
    rule fn;
    void *arg;
};

static inline int run_piece(struct store_tx *tx, void *arg, struct err *e)
{
    struct piece *p = arg;

    p->f->t.tx = tx;
    return p->fn(&p->f->t, p->arg, e) < 0 ? -1 : 0;
}

/* What the rule says: ERR_NONE, or why not. */
static inline enum err_code run(struct fixture *f, rule fn, void *arg)
{
    struct piece p = {f, fn, arg};
    struct err e = {0};

    return store_now(f->store, run_piece, &p, &e) < 0 ? e.code : ERR_NONE;
}

static inline int team_setup(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);
    AUTO(mem_free) char *url = NULL;
    struct err e = {0};

    (void)snprintf(f->dir, sizeof f->dir, "/tmp/holt-team-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    url = xasprintf("sqlite:%s/holt.db", f->dir);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(
        store_open(&(struct store_config){.loop = &f->loop, .url = url}, &f->store, &e), 0);
    f->t = (struct team){
        .arena = &f->arena,
        .conf = {.heartbeat_ms = 30000,
                 .cycle = 6,
                 .missed = 3,
                 .grace_ms = 60000,
                 .message_rate = 3,
                 .message_bytes = 100,
                 .inbox_max = 4,
                 .objects_max = 5,
                 .file_versions = 2,
                 .project_bytes = 100},
        .who = {.actor = "test"},
        .now_ms = 1000000,
    };
    *state = f;
    return 0;
}

static inline int team_teardown(void **state)
{
    static const char *const names[] = {"holt.db", "holt.db-wal", "holt.db-shm", "holt.db.lock",
                                        "holt.db-lock"};
    struct fixture *f = *state;

    store_close(f->store);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    arena_done(&f->arena);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO(mem_free) char *path = xasprintf("%s/%s", f->dir, names[i]);

        (void)unlink(path);
    }
    assert_int_equal(rmdir(f->dir), 0);
    mem_free(f);
    return 0;
}

static inline void as_agent(struct fixture *f, const char *name)
{
    f->t.who.agent = str_of(name); /* NULL: a person */
}

/* --- short forms --- */

static inline int do_register(struct team *t, void *arg, struct err *e)
{
    struct agent a;

    return agent_register(t, &(struct agent_spec){.name = str_of(arg), .by_itself = true}, &a, e);
}

static inline int do_find(struct team *t, void *arg, struct err *e)
{
    struct agent *a = arg;

    return agent_need(t, a->name, a, e);
}

static inline struct agent look(struct fixture *f, const char *name)
{
    struct agent a = {.name = str_of(name)};

    assert_int_equal(run(f, do_find, &a), ERR_NONE);
    return a;
}
