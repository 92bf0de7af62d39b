/* template: operations on templates. */
#include "ops/template.h"

const char *const op_template_own[] = {"name", "tenant", "pool", "shared", "template", NULL};

/* clang-format off */
static const struct op_field template_reply[] = {
    REPLY("id", OP_STR, "The template's id.", .example = "tp_01k4r8w2m9h5t7c3xqvd"),
    REPLY("name", OP_STR, "Its name; unique among its owner's in one tenant.", .example = "python"),
    REPLY("tenant", OP_STR, "The tenant it belongs to; null: none.", .nullable = true, .example = "acme"),
    REPLY("owner", OP_STR, "The owner: who created it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("shared", OP_BOOL, "True if others may use it by its name.", .example = "false"),
    REPLY("pool", OP_INT, "Sandboxes kept ready for it.", .example = "2"),
    REPLY("fields", OP_JSON, "The fields of a create that it sets. Of the environment the names only, with null.", .types = "object"),
    REPLY("warnings", OP_LIST, "What is not as it was asked for, in words.", .example = "runtime 'runsc' makes no sandboxes ahead"),
    REPLY("created_at", OP_TIME, "When it was created.", .example = "2026-01-02T03:04:05.678Z"),
};
#define TEMPLATE_OUT .out = template_reply, .out_count = ARRAY_LEN(template_reply), .schema = "Template"
#define TENANT(structure, words) \
    FIELD(structure, tenant, OP_STR, .max = 100, .pattern = OP_PATTERN_NAME, .example = "acme", .text = words)

static const struct op_field template_create_fields[] = {
    FIELD(struct template_create_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 63,
          .pattern = OP_PATTERN_NAME, .example = "python", .text = "Its name, unique among your templates in one tenant."),
    FIELD(struct template_create_in, pool, OP_INT, .max = 256, .preset = "0", .example = "2",
          .text = "Sandboxes to keep ready for it, besides those of the settings. Not for agents."),
    FIELD(struct template_create_in, shared, OP_BOOL, .preset = "false", .example = "true",
          .text = "Others may use it by its name. Not for agents."),
    SANDBOX_FIELDS(struct template_create_in),
    TRAIT_CREATE_FIELDS(struct template_create_in),
    FIELD(struct template_create_in, env, OP_MAP, .max = 1024, .secret = true, .example = "CI=1",
          .text = "Environment of every command in its sandboxes."),
};
const struct op op_template_create = {
    .name = "template.create",
    .group = "template",
    .text = "Create a template: the description of a sandbox under a name.\n"
            "create and run take it as 'template'; what a request says itself is stronger. Images, secrets and volumes are looked up "
            "when a sandbox is made.",
    .method = "POST",
    .path = "/holt/v1/templates",
    .verb = "template create",
    .perm = PERM_SANDBOX_WRITE,
    .in = template_create_fields,
    .in_count = ARRAY_LEN(template_create_fields),
    .in_size = sizeof(struct template_create_in),
    TEMPLATE_OUT,
    .status = 201,
    .creates = true,
};

static const struct op_field template_list_fields[] = {
    TENANT(struct template_list_in, "Only those of this tenant."),
    FIELD(struct template_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "At most this many in one page."),
    FIELD(struct template_list_in, cursor, OP_STR, .max = 64, .example = "tp_01k4r8w2m9h5t7c3xqvd",
          .text = "Continue after the last page: the cursor of its reply."),
};
const struct op op_template_list = {
    .name = "template.list",
    .group = "template",
    .text = "List the templates, oldest first; an agent sees its own and those that are shared.",
    .method = "GET",
    .path = "/holt/v1/templates",
    .verb = "template ls",
    .perm = PERM_SANDBOX_READ,
    .in = template_list_fields,
    .in_count = ARRAY_LEN(template_list_fields),
    .in_size = sizeof(struct template_list_in),
    .reply = OP_REPLY_LIST,
    TEMPLATE_OUT,
    .items = "templates",
    .columns = "id,name,tenant,owner,pool,created_at",
};

static const struct op_field template_id_fields[] = {
    FIELD(struct template_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,
          .example = "python", .text = "The template's id or name; another's: OWNER/NAME."),
    TENANT(struct template_id_in, "Of which tenant the name is; of any if absent."),
};
#define TEMPLATE_ID_IN \
    .in = template_id_fields, .in_count = ARRAY_LEN(template_id_fields), .in_size = sizeof(struct template_id_in)

const struct op op_template_get = {
    .name = "template.get",
    .group = "template",
    .text = "Show one template.",
    .method = "GET",
    .path = "/holt/v1/templates/{id}",
    .verb = "template inspect",
    .perm = PERM_SANDBOX_READ,
    TEMPLATE_ID_IN,
    TEMPLATE_OUT,
};

const struct op op_template_remove = {
    .name = "template.remove",
    .group = "template",
    .text = "Remove a template; sandboxes that were made by it stay.",
    .method = "DELETE",
    .path = "/holt/v1/templates/{id}",
    .verb = "template rm",
    .perm = PERM_SANDBOX_WRITE,
    TEMPLATE_ID_IN,
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};
/* clang-format on */
