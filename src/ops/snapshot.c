/* snapshot: operations on snapshots, and what is made of them. */
#include "ops/snapshot.h"

#include "ops/rows.h"

/* clang-format off */
static const struct op_field snapshot_reply[] = {
    REPLY("id", OP_STR, "The snapshot's id.", .example = "sn_01k4r8w2m9h5t7c3xqvd"),
    REPLY("name", OP_STR, "Its name; unique in its sandbox. Elsewhere: SANDBOX@NAME.", .example = "clean"),
    REPLY("sandbox", OP_STR, "The sandbox it was taken of, which may be gone.", .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("sandbox_name", OP_STR, "The name that one had; null: none.", .nullable = true, .example = "build"),
    REPLY("parent", OP_STR, "The snapshot before it; null: none.", .nullable = true, .example = "sn_01k4r8w2m9h5t7c3xqvc"),
    REPLY("owner", OP_STR, "The sandbox's owner.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("tenant", OP_STR, "The tenant it belongs to; null: none.", .nullable = true, .example = "acme"),
    REPLY("image", OP_STR, "The image below it.", .example = "host"),
    REPLY("host", OP_STR, "Identity of the host image it was taken on: of its release and packages; null: it has an image of its own.", .nullable = true),
    REPLY("runtime", OP_STR, "The runtime of its sandbox.", .example = "native"),
    REPLY("labels", OP_MAP, "Labels of your choice.", .example = "step=3"),
    REPLY("automatic", OP_BOOL, "True if holt took it, before a restore or for a fork: it is removed with its sandbox.", .example = "false"),
    REPLY("digest", OP_STR, "Digest of its files: of names, types, modes, owners, attributes and contents.", .example = "sha256:9f86d0…"),
    REPLY("size_bytes", OP_INT, "Size of its own files on disk; those of its parents are not in it.", .example = "1048576"),
    REPLY("entries", OP_INT, "Number of its own files, directories and removals.", .example = "120"),
    REPLY("frozen_us", OP_INT, "How long the commands of its sandbox stood still for it, in microseconds; 0: they did not run.", .example = "1800"),
    REPLY("created_at", OP_TIME, "When it was taken.", .example = "2026-01-02T03:04:05.678Z"),
};
#define SNAPSHOT_OUT OUT(snapshot_reply, "Snapshot")
#define SANDBOX_REF(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, \
          .example = "build", .text = "The sandbox's id or name.")

static const struct op_field snapshot_create_fields[] = {
    SANDBOX_REF(struct snapshot_create_in),
    FIELD(struct snapshot_create_in, name, OP_STR, .positional = true, .max = 63, .pattern = OP_PATTERN_NAME, .example = "clean",
          .text = "Its name, unique in the sandbox. Default: s1, s2 and so on."),
    FIELD(struct snapshot_create_in, labels, OP_MAP, .max = 64, .example = "step=3", .text = "Labels of your choice."),
};
const struct op op_snapshot_create = {
    .name = "snapshot.create",
    .group = "snapshot",
    .text = "Take a snapshot of a sandbox's files, whether it runs or not.\n"
            "Its commands stand still while the files are copied; what they write afterwards is not in it. Volumes, mounts and memory "
            "are not in it either.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/snapshots",
    .verb = "snapshot create",
    .perm = PERM_SANDBOX_WRITE,
    IN(snapshot_create_fields, struct snapshot_create_in),
    SNAPSHOT_OUT,
    .status = 201,
};

static const struct op_field snapshot_list_fields[] = {
    FIELD(struct snapshot_list_in, sandbox, OP_STR, .positional = true, .max = 255, .example = "build",
          .text = "Only those of this sandbox."),
    FIELD(struct snapshot_list_in, label, OP_MAP, .max = 64, .example = "step=3", .text = "Only those with these labels."),
    FIELD(struct snapshot_list_in, all, OP_BOOL, .preset = "false", .example = "true", .text = "Include automatic ones."),
    FIELD(struct snapshot_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct snapshot_list_in, cursor, OP_STR, .max = 64, .example = "sn_01k4r8w2m9h5t7c3xqvd",
          .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_snapshot_list = {
    .name = "snapshot.list",
    .group = "snapshot",
    .text = "List the snapshots, oldest first.",
    .method = "GET",
    .path = "/holt/v1/snapshots",
    .verb = "snapshot ls",
    .perm = PERM_SANDBOX_READ,
    IN(snapshot_list_fields, struct snapshot_list_in),
    .reply = OP_REPLY_LIST,
    SNAPSHOT_OUT,
    .items = "snapshots",
    .columns = "id,sandbox,name,parent,size_bytes,created_at",
};

static const struct op_field snapshot_id_fields[] = {
    FIELD(struct snapshot_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 400,
          .example = "build@clean", .text = "The snapshot's id, or SANDBOX@NAME."),
};
const struct op op_snapshot_get = {
    .name = "snapshot.get",
    .group = "snapshot",
    .text = "Show one snapshot.",
    .method = "GET",
    .path = "/holt/v1/snapshots/{id}",
    .verb = "snapshot inspect",
    .perm = PERM_SANDBOX_READ,
    IN(snapshot_id_fields, struct snapshot_id_in),
    SNAPSHOT_OUT,
};
const struct op op_snapshot_remove = {
    .name = "snapshot.remove",
    .group = "snapshot",
    .text = "Remove a snapshot; sandboxes and snapshots that were made from it stay.\n"
            "Its files are removed when nothing needs them any more.",
    .method = "DELETE",
    .path = "/holt/v1/snapshots/{id}",
    .verb = "snapshot rm",
    .perm = PERM_SANDBOX_WRITE,
    IN(snapshot_id_fields, struct snapshot_id_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field restore_fields[] = {
    SANDBOX_REF(struct snapshot_restore_in),
    FIELD(struct snapshot_restore_in, snapshot, OP_STR, .required = true, .positional = true, .min = 1, .max = 400,
          .example = "clean", .text = "The snapshot: a name of this sandbox's, an id, or SANDBOX@NAME."),
};
static const struct op_field restore_reply[] = {
    REPLY("sandbox", OP_STR, "The sandbox's id.", .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("snapshot", OP_STR, "The snapshot whose files it has now.", .example = "sn_01k4r8w2m9h5t7c3xqvd"),
    REPLY("undo", OP_STR, "The snapshot of the files it had before: restore it to undo this.", .example = "sn_01k4r8w2m9h5t7c3xqve"),
    REPLY("execs_ended", OP_INT, "Number of commands that this has ended.", .example = "1"),
};
const struct op op_snapshot_restore = {
    .name = "snapshot.restore",
    .group = "snapshot",
    .text = "Bring a sandbox back to a snapshot, in place: same id, name and address.\n"
            "Its commands end. Volumes and mounts stay as they are. What it had before becomes an automatic snapshot, so that this can "
            "be undone. It runs again if it ran.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/restore",
    .verb = "restore",
    .perm = PERM_SANDBOX_WRITE,
    IN(restore_fields, struct snapshot_restore_in),
    OUT(restore_reply, "Restored"),
};

static const struct op_field fork_fields[] = {
    FIELD(struct fork_in, source, OP_STR, .required = true, .positional = true, .min = 1, .max = 400, .example = "build",
          .text = "A sandbox, in any state, or a snapshot: its id, or SANDBOX@NAME."),
    FIELD(struct fork_in, count, OP_INT, .min = 1, .max = 64, .preset = "1", .example = "8", .text = "How many to make."),
    FIELD(struct fork_in, name, OP_STR, .max = 58, .pattern = OP_PATTERN_NAME, .example = "try",
          .text = "Its name; of several: NAME-1, NAME-2 and so on. Default: no name."),
    FIELD(struct fork_in, env, OP_MAP, .max = 1024, .secret = true, .example = "CI=1",
          .text = "Environment variables, added to those of the source."),
    SANDBOX_FIELD(struct fork_in, labels, OP_MAP, .max = 64, .example = "team=blue", .text = "Labels; none are inherited."),
    SANDBOX_FIELD(struct fork_in, network, OP_JSON, .types = "string|object", .text = NETWORK_TEXT " Default: as the source."),
    SANDBOX_FIELD(struct fork_in, allow, OP_LIST, .max = 256, .example = "*.example.com",
                  .text = "Hosts it may reach: rules of an allowlist."),
    SANDBOX_FIELD(struct fork_in, volumes, OP_JSON, .types = "array",
                  .text = "Volumes to mount: a list of {\"name\", \"path\", \"read_only\"}. None are inherited."),
    SANDBOX_FIELD(struct fork_in, secrets, OP_JSON, .types = "array",
                  .text = "Secrets it may use: a list of {\"name\", \"env\"}. None are inherited."),
    SANDBOX_FIELD(struct fork_in, secret, OP_LIST, .max = 32, .example = "github-token=GH_TOKEN",
                  .text = "The same in short form: NAME or NAME=VARIABLE."),
    TRAIT_FIELD(struct fork_in, "memory_bytes", limits.memory_bytes, OP_SIZE, .min = 4194304, .max = 1LL << 50, .example = "512m",
                .text = "Memory limit. Default of this and the other limits: as the source."),
    TRAIT_FIELD(struct fork_in, "cpu_millis", limits.cpu_millis, OP_INT, .min = 10, .max = 1000000, .example = "1500",
                .text = "CPU limit, in thousandths of one core."),
    TRAIT_FIELD(struct fork_in, "pids", limits.pids, OP_INT, .min = 4, .max = 4194304, .example = "512",
                .text = "Limit of processes and threads."),
    TRAIT_FIELD(struct fork_in, "disk_bytes", limits.disk_bytes, OP_SIZE, .min = 1048576, .max = 1LL << 50, .example = "4g",
                .text = "Limit of the size of what it writes itself."),
    TRAIT_CREATE_FIELDS(struct fork_in),
};
static const struct op_field fork_reply[] = {
    REPLY("snapshot", OP_STR, "The snapshot they are made from.", .example = "sn_01k4r8w2m9h5t7c3xqvd"),
    REPLY("sandboxes", OP_JSON, "The new sandboxes: a list of Sandbox objects.", .types = "array"),
};
const struct op op_fork = {
    .name = "fork",
    .group = "snapshot",
    .text = "Make sandboxes with the files of a sandbox or a snapshot.\n"
            "Each costs what a create costs, whatever the size of the files; of a sandbox, its files are copied once before. Each has its "
            "source's image, environment, limits and network, but not its secrets, volumes, labels and lifetimes. All are made, or none.",
    .method = "POST",
    .path = "/holt/v1/forks",
    .verb = "fork",
    .perm = PERM_SANDBOX_WRITE,
    IN(fork_fields, struct fork_in),
    OUT(fork_reply, "Forks"),
    .status = 201,
};

static const struct op_field keep_fields[] = {
    FIELD(struct fork_keep_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,
          .example = "try-3", .text = "The sandbox to keep."),
};
static const struct op_field keep_reply[] = {
    REPLY("kept", OP_STR, "The sandbox that stays.", .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("removed", OP_LIST, "Ids of the others.", .example = "sb_01k4r8w2m9h5t7c3xqve"),
};
const struct op op_fork_keep = {
    .name = "fork.keep",
    .group = "snapshot",
    .text = "Keep one of several forks and destroy the others of the same snapshot that are yours.",
    .method = "POST",
    .path = "/holt/v1/forks/{id}/keep",
    .verb = "fork keep",
    .perm = PERM_SANDBOX_WRITE,
    IN(keep_fields, struct fork_keep_in),
    OUT(keep_reply, "Kept"),
};

/* clang-format on */
