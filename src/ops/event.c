/* event: operations on the event log and the audit view. */
#include "ops/event.h"

static const struct op_field event_reply[] = {
    REPLY("seq", OP_INT, "Sequence number; all events have one order.", .example = "4711"),
    REPLY("time", OP_TIME, "When it happened.", .example = "2026-01-02T03:04:05.678Z"),
    REPLY("type", OP_STR, "The type of the event.", .example = "token.created"),
    REPLY("object", OP_STR, "The object it is about.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("actor", OP_STR, "The principal that caused it.",
          .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("data", OP_JSON, "The object's new values, complete, without secrets.",
          .types = "object"),
    REPLY("audit", OP_BOOL, "Whether it is an audit row: a read or a refusal, not a change.",
          .example = "false"),
    REPLY("count", OP_INT, "Number of equal audit rows folded into this one; else 1.",
          .example = "1"),
    REPLY("hash", OP_STR, "SHA-256 over the previous event's hash and this event.",
          .pattern = OP_PATTERN_SHA256),
};

/* Both lists have the same filters. */
#define EVENT_FILTERS(structure)                                                                   \
    FIELD(structure, type, OP_STR, .max = 100, .example = "token.*",                               \
          .text =                                                                                  \
              "Only events of this type; 'token.*' means all types that start with 'token.'."),    \
        FIELD(structure, object, OP_STR, .max = 100, .example = "token/",                          \
              .text = "Only events about this object; 'sandbox/' means all sandboxes."),           \
        FIELD(structure, actor, OP_STR, .max = 100, .example = "system",                           \
              .text = "Only events that this actor caused."),                                      \
        FIELD(structure, since, OP_SINCE, .example = "4711",                                       \
              .text = "Only events after this seq, or since this RFC 3339 time."),                 \
        FIELD(structure, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20",   \
              .text = "Maximum number of items in one page."),                                     \
        FIELD(structure, cursor, OP_STR, .max = 20, .pattern = OP_PATTERN_DIGITS,                  \
              .example = "4711",                                                                   \
              .text = "Continue after the previous page: the cursor of its reply.")

static const struct op_field event_list_fields[] = {
    EVENT_FILTERS(struct event_list_in),
    FIELD(struct event_list_in, follow, OP_BOOL, .preset = "false", .example = "true",
          .text = "Stay connected: send the existing events, then each new one as it happens."),
    FIELD(struct event_list_in, audit, OP_BOOL, .preset = "false", .example = "true",
          .text = "Include audit rows; needs the permission 'audit'."),
};
const struct op op_event_list = {
    .name = "event.list",
    .group = "event",
    .text = "List or follow the events: every change of state, in order.\nWith follow=true or "
            "'Accept: text/event-stream' the reply is a stream of server-sent events. Their id is "
            "the seq; 'Last-Event-ID' continues a stream. A WebSocket upgrade gets each event as a "
            "text message.",
    .method = "GET",
    .path = "/holt/v1/events",
    .verb = "events",
    .perm = PERM_EVENTS,
    .in = event_list_fields,
    .in_count = ARRAY_LEN(event_list_fields),
    .in_size = sizeof(struct event_list_in),
    .reply = OP_REPLY_LIST,
    .out = event_reply,
    .out_count = ARRAY_LEN(event_reply),
    .schema = "Event",
    .items = "events",
    .columns = "seq,time,type,object,actor,data.host",
    .streams = true,
};

static const struct op_field audit_list_fields[] = {EVENT_FILTERS(struct audit_list_in)};
const struct op op_audit_list = {
    .name = "audit.list",
    .group = "audit",
    .text = "List the audit rows: reads of content, refusals and logins.",
    .method = "GET",
    .path = "/holt/v1/audit",
    .verb = "audit ls",
    .perm = PERM_AUDIT,
    .in = audit_list_fields,
    .in_count = ARRAY_LEN(audit_list_fields),
    .in_size = sizeof(struct audit_list_in),
    .reply = OP_REPLY_LIST,
    .out = event_reply,
    .out_count = ARRAY_LEN(event_reply),
    .schema = "Event",
    .items = "events",
    .columns = "seq,time,type,object,actor,count",
    .audited = true,
};

static const struct op_field audit_verify_fields[] = {
    FIELD(struct audit_verify_in, head, OP_STR, .pattern = OP_PATTERN_SHA256,
          .example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
          .text = "A hash, kept elsewhere, that must be in the chain."),
};
static const struct op_field audit_verify_reply[] = {
    REPLY("ok", OP_BOOL, "Whether the chain is intact and holds the requested head.",
          .example = "true"),
    REPLY("first_seq", OP_INT, "The oldest event that is kept.", .example = "1"),
    REPLY("last_seq", OP_INT, "The newest event.", .example = "4711"),
    REPLY("checked", OP_INT, "Number of events that were checked.", .example = "4711"),
    REPLY("head", OP_STR, "Hash of the newest event. Keep a copy elsewhere.",
          .pattern = OP_PATTERN_SHA256),
    REPLY("broken_seq", OP_INT, "The first event that breaks the chain; null: none.",
          .nullable = true),
    REPLY("broken_why", OP_STR, "What is wrong with it.", .nullable = true),
    REPLY("head_found", OP_BOOL,
          "Whether the requested head is in the chain; null: none was requested.",
          .nullable = true),
    REPLY("head_seq", OP_INT, "The event with that hash.", .nullable = true),
};
const struct op op_audit_verify = {
    .name = "audit.verify",
    .group = "audit",
    .text = "Prove that no event was changed, removed or inserted later.\nEach event carries the "
            "hash of the one before. An attacker who can write the database could compute all "
            "hashes again: compare with a head that was kept elsewhere.",
    .method = "GET",
    .path = "/holt/v1/audit/verify",
    .verb = "audit verify",
    .perm = PERM_AUDIT,
    .in = audit_verify_fields,
    .in_count = ARRAY_LEN(audit_verify_fields),
    .in_size = sizeof(struct audit_verify_in),
    .out = audit_verify_reply,
    .out_count = ARRAY_LEN(audit_verify_reply),
    .schema = "AuditResult",
};
