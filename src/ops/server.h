/* server: operations on the daemon itself; none has an input. */
#pragma once

#include "ops/op.h"

extern const struct op op_server_info, op_healthz, op_readyz, op_metrics, op_openapi_json;
extern const struct op op_settings_list;
