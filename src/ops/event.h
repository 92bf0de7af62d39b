/* event: inputs of the operations on the event log and its audit view. */
#pragma once

#include "ops/op.h"

struct event_list_in {
    struct str type, object, actor;
    struct op_since since;
    int64_t limit;
    struct str cursor; /* digits: a seq; wins over since */
    bool follow;
    bool audit; /* requires PERM_AUDIT too */
};
struct audit_list_in {
    struct str type, object, actor;
    struct op_since since;
    int64_t limit;
    struct str cursor; /* as above */
};
struct audit_verify_in {
    struct str head; /* 64 hex digits, or absent */
};

extern const struct op op_event_list, op_audit_list, op_audit_verify;
