/* team: operations on agents, messages and approvals. */
#include "ops/team.h"

const char *const op_agent_modes[] = {"manual", "advisory", "fully_autonomous", NULL};
const char *const op_agent_statuses[] = {"offline", "online",  "busy", "stalled",
                                         "paused",  "revoked", NULL};
const char *const op_approval_states[] = {"pending", "approved", "rejected", "closed", NULL};
const char *const op_approval_kinds[] = {"proposal", "egress", NULL};
const char *const op_approval_scopes[] = {"once", "sandbox", "always", NULL};

/* clang-format off */
#define IN(fields, structure) .in = fields, .in_count = ARRAY_LEN(fields), .in_size = sizeof(structure)
#define OUT(fields, name) .out = fields, .out_count = ARRAY_LEN(fields), .schema = name
#define AGENTS "/holt/v1/agents"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"
#define NAME(structure, words) \
    FIELD(structure, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "claude", .text = words)
#define REASON(structure) \
    FIELD(structure, reason, OP_STR, .max = 65536, .example = "reviewing output", .text = "Why; kept with it.")
#define LIMIT(structure, most) \
    FIELD(structure, limit, OP_INT, .min = 1, .max = 1000, .preset = most, .example = "20", .text = "At most this many in one page.")
#define CURSOR(structure) \
    FIELD(structure, cursor, OP_STR, .max = 256, .example = "claude", .text = "Continue after the last page: the cursor of its reply.")
#define CAPABILITIES(structure, words) \
    FIELD(structure, capabilities, OP_LIST, .max = 64, .example = "code", .text = words)

/* --- agents --- */

#define AGENT_REPLY \
    REPLY("name", OP_STR, "Its name, unique in the team.", .example = "claude"), \
    REPLY("type", OP_STR, "What kind of agent it is.", .example = "coder"), \
    REPLY("description", OP_STR, "What it says about itself."), \
    REPLY("status", OP_CHOICE, "How it is: heartbeats, checkpoints, tasks and people decide.", .choices = op_agent_statuses, .example = "online"), \
    REPLY("mode", OP_CHOICE, "How far it goes alone.", .choices = op_agent_modes, .example = "advisory"), \
    REPLY("mode_max", OP_CHOICE, "How far people let it go.", .choices = op_agent_modes, .example = "fully_autonomous"), \
    REPLY("capabilities", OP_LIST, "What it can do: tags.", .example = "code"), \
    REPLY("max_tasks", OP_INT, "Most open tasks on all boards; 0: no limit of its own.", .example = "3"), \
    REPLY("task_id", OP_STR, "The task of its last checkpoint or claim; null: none.", .nullable = true, .example = "cd_01k4r8w2m9h5t7c3xqvd"), \
    REPLY("checkpoint_sequence", OP_INT, "Number of its last checkpoint.", .example = "7"), \
    REPLY("metadata", OP_JSON, "What it said at its registration.", .types = "object"), \
    REPLY("registered_at", OP_TIME, "When it registered.", TIME_EXAMPLE), \
    REPLY("heartbeat_at", OP_TIME, "When it was last heard of.", TIME_EXAMPLE)
static const struct op_field agent_reply[] = {AGENT_REPLY};
static const struct op_field new_agent_reply[] = {
    AGENT_REPLY,
    REPLY("token", OP_STR, "A token that acts as this agent, shown now and never again; only when a person registers it with authentication on.",
          .nullable = true, .optional = true, .secret = true, .example = "holt_0000000000000000000000000000000000000000000"),
};

