/* webhook: operations on webhooks. */
#include "ops/webhook.h"

const char *const op_delivery_states[] = {"delivered", "failing", "dead", NULL};

/* clang-format off */
#define IN(fields, structure) .in = fields, .in_count = ARRAY_LEN(fields), .in_size = sizeof(structure)
#define OUT(fields, name) .out = fields, .out_count = ARRAY_LEN(fields), .schema = name
#define WEBHOOKS "/holt/v1/webhooks"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"
#define WEBHOOK_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, .example = "wh_01k4r8w2m9h5t7c3xqvd", .text = "The webhook's id.")

#define WEBHOOK_REPLY \
    REPLY("id", OP_STR, "The webhook's id.", .example = "wh_01k4r8w2m9h5t7c3xqvd"), \
    REPLY("url", OP_STR, "The receiver; null: a command.", .nullable = true, .example = "https://chat.example.org/hook"), \
    REPLY("command", OP_STR, "The command that gets each event on its standard input; null: a URL.", .nullable = true, .example = "curl -d @- https://chat.example.org/x"), \
    REPLY("allow", OP_LIST, "The hosts that command may reach.", .example = "chat.example.org"), \
    REPLY("types", OP_LIST, "The types of events that it gets; empty: all.", .example = "approval.*"), \
    REPLY("done_seq", OP_INT, "The last event that was delivered or given up.", .example = "42"), \
    REPLY("created_by", OP_STR, "The principal that created it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"), \
    REPLY("created_at", OP_TIME, "When it was created.", TIME_EXAMPLE)
static const struct op_field webhook_reply[] = {WEBHOOK_REPLY};
static const struct op_field new_webhook_reply[] = {
    WEBHOOK_REPLY,
    REPLY("secret", OP_STR, "The key of its signatures, shown only now.", .secret = true, .example = "0000000000000000000000000000000000000000000000000000000000000000"),
};
static const struct op_field webhook_add_fields[] = {
    FIELD(struct webhook_add_in, url, OP_STR, .positional = true, .min = 8, .max = 2048, .example = "https://chat.example.org/hook",
          .text = "The receiver; the setting webhook_hosts must allow its host."),
    FIELD(struct webhook_add_in, command, OP_STR, .min = 1, .max = 4096, .example = "curl -d @- https://chat.example.org/x",
          .text = "Instead of a URL: a command for /bin/sh in a throw-away sandbox of the host image, with the event's JSON on its standard input. "
                  "It may take 30 seconds; an exit status other than 0 is a failure."),
    FIELD(struct webhook_add_in, allow, OP_LIST, .max = 64, .example = "chat.example.org", .text = "Hosts that the command may reach. Default: none."),
    FIELD(struct webhook_add_in, types, OP_LIST, .max = 32, .example = "approval.*", .text = "Only events of these types. Default: all changes."),
};
const struct op op_webhook_add = {
    .name = "webhook.add", .group = "webhook", .text = "Send events to a URL, signed, or to a command, from now on.",
    .method = "POST", .path = WEBHOOKS, .verb = "webhook add", .perm = PERM_ADMIN, .status = 201,
    IN(webhook_add_fields, struct webhook_add_in), OUT(new_webhook_reply, "NewWebhook"),
};
static const struct op_field webhook_list_fields[] = {
    FIELD(struct webhook_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "At most this many in one page."),
    FIELD(struct webhook_list_in, cursor, OP_STR, .max = 64, .example = "wh_01k4r8w2m9h5t7c3xqvd", .text = "Continue after the last page: the cursor of its reply."),
};
const struct op op_webhook_list = {
    .name = "webhook.list", .group = "webhook", .text = "List the webhooks, oldest first.",
    .method = "GET", .path = WEBHOOKS, .verb = "webhook ls", .perm = PERM_ADMIN,
    IN(webhook_list_fields, struct webhook_list_in), .reply = OP_REPLY_LIST, OUT(webhook_reply, "Webhook"), .items = "webhooks",
    .columns = "id,url,command,types,done_seq,created_at",
};
static const struct op_field webhook_id_fields[] = {WEBHOOK_ID(struct webhook_id_in)};
const struct op op_webhook_remove = {
    .name = "webhook.remove", .group = "webhook", .text = "Remove a webhook and the list of its deliveries.",
    .method = "DELETE", .path = WEBHOOKS "/{id}", .verb = "webhook rm", .perm = PERM_ADMIN,
    IN(webhook_id_fields, struct webhook_id_in), .reply = OP_REPLY_EMPTY, .status = 204,
};
static const struct op_field webhook_test_reply[] = {
    REPLY("delivered", OP_BOOL, "Whether the receiver accepted it.", .example = "true"),
    REPLY("status", OP_INT, "The receiver's status; 0: no reply.", .example = "200"),
    REPLY("error", OP_STR, "Why it was not delivered; empty if it was."),
};
const struct op op_webhook_test = {
    .name = "webhook.test", .group = "webhook", .text = "Send an event of type 'webhook.test' now, once.",
    .method = "POST", .path = WEBHOOKS "/{id}/test", .verb = "webhook test", .perm = PERM_ADMIN,
    IN(webhook_id_fields, struct webhook_id_in), OUT(webhook_test_reply, "WebhookTest"),
};
static const struct op_field delivery_reply[] = {
    REPLY("seq", OP_INT, "The event.", .example = "42"),
    REPLY("type", OP_STR, "Its type.", .example = "approval.created"),
    REPLY("state", OP_CHOICE, "'failing': it is tried again; 'dead': it was given up.", .choices = op_delivery_states, .example = "delivered"),
    REPLY("attempts", OP_INT, "Number of attempts.", .example = "1"),
    REPLY("status", OP_INT, "Status of the last reply; 0: none. Of a command its exit status.", .example = "200"),
    REPLY("error", OP_STR, "Why the last attempt failed; empty: it did not."),
    REPLY("output", OP_STR, "What the command printed, 8 KiB at most; empty for a URL."),
    REPLY("at", OP_TIME, "When the last attempt ended.", TIME_EXAMPLE),
};
static const struct op_field webhook_deliveries_fields[] = {
    WEBHOOK_ID(struct webhook_deliveries_in),
    FIELD(struct webhook_deliveries_in, state, OP_CHOICE, .choices = op_delivery_states, .example = "dead", .text = "Only those in this state."),
    FIELD(struct webhook_deliveries_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "At most this many."),
};
const struct op op_webhook_deliveries = {
    .name = "webhook.deliveries", .group = "webhook", .text = "List the deliveries of a webhook, newest first; dead letters are kept longest.",
    .method = "GET", .path = WEBHOOKS "/{id}/deliveries", .verb = "webhook deliveries", .perm = PERM_ADMIN,
    IN(webhook_deliveries_fields, struct webhook_deliveries_in), .reply = OP_REPLY_LIST, OUT(delivery_reply, "Delivery"), .items = "deliveries",
};
/* clang-format on */
