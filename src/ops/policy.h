/* policy: inputs of the operations on policies. */
#pragma once

#include "ops/op.h"

struct policy_fields { /* as they are in the body: the handler passes that on */
    struct op_list commands_allow, commands_deny, commands_reserved, words_deny;
    struct op_list paths_allow, paths_deny, write_allow, write_deny, agents;
    int64_t timeout_ms, timeout_max_ms, output_bytes;
};
struct policy_create_in {
    struct str name;
    struct policy_fields rules;
};
struct policy_update_in {
    struct str id;
    struct policy_fields rules;
};
struct policy_list_in {
    int64_t limit;
    struct str cursor;
};
struct policy_id_in {
    struct str id;
};

extern const struct op op_policy_create, op_policy_list, op_policy_get, op_policy_update;
extern const struct op op_policy_remove;
