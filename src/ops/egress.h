/* egress: inputs of the operations on remembered answers to network questions. */
#pragma once

#include "ops/op.h"

struct rule_list_in {
    int64_t limit;
    struct str cursor;
};
struct rule_id_in {
    struct str id;
};

extern const struct op op_rule_list, op_rule_remove;
