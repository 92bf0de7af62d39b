/* body: JSON bodies as Go's decoder accepts them, with its texts for errors, which clients of the
 * original may show.  No I/O. */
#pragma once

#include "base/arena.h"
#include "core/sandbox/sandbox.h"
#include "proto/json.h"

enum sbx_kind { SBX_STRING, SBX_STRINGS, SBX_MAP, SBX_BOOL, SBX_INT };
struct sbx_field {
    const char *name;
    enum sbx_kind kind;
    size_t offset;
};
struct sbx_form {
    const char *name; /* its name in the original's errors */
    const struct sbx_field *fields;
    size_t count;
};
struct sbx_strings {
    struct str *v;
    size_t n;
};
struct sbx_map {
    struct pair *v;
    size_t n;
};
struct sbx_bool {
    bool set, v;
};
struct sbx_int {
    bool set;
    int64_t v;
};
/* Reads into a struct of these members, which is zeroed before.  *hold (always freed by the caller)
 * and the arena hold the texts. */
CHECKED int sbx_read_body(struct str body, const struct sbx_form *f, struct arena *a, json_t **hold,
                          void *to, struct err *e);
