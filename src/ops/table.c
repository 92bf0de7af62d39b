/* table: the list of all operations. */
#include "ops/access.h"
#include "ops/approval.h"
#include "ops/board.h"
#include "ops/build.h"
#include "ops/change.h"
#include "ops/egress.h"
#include "ops/event.h"
#include "ops/exec.h"
#include "ops/file.h"
#include "ops/host.h"
#include "ops/image.h"
#include "ops/login.h"
#include "ops/playbook.h"
#include "ops/policy.h"
#include "ops/port.h"
#include "ops/quota.h"
#include "ops/remote.h"
#include "ops/secret.h"
#include "ops/server.h"
#include "ops/session.h"
#include "ops/snapshot.h"
#include "ops/space.h"
#include "ops/task.h"
#include "ops/team.h"
#include "ops/template.h"
#include "ops/token.h"
#include "ops/volume.h"
#include "ops/webhook.h"

/* clang-format off */
const struct op *const op_table[] = {
    &op_server_info,
    &op_settings_list,
    &op_healthz,
    &op_readyz,
    &op_metrics,
    &op_openapi_json,
    &op_token_create,
    &op_token_list,
    &op_token_get,
    &op_token_revoke,
    &op_token_self,
    &op_event_list,
    &op_audit_list,
    &op_audit_verify,
    &op_login,
    &op_login_code,
    &op_login_oidc,
    &op_login_oidc_callback,
    &op_logout,
    &op_sandbox_create,
    &op_sandbox_list,
    &op_sandbox_get,
    &op_sandbox_update,
    &op_sandbox_destroy,
    &op_sandbox_start,
    &op_sandbox_stop,
    &op_sandbox_restart,
    &op_sandbox_reprovision,
    &op_sandbox_crashes,
    &op_sandbox_crash_reset,
    &op_sandbox_pause,
    &op_sandbox_resume,
    &op_sandbox_stats,
    &op_sandbox_stats_list,
    &op_sandbox_logs,
    &op_run,
    &op_run_attach,
    &op_exec_create,
    &op_exec_list,
    &op_exec_get,
    &op_exec_output,
    &op_exec_attach,
    &op_exec_signal,
    &op_exec_stdin,
    &op_exec_resize,
    &op_exec_wait,
    &op_exec_cancel,
    &op_exec_screen,
    &op_session_create,
    &op_session_list,
    &op_session_list_all,
    &op_session_get,
    &op_session_members,
    &op_session_screen,
    &op_session_send,
    &op_session_resize,
    &op_session_kill,
    &op_session_attach,
    &op_session_recording,
    &op_session_search,
    &op_file_read,
    &op_file_stat,
    &op_file_write,
    &op_file_remove,
    &op_file_list,
    &op_file_mkdir,
    &op_file_move,
    &op_file_watch,
    &op_archive_read,
    &op_archive_write,
    &op_port_proxy,
    &op_image_list,
    &op_image_get,
    &op_image_pull,
    &op_image_import,
    &op_image_remove,
    &op_image_commit,
    &op_access_ca,
    &op_access_krl,
    &op_access_request,
    &op_access_list,
    &op_access_get,
    &op_access_revoke,
    &op_access_open,
    &op_access_close,
    &op_access_sessions,
    &op_host_list,
    &op_host_get,
    &op_host_drain,
    &op_prune,
    &op_df,
    &op_policy_create,
    &op_policy_list,
    &op_policy_get,
    &op_policy_update,
    &op_policy_remove,
    &op_task_run_create,
    &op_task_run_list,
    &op_task_run_get,
    &op_task_run_cancel,
    &op_task_run_retry,
    &op_task_run_logs,
    &op_task_run_artifacts,
    &op_task_run_artifact,
    &op_task_usage,
    &op_task_schedule_create,
    &op_task_schedule_list,
    &op_task_schedule_remove,
    &op_snapshot_create,
    &op_snapshot_list,
    &op_snapshot_get,
    &op_snapshot_remove,
    &op_snapshot_restore,
    &op_diff,
    &op_sandbox_diff,
    &op_merge,
    &op_export,
    &op_fork,
    &op_fork_keep,
    &op_target_create,
    &op_target_list,
    &op_target_get,
    &op_target_check,
    &op_target_remove,
    &op_playbook_create,
    &op_playbook_generate,
    &op_playbook_list,
    &op_playbook_get,
    &op_playbook_export,
    &op_playbook_remove,
    &op_playbook_task_add,
    &op_playbook_task_change,
    &op_playbook_task_remove,
    &op_playbook_reorder,
    &op_playbook_apply,
    &op_playbook_publish,
    &op_rollout_list,
    &op_rollout_get,
    &op_rollout_logs,
    &op_rollout_cancel,
    &op_rollout_rollback,
    &op_build_list,
    &op_build_get,
    &op_build_log,
    &op_build_cancel,
    &op_image_build,
    &op_loadout_list,
    &op_loadout_get,
    &op_loadout_resolve,
    &op_loadout_build,
    &op_loadout_registry,
    &op_loadout_apply,
    &op_template_create,
    &op_template_list,
    &op_template_get,
    &op_template_remove,
    &op_volume_create,
    &op_volume_list,
    &op_volume_get,
    &op_volume_update,
    &op_volume_remove,
    &op_quota_list,
    &op_remote_list,
    &op_remote_secrets,
    &op_remote_add,
    &op_remote_rotate,
    &op_remote_revoke,
    &op_secret_create,
    &op_secret_set,
    &op_secret_list,
    &op_secret_get,
    &op_secret_remove,
    &op_ca,
    &op_rule_list,
    &op_rule_remove,
    &op_port_tunnel,
    &op_port_preview,
    &op_agent_register,
    &op_agent_list,
    &op_agent_get,
    &op_agent_update,
    &op_agent_remove,
    &op_agent_heartbeat,
    &op_agent_default_mode,
    &op_agent_checkpoint,
    &op_agent_checkpoints,
    &op_agent_pause,
    &op_agent_resume,
    &op_agent_revoke,
    &op_agent_revocation,
    &op_agent_ack,
    &op_revocation_list,
    &op_project_create,
    &op_project_list,
    &op_project_get,
    &op_project_remove,
    &op_project_join,
    &op_project_limit,
    &op_project_metrics,
    &op_project_file_read,
    &op_project_file_write,
    &op_project_file_remove,
    &op_project_file_list,
    &op_task_create,
    &op_task_list,
    &op_task_get,
    &op_task_history,
    &op_task_ready,
    &op_task_claim,
    &op_task_assign,
    &op_task_unassign,
    &op_task_move,
    &op_task_review,
    &op_message_send,
    &op_message_inbox,
    &op_message_ack,
    &op_message_history,
    &op_message_graph,
    &op_approval_ask,
    &op_approval_list,
    &op_approval_answer,
    &op_approval_answers,
    &op_approval_get,
    &op_approval_watch,
    &op_approval_approve,
    &op_approval_deny,
    &op_approval_cancel,
    &op_grant_list,
    &op_grant_revoke,
    &op_gate_add,
    &op_gate_list,
    &op_gate_remove,
    &op_webhook_add,
    &op_webhook_list,
    &op_webhook_remove,
    &op_webhook_test,
    &op_webhook_deliveries,
    NULL,
};
/* clang-format on */
const size_t op_count = ARRAY_LEN(op_table) - 1;

