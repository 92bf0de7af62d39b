/* space: inputs of the operations on disk space. */
#pragma once

#include "ops/op.h"

struct prune_in {
    int64_t older_than_ms;
    struct op_list what;
    bool yes;
};

extern const struct op op_prune, op_df;
