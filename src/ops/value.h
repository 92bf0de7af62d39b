/* value: decodes one field's value from text or JSON into its member of the input struct, and
 * checks it.
 * Strings are copied into the arena.  Errors name the field, the value given and the values
 * allowed. */
#pragma once

#include "ops/op.h"

struct value {
    const char *kind; /* for errors: NULL is "field" */
    const struct op_field *f;
    struct arena *a;
    void *slot; /* the member of the input struct */
    struct err *e;
};

void value_absent(const struct value *v); /* the value a handler sees if the field is absent */
CHECKED int value_text(const struct value *v, struct str text);
/* One entry of a list, commas included; for other types the same as value_text. */
CHECKED int value_entry(const struct value *v, struct str text);
CHECKED int value_json(const struct value *v, const json_t *given);
/* after the last text: checks the least number of entries */
CHECKED int value_end(const struct value *v);

#define VALUE_SHOWN 48
/* A received value for an error message: cut, escaped, without quotes.  `to` has room for
 * VALUE_SHOWN * 6 + 8 bytes; returns it. */
char *value_shown(struct str s, char *to);
