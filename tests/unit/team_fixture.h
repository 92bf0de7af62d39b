/* Rules, run on a real store one piece of work at a time. */
#pragma once

#include "base/clock.h"
#include "core/approval/approval.h"
#include "core/team/message.h"
#include "ground.h"

#include <unistd.h>

struct fixture {
    struct ground g;
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

    return store_now(f->g.store, run_piece, &p, &e) < 0 ? e.code : ERR_NONE;
}

static inline int team_setup(void **state)
{
    struct fixture *f = xzalloc(sizeof *f);

    assert_int_equal(scratch_make(f->g.dir, "team"), 0);
    ground_open(&f->g);
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
                 .proposals_max = 1000,
                 .file_versions = 2,
                 .project_bytes = 100,
                 .questions_max = 3},
        .who = {.actor = "test"},
        .now_ms = 1000000,
    };
    *state = f;
    return 0;
}

static inline int team_teardown(void **state)
{
    struct fixture *f = *state;

    ground_close(&f->g);
    arena_done(&f->arena);
    assert_int_equal(scratch_remove(f->g.dir), 0);
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
