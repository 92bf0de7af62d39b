/* remote: inputs of the operations on agents of other machines. */
#pragma once

#include "ops/op.h"

struct remote_list_in {
    int64_t limit;
    struct str cursor;
};
struct remote_add_in {
    struct str agent, secret;
};
struct remote_rotate_in {
    struct str agent;
    int64_t grace_ms;
};
struct remote_revoke_in {
    struct str agent;
};

extern const struct op op_remote_list, op_remote_secrets, op_remote_add, op_remote_rotate;
extern const struct op op_remote_revoke;
