/* access: inputs of the operations on SSH certificates. */
#pragma once

#include "ops/op.h"

extern const char *const op_certificate_states[]; /* as core's enum certificate_state */
extern const char *const op_ssh_states[];         /* as core's enum ssh_session_state */

struct access_request_in {
    struct str public_key, sandbox;
    struct op_list principals;
    int64_t ttl_ms;
    bool forwarding;
};
struct access_list_in {
    struct str sandbox; /* p NULL: all */
    int state;          /* < 0: any */
    int64_t limit;
    struct str cursor;
};
struct access_id_in {
    struct str id;
};
struct access_revoke_in {
    struct str id, reason;
};
struct access_sandbox_in {
    struct str id;
};
struct access_sessions_in {
    struct str sandbox, certificate; /* p NULL: all */
    int state;                       /* < 0: any */
    int64_t limit;
    struct str cursor;
};

extern const struct op op_access_ca, op_access_krl, op_access_request, op_access_list,
    op_access_get, op_access_revoke, op_access_open, op_access_close, op_access_sessions;