const struct op_group op_groups[] = {
    {"server", "The daemon: its state, health, settings and description."},
    {"sandbox", "Sandboxes: isolated computers, from create to rm."},
    {"exec", "Commands: run, watch, attach to and end them."},
    {"session", "Sessions: named terminals that people watch and share."},
    {"file", "Files of a sandbox: bytes, directories, archives."},
    {"port", "Servers inside a sandbox."},
    {"image", "Images: what sandboxes start from."},
    {"access", "Access: SSH certificates of minutes."},
    {"host", "Hosts of virtual machines."},
    {"policy", "Policies: rules for commands, paths, time and output under a name."},
    {"snapshot", "Snapshots: the files of a sandbox at one moment; restore, forks, differences."},
    {"playbook", "Playbooks: changes as tasks of Ansible, applied to targets after approval."},
    {"template", "Templates: descriptions of sandboxes under a name."},
    {"loadout", "Loadouts: declarations of what a sandbox has."},
    {"build", "Builds: images made step by step."},
    {"task", "Tasks: work from a manifest to its artifacts, queued and run by holt."},
    {"volume", "Volumes: files shared by sandboxes."},
    {"secret", "Secrets: values that sandboxes use without holding them."},
    {"remote", "Remote agents: machines that joined, and their secrets."},
    {"rule", "Rules: hosts that a person allowed or denied to sandboxes."},
    {"agent", "Agents: registration, autonomy, pause and revocation."},
    {"project", "Projects: a board, files and members."},
    {"board", "Boards: tasks and their owners."},
    {"msg", "Messages between agents and people."},
    {"approval", "Approvals: decisions that wait for a person, in one queue."},
    {"gate", "Gates: operations that need approval."},
    {"webhook", "Webhooks: events sent to other servers."},
    {"token", "Tokens: clients and their permissions."},
    {"event", "Events: every change of state, in order, kept and replayable."},
    {"audit", "Audit: reads, refusals, and the proof that the log is unaltered."},
    {"login", "Login: sessions of browsers."},
    {NULL, NULL},
};

