/* schema: fields, bodies and replies as JSON Schema, for OpenAPI (private to src/ops). */
#pragma once

#include "ops/op.h"
#include "proto/json.h"

void schema_field(struct jw *w, const struct op_field *f);
void schema_all(struct jw *w); /* "schemas": {…} of the components */
void schema_ref(struct jw *w, const char *kind, const char *name);
bool schema_has_body(const struct op *op);
/* "token.create" as "tokenCreate", or "TokenCreate" with upper. */
struct str schema_name(const char *name, bool upper, struct buf *to);
