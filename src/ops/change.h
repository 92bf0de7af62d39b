/* change: inputs of the operations on differences. */
#pragma once

#include "ops/op.h"

struct diff_in {
    struct str id, from, to;
    struct op_list path;
    bool text, all, commands, stream;
    int64_t limit;
};

struct merge_in {
    struct str id, onto;
    bool dry_run;
    struct op_list ours, theirs;
};

extern const struct op op_diff, op_sandbox_diff, op_merge;
