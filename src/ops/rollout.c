/* rollout: operations on rollouts: playbooks applied to targets. */
#include "ops/playbook.h"
#include "ops/rows.h"

const char *const op_rollout_phases[] = {"check", "run", NULL};

/* clang-format off */
#define ROLLOUTS "/holt/v1/rollouts"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"
#define ROLLOUT_EXAMPLE .example = "ro_01k4r8w2m9h5t7c3xqvd"

static const struct op_field rollout_reply[] = {
    REPLY("id", OP_STR, "The rollout's id.", ROLLOUT_EXAMPLE),
    REPLY("state", OP_STR, "Its state: pending, checking, waiting (for an approval), approved, applying, succeeded, failed, rejected, cancelled, rolling_back or rolled_back.", .example = "waiting"),
    REPLY("playbook", OP_STR, "The playbook's id.", .example = "pb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("playbook_name", OP_STR, "Its name.", .example = "nginx"),
    REPLY("target", OP_STR, "The target's id; null: a sandbox of the caller's own that is no target.", .nullable = true, .example = "tg_01k4r8w2m9h5t7c3xqvd"),
    REPLY("target_name", OP_STR, "Its name.", .example = "web-1"),
    REPLY("sandbox", OP_STR, "The sandbox that the target is; null: another machine.", .nullable = true, .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("check_only", OP_BOOL, "True if it ends with the check.", .example = "false"),
    REPLY("unchecked", OP_STR, "Why no check is run before the approval; null: one is.", .nullable = true, .example = "task 2: what 'raw' does in a check is not known"),
    REPLY("check_exit", OP_INT, "The exit status of the check; null: none yet.", .nullable = true, .example = "0"),
    REPLY("exit_code", OP_INT, "The exit status of the run; null: none yet.", .nullable = true, .example = "0"),
    REPLY("approval", OP_STR, "The question to people; null: none yet.", .nullable = true, .example = "ap_01k4r8w2m9h5t7c3xqvd"),
    REPLY("people", OP_INT, "How many people must approve; 0: none, it is a sandbox of the caller's own.", .example = "1"),
    REPLY("decided_by", OP_STR, "Who answered last; null: nobody yet.", .nullable = true, .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("error", OP_STR, "Why it failed or was rejected; null: it was not.", .nullable = true, .example = "not before the weekend"),
    REPLY("note", OP_STR, "What its requester told those who approve.", .nullable = true, .example = "fixes the certificate"),
    REPLY("snapshot", OP_STR, "The snapshot of the sandbox before the change; null: none.", .nullable = true, .example = "sn_01k4r8w2m9h5t7c3xqvd"),
    REPLY("content", OP_STR, "The playbook as it runs; null in a list.", .nullable = true, .example = "- name: nginx"),
    REPLY("tenant", OP_STR, "The tenant it belongs to; null: none.", .nullable = true, .example = "acme"),
    REPLY("owner", OP_STR, "Who asked for it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("created_at", OP_TIME, "When it was asked for.", TIME_EXAMPLE),
    REPLY("changed_at", OP_TIME, "When its state last changed.", TIME_EXAMPLE),
    REPLY("ended_at", OP_TIME, "When it ended; null: not yet.", .nullable = true, TIME_EXAMPLE),
};
#define ROLLOUT_OUT OUT(rollout_reply, "Rollout")

static const struct op_field playbook_apply_fields[] = {
    FIELD(struct playbook_apply_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "nginx",
          .text = "The playbook's id or name; another's: OWNER/NAME."),
    FIELD(struct playbook_apply_in, to, OP_STR, .required = true, .min = 1, .max = 255, .example = "web-1",
          .text = "The target, or a sandbox of your own, by id or name."),
    FIELD(struct playbook_apply_in, check, OP_BOOL, .preset = "false", .example = "true", .text = "Only check what it would change."),
    FIELD(struct playbook_apply_in, note, OP_STR, .max = 4096, .example = "fixes the certificate", .text = "For those who approve."),
};
const struct op op_playbook_apply = {
    .name = "playbook.apply", .group = "playbook",
    .text = "Apply a playbook to a target: check, then ask people, then run.\n"
            "Nothing is changed there before another person than the requester has approved. The reply comes at once; 'rollout logs' follows.",
    .method = "POST", .path = "/holt/v1/playbooks/{id}/apply", .verb = "playbook apply", .perm = PERM_SANDBOX_WRITE,
    IN(playbook_apply_fields, struct playbook_apply_in), ROLLOUT_OUT, .status = 202, .creates = true,
};

static const struct op_field playbook_publish_fields[] = {
    FIELD(struct playbook_publish_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "nginx",
          .text = "The playbook's id or name; another's: OWNER/NAME."),
    FIELD(struct playbook_publish_in, branch, OP_STR, .min = 1, .max = 100, .example = "fix-tls",
          .text = "The branch is 'holt/' and this; the playbook's name if absent."),
    FIELD(struct playbook_publish_in, message, OP_STR, .max = 4096, .example = "Renew the certificate", .text = "Of the commit."),
    FIELD(struct playbook_publish_in, reviewers, OP_LIST, .max = 32, .example = "ann", .text = "Who should look at it; named in the message."),
};
static const struct op_field playbook_publish_reply[] = {
    REPLY("remote", OP_STR, "Where it was pushed to.", .example = "https://git.example.com/ops/playbooks.git"),
    REPLY("branch", OP_STR, "The branch.", .example = "holt/nginx"),
    REPLY("path", OP_STR, "The file in the repository.", .example = "playbooks/nginx.yml"),
    REPLY("commit", OP_STR, "The commit that the branch is at.", .example = "5a1f0c7e1b7e0c3b0f5e4d2c1b0a99887766554433"),
    REPLY("changed", OP_BOOL, "False if the branch had this playbook already.", .example = "true"),
};
const struct op op_playbook_publish = {
    .name = "playbook.publish", .group = "playbook",
    .text = "Commit a playbook and push it to the git remote of the setting 'publish_url', on a branch of its own.",
    .method = "POST", .path = "/holt/v1/playbooks/{id}/publish", .verb = "playbook publish", .perm = PERM_SANDBOX_WRITE,
    IN(playbook_publish_fields, struct playbook_publish_in), OUT(playbook_publish_reply, "Publication"),
};

static const struct op_field rollout_list_fields[] = {
    FIELD(struct rollout_list_in, state, OP_STR, .max = 32, .example = "waiting", .text = "Only those in this state."),
    FIELD(struct rollout_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "At most this many in one page."),
    FIELD(struct rollout_list_in, cursor, OP_STR, .max = 64, ROLLOUT_EXAMPLE, .text = "Continue after the last page: the cursor of its reply."),
};
const struct op op_rollout_list = {
    .name = "rollout.list", .group = "playbook", .text = "List the rollouts, oldest first; an agent sees its own.",
    .method = "GET", .path = ROLLOUTS, .verb = "rollout ls", .perm = PERM_SANDBOX_READ,
    IN(rollout_list_fields, struct rollout_list_in), .reply = OP_REPLY_LIST, ROLLOUT_OUT, .items = "rollouts",
    .columns = "id,state,playbook_name,target_name,approval,exit_code,created_at",
};

#define ROLLOUT_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, ROLLOUT_EXAMPLE, .text = "The rollout's id.")
static const struct op_field rollout_id_fields[] = {ROLLOUT_ID(struct rollout_id_in)};
#define ROLLOUT_ID_IN IN(rollout_id_fields, struct rollout_id_in)
const struct op op_rollout_get = {
    .name = "rollout.get", .group = "playbook", .text = "Show one rollout, and the playbook that it runs.",
    .method = "GET", .path = ROLLOUTS "/{id}", .verb = "rollout show", .perm = PERM_SANDBOX_CONTENT, .audited = true,
    ROLLOUT_ID_IN, ROLLOUT_OUT,
};

static const struct op_field rollout_logs_fields[] = {
    ROLLOUT_ID(struct rollout_logs_in),
    {.name = "phase", .type = OP_CHOICE, .offset = offsetof(struct rollout_logs_in, phase), .choices = op_rollout_phases,
     .preset = "run", .example = "check", .text = "The output of the check, or of the run."},
    FIELD(struct rollout_logs_in, offset, OP_INT, .preset = "0", .max = INT64_MAX, .example = "4096",
          .text = "Begin at this byte of its output; 'Last-Event-ID' is stronger."),
    FIELD(struct rollout_logs_in, follow, OP_BOOL, .preset = "true", .example = "false", .text = "Stay connected until it ends."),
};
const struct op op_rollout_logs = {
    .name = "rollout.logs", .group = "playbook",
    .text = "Follow what ansible-playbook writes: what it wrote so far, then each new line, then its end.\n"
            "Server-sent events: 'stdout' (a line), 'completed' (the exit status) or 'error' (why there is none); the last two end the "
            "stream. Their id is the offset; 'Last-Event-ID' continues a stream.",
    .method = "GET", .path = ROLLOUTS "/{id}/logs", .verb = "rollout logs", .perm = PERM_SANDBOX_CONTENT, .audited = true,
    IN(rollout_logs_fields, struct rollout_logs_in), .reply = OP_REPLY_STREAM,
};

static const struct op_field rollout_cancel_fields[] = {
    ROLLOUT_ID(struct rollout_cancel_in),
    FIELD(struct rollout_cancel_in, reason, OP_STR, .max = 1024, .example = "no longer needed", .text = "Why, for its record."),
};
const struct op op_rollout_cancel = {
    .name = "rollout.cancel", .group = "playbook", .text = "Cancel a rollout; one that runs is ended where it is.",
    .method = "POST", .path = ROLLOUTS "/{id}/cancel", .verb = "rollout cancel", .perm = PERM_SANDBOX_WRITE,
    IN(rollout_cancel_fields, struct rollout_cancel_in), ROLLOUT_OUT,
};

const struct op op_rollout_rollback = {
    .name = "rollout.rollback", .group = "playbook", .text = "Restore the sandbox that was changed to its snapshot before the rollout.",
    .method = "POST", .path = ROLLOUTS "/{id}/rollback", .verb = "rollout rollback", .perm = PERM_SECRETS,
    ROLLOUT_ID_IN, ROLLOUT_OUT, .status = 202,
};

static const struct op_field target_check_fields[] = {
    FIELD(struct target_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255, .example = "web-1",
          .text = "The target's id or name; another's: OWNER/NAME."),
};
static const struct op_field target_check_reply[] = {
    REPLY("reached", OP_BOOL, "True if a playbook could run there.", .example = "true"),
    REPLY("exit_code", OP_INT, "The exit status of ansible.", .example = "0"),
    REPLY("output", OP_STR, "What it wrote.", .example = "target | SUCCESS => {\"ping\": \"pong\"}"),
};
const struct op op_target_check = {
    .name = "target.check", .group = "playbook", .text = "Log in to a target as a playbook would, and leave again.",
    .method = "POST", .path = "/holt/v1/targets/{id}/check", .verb = "target check", .perm = PERM_SANDBOX_WRITE,
    IN(target_check_fields, struct target_id_in), OUT(target_check_reply, "TargetCheck"),
};
/* clang-format on */
