/* change: operations on differences between snapshots, images and sandboxes. */
#include "ops/change.h"

#include "ops/rows.h"

/* clang-format off */
#define DIFF_TEXT \
    "Files with their modes, owners, targets and attributes, unified diffs of texts, packages (dpkg, apk, pip, npm), services, users, " \
    "groups, timetables, and the commands that ran in between. Files are read in a throw-away sandbox; nothing inside is run. A running " \
    "sandbox is read as it is: take a snapshot for one moment. With stream=true, or if the client accepts application/x-ndjson: one " \
    "change per line, without a limit; the last line has \"end\" with the counts, or \"error\"."
#define DIFF_OPTIONS \
    FIELD(struct diff_in, path, OP_LIST, .max = 256, .example = "/etc", .text = "Only these paths and what is below them."), \
    FIELD(struct diff_in, text, OP_BOOL, .preset = "true", .example = "false", \
          .text = "With unified diffs and digests; false: only which files differ, and how."), \
    FIELD(struct diff_in, all, OP_BOOL, .preset = "false", .example = "true", \
          .text = "Volatile trees too (setting diff_ignore)."), \
    FIELD(struct diff_in, commands, OP_BOOL, .preset = "true", .example = "false", .text = "With the commands that ran in between."), \
    FIELD(struct diff_in, limit, OP_INT, .min = 1, .max = 10000, .preset = "1000", .example = "100", \
          .text = "At most this many changes; 'more' says that there are others."), \
    FIELD(struct diff_in, stream, OP_BOOL, .preset = "false", .example = "true", .text = "One change per line, all of them.")

static const struct op_field diff_reply[] = {
    REPLY("changes", OP_JSON, "What differs: files in the order of paths, then packages, services, users, groups, timetables and commands.", .types = "array"),
    REPLY("files_added", OP_INT, "Number of files that are new.", .example = "3"),
    REPLY("files_changed", OP_INT, "Number of files that have changed.", .example = "2"),
    REPLY("files_removed", OP_INT, "Number of files that are gone.", .example = "1"),
    REPLY("others", OP_INT, "Number of other changes.", .example = "4"),
    REPLY("more", OP_BOOL, "True if there are more changes than the reply has; the numbers are of those that it has.", .example = "false"),
};

static const struct op_field diff_fields[] = {
    FIELD(struct diff_in, from, OP_STR, .max = 400, .example = "build@clean",
          .text = "The state before: a sandbox, a snapshot (its id, or SANDBOX@NAME) or an image. Default: what 'to' was made from."),
    FIELD(struct diff_in, to, OP_STR, .required = true, .min = 1, .max = 400, .example = "build", .text = "The state after, likewise."),
    DIFF_OPTIONS,
};
const struct op op_diff = {
    .name = "change.diff",
    .group = "snapshot",
    .text = "Show what differs between two snapshots, images or sandboxes.\n" DIFF_TEXT,
    .method = "GET",
    .path = "/holt/v1/diff",
    .perm = PERM_SANDBOX_CONTENT,
    IN(diff_fields, struct diff_in),
    OUT(diff_reply, "Diff"),
    .also = "application/x-ndjson",
    .audited = true,
};

static const struct op_field sandbox_diff_fields[] = {
    FIELD(struct diff_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "build",
          .text = "The sandbox's id or name."),
    FIELD(struct diff_in, from, OP_STR, .max = 400, .example = "clean",
          .text = "The state before: a snapshot of this sandbox by its name, or anything that diff takes. Default: what it was made from."),
    FIELD(struct diff_in, to, OP_STR, .max = 400, .example = "step-2", .text = "The state after, likewise. Default: the sandbox as it is now."),
    DIFF_OPTIONS,
};
const struct op op_sandbox_diff = {
    .name = "sandbox.diff",
    .group = "snapshot",
    .text = "Show what has changed in a sandbox.\n" DIFF_TEXT,
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/diff",
    .perm = PERM_SANDBOX_CONTENT,
    IN(sandbox_diff_fields, struct diff_in),
    OUT(diff_reply, "Diff"),
    .also = "application/x-ndjson",
    .audited = true,
};
/* clang-format on */
