/* team: operations on agents and messages. */
#include "ops/team.h"
#include "ops/rows.h"

const char *const op_agent_modes[] = {"manual", "advisory", "fully_autonomous", NULL};
const char *const op_agent_statuses[] = {"offline", "online",  "busy", "stalled",
                                         "paused",  "revoked", NULL};

/* clang-format off */
#define AGENTS "/holt/v1/agents"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"
#define NAME(structure, words) \
    FIELD(structure, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "claude", .text = words)
#define REASON(structure) \
    FIELD(structure, reason, OP_STR, .max = 65536, .example = "reviewing output", .text = "The reason, which is kept.")
#define LIMIT(structure, most) \
    FIELD(structure, limit, OP_INT, .min = 1, .max = 1000, .preset = most, .example = "20", .text = "Maximum number of items in one page.")
#define CURSOR(structure) \
    FIELD(structure, cursor, OP_STR, .max = 256, .example = "claude", .text = "Continue after the previous page: the cursor of its reply.")
#define CAPABILITIES(structure, words) \
    FIELD(structure, capabilities, OP_LIST, .max = 64, .example = "code", .text = words)

/* --- agents --- */

#define AGENT_REPLY \
    REPLY("name", OP_STR, "Its name, unique in the team.", .example = "claude"), \
    REPLY("type", OP_STR, "Its type.", .example = "coder"), \
    REPLY("description", OP_STR, "Its description of itself."), \
    REPLY("status", OP_CHOICE, "Its status, which follows from its heartbeats, checkpoints and tasks and from what people decided.", .choices = op_agent_statuses, .example = "online"), \
    REPLY("mode", OP_CHOICE, "Its autonomy mode.", .choices = op_agent_modes, .example = "advisory"), \
    REPLY("mode_max", OP_CHOICE, "The autonomy mode that people gave it.", .choices = op_agent_modes, .example = "fully_autonomous"), \
    REPLY("capabilities", OP_LIST, "Its capabilities: tags.", .example = "code"), \
    REPLY("max_tasks", OP_INT, "Maximum number of open tasks on all boards; 0: no limit of its own.", .example = "3"), \
    REPLY("task_id", OP_STR, "The task of its last checkpoint or claim; null: none.", .nullable = true, .example = "cd_01k4r8w2m9h5t7c3xqvd"), \
    REPLY("checkpoint_sequence", OP_INT, "Number of its last checkpoint.", .example = "7"), \
    REPLY("metadata", OP_JSON, "Metadata of its registration.", .types = "object"), \
    REPLY("registered_at", OP_TIME, "When it registered.", TIME_EXAMPLE), \
    REPLY("heartbeat_at", OP_TIME, "When it was last heard from.", TIME_EXAMPLE)
static const struct op_field agent_reply[] = {AGENT_REPLY};
static const struct op_field new_agent_reply[] = {
    AGENT_REPLY,
    REPLY("token", OP_STR, "A token that acts as this agent, shown only now. Only if a person registers it and authentication is on.",
          .nullable = true, .optional = true, .secret = true, .example = "holt_0000000000000000000000000000000000000000000"),
};

static const struct op_field agent_register_fields[] = {
    NAME(struct agent_register_in, "Its name, without commas and slashes."),
    FIELD(struct agent_register_in, type, OP_STR, .max = 128, .preset = "unknown", .example = "coder", .text = "Its type."),
    FIELD(struct agent_register_in, mode, OP_CHOICE, .choices = op_agent_modes, .example = "advisory",
          .text = "Its autonomy mode. Default: the team's default mode."),
    CAPABILITIES(struct agent_register_in, "Its capabilities: tags."),
    FIELD(struct agent_register_in, max_tasks, OP_INT, .max = 1000000, .example = "3",
          .text = "Maximum number of open tasks on all boards; 0: no limit. Default: the setting 'agent_tasks'."),
    FIELD(struct agent_register_in, metadata, OP_JSON, .types = "object", .text = "Any data: an object."),
};
const struct op op_agent_register = {
    .name = "agent.register", .group = "agent",
    .text = "Register an agent, or register it again.\nA pause or a pending revocation stays in force.",
    .method = "POST", .path = AGENTS, .verb = "agent register", .perm = PERM_TEAM_REPORT,
    IN(agent_register_fields, struct agent_register_in), OUT(new_agent_reply, "NewAgent"), .status = 201, .creates = true,
};

