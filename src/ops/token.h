/* token: inputs of the token operations.  A token identifies a caller: a name, a role, maybe an
 * agent. */
#pragma once

#include "ops/op.h"

extern const char *const op_roles[]; /* from least to most powerful */

struct token_create_in {
    struct str name;
    int role; /* index in op_roles */
    struct str agent, tenant, person;
    bool content;   /* for an observer */
    int64_t ttl_ms; /* OP_ABSENT: no expiry */
};
struct token_list_in {
    int64_t limit;
    struct str cursor;
};
struct token_id_in { /* of get and revoke */
    struct str id;
};

extern const struct op op_token_create, op_token_list, op_token_get, op_token_revoke, op_token_self;
