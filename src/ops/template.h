/* template: inputs of the template operations. */
#pragma once

#include "ops/sandbox.h"

struct template_create_in {
    struct sandbox_fields sandbox; /* its tenant is the template's */
    struct str name;
    struct op_map env;
    int64_t pool;
    bool shared;
};
struct template_list_in {
    struct str tenant; /* p NULL: all */
    int64_t limit;
    struct str cursor;
};
struct template_id_in { /* of get and remove */
    struct str id, tenant;
};

/* Fields of template.create that are about the template, not the sandbox. */
extern const char *const op_template_own[]; /* NULL at the end */
extern const struct op op_template_create, op_template_list, op_template_get, op_template_remove;
