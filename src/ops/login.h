/* login: inputs of the operations that begin and end a browser's session. */
#pragma once

#include "ops/op.h"

struct login_in {
    struct str code;
};
struct login_code_in {
    int role; /* index in op_roles (ops/token.h); -1: the caller's own */
};

extern const struct op op_login, op_login_code, op_login_oidc, op_login_oidc_callback, op_logout;
