/* Sandboxes on a real store, run by a runtime that does as the test says (scripted.h). */
#pragma once

#include "core/exec/exec.h"
#include "core/sandbox/sandbox.h"
#include "ground.h"
#include "scripted.h"

#include <unistd.h>

struct fixture {
    struct ground g;
    struct sandboxes *all;
    /* what the last callback said */
    bool called;
    struct err e;
    struct sandbox *s;
    struct exec *x;
};

static const struct principal tester = {.role = ROLE_ADMIN, .actor = "token/tk_tester"};

static inline void turn(struct fixture *f)
{
    for (int i = 0; i < 30; i++) {
        (void)uv_run(&f->g.loop, UV_RUN_NOWAIT);
        script_serve();
    }
}

#define TRIES 60000 /* of half a millisecond: for what hangs */

static inline int nothing(struct store_tx *tx, void *arg, struct err *e)
{
    (void)tx, (void)arg, (void)e;
    return 0;
}

static inline void on_stored(void *arg, const struct err *e)
{
    (void)e;
    *(bool *)arg = true;
}

/* What was given to the store's threads and to libuv's before is done, and said. */
static inline void await_threads(struct fixture *f)
{
    bool wrote = false, read = false;

    store_write(f->g.store, STORE_RELAXED, nothing, on_stored, &wrote);
    store_read(f->g.store, nothing, on_stored, &read);
    for (int i = 0; i < TRIES && !(wrote && read && f->g.loop.active_reqs.count == 0); i++) {
        turn(f);
        (void)usleep(500);
    }
    assert_true(wrote && read);
}

static inline void settle(struct fixture *f)
{
    for (int i = 0; i < 20; i++) {
        turn(f);
        (void)usleep(1000);
        if (i % 5 == 0)
            await_threads(f);
    }
}

static inline void await(struct fixture *f)
{
    for (int i = 0; i < TRIES && !f->called; i++) {
        turn(f);
        (void)usleep(500);
    }
    assert_true(f->called);
    f->called = false;
}

static inline void open_all(struct fixture *f)
{
    static const struct driver_ops *const drivers[] = {&driver_scripted, NULL};
    struct err e = {0};

    ground_open(&f->g);
    assert_int_equal(sandboxes_open(&(struct sandboxes_config){.loop = &f->g.loop,
                                                               .store = f->g.store,
                                                               .commands = &exec_commands,
                                                               .drivers = drivers,
                                                               .state = f->g.dir,
                                                               .node = "n",
                                                               .sandboxes_max = 5,
                                                               .execs_max = 4},
                                    &f->all, &e),
                     0);
    settle(f);
}

static inline void close_all(struct fixture *f)
{
    f->all = sandboxes_close(f->all);
    ground_close(&f->g);
}

static inline int box_setup(void **state, const char *what)
{
    struct fixture *f = xzalloc(sizeof *f);

    assert_int_equal(scratch_make(f->g.dir, what), 0);
    script_reset();
    open_all(f);
    *state = f;
    return 0;
}

static inline int box_teardown(void **state)
{
    struct fixture *f = *state;

    close_all(f);
    script_reset();
    assert_int_equal(scratch_remove(f->g.dir), 0);
    mem_free(f);
    return 0;
}

static inline void on_sandbox(void *arg, struct sandbox *s, const struct err *e)
{
    struct fixture *f = arg;

    f->called = true;
    f->s = s;
    f->e = *e;
}

static inline void on_exec(void *arg, struct exec *x, const struct err *e)
{
    struct fixture *f = arg;

    f->called = true;
    f->x = x;
    f->e = *e;
}

static inline struct sandbox *create(struct fixture *f)
{
    sandbox_create(f->all, &(struct sandbox_spec){0}, &tester, on_sandbox, f);
    await(f);
    return f->s;
}
