/* image: inputs of the image operations. */
#pragma once

#include "ops/op.h"

extern const char *const op_image_states[];  /* as core's enum image_state */
extern const char *const op_image_formats[]; /* as core's enum image_format */

struct image_list_in {
    int64_t limit;
    struct str cursor;
    bool all;
};
struct image_id_in { /* of get and remove */
    struct str id;
};
struct image_pull_in {
    struct str ref, name;
    bool wait;
};
struct image_import_in {
    struct str name, tag;
    int format; /* index in op_image_formats */
    bool wait;
};

struct image_commit_in {
    struct str id, image;
};

extern const struct op op_image_list, op_image_get, op_image_pull, op_image_import, op_image_remove;
extern const struct op op_image_commit;
