/* token: operations on tokens. */
#include "ops/token.h"

const char *const op_roles[] = {"observer", "agent", "operator", "admin", NULL};

#define TOKEN_REPLY                                                                                \
    REPLY("id", OP_STR, "The token's id, used in paths and events.",                               \
          .example = "tk_01k4r8w2m9h5t7c3xqvd"),                                                   \
        REPLY("name", OP_STR, "Its description.", .example = "ci"),                                \
        REPLY("role", OP_CHOICE, "The permissions of its holder.", .choices = op_roles,            \
              .example = "operator"),                                                              \
        REPLY("agent", OP_STR, "The agent it acts as; null unless the role is 'agent'.",           \
              .nullable = true),                                                                   \
        REPLY("tenant", OP_STR, "The tenant of its holder; null: none.", .nullable = true,         \
              .example = "acme"),                                                                  \
        REPLY("person", OP_STR, "The person it belongs to; null: none.", .nullable = true,         \
              .example = "alice"),                                                                 \
        REPLY("content", OP_BOOL,                                                                  \
              "For the role 'observer': whether it may read files and output.",                    \
              .example = "false"),                                                                 \
        REPLY("created_at", OP_TIME, "When it was created.",                                       \
              .example = "2026-01-02T03:04:05.678Z"),                                              \
        REPLY("expires_at", OP_TIME, "When it expires; null: never.", .nullable = true),           \
        REPLY("last_used_at", OP_TIME, "When it was last used; null: never.", .nullable = true)

static const struct op_field token_reply[] = {TOKEN_REPLY};

static const struct op_field token_create_fields[] = {
    FIELD(struct token_create_in, name, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 100, .example = "ci", .text = "The token's purpose; shown in lists and events."),
    FIELD(struct token_create_in, role, OP_CHOICE, .choices = op_roles, .preset = "observer",
          .example = "operator",
          .text = "The permissions of its holder. Default: the role with the fewest."),
    FIELD(struct token_create_in, agent, OP_STR, .max = 100, .pattern = OP_PATTERN_NAME,
          .example = "builder-1",
          .text = "The agent it acts as. Required with the role 'agent', refused with others."),
    FIELD(struct token_create_in, ttl_ms, OP_DURATION, .min = 1000, .max = 315360000000,
          .example = "30d", .text = "It expires this long after its creation. Default: never."),
    FIELD(struct token_create_in, tenant, OP_STR, .max = 64, .pattern = OP_PATTERN_NAME,
          .example = "acme",
          .text = "The tenant of its holder, which sees and creates objects of this tenant only."),
    FIELD(struct token_create_in, person, OP_STR, .max = 100, .pattern = OP_PATTERN_NAME,
          .example = "alice",
          .text = "The person it belongs to. All tokens of a person count as one for approvals."),
    FIELD(struct token_create_in, content, OP_BOOL, .preset = "false", .example = "true",
          .text = "For the role 'observer': it may also read files and the output of commands."),
};
static const struct op_field token_create_reply[] = {
    TOKEN_REPLY,
    REPLY("token", OP_STR, "The token itself, shown only now.", .secret = true,
          .example = "holt_0000000000000000000000000000000000000000000"),
};
const struct op op_token_create = {
    .name = "token.create",
    .group = "token",
    .text = "Create a token and show it once.\nholt keeps only a hash of it: a lost token cannot "
            "be shown again.",
    .method = "POST",
    .path = "/holt/v1/tokens",
    .verb = "token create",
    .perm = PERM_TOKENS,
    .in = token_create_fields,
    .in_count = ARRAY_LEN(token_create_fields),
    .in_size = sizeof(struct token_create_in),
    .out = token_create_reply,
    .out_count = ARRAY_LEN(token_create_reply),
    .schema = "NewToken",
    .status = 201,
    .creates = true,
};

static const struct op_field token_list_fields[] = {
    FIELD(struct token_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct token_list_in, cursor, OP_STR, .max = 64, .example = "tk_01k4r8w2m9h5t7c3xqvd",
          .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_token_list = {
    .name = "token.list",
    .group = "token",
    .text = "List the valid tokens, oldest first.",
    .method = "GET",
    .path = "/holt/v1/tokens",
    .verb = "token ls",
    .perm = PERM_TOKENS,
    .in = token_list_fields,
    .in_count = ARRAY_LEN(token_list_fields),
    .in_size = sizeof(struct token_list_in),
    .reply = OP_REPLY_LIST,
    .out = token_reply,
    .out_count = ARRAY_LEN(token_reply),
    .schema = "Token",
    .items = "tokens",
    .columns = "id,name,role,agent,tenant,expires_at,last_used_at",
};

static const struct op_field token_id_fields[] = {
    FIELD(struct token_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64,
          .example = "tk_01k4r8w2m9h5t7c3xqvd", .text = "The token's id."),
};
const struct op op_token_get = {
    .name = "token.get",
    .group = "token",
    .text = "Show one token, without the token text itself.",
    .method = "GET",
    .path = "/holt/v1/tokens/{id}",
    .verb = "token inspect",
    .perm = PERM_TOKENS,
    .in = token_id_fields,
    .in_count = ARRAY_LEN(token_id_fields),
    .in_size = sizeof(struct token_id_in),
    .out = token_reply,
    .out_count = ARRAY_LEN(token_reply),
    .schema = "Token",
};

const struct op op_token_revoke = {
    .name = "token.revoke",
    .group = "token",
    .text = "Revoke a token: it stops working at once and cannot be restored.",
    .method = "DELETE",
    .path = "/holt/v1/tokens/{id}",
    .verb = "token revoke",
    .perm = PERM_TOKENS,
    .in = token_id_fields,
    .in_count = ARRAY_LEN(token_id_fields),
    .in_size = sizeof(struct token_id_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field token_self_reply[] = {
    REPLY("actor", OP_STR, "The caller's name in events.",
          .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("role", OP_CHOICE, "The caller's role.", .choices = op_roles, .example = "operator"),
    REPLY("id", OP_STR, "The caller's token; null if none was needed.", .nullable = true),
    REPLY("name", OP_STR, "The token's name.", .nullable = true, .example = "ci"),
    REPLY("agent", OP_STR, "The agent it acts as.", .nullable = true),
    REPLY("tenant", OP_STR, "The tenant of its holder; null: none.", .nullable = true),
    REPLY("person", OP_STR, "The person it belongs to; null: none.", .nullable = true),
    REPLY("expires_at", OP_TIME, "When it expires; null: never.", .nullable = true),
    REPLY("permissions", OP_LIST, "Its permissions, named as in `x-permission` of operations.",
          .example = "sandbox.read"),
};
const struct op op_token_self = {
    .name = "token.self",
    .group = "token",
    .text = "Show the token of this request.",
    .method = "GET",
    .path = "/holt/v1/tokens/self",
    .verb = "token whoami",
    .perm = PERM_SELF,
    .out = token_self_reply,
    .out_count = ARRAY_LEN(token_self_reply),
    .schema = "Self",
};
