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

const char *const op_export_formats[] = {"patch", "tar", "ansible", "shell", "dockerfile", "puppet", NULL};
static const char *const export_secrets[] = {"refuse", "vault", NULL};
static const struct op_field export_fields[] = {
    FIELD(struct export_in, from, OP_STR, .max = 400, .example = "build@clean",
          .text = "The state before: a sandbox, a snapshot or an image. Default: what 'to' was made from."),
    FIELD(struct export_in, to, OP_STR, .required = true, .min = 1, .max = 400, .example = "build", .text = "The state after, likewise."),
    FIELD(struct export_in, path, OP_LIST, .max = 256, .example = "/etc", .text = "Only these paths and what is below them."),
    FIELD(struct export_in, all, OP_BOOL, .preset = "false", .example = "true", .text = "Volatile trees too (setting diff_ignore)."),
    {.name = "as", .type = OP_CHOICE, .offset = offsetof(struct export_in, format), .choices = op_export_formats, .preset = "patch", .example = "tar",
     .text = "'patch': for git apply. 'tar': the files, and '.wh.NAME' for what is gone: a layer of an OCI image. 'ansible', 'puppet', 'shell': what "
             "repeats the change; 'dockerfile': the same as a step of a build."},
    {.name = "secrets", .type = OP_CHOICE, .offset = offsetof(struct export_in, secrets), .choices = export_secrets, .preset = "refuse", .example = "vault",
     .text = "Of ansible, shell, dockerfile and puppet: as for playbook.generate."},
};
const struct op op_export = {
    .name = "change.export",
    .group = "snapshot",
    .text = "Write what differs between two states in another form.",
    .method = "GET",
    .path = "/holt/v1/export",
    .perm = PERM_SANDBOX_CONTENT,
    IN(export_fields, struct export_in),
    .reply = OP_REPLY_BYTES,
    .audited = true,
};

static const struct op_field merge_fields[] = {
    FIELD(struct merge_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "try-3",
          .text = "The fork: its id or name."),
    FIELD(struct merge_in, onto, OP_STR, .required = true, .min = 1, .max = 255, .example = "build",
          .text = "The sandbox that gets its changes; it must run."),
    FIELD(struct merge_in, dry_run, OP_BOOL, .preset = "false", .example = "true", .text = "Only say what would be done."),
    FIELD(struct merge_in, ours, OP_LIST, .max = 1000, .example = "/etc/hosts",
          .text = "Where both have changed, keep what the target has: at and below these paths; '/': everywhere. The longest path counts."),
    FIELD(struct merge_in, theirs, OP_LIST, .max = 1000, .example = "/srv", .text = "Likewise: take what the fork has."),
};
static const struct op_field merge_reply[] = {
    REPLY("sandbox", OP_STR, "The target's id.", .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("fork", OP_STR, "The fork's id.", .example = "sb_01k4r8w2m9h5t7c3xqve"),
    REPLY("done", OP_BOOL, "True if the changes are in the target now; false after a dry run, and if there are conflicts: then nothing was changed.", .example = "true"),
    REPLY("undo", OP_STR, "The snapshot of the target before; null: nothing was changed.", .nullable = true, .example = "sn_01k4r8w2m9h5t7c3xqvd"),
    REPLY("applied", OP_INT, "Number of changes that the target gets.", .example = "12"),
    REPLY("already", OP_INT, "Number of changes that it has already.", .example = "0"),
    REPLY("conflicts", OP_INT, "Number of files that both have changed, and nobody has decided.", .example = "0"),
    REPLY("kept", OP_INT, "Number of conflicts decided for the target.", .example = "0"),
    REPLY("changes", OP_JSON, "The changes, each with its 'verdict': apply, already, conflict or kept; all conflicts, and at most 1,000 others.", .types = "array"),
};
const struct op op_merge = {
    .name = "fork.apply",
    .group = "snapshot",
    .text = "Bring what a fork has changed into another sandbox.\n"
            "Compares three states: the snapshot that it was forked from, the fork, and the target. What the target has changed since stays. "
            "Where both have changed the same file otherwise, that is a conflict: without a decision for each, nothing is changed. The "
            "commands of both stand still meanwhile. The target's files before become an automatic snapshot.",
    .method = "POST",
    .path = "/holt/v1/forks/{id}/apply",
    .verb = "apply",
    .perm = PERM_SANDBOX_WRITE,
    IN(merge_fields, struct merge_in),
    OUT(merge_reply, "Merged"),
};
/* clang-format on */
