/* ground: a loop and a real store in a directory of the test's own, which is scratch_make's. */
#pragma once

#include "../scratch.h"
#include "base/mem.h"
#include "core/store.h"
#include "unit.h"

struct ground {
    char dir[SCRATCH_SIZE];
    uv_loop_t loop;
    struct store *store;
};

static inline void ground_open(struct ground *g)
{
    AUTO(mem_free) char *url = xasprintf("sqlite:%s/holt.db", g->dir);
    struct err e = {0};

    assert_int_equal(uv_loop_init(&g->loop), 0);
    assert_int_equal(
        store_open(&(struct store_config){.loop = &g->loop, .url = url}, &g->store, &e), 0);
}

static inline void ground_close(struct ground *g)
{
    store_close(g->store);
    (void)uv_run(&g->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&g->loop), 0);
}
