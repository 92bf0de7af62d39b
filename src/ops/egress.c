/* egress: operations on remembered answers to network questions. */
#include "ops/egress.h"

/* clang-format off */
static const struct op_field rule_reply[] = {
    REPLY("id", OP_STR, "The rule's id, used in paths and events.", .example = "ru_01k4r8w2m9h5t7c3xqvd"),
    REPLY("allow", OP_BOOL, "Whether the host is allowed.", .example = "true"),
    REPLY("host", OP_STR, "The host it is about.", .example = "example.com"),
    REPLY("port", OP_INT, "The port it is about.", .example = "443"),
    REPLY("sandbox", OP_STR, "The sandbox it applies to; null: all sandboxes of the tenant.", .nullable = true,
          .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("tenant", OP_STR, "The tenant it applies to; null: sandboxes without a tenant.", .nullable = true, .example = "acme"),
    REPLY("created_by", OP_STR, "The principal that decided.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("created_at", OP_TIME, "When it was decided.", .example = "2026-01-02T03:04:05.678Z"),
};

static const struct op_field rule_list_fields[] = {
    FIELD(struct rule_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct rule_list_in, cursor, OP_STR, .max = 64, .example = "ru_01k4r8w2m9h5t7c3xqvd",
          .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_rule_list = {
    .name = "rule.list",
    .group = "rule",
    .text = "List the lasting decisions about hosts, oldest first.",
    .method = "GET",
    .path = "/holt/v1/rules",
    .verb = "rule ls",
    .perm = PERM_READ,
    .in = rule_list_fields,
    .in_count = ARRAY_LEN(rule_list_fields),
    .in_size = sizeof(struct rule_list_in),
    .reply = OP_REPLY_LIST,
    .out = rule_reply,
    .out_count = ARRAY_LEN(rule_reply),
    .schema = "Rule",
    .items = "rules",
    .columns = "id,allow,host,port,sandbox,tenant,created_by",
};

static const struct op_field rule_id_fields[] = {
    FIELD(struct rule_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64,
          .example = "ru_01k4r8w2m9h5t7c3xqvd", .text = "The rule's id."),
};
const struct op op_rule_remove = {
    .name = "rule.remove",
    .group = "rule",
    .text = "Remove a rule. Connections that only it allowed are reset; the next connection asks again.",
    .method = "DELETE",
    .path = "/holt/v1/rules/{id}",
    .verb = "rule rm",
    .perm = PERM_TEAM_RULE,
    .in = rule_id_fields,
    .in_count = ARRAY_LEN(rule_id_fields),
    .in_size = sizeof(struct rule_id_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};
/* clang-format on */
