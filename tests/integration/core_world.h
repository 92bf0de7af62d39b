/* core_world: a store and a registry of sandboxes in a directory of their own, and calls that turn
 * the loop until they are answered.  Every failure ends the test program with a message. */
#pragma once

#include "../check.h"
#include "../scratch.h"
#include "base/buf.h"
#include "core/exec/exec.h"
#include "core/exec/run.h"

struct world {
    char dir[SCRATCH_SIZE], bindir[256];
    const struct driver_ops *drivers[2];
    uv_loop_t loop;
    struct store *store;
    struct sandboxes *all;
    uv_timer_t ticks;
    /* what the last callback said */
    bool called;
    struct err e;
    struct sandbox *s;
    struct exec *x;
};

struct output {
    struct buf bytes[2];
    int64_t at[2]; /* where the next byte must stand */
    int64_t gap;   /* bytes that were dropped */
    bool ended;
    struct err e;
};

extern const struct principal tester;

void world_open(struct world *w);
void world_close(struct world *w);  /* what runs goes on */
void world_remove(struct world *w); /* its directory */
void world_await(struct world *w);
void world_turn(struct world *w, int64_t ms); /* turns the loop for so long */
void world_settle(struct world *w);           /* until what lives is adopted */
/* Until it is so; never within a minute is a failure. */
void world_until_out(struct world *w, struct exec *x, int64_t end); /* it wrote so much */
void world_until_still(struct world *w, struct exec *x);            /* it writes no more */
void world_until_boxes(struct world *w, size_t count);
void world_until_state(struct world *w, struct sandbox *s, enum sandbox_state state);

void on_sandbox(void *arg, struct sandbox *s, const struct err *e);
void on_exec(void *arg, struct exec *x, const struct err *e);

struct sandbox *world_create(struct world *w, const struct sandbox_spec *spec);
struct exec *world_start(struct world *w, struct sandbox *s, struct exec_spec spec);
struct exec *world_sh(struct world *w, struct sandbox *s, const char *line);
void world_wait(struct world *w, struct exec *x);
void world_destroy(struct world *w, struct sandbox *s);
void world_read(struct world *w, struct exec *x, enum exec_which which, int64_t out, int64_t err,
                struct output *to);
int64_t world_count(struct world *w, const char *sql); /* SELECT COUNT(*) … */
extern const struct exec_reader_ops output_ops;
void output_done(struct output *o);
