/* approval: operations on questions to people and on grants. */
#include "ops/approval.h"
#include "ops/rows.h"

#include "ops/token.h"

const char *const op_approval_states[] = {"pending", "approved",  "rejected", "closed",
                                          "expired", "cancelled", NULL};
const char *const op_approval_kinds[] = {"proposal",  "egress",       "ask",    "destructive",
                                         "sensitive", "irreversible", "prompt", NULL};
const char *const op_approval_scopes[] = {"once", "sandbox", "always", "time", "rule", NULL};
const char *const op_ask_kinds[] = {"ask", "destructive", "sensitive", "irreversible", NULL};
const char *const op_urgencies[] = {"low", "medium", "high", NULL};

/* clang-format off */
#define APPROVALS "/holt/v1/approvals"
#define GRANTS "/holt/v1/grants"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"
#define BODY_MAX (4 * 1024 * 1024)
#define REASON(structure) \
    FIELD(structure, reason, OP_STR, .max = 65536, .example = "reviewing output", .text = "The reason; kept with the approval.")
#define LIMIT(structure, most) \
    FIELD(structure, limit, OP_INT, .min = 1, .max = 1000, .preset = most, .example = "20", .text = "At most this many in one page.")
#define CURSOR(structure) \
    FIELD(structure, cursor, OP_STR, .max = 256, .example = "ap_01k4r8w2m9h5t7c3xqvd", .text = "Continue after the last page: the cursor of its reply.")
#define WAIT(structure, words) \
    FIELD(structure, wait_ms, OP_DURATION, .max = 604800000, .preset = "0", .example = "1h", .text = words)
#define APPROVAL_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, \
          .example = "ap_01k4r8w2m9h5t7c3xqvd", .text = "The approval's id.")

