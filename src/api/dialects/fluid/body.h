/* body: JSON bodies of the fluid dialect, read by a table of fields.  The main interface refuses
 * unknown fields; the agent's and access ignore them.  No I/O. */
#pragma once

#include "base/arena.h"
#include "core/sandbox/sandbox.h"
#include "proto/json.h"

enum fluid_kind { FLUID_STR, FLUID_INT, FLUID_BOOL, FLUID_STRS, FLUID_MAP, FLUID_JSON };
struct fluid_field {
    const char *name;
    enum fluid_kind kind;
    size_t offset; /* of a str, int64_t, bool, fluid_strs, fluid_map, json_t * */
    bool required; /* a text that must not be empty, or a list */
};
struct fluid_form {
    const struct fluid_field *fields;
    size_t count, size; /* of the structure */
    bool lenient;       /* unknown fields are ignored */
    bool optional;      /* an empty body is {} */
    int64_t max;        /* bytes; 0: 1 MiB */
};
struct fluid_strs {
    struct str *v;
    size_t n;
};
struct fluid_map {
    struct pair *v;
    size_t n;
};
#define FLUID_FORM(fields_, type)                                                                  \
    .fields = fields_, .count = ARRAY_LEN(fields_), .size = sizeof(type)

/* *ret: in the arena, zeroed before; texts are *hold's, which the caller frees in any case. */
CHECKED int fluid_read_body(struct str text, const struct fluid_form *f, struct arena *a,
                            json_t **hold, void **ret, struct err *e);
