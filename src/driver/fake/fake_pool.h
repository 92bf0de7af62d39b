/* fake_pool: inits of the fake driver made ahead of their sandbox.  They are of one kind, since
 * nothing can be added to them later: here the limits, which it does not enforce, but which a real
 * runtime would set.  Their names cannot be ids; those of an earlier daemon are ended. */
#pragma once

#include "driver/fake/fake_box.h"

struct fake_pool {
    struct box boxes[DRIVER_POOL_MAX];
    size_t count, want;
    struct sandbox_limits limits; /* of all of them */
    unsigned named;
    int64_t broken;
};

/* One step towards the wanted number; true: it is reached, or cannot be. */
bool fake_pool_step(struct fake_pool *p, const struct box_home *h);
void fake_pool_want(struct fake_pool *p, const struct box_home *h, const struct driver_want *want);
int64_t fake_pool_ready(struct fake_pool *p, const struct box_home *h); /* the live ones */
/* Takes one that fits, with this id from now on: true. */
bool fake_pool_take(struct fake_pool *p, const struct box_home *h, const struct sandbox_limits *l,
                    struct box *b);
void fake_pool_sweep(const struct box_home *h);                    /* at start; blocks */
void fake_pool_end(struct fake_pool *p, const struct box_home *h); /* at the end; blocks */