static const struct op_field agent_register_fields[] = {
    NAME(struct agent_register_in, "Its name: without commas and slashes."),
    FIELD(struct agent_register_in, type, OP_STR, .max = 128, .preset = "unknown", .example = "coder", .text = "What kind of agent it is."),
    FIELD(struct agent_register_in, mode, OP_CHOICE, .choices = op_agent_modes, .example = "advisory",
          .text = "How far it goes alone; the default mode if absent."),
    CAPABILITIES(struct agent_register_in, "What it can do: tags."),
    FIELD(struct agent_register_in, max_tasks, OP_INT, .max = 1000000, .example = "3",
          .text = "Most open tasks on all boards; 0: no limit; the setting agent_tasks if absent."),
    FIELD(struct agent_register_in, metadata, OP_JSON, .types = "object", .text = "Anything: an object."),
};
const struct op op_agent_register = {
    .name = "agent.register", .group = "agent",
    .text = "Register an agent, or register it again.\nA pause or a revocation that is open stays.",
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
          .text = "How far it goes alone; an agent itself goes no further than people let it."),
    CAPABILITIES(struct agent_update_in, "What it can do: tags, instead of those it has."),
    FIELD(struct agent_update_in, clear_capabilities, OP_BOOL, .preset = "false", .example = "true", .text = "It can do nothing any more."),
    FIELD(struct agent_update_in, description, OP_STR, .max = 65536, .example = "writes C", .text = "What it says about itself."),
    FIELD(struct agent_update_in, max_tasks, OP_INT, .max = 1000000, .example = "3",
          .text = "Most open tasks on all boards; 0: no limit; only people raise it."),
};
const struct op op_agent_update = {
    .name = "agent.update", .group = "agent", .text = "Change an agent's mode, capabilities, description or task limit.",
    .method = "PATCH", .path = AGENTS "/{name}", .verb = "agent set", .perm = PERM_TEAM_WRITE,
    IN(agent_update_fields, struct agent_update_in), OUT(agent_reply, "Agent"),
};
const struct op op_agent_remove = {
    .name = "agent.remove", .group = "agent", .text = "Remove an agent; its tasks return to ready, its tokens are revoked when a person does it.",
    .method = "DELETE", .path = AGENTS "/{name}", .verb = "agent rm", .perm = PERM_TEAM_WRITE,
    AGENT_NAME_IN, .reply = OP_REPLY_EMPTY, .status = 204,
};

static const struct op_field heartbeat_reply[] = {
    REPLY("ticks", OP_INT, "Heartbeats since its last checkpoint.", .example = "2"),
    REPLY("status", OP_CHOICE, "How it is: it learns here that people paused or revoked it.", .choices = op_agent_statuses, .example = "online"),
};
const struct op op_agent_heartbeat = {
    .name = "agent.heartbeat", .group = "agent", .text = "Send an agent's heartbeat.",
    .method = "POST", .path = AGENTS "/{name}/heartbeat", .verb = "agent heartbeat", .perm = PERM_TEAM_REPORT,
    AGENT_NAME_IN, OUT(heartbeat_reply, "Heartbeat"),
};

static const struct op_field agent_default_mode_fields[] = {
    FIELD(struct agent_default_mode_in, mode, OP_CHOICE, .required = true, .positional = true, .choices = op_agent_modes,
          .example = "advisory", .text = "How far they go alone."),
    FIELD(struct agent_default_mode_in, type, OP_STR, .max = 128, .example = "coder",
          .text = "Only registered agents of this type; absent: all agents, also later ones."),
};
static const struct op_field default_mode_reply[] = {
    REPLY("mode", OP_CHOICE, "The mode.", .choices = op_agent_modes, .example = "advisory"),
    REPLY("agents", OP_LIST, "The agents that have it now.", .example = "claude"),
};
const struct op op_agent_default_mode = {
    .name = "agent.default_mode", .group = "agent", .text = "Set the mode of all agents, present and future.",
    .method = "PUT", .path = "/holt/v1/autonomy", .verb = "agent default-mode", .perm = PERM_TEAM_RULE,
    IN(agent_default_mode_fields, struct agent_default_mode_in), OUT(default_mode_reply, "DefaultMode"),
};

