/* volume: operations on volumes. */
#include "ops/volume.h"

const char *const op_volume_kinds[] = {"disk", "tmpfs", NULL};

/* clang-format off */
static const struct op_field volume_reply[] = {
    REPLY("id", OP_STR, "The volume's id, used in paths and events.", .example = "vl_01k4r8w2m9h5t7c3xqvd"),
    REPLY("name", OP_STR, "Its name, unique among its owner's volumes in one tenant.", .example = "cache"),
    REPLY("tenant", OP_STR, "The tenant whose sandboxes may use it; null: all tenants.", .nullable = true, .example = "acme"),
    REPLY("kind", OP_CHOICE, "Where its files are stored.", .choices = op_volume_kinds, .example = "disk"),
    REPLY("owner", OP_STR, "The principal that created it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("shared", OP_BOOL, "Whether others may mount it by name. They cannot remove it.", .example = "false"),
    REPLY("size_bytes", OP_INT, "Maximum size in bytes; null: limited by the disk only.", .nullable = true,
          .example = "67108864"),
    REPLY("used_bytes", OP_INT, "Size of its content in bytes; null in lists, and if it is unknown.", .nullable = true,
          .example = "4096"),
    REPLY("used_by", OP_INT, "Number of sandboxes that mount it, including stopped ones.", .example = "2"),
    REPLY("created_at", OP_TIME, "When it was created.", .example = "2026-01-02T03:04:05.678Z"),
};
#define VOLUME_OUT .out = volume_reply, .out_count = ARRAY_LEN(volume_reply), .schema = "Volume"
#define TENANT(structure, words) \
    FIELD(structure, tenant, OP_STR, .max = 100, .pattern = OP_PATTERN_NAME, .example = "acme", .text = words)

static const struct op_field volume_create_fields[] = {
    FIELD(struct volume_create_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 63,
          .pattern = OP_PATTERN_NAME, .example = "cache", .text = "A name for it, unique among your volumes in one tenant."),
    TENANT(struct volume_create_in, "Only sandboxes of this tenant may mount it. Default: your tenant."),
    FIELD(struct volume_create_in, kind, OP_CHOICE, .choices = op_volume_kinds, .preset = "disk", .example = "tmpfs",
          .text = "'disk' keeps its files until it is removed. 'tmpfs' is memory; its files are lost when the last "
                  "running sandbox that mounts it stops."),
    FIELD(struct volume_create_in, size_bytes, OP_SIZE, .min = 4096, .max = 1LL << 44, .example = "256m",
          .text = "Maximum size of a tmpfs. Default: 64m."),
    FIELD(struct volume_create_in, shared, OP_BOOL, .preset = "false", .example = "true",
          .text = "Let others mount it by name. Not allowed for agents."),
};
const struct op op_volume_create = {
    .name = "volume.create",
    .group = "volume",
    .text = "Create a volume: files that sandboxes share and that outlive them.",
    .method = "POST",
    .path = "/holt/v1/volumes",
    .verb = "volume create",
    .perm = PERM_SANDBOX_WRITE,
    .in = volume_create_fields,
    .in_count = ARRAY_LEN(volume_create_fields),
    .in_size = sizeof(struct volume_create_in),
    VOLUME_OUT,
    .status = 201,
    .creates = true,
};

static const struct op_field volume_list_fields[] = {
    TENANT(struct volume_list_in, "Only those of this tenant."),
    FIELD(struct volume_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct volume_list_in, cursor, OP_STR, .max = 64, .example = "vl_01k4r8w2m9h5t7c3xqvd",
          .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_volume_list = {
    .name = "volume.list",
    .group = "volume",
    .text = "List the volumes, oldest first. An agent sees only its own.",
    .method = "GET",
    .path = "/holt/v1/volumes",
    .verb = "volume ls",
    .perm = PERM_SANDBOX_READ,
    .in = volume_list_fields,
    .in_count = ARRAY_LEN(volume_list_fields),
    .in_size = sizeof(struct volume_list_in),
    .reply = OP_REPLY_LIST,
    VOLUME_OUT,
    .items = "volumes",
    .columns = "id,name,tenant,kind,size_bytes,used_by,created_at",
};

#define ID_FIELDS(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, \
          .example = "cache", .text = "The volume's id or name; another owner's: OWNER/NAME."), \
    TENANT(structure, "Tenant of the volume. Default: any.")
static const struct op_field volume_id_fields[] = {
    ID_FIELDS(struct volume_id_in),
};
#define VOLUME_ID_IN \
    .in = volume_id_fields, .in_count = ARRAY_LEN(volume_id_fields), .in_size = sizeof(struct volume_id_in)

const struct op op_volume_get = {
    .name = "volume.get",
    .group = "volume",
    .text = "Show one volume and the size of its content.",
    .method = "GET",
    .path = "/holt/v1/volumes/{id}",
    .verb = "volume inspect",
    .perm = PERM_SANDBOX_READ,
    VOLUME_ID_IN,
    VOLUME_OUT,
};

static const struct op_field volume_update_fields[] = {
    ID_FIELDS(struct volume_update_in),
    FIELD(struct volume_update_in, shared, OP_BOOL, .required = true, .example = "true",
          .text = "Others may mount it by its name. Not for agents."),
};
const struct op op_volume_update = {
    .name = "volume.update",
    .group = "volume",
    .text = "Share a volume with others, or no longer; sandboxes that have it keep it.",
    .method = "PATCH",
    .path = "/holt/v1/volumes/{id}",
    .verb = "volume update",
    .perm = PERM_SANDBOX_WRITE,
    .in = volume_update_fields,
    .in_count = ARRAY_LEN(volume_update_fields),
    .in_size = sizeof(struct volume_update_in),
    VOLUME_OUT,
};

const struct op op_volume_remove = {
    .name = "volume.remove",
    .group = "volume",
    .text = "Remove a volume and its files. Refused while a sandbox uses it.",
    .method = "DELETE",
    .path = "/holt/v1/volumes/{id}",
    .verb = "volume rm",
    .perm = PERM_SANDBOX_WRITE,
    VOLUME_ID_IN,
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};
/* clang-format on */