static const struct op_field agent_list_fields[] = {
    FIELD(struct agent_list_in, capability, OP_STR, .max = 128, .example = "code", .text = "Only those with this tag."),
    FIELD(struct agent_list_in, status, OP_CHOICE, .choices = op_agent_statuses, .example = "online", .text = "Only those with this status."),
    LIMIT(struct agent_list_in, "100"), CURSOR(struct agent_list_in),
};
const struct op op_agent_list = {
    .name = "agent.list", .group = "agent", .text = "List the agents, by name.",
    .method = "GET", .path = AGENTS, .verb = "agent ls", .perm = PERM_TEAM_READ,
    IN(agent_list_fields, struct agent_list_in), .reply = OP_REPLY_LIST, OUT(agent_reply, "Agent"), .items = "agents",
    .columns = "name,type,status,mode,capabilities,task_id,heartbeat_at",
};

static const struct op_field agent_name_fields[] = {NAME(struct agent_name_in, "The agent's name.")};
#define AGENT_NAME_IN IN(agent_name_fields, struct agent_name_in)
const struct op op_agent_get = {
    .name = "agent.get", .group = "agent", .text = "Show one agent.",
    .method = "GET", .path = AGENTS "/{name}", .verb = "agent inspect", .perm = PERM_TEAM_READ,
    AGENT_NAME_IN, OUT(agent_reply, "Agent"),
};

static const struct op_field agent_update_fields[] = {
    NAME(struct agent_update_in, "The agent's name."),
    FIELD(struct agent_update_in, mode, OP_CHOICE, .choices = op_agent_modes, .example = "advisory",
          .text = "Its autonomy mode. An agent cannot raise its own above the one that people gave it."),
    CAPABILITIES(struct agent_update_in, "Its new capabilities: tags, which replace the others."),
    FIELD(struct agent_update_in, clear_capabilities, OP_BOOL, .preset = "false", .example = "true", .text = "Remove all its capabilities."),
    FIELD(struct agent_update_in, description, OP_STR, .max = 65536, .example = "writes C", .text = "Its description of itself."),
    FIELD(struct agent_update_in, max_tasks, OP_INT, .max = 1000000, .example = "3",
          .text = "Maximum number of open tasks on all boards; 0: no limit. Only people can raise it."),
};
const struct op op_agent_update = {
    .name = "agent.update", .group = "agent", .text = "Change an agent's mode, capabilities, description or task limit.",
    .method = "PATCH", .path = AGENTS "/{name}", .verb = "agent set", .perm = PERM_TEAM_WRITE,
    IN(agent_update_fields, struct agent_update_in), OUT(agent_reply, "Agent"),
};
const struct op op_agent_remove = {
    .name = "agent.remove", .group = "agent", .text = "Remove an agent. Its tasks return to 'ready'. Its tokens are revoked if a person removes it.",
    .method = "DELETE", .path = AGENTS "/{name}", .verb = "agent rm", .perm = PERM_TEAM_WRITE,
    AGENT_NAME_IN, .reply = OP_REPLY_EMPTY, .status = 204,
};

static const struct op_field heartbeat_reply[] = {
    REPLY("ticks", OP_INT, "Number of heartbeats since its last checkpoint.", .example = "2"),
    REPLY("status", OP_CHOICE, "Its status; this is how it learns that people paused or revoked it.", .choices = op_agent_statuses, .example = "online"),
};
const struct op op_agent_heartbeat = {
    .name = "agent.heartbeat", .group = "agent", .text = "Send an agent's heartbeat.",
    .method = "POST", .path = AGENTS "/{name}/heartbeat", .verb = "agent heartbeat", .perm = PERM_TEAM_REPORT,
    AGENT_NAME_IN, OUT(heartbeat_reply, "Heartbeat"),
};

static const struct op_field agent_default_mode_fields[] = {
    FIELD(struct agent_default_mode_in, mode, OP_CHOICE, .required = true, .positional = true, .choices = op_agent_modes,
          .example = "advisory", .text = "Their autonomy mode."),
    FIELD(struct agent_default_mode_in, type, OP_STR, .max = 128, .example = "coder",
          .text = "Only registered agents of this type. Default: all agents, including future ones."),
};
static const struct op_field default_mode_reply[] = {
    REPLY("mode", OP_CHOICE, "The autonomy mode.", .choices = op_agent_modes, .example = "advisory"),
    REPLY("agents", OP_LIST, "The agents with this mode now.", .example = "claude"),
};
const struct op op_agent_default_mode = {
    .name = "agent.default_mode", .group = "agent", .text = "Set the autonomy mode of all agents, present and future.",
    .method = "PUT", .path = "/holt/v1/autonomy", .verb = "agent default-mode", .perm = PERM_TEAM_RULE,
    IN(agent_default_mode_fields, struct agent_default_mode_in), OUT(default_mode_reply, "DefaultMode"),
};

