/* file: operations on a sandbox's files. */
#include "ops/file.h"

const char *const op_file_kinds[] = {"file",      "directory", "symlink", "fifo", "socket",
                                     "character", "block",     "unknown", NULL};

#define FILES "/holt/v1/sandboxes/{id}/files"
#define ARCHIVE "/holt/v1/sandboxes/{id}/archive"

#define ID_FIELD(structure)                                                                        \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,       \
          .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "The sandbox's id or name.")
#define PATH_FIELD(structure, member, words)                                                       \
    FIELD(structure, member, OP_STR, .required = true, .positional = true, .min = 1, .max = 4095,  \
          .example = "/workspace/a.txt", .text = words)
#define MODE_FIELD(structure, standard)                                                            \
    FIELD(structure, mode, OP_STR, .max = 5, .pattern = OP_PATTERN_DIGITS, .preset = standard,     \
          .example = "0600", .text = "Permissions of what is created, in octal digits.")

static const struct op_field file_path_fields[] = {
    ID_FIELD(struct file_path_in),
    PATH_FIELD(struct file_path_in, path, "Absolute path of the file inside the sandbox."),
};
#define FILE_PATH_IN                                                                               \
    .in = file_path_fields, .in_count = ARRAY_LEN(file_path_fields),                               \
    .in_size = sizeof(struct file_path_in)

const struct op op_file_read = {
    .name = "file.read",
    .group = "file",
    .text = "Read a file: all of it, or the range in the Range header.",
    .method = "GET",
    .path = FILES,
    .perm = PERM_SANDBOX_CONTENT,
    FILE_PATH_IN,
    .reply = OP_REPLY_BYTES,
    .audited = true,
    .ranges = true,
};

const struct op op_file_stat = {
    .name = "file.stat",
    .group = "file",
    .text = "Show a file's size, kind, mode, owner and time, in X-Holt-* headers.",
    .method = "HEAD",
    .path = FILES,
    .perm = PERM_SANDBOX_CONTENT,
    FILE_PATH_IN,
    .reply = OP_REPLY_BYTES,
    .audited = true,
};