static const struct op_field checkpoint_reply[] = {
    REPLY("id", OP_STR, "Name of the checkpoint.", .example = "ck_01k4r8w2m9h5t7c3xqvd"),
    REPLY("agent", OP_STR, "Whose it is.", .example = "claude"),
    REPLY("sequence", OP_INT, "Its number.", .example = "7"),
    REPLY("task_id", OP_STR, "The task it is about; null: none.", .nullable = true, .example = "cd_01k4r8w2m9h5t7c3xqvd"),
    REPLY("state", OP_STR, "What the agent is at.", .example = "implementing"),
    REPLY("rationale", OP_STR, "Why it is so.", .example = "user story 42"),
    REPLY("metadata", OP_JSON, "Anything: an object.", .types = "object"),
    REPLY("created_at", OP_TIME, "When it was made.", TIME_EXAMPLE),
};
static const struct op_field agent_checkpoint_fields[] = {
    NAME(struct agent_checkpoint_in, "The agent's name."),
    FIELD(struct agent_checkpoint_in, state, OP_STR, .positional = true, .max = 65536, .preset = "", .example = "implementing", .text = "What it is at."),
    FIELD(struct agent_checkpoint_in, rationale, OP_STR, .max = 65536, .preset = "", .example = "user story 42", .text = "Why it is so."),
    FIELD(struct agent_checkpoint_in, task_id, OP_STR, .max = 128, .preset = "", .example = "cd_01k4r8w2m9h5t7c3xqvd", .text = "The task it is about."),
    FIELD(struct agent_checkpoint_in, metadata, OP_JSON, .types = "object", .text = "Anything: an object."),
};
const struct op op_agent_checkpoint = {
    .name = "agent.checkpoint", .group = "agent", .text = "Record an agent's progress; an agent without checkpoints counts as stalled.",
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
    .name = "agent.resume", .group = "agent", .text = "End an agent's pause.",
    .method = "POST", .path = AGENTS "/{name}/resume", .verb = "agent resume", .perm = PERM_TEAM_RULE,
    AGENT_NAME_IN, OUT(agent_reply, "Agent"),
};
static const struct op_field directive_reply[] = {
    REPLY("id", OP_STR, "Name of the revocation.", .example = "dv_01k4r8w2m9h5t7c3xqvd"),
    REPLY("agent", OP_STR, "The agent it stops.", .example = "claude"),
    REPLY("reason", OP_STR, "Why it is so.", .example = "policy violation"),
    REPLY("flush", OP_BOOL, "Its tasks went back to ready.", .example = "true"),
    REPLY("issued_by", OP_STR, "Who gave it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("issued_at", OP_TIME, "When it was given.", TIME_EXAMPLE),
    REPLY("acknowledged_at", OP_TIME, "When the agent acknowledged it; null: not yet.", .nullable = true, TIME_EXAMPLE),
};
static const struct op_field agent_revoke_fields[] = {
    NAME(struct agent_revoke_in, "The agent's name; it need not be registered."), REASON(struct agent_revoke_in),
    FIELD(struct agent_revoke_in, flush, OP_BOOL, .preset = "true", .example = "false", .text = "Its tasks go back to ready at once."),
    FIELD(struct agent_revoke_in, stop, OP_BOOL, .preset = "false", .example = "true",
          .text = "Its sandboxes are stopped as well, their commands ended at once; files stay."),
};
const struct op op_agent_revoke = {
    .name = "agent.revoke", .group = "agent",
    .text = "Revoke an agent: until it acknowledges, it can only read and report on itself.",
    .method = "POST", .path = AGENTS "/{name}/revoke", .verb = "agent revoke", .perm = PERM_TEAM_RULE,
    IN(agent_revoke_fields, struct agent_revoke_in), OUT(directive_reply, "Revocation"),
};
static const struct op_field revocation_reply[] = {
    REPLY("pending", OP_BOOL, "One is open.", .example = "true"),
    REPLY("id", OP_STR, "Its name.", .nullable = true, .example = "dv_01k4r8w2m9h5t7c3xqvd"),
    REPLY("reason", OP_STR, "Why it is so.", .nullable = true, .example = "policy violation"),
    REPLY("flush", OP_BOOL, "Its tasks went back to ready.", .nullable = true, .example = "true"),
};
const struct op op_agent_revocation = {
    .name = "agent.revocation", .group = "agent", .text = "Show whether an agent is revoked.",
    .method = "GET", .path = AGENTS "/{name}/revocation", .verb = "agent revocation", .perm = PERM_TEAM_READ,
    AGENT_NAME_IN, OUT(revocation_reply, "PendingRevocation"),
};
static const struct op_field agent_ack_fields[] = {
    NAME(struct agent_ack_in, "The agent's name."),
    FIELD(struct agent_ack_in, id, OP_STR, .max = 64, .example = "dv_01k4r8w2m9h5t7c3xqvd", .text = "Which revocation; all open ones if absent."),
};
static const struct op_field ack_reply[] = {REPLY("ended", OP_INT, "How many revocations that ended.", .example = "1")};
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
    REPLY("id", OP_STR, "Name of the message.", .example = "ms_01k4r8w2m9h5t7c3xqvd"),
    REPLY("from", OP_STR, "Who sent it.", .example = "claude"),
    REPLY("to", OP_STR, "Who it is for; '*' is everybody.", .example = "hermes"),
    REPLY("type", OP_STR, "What kind it is, in the sender's words.", .example = "text"),
    REPLY("content", OP_STR, "What it says.", .example = "PR 42 is ready"),
    REPLY("delivered", OP_BOOL, "It was read.", .example = "true"),
    REPLY("acknowledged", OP_BOOL, "Its receiver is done with it.", .example = "false"),
    REPLY("sent_at", OP_TIME, "When it was sent.", TIME_EXAMPLE),
};
static const struct op_field message_send_fields[] = {
    FIELD(struct message_send_in, to, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "hermes",
          .text = "Who it is for: an agent's name, or '*' for all."),
    FIELD(struct message_send_in, content, OP_STR, .required = true, .positional = true, .max = 1048576, .example = "PR 42 is ready",
          .text = "What it says; addresses outside are refused."),
    FIELD(struct message_send_in, from, OP_STR, .max = 128, .preset = "human", .example = "claude", .text = "In whose name; an agent's own token has one."),
    FIELD(struct message_send_in, type, OP_STR, .min = 1, .max = 128, .preset = "text", .example = "text", .text = "What kind it is."),
};
const struct op op_message_send = {
    .name = "message.send", .group = "msg", .text = "Send a message; it waits until its receiver acknowledges it.",
    .method = "POST", .path = MESSAGES, .verb = "msg send", .perm = PERM_TEAM_WRITE,
    IN(message_send_fields, struct message_send_in), OUT(message_reply, "Message"), .status = 201, .creates = true,
};
static const struct op_field message_inbox_fields[] = {
    FIELD(struct message_inbox_in, agent, OP_STR, .positional = true, .max = 128, .preset = "human", .example = "claude",
          .text = "Whose inbox; an agent reads its own, and '*'."),
    FIELD(struct message_inbox_in, unread, OP_BOOL, .preset = "false", .example = "true",
          .text = "Only what is not acknowledged; without it all, which count as delivered then."),
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
    FIELD(struct message_history_in, a, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "claude", .text = "One of the two."),
    FIELD(struct message_history_in, b, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "hermes", .text = "The other."),
    LIMIT(struct message_history_in, "50"),
};
const struct op op_message_history = {
    .name = "message.history", .group = "msg", .text = "Read the messages between two agents, newest first.",
    .method = "GET", .path = MESSAGES "/history", .verb = "msg history", .perm = PERM_TEAM_READ,
    IN(message_history_fields, struct message_history_in), .reply = OP_REPLY_LIST, OUT(message_reply, "Message"), .items = "messages",
    .columns = "id,from,to,content,sent_at", .audited = true,
};
static const struct op_field edge_reply[] = {
    REPLY("from", OP_STR, "Who sent.", .example = "claude"),
    REPLY("to", OP_STR, "Who received.", .example = "hermes"),
    REPLY("count", OP_INT, "How many messages.", .example = "12"),
};
const struct op op_message_graph = {
    .name = "message.graph", .group = "msg", .text = "Show the number of messages between each pair of agents.",
    .method = "GET", .path = MESSAGES "/graph", .verb = "msg graph", .perm = PERM_TEAM_READ,
    .reply = OP_REPLY_LIST, OUT(edge_reply, "MessageEdge"), .items = "edges",
};