static const struct op_field checkpoint_reply[] = {
    REPLY("id", OP_STR, "The checkpoint's id.", .example = "ck_01k4r8w2m9h5t7c3xqvd"),
    REPLY("agent", OP_STR, "The agent that recorded it.", .example = "claude"),
    REPLY("sequence", OP_INT, "Its sequence number.", .example = "7"),
    REPLY("task_id", OP_STR, "The task it is about; null: none.", .nullable = true, .example = "cd_01k4r8w2m9h5t7c3xqvd"),
    REPLY("state", OP_STR, "The agent's state.", .example = "implementing"),
    REPLY("rationale", OP_STR, "The reason.", .example = "user story 42"),
    REPLY("metadata", OP_JSON, "Any data: an object.", .types = "object"),
    REPLY("created_at", OP_TIME, "When it was created.", TIME_EXAMPLE),
};
static const struct op_field agent_checkpoint_fields[] = {
    NAME(struct agent_checkpoint_in, "The agent's name."),
    FIELD(struct agent_checkpoint_in, state, OP_STR, .positional = true, .max = 65536, .preset = "", .example = "implementing", .text = "The agent's state, in its own words."),
    FIELD(struct agent_checkpoint_in, rationale, OP_STR, .max = 65536, .preset = "", .example = "user story 42", .text = "The reason."),
    FIELD(struct agent_checkpoint_in, task_id, OP_STR, .max = 128, .preset = "", .example = "cd_01k4r8w2m9h5t7c3xqvd", .text = "The task it is about."),
    FIELD(struct agent_checkpoint_in, metadata, OP_JSON, .types = "object", .text = "Any data: an object."),
};
const struct op op_agent_checkpoint = {
    .name = "agent.checkpoint", .group = "agent", .text = "Record an agent's progress. An agent without checkpoints counts as stalled.",
    .method = "POST", .path = AGENTS "/{name}/checkpoints", .verb = "agent checkpoint", .perm = PERM_TEAM_REPORT,
    IN(agent_checkpoint_fields, struct agent_checkpoint_in), OUT(checkpoint_reply, "Checkpoint"), .status = 201, .creates = true,
};
static const struct op_field agent_checkpoints_fields[] = {
    NAME(struct agent_checkpoints_in, "The agent's name."), LIMIT(struct agent_checkpoints_in, "50"),
};
const struct op op_agent_checkpoints = {
    .name = "agent.checkpoints", .group = "agent", .text = "List the last checkpoints of an agent, newest first.",
    .method = "GET", .path = AGENTS "/{name}/checkpoints", .verb = "agent checkpoints", .perm = PERM_TEAM_READ,
    IN(agent_checkpoints_fields, struct agent_checkpoints_in), .reply = OP_REPLY_LIST, OUT(checkpoint_reply, "Checkpoint"),
    .items = "checkpoints", .columns = "sequence,task_id,state,rationale,created_at",
};

