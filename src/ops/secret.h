/* secret: inputs of the secret operations. */
#pragma once

#include "ops/op.h"

struct secret_set_in { /* of create and set */
    struct str name, value, path;
    struct op_list hosts, methods, in;
    bool plain;
};
struct secret_list_in {
    int64_t limit;
    struct str cursor;
};
struct secret_id_in { /* of get and remove */
    struct str name;
};

extern const struct op op_secret_create, op_secret_set, op_secret_list, op_secret_get;
extern const struct op op_secret_remove, op_ca;
