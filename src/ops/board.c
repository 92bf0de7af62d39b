/* board: operations on projects, their files and tasks. */
#include "ops/board.h"
#include "ops/rows.h"

const char *const op_card_statuses[] = {"backlog", "ready", "in_progress", "in_review",
                                        "blocked", "done",  NULL};
const char *const op_priorities[] = {"P0", "P1", "P2", "P3", NULL};

/* clang-format off */
#define PROJECTS "/holt/v1/projects"
#define TASKS "/holt/v1/tasks"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"
#define PROJECT_EXAMPLE .example = "pj_01k4r8w2m9h5t7c3xqvd"
#define CARD_EXAMPLE .example = "cd_01k4r8w2m9h5t7c3xqvd"
#define PROJECT_ID(structure, member) \
    FIELD(structure, member, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, PROJECT_EXAMPLE, .text = "The project's id.")
#define TASK_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, CARD_EXAMPLE, .text = "The task's id.")
#define AGENT(structure, words) FIELD(structure, agent, OP_STR, .max = 128, .example = "claude", .text = words)
#define LIMIT(structure) \
    FIELD(structure, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "Maximum number of items in one page.")
#define CURSOR(structure) \
    FIELD(structure, cursor, OP_STR, .max = 256, PROJECT_EXAMPLE, .text = "Continue after the previous page: the cursor of its reply.")

/* --- projects --- */

static const struct op_field project_reply[] = {
    REPLY("id", OP_STR, "The project's id, used in paths and events.", PROJECT_EXAMPLE),
    REPLY("name", OP_STR, "Its name.", .example = "compiler"),
    REPLY("creator", OP_STR, "The principal that created it.", .example = "human"),
    REPLY("members", OP_LIST, "Its members; the creator first.", .example = "claude"),
    REPLY("limits", OP_JSON, "Maximum number of tasks of one agent, per column.", .types = "object"),
    REPLY("created_at", OP_TIME, "When it was created.", TIME_EXAMPLE),
};
static const struct op_field project_create_fields[] = {
    FIELD(struct project_create_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 256, .example = "compiler",
          .text = "Its name."),
    FIELD(struct project_create_in, creator, OP_STR, .max = 128, .preset = "human", .example = "claude",
          .text = "The agent or person to act for. An agent's token always acts for its agent."),
};
const struct op op_project_create = {
    .name = "project.create", .group = "project", .text = "Create a project: a board, files and members.",
    .method = "POST", .path = PROJECTS, .verb = "project create", .perm = PERM_TEAM_WRITE,
    IN(project_create_fields, struct project_create_in), OUT(project_reply, "Project"), .status = 201, .creates = true,
};
static const struct op_field project_list_fields[] = {
    FIELD(struct project_list_in, member, OP_STR, .max = 128, .example = "claude", .text = "Only projects with this member."),
    LIMIT(struct project_list_in), CURSOR(struct project_list_in),
};
const struct op op_project_list = {
    .name = "project.list", .group = "project", .text = "List the projects, oldest first.",
    .method = "GET", .path = PROJECTS, .verb = "project ls", .perm = PERM_TEAM_READ,
    IN(project_list_fields, struct project_list_in), .reply = OP_REPLY_LIST, OUT(project_reply, "Project"), .items = "projects",
    .columns = "id,name,creator,members,created_at",
};
static const struct op_field project_id_fields[] = {PROJECT_ID(struct project_id_in, id)};
#define PROJECT_ID_IN IN(project_id_fields, struct project_id_in)
const struct op op_project_get = {
    .name = "project.get", .group = "project", .text = "Show one project.",
    .method = "GET", .path = PROJECTS "/{id}", .verb = "project inspect", .perm = PERM_TEAM_READ,
    PROJECT_ID_IN, OUT(project_reply, "Project"),
};
const struct op op_project_remove = {
    .name = "project.remove", .group = "project", .text = "Remove a project with its tasks and files.",
    .method = "DELETE", .path = PROJECTS "/{id}", .verb = "project rm", .perm = PERM_TEAM_WRITE,
    PROJECT_ID_IN, .reply = OP_REPLY_EMPTY, .status = 204,
};
static const struct op_field project_join_fields[] = {
    PROJECT_ID(struct project_join_in, id),
    FIELD(struct project_join_in, agent, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "claude", .text = "The agent that joins."),
};
const struct op op_project_join = {
    .name = "project.join", .group = "project", .text = "Make an agent a member of a project.",
    .method = "POST", .path = PROJECTS "/{id}/members", .verb = "project join", .perm = PERM_TEAM_WRITE,
    IN(project_join_fields, struct project_join_in), OUT(project_reply, "Project"),
};
static const struct op_field project_limit_fields[] = {
    PROJECT_ID(struct project_limit_in, id),
    FIELD(struct project_limit_in, status, OP_CHOICE, .required = true, .positional = true, .choices = op_card_statuses,
          .example = "in_progress", .text = "The column."),
    FIELD(struct project_limit_in, cards, OP_INT, .required = true, .positional = true, .max = 1000000, .example = "5",
          .text = "Maximum number of tasks that one agent may have in it."),
};
const struct op op_project_limit = {
    .name = "project.limit", .group = "project", .text = "Limit the number of tasks that each agent may have in a column.",
    .method = "PUT", .path = PROJECTS "/{id}/limits", .verb = "project limit", .perm = PERM_TEAM_WRITE,
    IN(project_limit_fields, struct project_limit_in), OUT(project_reply, "Project"),
};
static const struct op_field metrics_reply[] = {
    REPLY("total", OP_INT, "Number of tasks.", .example = "12"),
    REPLY("by_status", OP_JSON, "Number of tasks in each column.", .types = "object"),
    REPLY("completed", OP_INT, "Number of tasks that were started and completed.", .example = "5"),
    REPLY("cycle_avg_ms", OP_INT, "Cycle time (from start to done): average.", .example = "750000"),
    REPLY("cycle_p50_ms", OP_INT, "Cycle time: median.", .example = "600000"),
    REPLY("cycle_p90_ms", OP_INT, "Cycle time: 90th percentile.", .example = "1800000"),
    REPLY("cycle_p99_ms", OP_INT, "Cycle time: 99th percentile.", .example = "3600000"),
    REPLY("agents", OP_JSON, "For each agent: done, in_progress, in_review.", .types = "object|array"),
};
const struct op op_project_metrics = {
    .name = "project.metrics", .group = "project", .text = "Show a board's metrics: cycle times, throughput, work in progress.",
    .method = "GET", .path = PROJECTS "/{id}/metrics", .verb = "project metrics", .perm = PERM_TEAM_READ,
    PROJECT_ID_IN, OUT(metrics_reply, "BoardMetrics"),
};