/* --- approvals --- */

#define APPROVALS "/holt/v1/approvals"
static const struct op_field approval_reply[] = {
    REPLY("id", OP_STR, "Name of the question.", .example = "ap_01k4r8w2m9h5t7c3xqvd"),
    REPLY("kind", OP_CHOICE, "Of an advisory agent about a task; of a sandbox about a host.", .choices = op_approval_kinds, .example = "proposal"),
    REPLY("agent", OP_STR, "Which agent wants it; null: a sandbox does.", .nullable = true, .example = "claude"),
    REPLY("action", OP_STR, "What it wants to do.", .example = "move"),
    REPLY("sandbox", OP_STR, "Which sandbox wants it; null: an agent does.", .nullable = true, .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("host", OP_STR, "Which host it wants to reach; null: none.", .nullable = true, .example = "example.com"),
    REPLY("port", OP_INT, "On which port; null: none.", .nullable = true, .example = "443"),
    REPLY("scope", OP_CHOICE, "How long the answer about a host lasts; null: not of that kind, or not decided.", .nullable = true,
          .choices = op_approval_scopes, .example = "once"),
    REPLY("project", OP_STR, "On which board; null: none.", .nullable = true, .example = "pj_01k4r8w2m9h5t7c3xqvd"),
    REPLY("task_id", OP_STR, "With which task; null: none.", .nullable = true, .example = "cd_01k4r8w2m9h5t7c3xqvd"),
    REPLY("to", OP_STR, "Of a move: where to; null: none.", .nullable = true, .example = "in_review"),
    REPLY("note", OP_STR, "What the asker adds."),
    REPLY("state", OP_CHOICE, "What became of it.", .choices = op_approval_states, .example = "pending"),
    REPLY("decided_by", OP_STR, "Who decided; null: nobody yet.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("reason", OP_STR, "Why, in the decider's words."),
    REPLY("created_at", OP_TIME, "When it was asked.", TIME_EXAMPLE),
    REPLY("decided_at", OP_TIME, "When it was decided; null: not yet.", .nullable = true, TIME_EXAMPLE),
    REPLY("expires_at", OP_TIME, "When no is the answer; null: never.", .nullable = true, TIME_EXAMPLE),
};
static const struct op_field approval_list_fields[] = {
    FIELD(struct approval_list_in, kind, OP_CHOICE, .choices = op_approval_kinds, .example = "egress", .text = "Only questions of this kind."),
    FIELD(struct approval_list_in, agent, OP_STR, .max = 128, .example = "claude", .text = "Only what this agent wants."),
    FIELD(struct approval_list_in, sandbox, OP_STR, .max = 64, .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "Only what the sandbox with this id wants."),
    FIELD(struct approval_list_in, state, OP_CHOICE, .choices = op_approval_states, .example = "pending", .text = "Only those in this state."),
    LIMIT(struct approval_list_in, "1000"),
    CURSOR(struct approval_list_in),
};
const struct op op_approval_list = {
    .name = "approval.list", .group = "approval", .text = "List the questions to people, oldest first.",
    .method = "GET", .path = APPROVALS, .verb = "approval ls", .perm = PERM_TEAM_READ,
    IN(approval_list_fields, struct approval_list_in), .reply = OP_REPLY_LIST, OUT(approval_reply, "Approval"), .items = "approvals",
    .columns = "id,kind,agent,action,task_id,to,sandbox,host,port,state,created_at",
};
#define APPROVAL_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, \
          .example = "ap_01k4r8w2m9h5t7c3xqvd", .text = "The question's id.")
static const struct op_field approval_id_fields[] = {APPROVAL_ID(struct approval_id_in)};
const struct op op_approval_get = {
    .name = "approval.get", .group = "approval", .text = "Show one question.",
    .method = "GET", .path = APPROVALS "/{id}", .verb = "approval inspect", .perm = PERM_TEAM_READ,
    IN(approval_id_fields, struct approval_id_in), OUT(approval_reply, "Approval"),
};
static const struct op_field approval_decide_fields[] = {
    APPROVAL_ID(struct approval_decide_in),
    REASON(struct approval_decide_in),
    FIELD(struct approval_decide_in, scope, OP_CHOICE, .choices = op_approval_scopes, .preset = "once", .example = "sandbox",
          .text = "Of a question about a host: for the connections that wait, for this sandbox, or always, for every sandbox of its tenant."),
};
const struct op op_approval_approve = {
    .name = "approval.approve", .group = "approval",
    .text = "Approve a question: its action is executed once, by the rules as they apply now.\nWhen they refuse it, the question stays open.",
    .method = "POST", .path = APPROVALS "/{id}/approve", .verb = "approval approve", .perm = PERM_TEAM_RULE,
    IN(approval_decide_fields, struct approval_decide_in), OUT(approval_reply, "Approval"),
};
const struct op op_approval_deny = {
    .name = "approval.deny", .group = "approval", .text = "Say no.",
    .method = "POST", .path = APPROVALS "/{id}/deny", .verb = "approval deny", .perm = PERM_TEAM_RULE,
    IN(approval_decide_fields, struct approval_decide_in), OUT(approval_reply, "Approval"),
};
/* clang-format on */
