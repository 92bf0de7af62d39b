/* change: inputs of the operations on differences. */
#pragma once

#include "ops/op.h"

struct diff_in {
    struct str id, from, to;
    struct op_list path;
    bool text, all, commands, stream;
    int64_t limit;
};

struct export_in {
    struct str from, to;
    struct op_list path;
    bool all;
    int format, secrets;
};
enum { EXPORT_PATCH, EXPORT_TAR, EXPORT_ANSIBLE, EXPORT_SHELL, EXPORT_DOCKERFILE, EXPORT_PUPPET };
extern const char *const op_export_formats[]; /* in this order */
struct merge_in {
    struct str id, onto;
    bool dry_run;
    struct op_list ours, theirs;
};

extern const struct op op_diff, op_sandbox_diff, op_merge, op_export;
