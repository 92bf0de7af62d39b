/* outfit: what an instance is made with: a loadout by its path or parts, a profile, or the name of
 * an image that stands for one.  A container's image is built first; a machine, whose files are no
 * layers, gets the steps inside.  Thread: the loop's. */
#pragma once

#include "api/dialects/agentic/agentic.h"
#include "core/loadout/loadout.h"

struct outfit {
    struct loadout_ref ref; /* borrowed of the request */
    struct str base;        /* the image it is built on; empty: the setting's */
    int given;              /* how many of loadout, profile and composition there are */
};
/* False: none is named. */
bool outfit_read(const struct request *r, const json_t *body, struct outfit *ret);
CHECKED int outfit_plan(const struct request *r, const struct outfit *o, struct loadout_plan *ret,
                        struct err *e);
/* Calls next with the image, now or when it is built; or replies with the error. */
typedef void (*outfit_next)(struct request *r, struct str image);
void outfit_image(struct request *r, const struct outfit *o, outfit_next next);
/* A callback for sandbox_create that runs the steps in it, then ends the operation; takes the
 * plan. */
sandbox_cb outfit_install(struct request *r, struct loadout_plan *p, struct operation *op,
                          void **ret_arg);
