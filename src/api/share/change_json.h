/* change_json: one difference as JSON.  Paths and values that are not UTF-8 have their bytes beside
 * them, in "…_base64". */
#pragma once

#include "core/change/change.h"
#include "proto/json.h"

void change_write_json(struct jw *w, const struct change *c);
void change_write_counts(struct jw *w, const struct change_counts *n); /* members of an object */
