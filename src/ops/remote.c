/* remote: operations on agents of other machines, and their secrets. */
#include "ops/remote.h"

#define SECRETS "/holt/v1/remote-secrets"

/* clang-format off */
#define PAGE(structure) \
    FIELD(structure, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "Maximum number of items in one page."), \
    FIELD(structure, cursor, OP_STR, .max = 64, .example = "build-host", .text = "Continue after the previous page: the cursor of its reply.")
#define AGENT(structure) \
    FIELD(structure, agent, OP_STR, .required = true, .positional = true, .min = 1, .max = 63, .example = "build-host", \
          .text = "The agent's id: up to 63 of a-z, 0-9 and '-'.")

static const struct op_field remote_reply[] = {
    REPLY("agent", OP_STR, "Its id, and the name of its sandbox.", .example = "build-host"),
    REPLY("sandbox", OP_STR, "Its sandbox.", .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("status", OP_STR, "Its link: ready, provisioning, stale or disconnected.", .example = "ready"),
    REPLY("hostname", OP_STR, "What its machine calls itself.", .example = "build-host.lan"),
    REPLY("address", OP_STR, "Its address, as it says.", .example = "10.0.0.7"),
    REPLY("system", OP_STR, "Its operating system and kernel.", .example = "Linux 6.1.0"),
    REPLY("cpus", OP_INT, "Its processors.", .example = "8"),
    REPLY("cpu_percent", OP_INT, "Its load in percent of all processors.", .example = "12"),
    REPLY("memory_used", OP_SIZE, "Bytes of memory in use.", .example = "1073741824"),
    REPLY("memory_total", OP_SIZE, "Bytes of memory.", .example = "8589934592"),
    REPLY("disk_used", OP_SIZE, "Bytes of its root filesystem in use.", .example = "1073741824"),
    REPLY("disk_total", OP_SIZE, "Bytes of its root filesystem.", .example = "8589934592"),
    REPLY("setup", OP_STR, "The step of its set-up; null: it says none.", .nullable = true, .example = "installing:docker"),
    REPLY("connected_at", OP_TIME, "Since when its last link has existed; null: none since holtd started.", .nullable = true, .example = "2026-01-02T03:04:05.678Z"),
    REPLY("heartbeat_at", OP_TIME, "Its last sign of life.", .example = "2026-01-02T03:04:05.678Z"),
};
static const struct op_field remote_list_fields[] = {PAGE(struct remote_list_in)};
const struct op op_remote_list = {
    .name = "remote.list",
    .group = "remote",
    .text = "List the agents on machines that holt did not make, with what they say of themselves.",
    .method = "GET",
    .path = "/holt/v1/remotes",
    .verb = "remote ls",
    .perm = PERM_SANDBOX_READ,
    .in = remote_list_fields,
    .in_count = ARRAY_LEN(remote_list_fields),
    .in_size = sizeof(struct remote_list_in),
    .out = remote_reply,
    .out_count = ARRAY_LEN(remote_reply),
    .schema = "Remote",
    .reply = OP_REPLY_LIST,
    .items = "remotes",
    .columns = "agent,status,hostname,address,cpu_percent,memory_used,memory_total,heartbeat_at",
};

static const struct op_field remote_secret_reply[] = {
    REPLY("agent", OP_STR, "The agent's id.", .example = "build-host"),
    REPLY("owner", OP_STR, "The principal that its sandbox belongs to; null: another tool wrote the hash.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("tenant", OP_STR, "The tenant of its sandbox; null: none.", .nullable = true, .example = "acme"),
    REPLY("rotating", OP_BOOL, "Whether the old secret is valid until the new one is used, or until grace_until.", .example = "false"),
    REPLY("grace_until", OP_TIME, "When the old secret ends; null: none is being replaced.", .nullable = true, .example = "2026-01-02T03:09:05.678Z"),
    REPLY("updated_at", OP_TIME, "When it was last set; null: not known.", .nullable = true, .example = "2026-01-02T03:04:05.678Z"),
    REPLY("secret", OP_STR, "The secret, when holt has made it: shown this once; otherwise null.", .nullable = true,
          .example = "5f0c1b7f0a4b6f0d9e8c7b6a59483726150f0e0d0c0b0a090807060504030201"),
};
#define SECRET_OUT .out = remote_secret_reply, .out_count = ARRAY_LEN(remote_secret_reply), .schema = "RemoteSecret"

const struct op op_remote_secrets = {
    .name = "remote.secrets",
    .group = "remote",
    .text = "List the secrets of agents on other machines, without the secrets.",
    .method = "GET",
    .path = SECRETS,
    .verb = "remote secrets",
    .perm = PERM_SECRET_READ,
    .in = remote_list_fields,
    .in_count = ARRAY_LEN(remote_list_fields),
    .in_size = sizeof(struct remote_list_in),
    SECRET_OUT,
    .reply = OP_REPLY_LIST,
    .items = "secrets",
    .columns = "agent,owner,rotating,updated_at",
};

static const struct op_field remote_add_fields[] = {
    AGENT(struct remote_add_in),
    FIELD(struct remote_add_in, secret, OP_STR, .min = 64, .max = 64, .pattern = OP_PATTERN_SHA256, .secret = true,
          .example = "5f0c1b7f0a4b6f0d9e8c7b6a59483726150f0e0d0c0b0a090807060504030201",
          .text = "Its secret: 64 hex digits. Default: a random one, which the reply shows once."),
};
const struct op op_remote_add = {
    .name = "remote.add",
    .group = "remote",
    .text = "Let an agent on another machine connect: makes its secret.\n"
            "Its sandbox will be the caller's. A conflict if it has a secret already.",
    .method = "POST",
    .path = SECRETS,
    .verb = "remote add",
    .perm = PERM_SECRETS,
    .in = remote_add_fields,
    .in_count = ARRAY_LEN(remote_add_fields),
    .in_size = sizeof(struct remote_add_in),
    SECRET_OUT,
    .status = 201,
};

static const struct op_field remote_rotate_fields[] = {
    AGENT(struct remote_rotate_in),
    FIELD(struct remote_rotate_in, grace_ms, OP_DURATION, .max = 7LL * 24 * 3600 * 1000, .preset = "5m", .example = "1h",
          .text = "How long the old secret stays valid if the new one is not used before; 0: it ends at once."),
};
const struct op op_remote_rotate = {
    .name = "remote.rotate",
    .group = "remote",
    .text = "Replace the secret of an agent; the reply shows the new one once. Its link stays.",
    .method = "POST",
    .path = SECRETS "/{agent}/rotate",
    .verb = "remote rotate",
    .perm = PERM_SECRETS,
    .in = remote_rotate_fields,
    .in_count = ARRAY_LEN(remote_rotate_fields),
    .in_size = sizeof(struct remote_rotate_in),
    SECRET_OUT,
};

static const struct op_field remote_revoke_fields[] = {AGENT(struct remote_revoke_in)};
const struct op op_remote_revoke = {
    .name = "remote.revoke",
    .group = "remote",
    .text = "Remove the secret of an agent: its link is cut, and it cannot connect any more.\n"
            "Its sandbox stays until it is removed or has been gone for too long.",
    .method = "DELETE",
    .path = SECRETS "/{agent}",
    .verb = "remote revoke",
    .perm = PERM_SECRETS,
    .in = remote_revoke_fields,
    .in_count = ARRAY_LEN(remote_revoke_fields),
    .in_size = sizeof(struct remote_revoke_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};
/* clang-format on */
