/* host: inputs of the operations on hosts of machines. */
#pragma once

#include "ops/op.h"

struct host_list_in {
    int64_t limit;
};
struct host_id_in {
    struct str name;
};
struct host_drain_in {
    struct str name;
    bool off;
};

extern const char *const op_host_states[]; /* as enum host_state */
extern const struct op op_host_list, op_host_get, op_host_drain;
