/* value: one field's value, from text or JSON into its place in the input struct, checked.
 * Strings are copied into the arena.  Errors name the field, what was given and what is allowed. */
#pragma once

#include "ops/op.h"

struct value {
    const char *kind; /* for errors: NULL is "field" */
    const struct op_field *f;
    struct arena *a;
    void *slot; /* in the input struct */
    struct err *e;
};

void value_absent(const struct value *v); /* what a handler sees when nobody gave it */
CHECKED int value_text(const struct value *v, struct str text);
/* One entry of a list, commas and all; of other types the same as value_text. */
CHECKED int value_entry(const struct value *v, struct str text);
CHECKED int value_json(const struct value *v, const json_t *given);
CHECKED int value_end(const struct value *v); /* after the last text: too few entries? */

#define VALUE_SHOWN 48
/* What somebody sent, for an error: cut, escaped, without quotes.  to has room for
 * VALUE_SHOWN * 6 + 8 bytes; returns it. */
char *value_shown(struct str s, char *to);
