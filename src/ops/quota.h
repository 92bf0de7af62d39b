/* quota: the operation that shows what is used of the quotas. */
#pragma once

#include "ops/op.h"

extern const struct op op_quota_list;