const struct op *op_find(const char *name)
{
    for (size_t i = 0; i < op_count; i++)
        if (strcmp(op_table[i]->name, name) == 0)
            return op_table[i];
    return NULL;
}

const char *perm_name(enum perm p)
{
    static const char *const names[PERM_COUNT] = {
        [PERM_NONE] = "none",
        [PERM_SELF] = "self",
        [PERM_READ] = "read",
        [PERM_EVENTS] = "events",
        [PERM_AUDIT] = "audit",
        [PERM_TOKENS] = "tokens",
        [PERM_LOGIN] = "login",
        [PERM_ADMIN] = "admin",
        [PERM_SANDBOX_READ] = "sandbox.read",
        [PERM_SANDBOX_WRITE] = "sandbox.write",
        [PERM_SANDBOX_CONTENT] = "sandbox.content",
        [PERM_IMAGE_WRITE] = "image.write",
        [PERM_SECRETS] = "secrets",
        [PERM_SECRET_READ] = "secret.read",
        [PERM_TEAM_READ] = "team.read",
        [PERM_TEAM_CONTENT] = "team.content",
        [PERM_TEAM_WRITE] = "team.write",
        [PERM_TEAM_REPORT] = "team.report",
        [PERM_TEAM_RULE] = "team.rule",
        [PERM_ASK] = "ask",
        [PERM_ASK_READ] = "ask.read",
    };

    assert(p < PERM_COUNT);
    return names[p];
}

/* A text may be all escapes (six bytes a character).  For a list, a map or an object only the
 * number of entries is limited; the largest possible is far below this. */
static int64_t field_body_max(const struct op_field *f)
{
    int64_t value = 64;

    if (f->type == OP_STR)
        value = f->max > 0 ? 6 * f->max : 1 << 20;
    else if (f->type == OP_LIST || f->type == OP_MAP || f->type == OP_JSON)
        value = 256 << 10;
    return value + (int64_t)strlen(f->name);
}

int64_t op_body_max(const struct op *op)
{
    int64_t sum = 1 << 10;

    if (op->body_max > 0)
        return op->body_max;
    for (size_t i = 0; i < op->in_count; i++)
        if (op_place(op, &op->in[i]) == OP_IN_BODY)
            sum += field_body_max(&op->in[i]);
    return sum;
}

static bool is_in_path(const char *path, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = strchr(path, '{'); at; at = strchr(at + 1, '{'))
        if (strncmp(at + 1, name, n) == 0 && (at[1 + n] == '}' || at[1 + n] == '.'))
            return true;
    return false;
}

enum op_place op_place(const struct op *op, const struct op_field *f)
{
    static const char *const bodiless[] = {"GET", "HEAD", "DELETE"};

    if (is_in_path(op->path, f->name))
        return OP_IN_PATH;
    for (size_t i = 0; i < ARRAY_LEN(bodiless); i++)
        if (strcmp(op->method, bodiless[i]) == 0)
            return OP_IN_QUERY;
    return f->query || op->upload ? OP_IN_QUERY : OP_IN_BODY;
}

const struct op_field *op_input(const struct op *op, struct str name)
{
    for (size_t i = 0; i < op->in_count; i++)
        if (str_eq_c(name, op->in[i].name))
            return &op->in[i];
    return NULL;
}
