/* login: inputs of the operations by which a browser gets and loses its session. */
#pragma once

#include "ops/op.h"

struct login_in {
    struct str code;
};
struct login_code_in {
    int role; /* index in op_roles (ops/token.h); -1: the asker's own */
};

extern const struct op op_login, op_login_code, op_logout;
