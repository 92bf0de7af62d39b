/* webhook: inputs of the operations on webhooks. */
#pragma once

#include "ops/op.h"

extern const char *const op_delivery_states[]; /* in the order of enum delivery_state */

struct webhook_add_in {
    struct str url, command;
    struct op_list types, allow;
};
struct webhook_list_in {
    struct str cursor;
    int64_t limit;
};
struct webhook_id_in {
    struct str id;
};
struct webhook_deliveries_in {
    struct str id;
    int state;
    int64_t limit;
};
extern const struct op op_webhook_add, op_webhook_list, op_webhook_remove, op_webhook_test,
    op_webhook_deliveries;
