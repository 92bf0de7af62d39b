/* space: operations on disk space: what uses it, and removing what is old. */
#include "ops/space.h"

#include "ops/rows.h"

/* clang-format off */
static const struct op_field prune_fields[] = {
    FIELD(struct prune_in, older_than_ms, OP_DURATION, .min = 1000, .max = 315360000000, .preset = "30d", .example = "7d",
          .text = "Remove what is older than this."),
    FIELD(struct prune_in, what, OP_LIST, .max = 2, .example = "events",
          .text = "'events' (audit rows among them), 'commands' (ended ones, with their output and recordings); none: both."),
    FIELD(struct prune_in, yes, OP_BOOL, .preset = "false", .example = "true",
          .text = "Remove it. Without this the reply only says what would be removed."),
};
static const struct op_field prune_reply[] = {
    REPLY("removed", OP_BOOL, "Whether it was removed; false: it would be, with 'yes'.", .example = "false"),
    REPLY("events", OP_INT, "Events that are older.", .example = "12000"),
    REPLY("event_bytes", OP_INT, "Their size in bytes, about.", .example = "4194304"),
    REPLY("commands", OP_INT, "Commands that ended before that.", .example = "310"),
    REPLY("output_bytes", OP_INT, "Bytes of their output that are kept.", .example = "1048576"),
    REPLY("more", OP_BOOL, "There are more commands than are removed at once: ask again.", .example = "false"),
};
const struct op op_prune = {
    .name = "prune",
    .group = "server",
    .text = "Remove old events and old commands with their output, or show what would be removed.\n"
            "The chain of events stays verifiable: the hash of the last removed event is kept as its anchor.",
    .method = "POST",
    .path = "/holt/v1/prune",
    .verb = "prune",
    .perm = PERM_ADMIN,
    IN(prune_fields, struct prune_in),
    OUT(prune_reply, "Pruned"),
};

static const struct op_field df_reply[] = {
    REPLY("what", OP_STR, "What uses it.", .example = "output"),
    REPLY("count", OP_INT, "How many there are.", .example = "310"),
    REPLY("bytes", OP_INT, "Bytes on disk; null: not known here.", .nullable = true, .example = "1048576"),
    REPLY("text", OP_STR, "What is counted.", .example = "output logs of commands, which recordings are made from"),
};
const struct op op_df = {
    .name = "df",
    .group = "server",
    .text = "Show what uses how much disk. The rows add up to the row 'total'; 'events' are part of the database.",
    .method = "GET",
    .path = "/holt/v1/df",
    .verb = "df",
    .perm = PERM_READ,
    .reply = OP_REPLY_LIST,
    OUT(df_reply, "DiskUse"),
    .items = "use",
    .columns = "what,count,bytes,text",
};
/* clang-format on */