/* --- files --- */

#define PATH(structure, ...) \
    FIELD(structure, path, OP_STR, .positional = true, .max = 255, .example = "docs/plan.md", __VA_ARGS__)
static const struct op_field project_file_reply[] = {
    REPLY("path", OP_STR, "Its path in the project.", .example = "docs/plan.md"),
    REPLY("version", OP_INT, "Its version; the first is 1.", .example = "3"),
    REPLY("checksum", OP_STR, "SHA-256 of its content.", .example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    REPLY("size_bytes", OP_INT, "Its size in bytes.", .example = "4096"),
    REPLY("uploader", OP_STR, "The agent or person that uploaded it.", .example = "claude"),
    REPLY("created_at", OP_TIME, "When it was uploaded.", TIME_EXAMPLE),
};
static const struct op_field project_file_fields[] = {
    PROJECT_ID(struct project_file_in, id), PATH(struct project_file_in, .required = true, .min = 1, .text = "The file's path in the project."),
    FIELD(struct project_file_in, version, OP_INT, .min = 1, .max = 1LL << 40, .example = "2", .text = "Version to read. Default: the newest."),
};
const struct op op_project_file_read = {
    .name = "project.file.read", .group = "project", .text = "Read a file of a project.",
    .method = "GET", .path = PROJECTS "/{id}/files", .verb = "project cat", .perm = PERM_TEAM_CONTENT,
    IN(project_file_fields, struct project_file_in), .reply = OP_REPLY_BYTES, .ranges = true, .cached = true,
};
static const struct op_field project_file_write_fields[] = {
    PROJECT_ID(struct project_file_write_in, id),
    PATH(struct project_file_write_in, .required = true, .min = 1, .text = "Its path in the project: relative, of letters, digits, '-', "
                                                                           "'_', '.' and '/'."),
    FIELD(struct project_file_write_in, uploader, OP_STR, .max = 128, .preset = "human", .example = "claude",
          .text = "The agent or person to act for. An agent's token always acts for its agent."),
};
const struct op op_project_file_write = {
    .name = "project.file.write", .group = "project", .text = "Upload a file to a project: the request's body becomes its next version.",
    .method = "PUT", .path = PROJECTS "/{id}/files", .perm = PERM_TEAM_WRITE,
    IN(project_file_write_fields, struct project_file_write_in), .upload = "application/octet-stream",
    OUT(project_file_reply, "ProjectFile"),
};
static const struct op_field project_file_remove_fields[] = {
    PROJECT_ID(struct project_file_in, id), PATH(struct project_file_in, .required = true, .min = 1, .text = "The file's path in the project."),
};
const struct op op_project_file_remove = {
    .name = "project.file.remove", .group = "project", .text = "Remove a file of a project, with all its versions.",
    .method = "DELETE", .path = PROJECTS "/{id}/files", .verb = "project rm-file", .perm = PERM_TEAM_WRITE,
    IN(project_file_remove_fields, struct project_file_in), .reply = OP_REPLY_EMPTY, .status = 204,
};
static const struct op_field project_file_list_fields[] = {
    PROJECT_ID(struct project_file_list_in, id),
    PATH(struct project_file_list_in, .text = "List all versions of this file, newest first. Default: the newest version of each file."),
    LIMIT(struct project_file_list_in), CURSOR(struct project_file_list_in),
};
const struct op op_project_file_list = {
    .name = "project.file.list", .group = "project", .text = "List the files of a project.",
    .method = "GET", .path = PROJECTS "/{id}/files/list", .verb = "project files", .perm = PERM_TEAM_READ,
    IN(project_file_list_fields, struct project_file_list_in), .reply = OP_REPLY_LIST, OUT(project_file_reply, "ProjectFile"), .items = "files",
    .columns = "path,version,size_bytes,uploader,created_at",
};

/* --- tasks --- */

static const struct op_field task_reply[] = {
    REPLY("id", OP_STR, "The task's id, used in paths and events.", CARD_EXAMPLE),
    REPLY("project", OP_STR, "The project whose board it is on.", PROJECT_EXAMPLE),
    REPLY("title", OP_STR, "What is to be done.", .example = "Fix the parser"),
    REPLY("description", OP_STR, "Its description."),
    REPLY("status", OP_CHOICE, "Its column.", .choices = op_card_statuses, .example = "in_progress"),
    REPLY("priority", OP_CHOICE, "Its priority; P0 comes first.", .choices = op_priorities, .example = "P1"),
    REPLY("assigned_to", OP_STR, "The agent it is assigned to; null: none.", .nullable = true, .example = "claude"),
    REPLY("claimed_by", OP_STR, "The agent that claimed it; null: none.", .nullable = true, .example = "claude"),
    REPLY("capabilities", OP_LIST, "Capabilities that its owner needs.", .example = "code"),
    REPLY("blocked_reason", OP_STR, "Why it is blocked; null: no reason was given.", .nullable = true, .example = "needs a decision"),
    REPLY("blocked_by", OP_STR, "The task that blocks it; null: none.", .nullable = true, CARD_EXAMPLE),
    REPLY("parent", OP_STR, "Its parent task; null: none.", .nullable = true, CARD_EXAMPLE),
    REPLY("subtasks", OP_LIST, "Its subtasks, which must be done before it.", CARD_EXAMPLE),
    REPLY("reviewers", OP_LIST, "Its reviewers so far.", .example = "hermes"),
    REPLY("reviews", OP_INT, "Number of reviews it needs.", .example = "1"),
    REPLY("created_by", OP_STR, "The principal that created it.", .example = "human"),
    REPLY("created_at", OP_TIME, "When it was created.", TIME_EXAMPLE),
    REPLY("updated_at", OP_TIME, "When it was last changed.", TIME_EXAMPLE),
    REPLY("started_at", OP_TIME, "When work on it began; null: not yet.", .nullable = true, TIME_EXAMPLE),
    REPLY("review_started_at", OP_TIME, "When its review began; null: not yet.", .nullable = true, TIME_EXAMPLE),
    REPLY("completed_at", OP_TIME, "When it was done; null: not yet.", .nullable = true, TIME_EXAMPLE),
};
#define TASK_COLUMNS "id,title,status,priority,assigned_to,capabilities"
static const struct op_field change_reply[] = {
    REPLY("task", OP_JSON, "The task as it is now.", .types = "object"),
    REPLY("approval", OP_STR, "Id of the approval that an advisory agent needs before the change is made; null: the change is made.",
          .nullable = true, .example = "ap_01k4r8w2m9h5t7c3xqvd"),
};
static const struct op_field task_create_fields[] = {
    PROJECT_ID(struct task_create_in, project),
    FIELD(struct task_create_in, title, OP_STR, .required = true, .positional = true, .min = 1, .max = 1024, .example = "Fix the parser",
          .text = "What is to be done."),
    FIELD(struct task_create_in, description, OP_STR, .max = 65536, .example = "It refuses tabs.", .text = "Its description."),
    FIELD(struct task_create_in, priority, OP_CHOICE, .choices = op_priorities, .preset = "P2", .example = "P0", .text = "Its priority."),
    FIELD(struct task_create_in, assigned_to, OP_STR, .max = 128, .example = "claude", .text = "The agent it is assigned to."),
    FIELD(struct task_create_in, capabilities, OP_LIST, .max = 64, .example = "code", .text = "Capabilities that its owner needs: tags."),
    FIELD(struct task_create_in, reviews, OP_INT, .max = 100, .example = "1", .text = "Number of reviews, not by its owner, before it may be done. "
                                                                                      "Default: 0."),
    FIELD(struct task_create_in, parent, OP_STR, .max = 64, CARD_EXAMPLE, .text = "Its parent task."),
    FIELD(struct task_create_in, created_by, OP_STR, .max = 128, .example = "human", .text = "The agent or person to act for. An agent's token always "
                                                                                             "acts for its agent."),
};
const struct op op_task_create = {
    .name = "task.create", .group = "board", .text = "Add a task to the backlog of a project's board.",
    .method = "POST", .path = TASKS, .verb = "board add", .perm = PERM_TEAM_WRITE,
    IN(task_create_fields, struct task_create_in), OUT(task_reply, "Task"), .status = 201, .creates = true,
};
static const struct op_field task_list_fields[] = {
    FIELD(struct task_list_in, project, OP_STR, .positional = true, .max = 64, PROJECT_EXAMPLE, .text = "Only those of this project."),
    AGENT(struct task_list_in, "Only tasks of this owner."),
    FIELD(struct task_list_in, status, OP_CHOICE, .choices = op_card_statuses, .example = "ready", .text = "Only those in this column."),
    LIMIT(struct task_list_in), CURSOR(struct task_list_in),
};
const struct op op_task_list = {
    .name = "task.list", .group = "board", .text = "List tasks, by priority, then by age.",
    .method = "GET", .path = TASKS, .verb = "board ls", .perm = PERM_TEAM_READ,
    IN(task_list_fields, struct task_list_in), .reply = OP_REPLY_LIST, OUT(task_reply, "Task"), .items = "tasks", .columns = TASK_COLUMNS,
};
static const struct op_field task_id_fields[] = {TASK_ID(struct task_id_in)};
#define TASK_ID_IN IN(task_id_fields, struct task_id_in)
const struct op op_task_get = {
    .name = "task.get", .group = "board", .text = "Show one task.",
    .method = "GET", .path = TASKS "/{id}", .verb = "board inspect", .perm = PERM_TEAM_READ,
    TASK_ID_IN, OUT(task_reply, "Task"),
};
static const struct op_field step_reply[] = {
    REPLY("from", OP_CHOICE, "The column it left.", .choices = op_card_statuses, .example = "ready"),
    REPLY("to", OP_CHOICE, "The column it went to.", .choices = op_card_statuses, .example = "in_progress"),
    REPLY("by", OP_STR, "The agent or person that moved it.", .example = "claude"),
    REPLY("note", OP_STR, "The note of the move."),
    REPLY("at", OP_TIME, "When it was uploaded.", TIME_EXAMPLE),
};
const struct op op_task_history = {
    .name = "task.history", .group = "board", .text = "List the last moves of a task, oldest first.",
    .method = "GET", .path = TASKS "/{id}/history", .verb = "board history", .perm = PERM_TEAM_READ,
    TASK_ID_IN, .reply = OP_REPLY_LIST, OUT(step_reply, "TaskStep"), .items = "moves",
};
static const struct op_field task_ready_fields[] = {
    PROJECT_ID(struct task_ready_in, project), AGENT(struct task_ready_in, "Only tasks that this agent may claim. Default: that any agent may claim."),
    FIELD(struct task_ready_in, capabilities, OP_LIST, .max = 64, .example = "code", .text = "Its capabilities: tags. Default: unchanged."),
};
const struct op op_task_ready = {
    .name = "task.ready", .group = "board", .text = "List the tasks that can be claimed, by priority, then by age.",
    .method = "GET", .path = PROJECTS "/{project}/ready", .verb = "board ready", .perm = PERM_TEAM_READ,
    IN(task_ready_fields, struct task_ready_in), .reply = OP_REPLY_LIST, OUT(task_reply, "Task"), .items = "tasks", .columns = TASK_COLUMNS,
};
#define TASK_AGENT(words) \
    TASK_ID(struct task_claim_in), \
    FIELD(struct task_claim_in, agent, OP_STR, .required = true, .positional = true, .min = 1, .max = 128, .example = "claude", .text = words)
static const struct op_field task_claim_fields[] = {TASK_AGENT("The agent that claims it. An agent can claim only for itself.")};
const struct op op_task_claim = {
    .name = "task.claim", .group = "board", .text = "Claim a task. One of several concurrent claims succeeds; the others get a conflict.",
    .method = "POST", .path = TASKS "/{id}/claim", .verb = "board claim", .perm = PERM_TEAM_WRITE,
    IN(task_claim_fields, struct task_claim_in), OUT(change_reply, "TaskChange"),
};
static const struct op_field task_assign_fields[] = {TASK_AGENT("Who gets it.")};
const struct op op_task_assign = {
    .name = "task.assign", .group = "board", .text = "Assign a task to an agent; for people and coordinators.",
    .method = "POST", .path = TASKS "/{id}/assign", .verb = "board assign", .perm = PERM_TEAM_WRITE,
    IN(task_assign_fields, struct task_claim_in), OUT(change_reply, "TaskChange"),
};
const struct op op_task_unassign = {
    .name = "task.unassign", .group = "board", .text = "Take a task from its owner and move it back to the backlog.",
    .method = "POST", .path = TASKS "/{id}/unassign", .verb = "board unassign", .perm = PERM_TEAM_WRITE,
    TASK_ID_IN, OUT(change_reply, "TaskChange"),
};
static const struct op_field task_move_fields[] = {
    TASK_ID(struct task_move_in),
    FIELD(struct task_move_in, status, OP_CHOICE, .required = true, .positional = true, .choices = op_card_statuses, .example = "in_review",
          .text = "The column to move it to."),
    AGENT(struct task_move_in, "The agent or person that moves it. Default: the caller."),
    FIELD(struct task_move_in, note, OP_STR, .max = 65536, .example = "tests pass", .text = "A note for its history."),
    FIELD(struct task_move_in, blocked_reason, OP_STR, .max = 65536, .example = "needs a decision", .text = "Why it is blocked."),
    FIELD(struct task_move_in, blocked_by, OP_STR, .max = 64, CARD_EXAMPLE, .text = "The task of the same project that blocks it."),
};
const struct op op_task_move = {
    .name = "task.move", .group = "board", .text = "Move a task to another column.",
    .method = "POST", .path = TASKS "/{id}/move", .verb = "board move", .perm = PERM_TEAM_WRITE,
    IN(task_move_fields, struct task_move_in), OUT(change_reply, "TaskChange"),
};
static const struct op_field task_review_fields[] = {TASK_AGENT("The reviewer; not the owner of the task.")};
const struct op op_task_review = {
    .name = "task.review", .group = "board", .text = "Record a review of a task.",
    .method = "POST", .path = TASKS "/{id}/reviewers", .verb = "board review", .perm = PERM_TEAM_WRITE,
    IN(task_review_fields, struct task_claim_in), OUT(change_reply, "TaskChange"),
};
/* clang-format on */
