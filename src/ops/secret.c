/* secret: operations on secrets. */
#include "ops/secret.h"

/* clang-format off */
static const struct op_field secret_reply[] = {
    REPLY("id", OP_STR, "The secret's id in events. A secret that is removed and created again gets another id.",
          .example = "sc_01k4r8w2m9h5t7c3xqvd"),
    REPLY("name", OP_STR, "Its name, unique in its tenant.", .example = "github-token"),
    REPLY("hosts", OP_LIST, "Hosts whose requests get the value: a name, or '*.example.com' for all names below it.",
          .example = "api.github.com"),
    REPLY("methods", OP_LIST, "Only requests with these methods; null: all.", .nullable = true, .example = "GET"),
    REPLY("path", OP_STR, "Only requests with this path, a prefix if it ends in '*'; null: all.", .nullable = true, .example = "/repos/*"),
    REPLY("in", OP_LIST, "Where the placeholder is replaced: header, query, basic.", .example = "header"),
    REPLY("plain", OP_BOOL, "Whether it is also sent over plain HTTP.", .example = "false"),
    REPLY("owner", OP_STR, "The principal that created it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("tenant", OP_STR, "The tenant whose sandboxes may use it; null: sandboxes without a tenant.", .nullable = true, .example = "acme"),
    REPLY("used_by", OP_INT, "How many sandboxes have it, stopped ones too.", .example = "2"),
    REPLY("created_at", OP_TIME, "When it was created.", .example = "2026-01-02T03:04:05.678Z"),
    REPLY("updated_at", OP_TIME, "When it was last changed.", .example = "2026-01-02T03:04:05.678Z"),
    REPLY("rotated_at", OP_TIME, "When its value was last set.", .example = "2026-01-02T03:04:05.678Z"),
};
#define SECRET_OUT .out = secret_reply, .out_count = ARRAY_LEN(secret_reply), .schema = "Secret"

#define NAME(...) \
    FIELD(struct secret_set_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 63, \
          .pattern = OP_PATTERN_NAME, .example = "github-token", .text = "The secret's name.")
#define RULE \
    FIELD(struct secret_set_in, hosts, OP_LIST, .max = 32, .example = "api.github.com", \
          .text = "Hosts whose requests get the value: a name, or '*.example.com' for all names below it."), \
    FIELD(struct secret_set_in, methods, OP_LIST, .max = 16, .example = "GET", \
          .text = "Only requests with these methods. Default: all."), \
    FIELD(struct secret_set_in, path, OP_STR, .max = 1024, .example = "/repos/*", \
          .text = "Only requests with this path, a prefix if it ends in '*'. Default: all."), \
    FIELD(struct secret_set_in, in, OP_LIST, .max = 3, .example = "header", \
          .text = "Where the placeholder is replaced: header, query, basic (user and password of basic authentication). Default: all of them."), \
    FIELD(struct secret_set_in, plain, OP_BOOL, .example = "true", \
          .text = "Also send it over plain HTTP, where it can be read in transit.")
#define VALUE(...) \
    FIELD(struct secret_set_in, value, OP_STR, .max = 4096, .secret = true, .example = "the-value", .text = "The value; it is never shown.", \
          __VA_ARGS__)
#define SECRET_SET_IN(fields) .in = fields, .in_count = ARRAY_LEN(fields), .in_size = sizeof(struct secret_set_in)

static const struct op_field secret_create_fields[] = {NAME(), VALUE(.required = true), RULE};
const struct op op_secret_create = {
    .name = "secret.create",
    .group = "secret",
    .text = "Create a secret. A conflict if one of that name exists.",
    .method = "POST",
    .path = "/holt/v1/secrets",
    .perm = PERM_SECRETS,
    SECRET_SET_IN(secret_create_fields),
    SECRET_OUT,
    .status = 201,
};

static const struct op_field secret_set_fields[] = {NAME(), VALUE(.required = false), RULE};
const struct op op_secret_set = {
    .name = "secret.set",
    .group = "secret",
    .text = "Create or change a secret. Absent fields keep their values.\n"
            "Sandboxes hold only a placeholder. holt-egress replaces it with the value in requests to the secret's "
            "hosts. A change takes effect at once, also in running sandboxes.",
    .method = "PUT",
    .path = "/holt/v1/secrets/{name}",
    .verb = "secret set",
    .perm = PERM_SECRETS,
    SECRET_SET_IN(secret_set_fields),
    SECRET_OUT,
};

static const struct op_field secret_list_fields[] = {
    FIELD(struct secret_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct secret_list_in, cursor, OP_STR, .max = 64, .example = "sc_01k4r8w2m9h5t7c3xqvd",
          .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_secret_list = {
    .name = "secret.list",
    .group = "secret",
    .text = "List the secrets, oldest first, without their values.",
    .method = "GET",
    .path = "/holt/v1/secrets",
    .verb = "secret ls",
    .perm = PERM_SECRET_READ,
    .in = secret_list_fields,
    .in_count = ARRAY_LEN(secret_list_fields),
    .in_size = sizeof(struct secret_list_in),
    .reply = OP_REPLY_LIST,
    SECRET_OUT,
    .items = "secrets",
    .columns = "name,hosts,methods,path,in,plain,used_by,rotated_at",
};

static const struct op_field secret_id_fields[] = {
    FIELD(struct secret_id_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,
          .example = "github-token", .text = "The secret's name or id; another tenant's: TENANT/NAME."),
};
#define SECRET_ID_IN \
    .in = secret_id_fields, .in_count = ARRAY_LEN(secret_id_fields), .in_size = sizeof(struct secret_id_in)

const struct op op_secret_get = {
    .name = "secret.get",
    .group = "secret",
    .text = "Show one secret, without its value.",
    .method = "GET",
    .path = "/holt/v1/secrets/{name}",
    .verb = "secret inspect",
    .perm = PERM_SECRET_READ,
    SECRET_ID_IN,
    SECRET_OUT,
};

const struct op op_secret_remove = {
    .name = "secret.remove",
    .group = "secret",
    .text = "Remove a secret. Once the reply is sent, no sandbox can use it.",
    .method = "DELETE",
    .path = "/holt/v1/secrets/{name}",
    .verb = "secret rm",
    .perm = PERM_SECRETS,
    SECRET_ID_IN,
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

const struct op op_ca = {
    .name = "ca",
    .group = "secret",
    .text = "Print the certificate of the installation's authority, in PEM.\n"
            "Sandboxes with a network trust it. holt-egress uses it for hosts whose requests it intercepts.",
    .method = "GET",
    .path = "/holt/v1/ca",
    .verb = "ca",
    .perm = PERM_READ,
    .reply = OP_REPLY_TEXT,
    .media = "application/x-pem-file",
};
/* clang-format on */
