/* settings: the operation that lists settings. */
#include "ops/server.h"

static const struct op_field setting_reply[] = {
    REPLY("key", OP_STR, "As in the settings file.", .example = "body_max"),
    REPLY("value", OP_JSON, "What is in force; null for a secret that is set.",
          .types = "string|integer|boolean|array|null"),
    REPLY("default", OP_STR, "What it is if nobody sets it, as one would write it.",
          .example = "16m"),
    REPLY("source", OP_STR, "Who set it: 'default', a file with its line, a variable or a flag.",
          .example = "flag --body-max"),
    REPLY("reloadable", OP_BOOL, "Does SIGHUP change it without a restart?", .example = "true"),
    REPLY("text", OP_STR, "What it does."),
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
