/* volume: inputs of the volume operations. */
#pragma once

#include "ops/op.h"

extern const char *const op_volume_kinds[]; /* as core's enum volume_kind */

struct volume_create_in {
    struct str name, tenant;
    int kind;
    int64_t size_bytes; /* OP_ABSENT: the default */
    bool shared;
};
struct volume_list_in {
    struct str tenant; /* p NULL: all */
    int64_t limit;
    struct str cursor;
};
struct volume_id_in { /* of get and remove */
    struct str id, tenant;
};
struct volume_update_in {
    struct str id, tenant;
    bool shared;
};

extern const struct op op_volume_create, op_volume_list, op_volume_get, op_volume_update,
    op_volume_remove;
