/* rows: private to src/ops: what most rows of operations say in the same words. */
#pragma once

#include "ops/op.h"

/* clang-format off */
#define IN(fields, structure) .in = fields, .in_count = ARRAY_LEN(fields), .in_size = sizeof(structure)
#define OUT(fields, name) .out = fields, .out_count = ARRAY_LEN(fields), .schema = name
/* clang-format on */