static const struct op_field file_write_fields[] = {
    ID_FIELD(struct file_write_in),
    PATH_FIELD(struct file_write_in, path, "Absolute path of the file inside the sandbox."),
    MODE_FIELD(struct file_write_in, "0644"),
    FIELD(struct file_write_in, append, OP_BOOL, .preset = "false", .example = "true",
          .text = "Append to the file instead of replacing it."),
    FIELD(struct file_write_in, exclusive, OP_BOOL, .preset = "false", .example = "true",
          .text = "Fail if it exists."),
    FIELD(struct file_write_in, parents, OP_BOOL, .preset = "true", .example = "false",
          .text = "Create missing parent directories."),
    FIELD(struct file_write_in, uid, OP_INT, .max = 4294967294, .example = "1000",
          .text = "Its owner inside the sandbox. Default: root."),
    FIELD(struct file_write_in, gid, OP_INT, .max = 4294967294, .example = "1000",
          .text = "Its group inside the sandbox. Default: root."),
};
const struct op op_file_write = {
    .name = "file.write",
    .group = "file",
    .text = "Write a file: the request's body is its new content.",
    .method = "PUT",
    .path = FILES,
    .perm = PERM_SANDBOX_WRITE,
    .in = file_write_fields,
    .in_count = ARRAY_LEN(file_write_fields),
    .in_size = sizeof(struct file_write_in),
    .upload = "application/octet-stream",
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field file_remove_fields[] = {
    ID_FIELD(struct file_remove_in),
    PATH_FIELD(struct file_remove_in, path, "Absolute path of the file inside the sandbox."),
    FIELD(struct file_remove_in, recursive, OP_BOOL, .preset = "false", .example = "true",
          .text = "Remove a directory with everything in it."),
};
const struct op op_file_remove = {
    .name = "file.remove",
    .group = "file",
    .text = "Remove a file or directory.",
    .method = "DELETE",
    .path = FILES,
    .perm = PERM_SANDBOX_WRITE,
    .in = file_remove_fields,
    .in_count = ARRAY_LEN(file_remove_fields),
    .in_size = sizeof(struct file_remove_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field file_list_fields[] = {
    ID_FIELD(struct file_list_in),
    PATH_FIELD(struct file_list_in, path, "Absolute path of the directory inside the sandbox."),
    FIELD(struct file_list_in, limit, OP_INT, .min = 1, .max = 10000, .preset = "1000",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct file_list_in, cursor, OP_STR, .max = 255, .example = "a.txt",
          .text = "Continue after the previous page: the cursor of its reply."),
};
static const struct op_field file_reply[] = {
    REPLY("name", OP_STR, "Its name in the directory.", .example = "a.txt"),
    REPLY("kind", OP_CHOICE, "Its kind.", .choices = op_file_kinds, .example = "file"),
    REPLY("size", OP_INT, "Its size in bytes.", .example = "6"),
    REPLY("mode", OP_STR, "Its permissions, in octal digits.", .example = "0644"),
    REPLY("uid", OP_INT, "Its owner inside the sandbox.", .example = "0"),
    REPLY("gid", OP_INT, "Its group inside the sandbox.", .example = "0"),
    REPLY("modified_at", OP_TIME, "When its content last changed.", .nullable = true),
    REPLY("link", OP_STR, "Target of a symbolic link.", .nullable = true),
};
const struct op op_file_list = {
    .name = "file.list",
    .group = "file",
    .text = "List a directory, sorted by name.",
    .method = "GET",
    .path = FILES "/list",
    .verb = "file ls",
    .perm = PERM_SANDBOX_CONTENT,
    .in = file_list_fields,
    .in_count = ARRAY_LEN(file_list_fields),
    .in_size = sizeof(struct file_list_in),
    .reply = OP_REPLY_LIST,
    .out = file_reply,
    .out_count = ARRAY_LEN(file_reply),
    .schema = "File",
    .items = "files",
    .columns = "mode,uid,gid,size,modified_at,name",
    .audited = true,
};

static const struct op_field file_mkdir_fields[] = {
    ID_FIELD(struct file_mkdir_in),
    PATH_FIELD(struct file_mkdir_in, path, "Absolute path of the directory inside the sandbox."),
    MODE_FIELD(struct file_mkdir_in, "0755"),
    FIELD(struct file_mkdir_in, parents, OP_BOOL, .preset = "false", .example = "true",
          .text = "Create missing parent directories; an existing directory is not an error."),
};
const struct op op_file_mkdir = {
    .name = "file.mkdir",
    .group = "file",
    .text = "Create a directory.",
    .method = "POST",
    .path = FILES "/mkdir",
    .verb = "file mkdir",
    .perm = PERM_SANDBOX_WRITE,
    .in = file_mkdir_fields,
    .in_count = ARRAY_LEN(file_mkdir_fields),
    .in_size = sizeof(struct file_mkdir_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field file_move_fields[] = {
    ID_FIELD(struct file_move_in),
    PATH_FIELD(struct file_move_in, from, "Absolute path of the file or directory to move."),
    PATH_FIELD(struct file_move_in, to, "Its new path. An existing file there is replaced."),
};
const struct op op_file_move = {
    .name = "file.move",
    .group = "file",
    .text = "Move or rename a file or directory.",
    .method = "POST",
    .path = FILES "/move",
    .verb = "file mv",
    .perm = PERM_SANDBOX_WRITE,
    .in = file_move_fields,
    .in_count = ARRAY_LEN(file_move_fields),
    .in_size = sizeof(struct file_move_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field file_watch_fields[] = {
    ID_FIELD(struct file_watch_in),
    PATH_FIELD(struct file_watch_in, path,
               "Absolute path of the file or directory inside the sandbox."),
    FIELD(struct file_watch_in, recursive, OP_BOOL, .preset = "false", .example = "true",
          .text = "Include directories below it."),
};
const struct op op_file_watch = {
    .name = "file.watch",
    .group = "file",
    .text = "Watch a file or directory: server-sent events made, changed, removed, missed.\nThe "
            "data of each is {\"path\": …}. The first event is 'begun'. 'missed' means that events "
            "were lost: list again.",
    .method = "GET",
    .path = FILES "/watch",
    .perm = PERM_SANDBOX_CONTENT,
    .in = file_watch_fields,
    .in_count = ARRAY_LEN(file_watch_fields),
    .in_size = sizeof(struct file_watch_in),
    .reply = OP_REPLY_STREAM,
    .audited = true,
};

const struct op op_archive_read = {
    .name = "archive.read",
    .group = "file",
    .text = "Read a file or directory as a tar archive.",
    .method = "GET",
    .path = ARCHIVE,
    .perm = PERM_SANDBOX_CONTENT,
    FILE_PATH_IN,
    .reply = OP_REPLY_BYTES,
    .media = "application/x-tar",
    .audited = true,
};

static const struct op_field archive_write_fields[] = {
    ID_FIELD(struct archive_write_in),
    PATH_FIELD(struct archive_write_in, path, "Absolute path of the directory inside the sandbox."),
    FIELD(struct archive_write_in, parents, OP_BOOL, .preset = "true", .example = "false",
          .text = "Create the directory and its parents if they are missing."),
};
const struct op op_archive_write = {
    .name = "archive.write",
    .group = "file",
    .text = "Unpack the tar archive in the request's body into a directory.",
    .method = "PUT",
    .path = ARCHIVE,
    .perm = PERM_SANDBOX_WRITE,
    .in = archive_write_fields,
    .in_count = ARRAY_LEN(archive_write_fields),
    .in_size = sizeof(struct archive_write_in),
    .upload = "application/x-tar",
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};