static const struct op_field approval_reply[] = {
    REPLY("id", OP_STR, "The approval's id.", .example = "ap_01k4r8w2m9h5t7c3xqvd"),
    REPLY("kind", OP_CHOICE, "'proposal': an advisory agent wants to change a task. 'egress': a sandbox wants to reach a host. 'prompt': a session waits at its terminal. Others: a question of any caller.", .choices = op_approval_kinds, .example = "ask"),
    REPLY("state", OP_CHOICE, "Its state.", .choices = op_approval_states, .example = "pending"),
    REPLY("question", OP_STR, "The question; empty for proposals and hosts.", .example = "May I drop the table 'users'?"),
    REPLY("urgency", OP_CHOICE, "Its urgency.", .choices = op_urgencies, .example = "medium"),
    REPLY("asker", OP_STR, "The caller that asks, as named in events; null: an advisory agent or a network policy.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("agent", OP_STR, "The agent that asks; null: none.", .nullable = true, .example = "claude"),
    REPLY("action", OP_STR, "The action that it wants; for a question: the operation that its approval permits, or empty.", .example = "move"),
    REPLY("arguments", OP_JSON, "The arguments of the action; null: none.", .types = "object", .nullable = true),
    REPLY("hash", OP_STR, "SHA-256 of the action and its arguments, to which the grant is bound; null: no grant.", .nullable = true),
    REPLY("alternatives", OP_LIST, "Alternatives to choose from.", .example = "archive it"),
    REPLY("choice", OP_STR, "The chosen alternative; null: none.", .nullable = true, .example = "archive it"),
    REPLY("attachments", OP_JSON, "Objects {kind, name, content} that help to decide; lists leave the content out.", .types = "array"),
    REPLY("people", OP_INT, "Number of people who must approve.", .example = "1"),
    REPLY("votes", OP_INT, "Number of people who approved, if more than one must.", .example = "0"),
    REPLY("sandbox", OP_STR, "The sandbox it is about; null: none.", .nullable = true, .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("exec", OP_STR, "Of a prompt: the session that waits; null: not a prompt.", .nullable = true, .example = "ex_01k4r8w2m9h5t7c3xqvd"),
    REPLY("way", OP_STR, "How a prompt is answered: 'line', 'key', 'secret' or 'menu'; null: not a prompt.", .nullable = true, .example = "line"),
    REPLY("typed", OP_BOOL, "Of an answered prompt: whether the answer was typed; null: not answered, or not a prompt.", .nullable = true, .example = "true"),
    REPLY("host", OP_STR, "The host it wants to reach; null: none.", .nullable = true, .example = "example.com"),
    REPLY("port", OP_INT, "The port of that host; null: none.", .nullable = true, .example = "443"),
    REPLY("scope", OP_CHOICE, "Scope of the decision; null: not decided, or without a scope.", .nullable = true,
          .choices = op_approval_scopes, .example = "once"),
    REPLY("project", OP_STR, "The project of the task; null: none.", .nullable = true, .example = "pj_01k4r8w2m9h5t7c3xqvd"),
    REPLY("task_id", OP_STR, "The task; null: none.", .nullable = true, .example = "cd_01k4r8w2m9h5t7c3xqvd"),
    REPLY("to", OP_STR, "The column to move the task to; null: not a move.", .nullable = true, .example = "in_review"),
    REPLY("note", OP_STR, "The note of the agent or caller that asks."),
    REPLY("key", OP_STR, "The caller's key of its question; null: none, or another caller's.", .nullable = true, .example = "deploy-42"),
    REPLY("decided_by", OP_STR, "The principal that decided; null: not decided.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("reason", OP_STR, "The reason of the decision."),
    REPLY("created_at", OP_TIME, "When it was requested.", TIME_EXAMPLE),
    REPLY("decided_at", OP_TIME, "When it was decided; null: not yet.", .nullable = true, TIME_EXAMPLE),
    REPLY("expires_at", OP_TIME, "When it expires if nobody decides; null: never.", .nullable = true, TIME_EXAMPLE),
    REPLY("grant", OP_JSON, "In the reply to a decision: the grant that it makes, or would make; null: none.", .types = "object", .nullable = true, .optional = true),
};

static const struct op_field approval_ask_fields[] = {
    FIELD(struct approval_ask_in, question, OP_STR, .required = true, .positional = true, .min = 1, .max = 16384,
          .example = "May I drop the table 'users'?", .text = "The question."),
    FIELD(struct approval_ask_in, kind, OP_CHOICE, .choices = op_ask_kinds, .preset = "ask", .example = "destructive",
          .text = "Its kind. The setting approval_two_people names kinds that two people must approve."),
    FIELD(struct approval_ask_in, action, OP_STR, .max = 128, .example = "exec.create",
          .text = "The operation that the approval permits: a grant for exactly these arguments."),
    FIELD(struct approval_ask_in, refused, OP_STR, .max = 64, .example = "rf_01k4r8w2m9h5t7c3xqvd",
          .text = "Instead of action and arguments: the id of your refused request, as its error names it."),
    FIELD(struct approval_ask_in, arguments, OP_JSON, .types = "object", .text = "The arguments of the action."),
    FIELD(struct approval_ask_in, sandbox, OP_STR, .max = 64, .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "The id of the sandbox it is about."),
    FIELD(struct approval_ask_in, note, OP_STR, .max = 65536, .example = "the migration needs it", .text = "Further information for the person who decides."),
    FIELD(struct approval_ask_in, urgency, OP_CHOICE, .choices = op_urgencies, .preset = "medium", .example = "high", .text = "Its urgency."),
    FIELD(struct approval_ask_in, alternatives, OP_LIST, .max = 16, .example = "archive it", .text = "Alternatives to choose from."),
    FIELD(struct approval_ask_in, attachments, OP_JSON, .types = "array",
          .text = "Objects {kind: diff|playbook|screen|command|text, name, content} that help to decide; at most 16 and 1 MiB."),
    FIELD(struct approval_ask_in, people, OP_INT, .min = 1, .max = 5, .preset = "1", .example = "2", .text = "Number of people who must approve; settings may require more."),
    FIELD(struct approval_ask_in, expires_ms, OP_DURATION, .min = 1000, .max = 2592000000, .preset = "24h", .example = "30m",
          .text = "The question expires after this time."),
    FIELD(struct approval_ask_in, key, OP_STR, .max = 128, .example = "deploy-42",
          .text = "Repeating the request with the same key returns the same question. The header Idempotency-Key is equivalent."),
    WAIT(struct approval_ask_in, "Wait this long for the decision before replying."),
};
const struct op op_approval_ask = {
    .name = "approval.ask", .group = "approval",
    .text = "Ask a person for a decision.\nThe reply can wait for it. After a lost connection or a restart repeat the request with the same key. A deadline never approves.",
    .method = "POST", .path = APPROVALS, .verb = "approval ask", .perm = PERM_ASK, .status = 201, .body_max = BODY_MAX,
    IN(approval_ask_fields, struct approval_ask_in), OUT(approval_reply, "Approval"),
};

static const struct op_field approval_list_fields[] = {
    FIELD(struct approval_list_in, kind, OP_CHOICE, .choices = op_approval_kinds, .example = "egress", .text = "Only approvals of this kind."),
    FIELD(struct approval_list_in, agent, OP_STR, .max = 128, .example = "claude", .text = "Only those that this agent asks for."),
    FIELD(struct approval_list_in, sandbox, OP_STR, .max = 64, .example = "sb_01k4r8w2m9h5t7c3xqvd", .text = "Only those about the sandbox with this id."),
    FIELD(struct approval_list_in, key, OP_STR, .max = 128, .example = "deploy-42", .text = "Only the caller's question with this key."),
    FIELD(struct approval_list_in, state, OP_CHOICE, .choices = op_approval_states, .example = "pending", .text = "Only those in this state."),
    LIMIT(struct approval_list_in, "1000"),
    CURSOR(struct approval_list_in),
};
const struct op op_approval_list = {
    .name = "approval.list", .group = "approval", .text = "List the approvals, oldest first.",
    .method = "GET", .path = APPROVALS, .verb = "approval ls", .perm = PERM_ASK_READ,
    IN(approval_list_fields, struct approval_list_in), .reply = OP_REPLY_LIST, OUT(approval_reply, "Approval"), .items = "approvals",
    .columns = "id,kind,state,urgency,question,agent,action,task_id,to,sandbox,host,port,created_at",
};
static const struct op_field approval_get_fields[] = {
    APPROVAL_ID(struct approval_get_in),
    WAIT(struct approval_get_in, "Wait this long for the decision before replying."),
};
const struct op op_approval_get = {
    .name = "approval.get", .group = "approval", .text = "Show one approval, or wait for its decision.",
    .method = "GET", .path = APPROVALS "/{id}", .verb = "approval inspect", .perm = PERM_ASK_READ,
    IN(approval_get_fields, struct approval_get_in), OUT(approval_reply, "Approval"),
};
static const struct op_field approval_id_fields[] = {APPROVAL_ID(struct approval_id_in)};
const struct op op_approval_watch = {
    .name = "approval.watch", .group = "approval",
    .text = "Follow one approval: its events so far, then each new one.\nA client resumes with Last-Event-ID.",
    .method = "GET", .path = APPROVALS "/{id}/events", .perm = PERM_ASK_READ,
    IN(approval_id_fields, struct approval_id_in), .reply = OP_REPLY_STREAM,
};
static const struct op_field approval_decide_fields[] = {
    APPROVAL_ID(struct approval_decide_in),
    REASON(struct approval_decide_in),
    FIELD(struct approval_decide_in, choice, OP_STR, .max = 16384, .example = "archive it", .text = "The chosen alternative."),
    FIELD(struct approval_decide_in, scope, OP_CHOICE, .choices = op_approval_scopes, .preset = "once", .example = "sandbox",
          .text = "For kind 'egress': allow or deny the waiting connections only ('once'), this sandbox ('sandbox'), or all sandboxes of its tenant "
                  "('always'). For an action: this action once, this action for a time ('time'), its operation in its sandbox ('sandbox'), or its "
                  "operation on what the pattern matches ('rule')."),
    FIELD(struct approval_decide_in, for_ms, OP_DURATION, .min = 1000, .max = 2592000000, .example = "2h",
          .text = "Lifetime of the grant. Default: 24h for 'once', 1h for wider scopes."),
    FIELD(struct approval_decide_in, pattern, OP_STR, .max = 1024, .example = "git push *",
          .text = "For the scope 'rule': the command lines or paths that it allows; * matches any text."),
    FIELD(struct approval_decide_in, preview, OP_BOOL, .preset = "false", .example = "true",
          .text = "Only show the grant that the decision would make."),
};
const struct op op_approval_approve = {
    .name = "approval.approve", .group = "approval",
    .text = "Approve: a proposal is executed once, if the rules allow it now; an action gets a grant.\n"
            "If the rules refuse it, or more people must approve, the approval stays pending.",
    .method = "POST", .path = APPROVALS "/{id}/approve", .verb = "approval approve", .perm = PERM_TEAM_RULE,
    IN(approval_decide_fields, struct approval_decide_in), OUT(approval_reply, "Approval"),
};
const struct op op_approval_deny = {
    .name = "approval.deny", .group = "approval", .text = "Deny: the action is not executed.",
    .method = "POST", .path = APPROVALS "/{id}/deny", .verb = "approval deny", .perm = PERM_TEAM_RULE,
    IN(approval_decide_fields, struct approval_decide_in), OUT(approval_reply, "Approval"),
};
static const struct op_field approval_answer_fields[] = {
    APPROVAL_ID(struct approval_answer_in),
    FIELD(struct approval_answer_in, text, OP_STR, .positional = true, .max = 16384, .example = "y",
          .text = "The answer; of a menu: an option, the beginning of its text, or its number. Empty: only Enter."),
};
const struct op op_approval_answer = {
    .name = "approval.answer", .group = "approval",
    .text = "Answer the prompt of a session: the text is typed into its terminal, then Enter.\n"
            "Where the prompt is a menu, the option is chosen by arrow keys. An answer that cannot be typed at once is kept until it was.",
    .method = "POST", .path = APPROVALS "/{id}/answer", .verb = "approval answer", .perm = PERM_TEAM_RULE,
    IN(approval_answer_fields, struct approval_answer_in), OUT(approval_reply, "Approval"),
};
static const struct op_field approval_answers_fields[] = {
    FIELD(struct approval_answers_in, answers, OP_JSON, .types = "array", .required = true,
          .text = "Objects {id, approve, reason, choice}, at most 100."),
};
const struct op op_approval_answers = {
    .name = "approval.answers", .group = "approval",
    .text = "Decide several approvals at once: all, or none if one cannot be decided.",
    .method = "POST", .path = APPROVALS "/answers", .perm = PERM_TEAM_RULE, .body_max = BODY_MAX,
    IN(approval_answers_fields, struct approval_answers_in), .reply = OP_REPLY_LIST, OUT(approval_reply, "Approval"), .items = "approvals",
};
static const struct op_field approval_cancel_fields[] = {APPROVAL_ID(struct approval_cancel_in), REASON(struct approval_cancel_in)};
const struct op op_approval_cancel = {
    .name = "approval.cancel", .group = "approval", .text = "Cancel a question.",
    .method = "POST", .path = APPROVALS "/{id}/cancel", .verb = "approval cancel", .perm = PERM_ASK,
    IN(approval_cancel_fields, struct approval_cancel_in), OUT(approval_reply, "Approval"),
};

/* --- grants --- */

static const struct op_field grant_reply[] = {
    REPLY("id", OP_STR, "The grant's id.", .example = "gr_01k4r8w2m9h5t7c3xqvd"),
    REPLY("approval", OP_STR, "The approval that made it.", .example = "ap_01k4r8w2m9h5t7c3xqvd"),
    REPLY("asker", OP_STR, "The caller that may use it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("operation", OP_STR, "The operation it permits.", .example = "exec.create"),
    REPLY("hash", OP_STR, "SHA-256 of the exact action; null: any arguments within sandbox and pattern.", .nullable = true),
    REPLY("sandbox", OP_STR, "The sandbox; null: any.", .nullable = true, .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("pattern", OP_STR, "The command lines or paths; null: any.", .nullable = true, .example = "git push *"),
    REPLY("uses", OP_INT, "Uses that are left; null: any number.", .nullable = true, .example = "1"),
    REPLY("used", OP_INT, "Number of uses.", .example = "0"),
    REPLY("left_ms", OP_INT, "Remaining lifetime in ms.", .example = "3600000"),
    REPLY("expires_at", OP_TIME, "When it expires.", TIME_EXAMPLE),
    REPLY("created_by", OP_STR, "The person who approved it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("created_at", OP_TIME, "When it was created.", TIME_EXAMPLE),
};
static const struct op_field grant_list_fields[] = {LIMIT(struct grant_list_in, "100"), CURSOR(struct grant_list_in)};
const struct op op_grant_list = {
    .name = "grant.list", .group = "approval", .text = "List the active grants, oldest first; an agent sees its own.",
    .method = "GET", .path = GRANTS, .verb = "approval grants", .perm = PERM_ASK_READ,
    IN(grant_list_fields, struct grant_list_in), .reply = OP_REPLY_LIST, OUT(grant_reply, "Grant"), .items = "grants",
    .columns = "id,asker,operation,sandbox,pattern,uses,used,left_ms,approval",
};
static const struct op_field grant_id_fields[] = {
    FIELD(struct grant_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64,
          .example = "gr_01k4r8w2m9h5t7c3xqvd", .text = "The grant's id."),
};
const struct op op_grant_revoke = {
    .name = "grant.revoke", .group = "approval", .text = "Revoke a grant.",
    .method = "DELETE", .path = GRANTS "/{id}", .verb = "approval revoke", .perm = PERM_TEAM_RULE,
    IN(grant_id_fields, struct grant_id_in), .reply = OP_REPLY_EMPTY, .status = 204,
};

/* --- gates --- */

#define GATES "/holt/v1/gates"
static const struct op_field gate_reply[] = {
    REPLY("id", OP_STR, "The gate's id.", .example = "ga_01k4r8w2m9h5t7c3xqvd"),
    REPLY("operation", OP_STR, "The operations that need approval; * matches any text.", .example = "exec.create"),
    REPLY("role", OP_CHOICE, "Only for callers of this role; null: all.", .choices = op_roles, .nullable = true, .example = "agent"),
    REPLY("label", OP_STR, "Only in sandboxes with this label; null: all.", .nullable = true, .example = "env=production"),
    REPLY("command", OP_STR, "Only command lines that this matches; null: all.", .nullable = true, .example = "git push *"),
    REPLY("path", OP_STR, "Only paths that this matches; null: all.", .nullable = true, .example = "/srv/*"),
    REPLY("people", OP_INT, "Number of people who must approve.", .example = "1"),
    REPLY("reason", OP_STR, "The reason; shown to callers."),
    REPLY("created_by", OP_STR, "The principal that created it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("created_at", OP_TIME, "When it was created.", TIME_EXAMPLE),
};
static const struct op_field gate_add_fields[] = {
    FIELD(struct gate_add_in, operation, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "exec.create",
          .text = "The operations that need approval, as named in OpenAPI; * matches any text."),
    FIELD(struct gate_add_in, role, OP_CHOICE, .choices = op_roles, .example = "agent", .text = "Only for callers of this role."),
    FIELD(struct gate_add_in, label, OP_STR, .max = 512, .example = "env=production", .text = "Only in sandboxes with this label."),
    FIELD(struct gate_add_in, command, OP_STR, .max = 1024, .example = "git push *", .text = "Only command lines that this matches."),
    FIELD(struct gate_add_in, path, OP_STR, .max = 1024, .example = "/srv/*", .text = "Only paths that this matches."),
    FIELD(struct gate_add_in, people, OP_INT, .min = 1, .max = 5, .preset = "1", .example = "2", .text = "Number of people who must approve."),
    FIELD(struct gate_add_in, reason, OP_STR, .max = 1024, .example = "pushes are reviewed", .text = "The reason; shown to callers."),
};
const struct op op_gate_add = {
    .name = "gate.add", .group = "gate",
    .text = "Require approval for operations: without a grant they are refused, and the error says how to ask.",
    .method = "POST", .path = GATES, .verb = "gate add", .perm = PERM_TEAM_RULE, .status = 201, .creates = true,
    IN(gate_add_fields, struct gate_add_in), OUT(gate_reply, "Gate"),
};
static const struct op_field gate_list_fields[] = {LIMIT(struct grant_list_in, "1000"), CURSOR(struct grant_list_in)};
const struct op op_gate_list = {
    .name = "gate.list", .group = "gate", .text = "List the gates, oldest first.",
    .method = "GET", .path = GATES, .verb = "gate ls", .perm = PERM_READ,
    IN(gate_list_fields, struct grant_list_in), .reply = OP_REPLY_LIST, OUT(gate_reply, "Gate"), .items = "gates",
    .columns = "id,operation,role,label,command,path,people,reason",
};
static const struct op_field gate_id_fields[] = {
    FIELD(struct grant_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64,
          .example = "ga_01k4r8w2m9h5t7c3xqvd", .text = "The gate's id."),
};
const struct op op_gate_remove = {
    .name = "gate.remove", .group = "gate", .text = "Remove a gate.",
    .method = "DELETE", .path = GATES "/{id}", .verb = "gate rm", .perm = PERM_TEAM_RULE,
    IN(gate_id_fields, struct grant_id_in), .reply = OP_REPLY_EMPTY, .status = 204,
};
/* clang-format on */
