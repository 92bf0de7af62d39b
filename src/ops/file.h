/* file: inputs of the operations on a sandbox's files. */
#pragma once

#include "ops/op.h"

extern const char *const op_file_kinds[];

struct file_path_in { /* of stat, read, archive read */
    struct str id, path;
};
struct file_write_in {
    struct str id, path, mode;
    bool append, exclusive, parents;
    int64_t uid, gid; /* OP_ABSENT: root */
};
struct file_remove_in {
    struct str id, path;
    bool recursive;
};
struct file_list_in {
    struct str id, path;
    int64_t limit;
    struct str cursor;
};
struct file_mkdir_in {
    struct str id, path, mode;
    bool parents;
};
struct file_move_in {
    struct str id, from, to;
};
struct file_watch_in {
    struct str id, path;
    bool recursive;
};
struct archive_write_in {
    struct str id, path;
    bool parents;
};

extern const struct op op_file_read, op_file_stat, op_file_write, op_file_remove, op_file_list;
extern const struct op op_file_mkdir, op_file_move, op_file_watch;
extern const struct op op_archive_read, op_archive_write;
