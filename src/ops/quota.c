/* quota: what is used of the quotas. */
#include "ops/quota.h"

/* clang-format off */
static const struct op_field quota_reply[] = {
    REPLY("scope", OP_STR, "Whose it is: owner (the caller), tenant, or all.", .example = "owner"),
    REPLY("who", OP_STR, "The owner or tenant; null: all.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("resource", OP_STR, "One of sandboxes, running, cpu (thousandths of a core), memory, disk (bytes) and tasks.", .example = "memory"),
    REPLY("used", OP_INT, "What is used now: limits of sandboxes, added up; of cpu and memory, of those that are not off.", .example = "3221225472"),
    REPLY("limit", OP_INT, "The most; null: no limit.", .nullable = true, .example = "4294967296"),
    REPLY("setting", OP_STR, "The setting that changes it; null: there is none.", .nullable = true, .example = "owner_memory"),
};
const struct op op_quota_list = {
    .name = "quota.list",
    .group = "server",
    .text = "Show the quotas and what is used of them: the caller's own, its tenant's, and of all.",
    .method = "GET",
    .path = "/holt/v1/quotas",
    .verb = "quota",
    .perm = PERM_SANDBOX_READ,
    .out = quota_reply,
    .out_count = ARRAY_LEN(quota_reply),
    .schema = "Quota",
    .reply = OP_REPLY_LIST,
    .items = "quotas",
    .columns = "scope,who,resource,used,limit,setting",
};
/* clang-format on */
