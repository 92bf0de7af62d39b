/* settings: the operation that lists settings. */
#include "ops/server.h"

static const struct op_field setting_reply[] = {
    REPLY("key", OP_STR, "Its key in the settings file.", .example = "body_max"),
    REPLY("value", OP_JSON, "The value in force; null for a secret that is set.",
          .types = "string|integer|boolean|array|null"),
    REPLY("default", OP_STR, "The default, as written in a settings file.", .example = "16m"),
    REPLY("source", OP_STR,
          "Where it was set: 'default', a file with the line, a variable or a flag.",
          .example = "flag --body-max"),
    REPLY("reloadable", OP_BOOL, "Whether SIGHUP changes it without a restart.", .example = "true"),
    REPLY("text", OP_STR, "Its description."),
};
const struct op op_settings_list = {
    .name = "settings.list",
    .group = "server",
    .text = "List the settings in force and where each was set.",
    .method = "GET",
    .path = "/holt/v1/settings",
    .verb = "settings",
    .perm = PERM_READ,
    .reply = OP_REPLY_LIST,
    .out = setting_reply,
    .out_count = ARRAY_LEN(setting_reply),
    .schema = "Setting",
    .items = "settings",
    .columns = "key,value,source",
};
