/* rows: the table of the hub's routes. */
#include "api/dialects/hub/hub.h"

/* clang-format off */
const struct hub_row hub_rows[] = {
    {"GET",    "/ping", "hub.ping", PERM_NONE, TEAM_READ, hub_ping},
    {"POST",   "/ping", "hub.ping", PERM_NONE, TEAM_READ, hub_ping},

    {"POST",   "/agents/register", "hub.agent.register", PERM_TEAM_REPORT, TEAM_DURABLE, hub_agent_register, .creates = true, .gives_token = true},
    {"GET",    "/agents", "hub.agent.list", PERM_TEAM_READ, TEAM_READ, hub_agent_list},
    {"GET",    "/agents/{name}", "hub.agent.get", PERM_TEAM_READ, TEAM_READ, hub_agent_get},
    {"DELETE", "/agents/{name}", "hub.agent.remove", PERM_TEAM_WRITE, TEAM_DURABLE, hub_agent_remove, .takes_tokens = true},
    {"POST",   "/agents/{name}/heartbeat", "hub.agent.heartbeat", PERM_TEAM_REPORT, TEAM_RELAXED, hub_agent_heartbeat},
    {"POST",   "/agents/{name}/autonomy", "hub.agent.autonomy", PERM_TEAM_WRITE, TEAM_DURABLE, hub_agent_autonomy, .about_it = true},
    {"POST",   "/autonomy/set-mode", "hub.autonomy", PERM_TEAM_RULE, TEAM_DURABLE, hub_set_mode},
    {"POST",   "/agents/{name}/capabilities", "hub.agent.capabilities", PERM_TEAM_WRITE, TEAM_DURABLE, hub_agent_capabilities},
    {"GET",    "/capabilities", "hub.capabilities", PERM_TEAM_READ, TEAM_READ, hub_capabilities},
    {"GET",    "/capabilities/match", "hub.capabilities.match", PERM_TEAM_READ, TEAM_READ, hub_capabilities_match},
    {"POST",   "/agents/{name}/checkpoint", "hub.checkpoint", PERM_TEAM_REPORT, TEAM_DURABLE, hub_checkpoint, .creates = true},
    {"GET",    "/agents/{name}/checkpoint", "hub.checkpoint.get", PERM_TEAM_READ, TEAM_READ, hub_checkpoint_get},
    {"GET",    "/agents/{name}/checkpoints", "hub.checkpoint.list", PERM_TEAM_READ, TEAM_READ, hub_checkpoint_list},
    {"POST",   "/agents/{name}/pause", "hub.pause", PERM_TEAM_RULE, TEAM_DURABLE, hub_pause},
    {"POST",   "/agents/{name}/resume", "hub.resume", PERM_TEAM_RULE, TEAM_DURABLE, hub_resume},
    {"POST",   "/agents/{name}/revoke", "hub.revoke", PERM_TEAM_RULE, TEAM_DURABLE, hub_revoke},
    {"GET",    "/agents/{name}/revocation", "hub.revocation", PERM_TEAM_READ, TEAM_READ, hub_revocation},
    {"POST",   "/agents/{name}/revocation/ack", "hub.revocation.ack", PERM_TEAM_REPORT, TEAM_DURABLE, hub_revocation_ack},
    {"GET",    "/revocation/history", "hub.revocation.history", PERM_TEAM_READ, TEAM_READ, hub_revocation_history},

    {"POST",   "/projects", "hub.project.create", PERM_TEAM_WRITE, TEAM_DURABLE, hub_project_create, .creates = true},
    {"GET",    "/projects", "hub.project.list", PERM_TEAM_READ, TEAM_READ, hub_project_list},
    {"GET",    "/projects/{project}", "hub.project.get", PERM_TEAM_READ, TEAM_READ, hub_project_get},
    {"DELETE", "/projects/{project}", "hub.project.remove", PERM_TEAM_WRITE, TEAM_DURABLE, hub_project_remove},
    {"POST",   "/projects/{project}/join", "hub.project.join", PERM_TEAM_WRITE, TEAM_DURABLE, hub_project_join},
    {"PATCH",  "/projects/{project}/wip", "hub.project.wip", PERM_TEAM_WRITE, TEAM_DURABLE, hub_project_wip},
    {"GET",    "/projects/{project}/files", "hub.file.list", PERM_TEAM_READ, TEAM_READ, hub_file_list},
    {"GET",    "/projects/{project}/metrics", "hub.project.metrics", PERM_TEAM_READ, TEAM_READ, hub_project_metrics},
    {"POST",   "/projects/{project}/tasks", "hub.task.create", PERM_TEAM_WRITE, TEAM_DURABLE, hub_task_create, .creates = true},
    {"GET",    "/projects/{project}/tasks", "hub.task.list", PERM_TEAM_READ, TEAM_READ, hub_task_list},
    {"GET",    "/projects/{project}/tasks/ready", "hub.task.ready", PERM_TEAM_READ, TEAM_READ, hub_task_ready},
    {"GET",    "/projects/{project}/tasks/{task}", "hub.task.get", PERM_TEAM_READ, TEAM_READ, hub_task_get},
    {"PATCH",  "/projects/{project}/tasks/{task}", "hub.task.move", PERM_TEAM_WRITE, TEAM_DURABLE, hub_task_move},
    {"POST",   "/projects/{project}/tasks/{task}/claim", "hub.task.claim", PERM_TEAM_WRITE, TEAM_DURABLE, hub_task_claim, .task_400 = true},
    {"POST",   "/projects/{project}/tasks/{task}/assign", "hub.task.assign", PERM_TEAM_WRITE, TEAM_DURABLE, hub_task_assign, .task_400 = true},
    {"POST",   "/projects/{project}/tasks/{task}/unassign", "hub.task.unassign", PERM_TEAM_WRITE, TEAM_DURABLE, hub_task_unassign, .task_400 = true},
    {"POST",   "/projects/{project}/tasks/{task}/reviewers/{name}", "hub.task.reviewer", PERM_TEAM_WRITE, TEAM_DURABLE, hub_task_reviewer},
    {"GET",    "/tasks", "hub.tasks", PERM_TEAM_READ, TEAM_READ, hub_tasks},

    {"POST",   "/messages/send", "hub.message.send", PERM_TEAM_WRITE, TEAM_DURABLE, hub_message_send, .creates = true, .body_max = 8 << 20},
    {"GET",    "/messages/graph", "hub.message.graph", PERM_TEAM_READ, TEAM_READ, hub_message_graph},
    {"GET",    "/messages/history/{a}/{b}", "hub.message.history", PERM_TEAM_READ, TEAM_READ, hub_message_history, .audited = true},
    {"GET",    "/messages/{name}", "hub.message.inbox", PERM_TEAM_READ, TEAM_RELAXED, hub_message_inbox, .audited = true, .read_if = "unread"},
    {"POST",   "/messages/{name}/ack", "hub.message.ack", PERM_TEAM_WRITE, TEAM_DURABLE, hub_message_ack},

    {"GET",    "/audit/log", "hub.audit", PERM_AUDIT, TEAM_READ, hub_audit_log},

    {"GET",    "/proposals", "hub.proposal.list", PERM_TEAM_READ, TEAM_READ, hub_proposal_list},
    {"GET",    "/proposals/{proposal}", "hub.proposal.get", PERM_TEAM_READ, TEAM_READ, hub_proposal_get},
    {"POST",   "/proposals/{proposal}/approve", "hub.proposal.approve", PERM_TEAM_RULE, TEAM_DURABLE, hub_proposal_approve},
    {"POST",   "/proposals/{proposal}/reject", "hub.proposal.reject", PERM_TEAM_RULE, TEAM_DURABLE, hub_proposal_reject},
};
/* clang-format on */
const size_t hub_row_count = ARRAY_LEN(hub_rows);
