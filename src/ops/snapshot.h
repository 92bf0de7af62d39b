/* snapshot: inputs of the operations on snapshots and forks. */
#pragma once

#include "ops/sandbox.h"

struct snapshot_create_in {
    struct str id, name;
    struct op_map labels;
};
struct snapshot_list_in {
    struct str sandbox;
    struct op_map label;
    bool all;
    int64_t limit;
    struct str cursor;
};
struct snapshot_id_in {
    struct str id;
};
struct snapshot_restore_in {
    struct str id, snapshot;
};
struct fork_in {
    struct sandbox_fields sandbox; /* some of them */
    struct str source, name;
    int64_t count;
    struct op_map env;
};
struct fork_keep_in {
    struct str id;
};

extern const struct op op_snapshot_create, op_snapshot_list, op_snapshot_get, op_snapshot_remove;
extern const struct op op_snapshot_restore, op_fork, op_fork_keep;
