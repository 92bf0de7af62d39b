/* build: inputs of the operations on builds: of loadouts, and of images from a Dockerfile. */
#pragma once

#include "ops/op.h"

struct build_list_in {
    int64_t limit;
    struct str cursor;
};
struct build_id_in { /* of get, log, cancel */
    struct str id;
};
struct image_build_in {
    struct str name, dockerfile, context, runtime;
    struct op_map args;
    json_t *network;
    struct op_list allow;
    bool fresh, wait;
};

struct loadout_list_in {
    struct str category, complexity;
    bool all;
};
struct loadout_get_in {
    struct str name;
};
struct loadout_ref_in { /* of resolve and build */
    struct str loadout, base, runtime;
    json_t *manifest, *composition;
    bool fresh, wait;
};

struct loadout_apply_in {
    struct str id, loadout;
    json_t *manifest, *composition;
    bool wait;
};

extern const char *const op_build_states[];
extern const struct op op_build_list, op_build_get, op_build_log, op_build_cancel, op_image_build;
extern const struct op op_loadout_list, op_loadout_get, op_loadout_resolve, op_loadout_build,
    op_loadout_registry, op_loadout_apply;