static const struct op_field agent_pause_fields[] = {NAME(struct agent_pause_in, "The agent's name."), REASON(struct agent_pause_in)};
const struct op op_agent_pause = {
    .name = "agent.pause", .group = "agent", .text = "Pause an agent: it takes no new tasks until a person resumes it.",
    .method = "POST", .path = AGENTS "/{name}/pause", .verb = "agent pause", .perm = PERM_TEAM_RULE,
    IN(agent_pause_fields, struct agent_pause_in), OUT(agent_reply, "Agent"),
};
const struct op op_agent_resume = {
    .name = "agent.resume", .group = "agent", .text = "Resume a paused agent.",
    .method = "POST", .path = AGENTS "/{name}/resume", .verb = "agent resume", .perm = PERM_TEAM_RULE,
    AGENT_NAME_IN, OUT(agent_reply, "Agent"),
};
static const struct op_field directive_reply[] = {
    REPLY("id", OP_STR, "The revocation's id.", .example = "dv_01k4r8w2m9h5t7c3xqvd"),
    REPLY("agent", OP_STR, "The agent that is revoked.", .example = "claude"),
    REPLY("reason", OP_STR, "The reason.", .example = "policy violation"),
    REPLY("flush", OP_BOOL, "Whether its tasks returned to 'ready'.", .example = "true"),
    REPLY("issued_by", OP_STR, "The principal that issued it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("issued_at", OP_TIME, "When it was issued.", TIME_EXAMPLE),
    REPLY("acknowledged_at", OP_TIME, "When the agent acknowledged it; null: not yet.", .nullable = true, TIME_EXAMPLE),
};
static const struct op_field agent_revoke_fields[] = {
    NAME(struct agent_revoke_in, "The agent's name; it need not be registered."), REASON(struct agent_revoke_in),
    FIELD(struct agent_revoke_in, flush, OP_BOOL, .preset = "true", .example = "false", .text = "Return its tasks to 'ready' at once."),
    FIELD(struct agent_revoke_in, stop, OP_BOOL, .preset = "false", .example = "true",
          .text = "Also stop its sandboxes: end their commands at once, keep their files."),
};
const struct op op_agent_revoke = {
    .name = "agent.revoke", .group = "agent",
    .text = "Revoke an agent: until it acknowledges, it may only read, and report its own state.",
    .method = "POST", .path = AGENTS "/{name}/revoke", .verb = "agent revoke", .perm = PERM_TEAM_RULE,
    IN(agent_revoke_fields, struct agent_revoke_in), OUT(directive_reply, "Revocation"),
};
static const struct op_field revocation_reply[] = {
    REPLY("pending", OP_BOOL, "Whether a revocation is pending.", .example = "true"),
    REPLY("id", OP_STR, "Its name.", .nullable = true, .example = "dv_01k4r8w2m9h5t7c3xqvd"),
    REPLY("reason", OP_STR, "The reason.", .nullable = true, .example = "policy violation"),
    REPLY("flush", OP_BOOL, "Whether its tasks returned to 'ready'.", .nullable = true, .example = "true"),
};
const struct op op_agent_revocation = {
    .name = "agent.revocation", .group = "agent", .text = "Show whether an agent is revoked.",
    .method = "GET", .path = AGENTS "/{name}/revocation", .verb = "agent revocation", .perm = PERM_TEAM_READ,
    AGENT_NAME_IN, OUT(revocation_reply, "PendingRevocation"),
};
static const struct op_field agent_ack_fields[] = {
    NAME(struct agent_ack_in, "The agent's name."),
    FIELD(struct agent_ack_in, id, OP_STR, .max = 64, .example = "dv_01k4r8w2m9h5t7c3xqvd", .text = "The revocation's id. Default: all pending ones."),
};
static const struct op_field ack_reply[] = {REPLY("ended", OP_INT, "Number of revocations that were acknowledged.", .example = "1")};
const struct op op_agent_ack = {
    .name = "agent.ack", .group = "agent", .text = "Acknowledge a revocation: the agent may act again.",
    .method = "POST", .path = AGENTS "/{name}/revocation/ack", .verb = "agent ack", .perm = PERM_TEAM_REPORT,
    IN(agent_ack_fields, struct agent_ack_in), OUT(ack_reply, "Acknowledged"),
};
static const struct op_field revocation_list_fields[] = {LIMIT(struct revocation_list_in, "50")};
const struct op op_revocation_list = {
    .name = "agent.revocations", .group = "agent", .text = "List the last revocations, newest first.",
    .method = "GET", .path = "/holt/v1/revocations", .verb = "agent revocations", .perm = PERM_TEAM_READ,
    IN(revocation_list_fields, struct revocation_list_in), .reply = OP_REPLY_LIST, OUT(directive_reply, "Revocation"), .items = "revocations",
};

/* --- messages --- */

#define MESSAGES "/holt/v1/messages"
static const struct op_field message_reply[] = {
    REPLY("id", OP_STR, "The message's id.", .example = "ms_01k4r8w2m9h5t7c3xqvd"),
    REPLY("from", OP_STR, "The sender.", .example = "claude"),
    REPLY("to", OP_STR, "The receiver; '*': everybody.", .example = "hermes"),
    REPLY("type", OP_STR, "Its type, chosen by the sender.", .example = "text"),
    REPLY("content", OP_STR, "Its content.", .example = "PR 42 is ready"),
    REPLY("delivered", OP_BOOL, "Whether it was delivered.", .example = "true"),
    REPLY("acknowledged", OP_BOOL, "Whether its receiver acknowledged it.", .example = "false"),
    REPLY("sent_at", OP_TIME, "When it was sent.", TIME_EXAMPLE),
};
static const struct op_field message_send_fields[] = {
    FIELD(struct message_send_in, to, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "hermes",
          .text = "The receiver: an agent's name, or '*' for everybody."),
    FIELD(struct message_send_in, content, OP_STR, .required = true, .positional = true, .max = 1048576, .example = "PR 42 is ready",
          .text = "Its content. Addresses of hosts outside are refused."),
    FIELD(struct message_send_in, from, OP_STR, .max = 128, .preset = "human", .example = "claude", .text = "The agent or person to act for. An agent's token always "
                                                                                                            "acts for its agent."),
    FIELD(struct message_send_in, type, OP_STR, .min = 1, .max = 128, .preset = "text", .example = "text", .text = "Its type."),
};
const struct op op_message_send = {
    .name = "message.send", .group = "msg", .text = "Send a message. It stays in the inbox until its receiver acknowledges it.",
    .method = "POST", .path = MESSAGES, .verb = "msg send", .perm = PERM_TEAM_WRITE,
    IN(message_send_fields, struct message_send_in), OUT(message_reply, "Message"), .status = 201, .creates = true,
};
static const struct op_field message_inbox_fields[] = {
    FIELD(struct message_inbox_in, agent, OP_STR, .positional = true, .max = 128, .preset = "human", .example = "claude",
          .text = "The inbox to read. An agent may read its own and '*'."),
    FIELD(struct message_inbox_in, unread, OP_BOOL, .preset = "false", .example = "true",
          .text = "Only messages that are not acknowledged. Without it, all messages are listed and marked as delivered."),
    LIMIT(struct message_inbox_in, "100"),
};
const struct op op_message_inbox = {
    .name = "message.inbox", .group = "msg", .text = "Read an inbox, oldest first.",
    .method = "GET", .path = MESSAGES, .verb = "msg ls", .perm = PERM_TEAM_READ,
    IN(message_inbox_fields, struct message_inbox_in), .reply = OP_REPLY_LIST, OUT(message_reply, "Message"), .items = "messages",
    .columns = "id,from,type,content,acknowledged,sent_at", .audited = true,
};
static const struct op_field message_id_fields[] = {
    FIELD(struct message_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64,
          .example = "ms_01k4r8w2m9h5t7c3xqvd", .text = "The message's id."),
};
const struct op op_message_ack = {
    .name = "message.ack", .group = "msg", .text = "Acknowledge a message: mark it as read.",
    .method = "POST", .path = MESSAGES "/{id}/ack", .verb = "msg ack", .perm = PERM_TEAM_WRITE,
    IN(message_id_fields, struct message_id_in), .reply = OP_REPLY_EMPTY, .status = 204,
};
static const struct op_field message_history_fields[] = {
    FIELD(struct message_history_in, a, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "claude", .text = "One agent."),
    FIELD(struct message_history_in, b, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "hermes", .text = "The other agent."),
    LIMIT(struct message_history_in, "50"),
};
const struct op op_message_history = {
    .name = "message.history", .group = "msg", .text = "Read the messages between two agents, newest first.",
    .method = "GET", .path = MESSAGES "/history", .verb = "msg history", .perm = PERM_TEAM_READ,
    IN(message_history_fields, struct message_history_in), .reply = OP_REPLY_LIST, OUT(message_reply, "Message"), .items = "messages",
    .columns = "id,from,to,content,sent_at", .audited = true,
};
static const struct op_field edge_reply[] = {
    REPLY("from", OP_STR, "The sender.", .example = "claude"),
    REPLY("to", OP_STR, "The receiver.", .example = "hermes"),
    REPLY("count", OP_INT, "Number of messages.", .example = "12"),
};
const struct op op_message_graph = {
    .name = "message.graph", .group = "msg", .text = "Show the number of messages between each pair of agents.",
    .method = "GET", .path = MESSAGES "/graph", .verb = "msg graph", .perm = PERM_TEAM_READ,
    .reply = OP_REPLY_LIST, OUT(edge_reply, "MessageEdge"), .items = "edges",
};
/* clang-format on */
