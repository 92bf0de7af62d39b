/* task: operations on task runs and their schedules; cards of a board are in board.c. */
#include "ops/task.h"
#include "ops/rows.h"

const char *const op_task_states[] = {
    "pending",   "staging", "provisioning",     "ready",     "running", "completing",
    "completed", "failed",  "failed_preserved", "cancelled", NULL};

/* clang-format off */
#define RUNS "/holt/v1/task-runs"
#define SCHEDULES "/holt/v1/task-schedules"
#define ID_EXAMPLE .example = "tr_01k4r8w2m9h5t7c3xqvd"
#define TIME_EXAMPLE .example = "2026-01-02T03:04:05.678Z"
#define TASK_RUN_ID(structure) \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, ID_EXAMPLE, .text = "The task's id.")
#define PAGE(structure) \
    FIELD(structure, limit, OP_INT, .min = 1, .max = 1000, .preset = "100", .example = "20", .text = "Maximum number of items in one page."), \
    FIELD(structure, cursor, OP_STR, .max = 64, ID_EXAMPLE, .text = "Continue after the previous page: the cursor of its reply.")

static const struct op_field task_run_reply[] = {
    REPLY("id", OP_STR, "The task's id, used in paths and events.", ID_EXAMPLE),
    REPLY("name", OP_STR, "Its name.", .example = "Fix the parser"),
    REPLY("state", OP_CHOICE, "Its state.", .choices = op_task_states, .example = "running"),
    REPLY("message", OP_STR, "What happens in this state, in words; null: nothing.", .nullable = true, .example = "running"),
    REPLY("error", OP_STR, "Why it failed, or was cancelled; null: it did not.", .nullable = true),
    REPLY("exit_code", OP_INT, "The exit status of its command; null: none yet.", .nullable = true, .example = "0"),
    REPLY("owner", OP_STR, "The principal that submitted it.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("tenant", OP_STR, "The tenant of its owner; null: none.", .nullable = true, .example = "acme"),
    REPLY("user", OP_STR, "The user whose quota it counts towards: the label 'user', or the owner.", .example = "alice"),
    REPLY("priority", OP_INT, "Its place in the queue; higher comes first.", .example = "0"),
    REPLY("attempt", OP_INT, "Which attempt it is.", .example = "1"),
    REPLY("retry_of", OP_STR, "The task that it repeats; null: none.", .nullable = true, ID_EXAMPLE),
    REPLY("parent", OP_STR, "Its parent task; null: none.", .nullable = true, ID_EXAMPLE),
    REPLY("card", OP_STR, "The card of a board that it works on; null: none.", .nullable = true, .example = "cd_01k4r8w2m9h5t7c3xqvd"),
    REPLY("sandbox", OP_STR, "Its sandbox; null: none now.", .nullable = true, .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("session", OP_STR, "The session in which its agent runs: attach to it, watch it, answer it; null: not yet.", .nullable = true,
          .example = "ex_01k4r8w2m9h5t7c3xqvd"),
    REPLY("progress", OP_JSON, "What its output tells: output_bytes, tool_calls, current_tool, last_activity_at, turns, input_tokens, output_tokens, "
                               "cost_usd.", .types = "object"),
    REPLY("cpu_ms", OP_INT, "CPU time of its command.", .example = "5300"),
    REPLY("manifest", OP_JSON, "Its manifest.", .types = "object"),
    REPLY("warnings", OP_LIST, "What is not as it was asked for, in words.", .example = "unknown field 'x' is ignored"),
    REPLY("created_at", OP_TIME, "When it was submitted.", TIME_EXAMPLE),
    REPLY("started_at", OP_TIME, "When it left the queue; null: not yet.", .nullable = true, TIME_EXAMPLE),
    REPLY("changed_at", OP_TIME, "When its state last changed.", TIME_EXAMPLE),
    REPLY("ended_at", OP_TIME, "When it ended; null: not yet.", .nullable = true, TIME_EXAMPLE),
};
#define TASK_RUN_OUT OUT(task_run_reply, "TaskRun")
#define MANIFEST(structure) \
    FIELD(structure, manifest, OP_JSON, .required = true, .types = "object|string", \
          .text = "The manifest: an object, or its text in YAML or JSON (docs/tasks.md).")

static const struct op_field task_run_create_fields[] = {
    MANIFEST(struct task_run_create_in),
    FIELD(struct task_run_create_in, card, OP_STR, .max = 64, .example = "cd_01k4r8w2m9h5t7c3xqvd",
          .text = "The card of a board that it works on: its outcome moves the card."),
};
const struct op op_task_run_create = {
    .name = "task_run.create", .group = "task", .text = "Submit a task: it is queued, staged, run and collected.",
    .method = "POST", .path = RUNS, .verb = "task run", .perm = PERM_SANDBOX_WRITE, .body_max = 2 << 20,
    IN(task_run_create_fields, struct task_run_create_in), TASK_RUN_OUT, .status = 201, .creates = true,
};

static const struct op_field task_run_list_fields[] = {
    FIELD(struct task_run_list_in, state, OP_LIST, .max = 16, .example = "running,pending", .text = "Only those in these states."),
    FIELD(struct task_run_list_in, user, OP_STR, .max = 255, .example = "alice", .text = "Only those of this user."),
    FIELD(struct task_run_list_in, label, OP_STR, .max = 512, .example = "team=web", .text = "Only those with this label: KEY=VALUE."),
    FIELD(struct task_run_list_in, parent, OP_STR, .max = 64, ID_EXAMPLE, .text = "Only children of this task."),
    PAGE(struct task_run_list_in),
};
const struct op op_task_run_list = {
    .name = "task_run.list", .group = "task", .text = "List the tasks, by id.",
    .method = "GET", .path = RUNS, .verb = "task ls", .perm = PERM_SANDBOX_READ,
    IN(task_run_list_fields, struct task_run_list_in), .reply = OP_REPLY_LIST, TASK_RUN_OUT, .items = "tasks",
    .columns = "id,name,state,user,sandbox,exit_code,created_at",
};

static const struct op_field task_run_id_fields[] = {TASK_RUN_ID(struct task_run_id_in)};
#define TASK_RUN_ID_IN IN(task_run_id_fields, struct task_run_id_in)
const struct op op_task_run_get = {
    .name = "task_run.get", .group = "task", .text = "Show one task.",
    .method = "GET", .path = RUNS "/{id}", .verb = "task inspect", .perm = PERM_SANDBOX_READ, TASK_RUN_ID_IN, TASK_RUN_OUT,
};

static const struct op_field task_run_cancel_fields[] = {
    TASK_RUN_ID(struct task_run_cancel_in),
    FIELD(struct task_run_cancel_in, reason, OP_STR, .max = 1024, .example = "no longer needed", .text = "Why, for its record."),
};
const struct op op_task_run_cancel = {
    .name = "task_run.cancel", .group = "task", .text = "Cancel a task: its command is killed, its sandbox removed.",
    .method = "POST", .path = RUNS "/{id}/cancel", .verb = "task cancel", .perm = PERM_SANDBOX_WRITE,
    IN(task_run_cancel_fields, struct task_run_cancel_in), TASK_RUN_OUT,
};

const struct op op_task_run_retry = {
    .name = "task_run.retry", .group = "task", .text = "Submit the manifest of an ended task again, as another task.",
    .method = "POST", .path = RUNS "/{id}/retry", .verb = "task retry", .perm = PERM_SANDBOX_WRITE, TASK_RUN_ID_IN, TASK_RUN_OUT, .status = 201,
};

static const struct op_field task_run_logs_fields[] = {
    TASK_RUN_ID(struct task_run_logs_in),
    FIELD(struct task_run_logs_in, offset, OP_INT, .preset = "0", .max = INT64_MAX, .example = "4096",
          .text = "Begin at this byte of its output; 'Last-Event-ID' is stronger."),
    FIELD(struct task_run_logs_in, follow, OP_BOOL, .preset = "true", .example = "false", .text = "Stay connected until the task ends."),
};
const struct op op_task_run_logs = {
    .name = "task_run.logs", .group = "task",
    .text = "Follow the output of a task: what it wrote so far, then each new part, then its end.\n"
            "Server-sent events: 'stdout' (text), 'event' (one JSON object of the agent), 'completed' (the exit status) or 'error' (why "
            "it failed); the last two end the stream. Their id is the offset; 'Last-Event-ID' continues a stream.",
    .method = "GET", .path = RUNS "/{id}/logs", .verb = "task logs", .perm = PERM_SANDBOX_CONTENT, .audited = true,
    IN(task_run_logs_fields, struct task_run_logs_in), .reply = OP_REPLY_STREAM,
};

static const struct op_field artifact_reply[] = {
    REPLY("path", OP_STR, "Its path in the outbox.", .example = "report/index.html"),
    REPLY("size", OP_INT, "Bytes.", .example = "4096"),
    REPLY("content_type", OP_STR, "Its type, by its name.", .example = "text/html"),
    REPLY("sha256", OP_STR, "SHA-256 of its content.", .pattern = OP_PATTERN_SHA256),
    REPLY("created_at", OP_TIME, "When it was collected.", TIME_EXAMPLE),
};
const struct op op_task_run_artifacts = {
    .name = "task_run.artifacts", .group = "task", .text = "List what a task has made: the files of its outbox, by path.",
    .method = "GET", .path = RUNS "/{id}/artifacts", .verb = "task artifacts", .perm = PERM_SANDBOX_READ,
    TASK_RUN_ID_IN, .reply = OP_REPLY_LIST, OUT(artifact_reply, "TaskArtifact"), .items = "artifacts",
    .columns = "path,size,content_type,sha256",
};

static const struct op_field task_run_artifact_fields[] = {
    TASK_RUN_ID(struct task_run_artifact_in),
    FIELD(struct task_run_artifact_in, path, OP_STR, .required = true, .positional = true, .min = 1, .max = 4096, .example = "report/index.html",
          .text = "Its path in the outbox."),
};
const struct op op_task_run_artifact = {
    .name = "task_run.artifact", .group = "task", .text = "Download one file that a task has made.",
    .method = "GET", .path = RUNS "/{id}/artifacts/{path...}", .verb = "task download", .perm = PERM_SANDBOX_CONTENT, .audited = true,
    IN(task_run_artifact_fields, struct task_run_artifact_in), .reply = OP_REPLY_BYTES,
};

/* --- usage --- */

static const struct op_field task_usage_reply[] = {
    REPLY("user", OP_STR, "The user whose tasks these are: the label 'user', or the owner.", .example = "alice"),
    REPLY("tasks", OP_INT, "How many tasks.", .example = "12"),
    REPLY("completed", OP_INT, "How many of them completed.", .example = "10"),
    REPLY("failed", OP_INT, "How many of them failed.", .example = "1"),
    REPLY("cpu_ms", OP_INT, "CPU time of their commands.", .example = "5300"),
    REPLY("wall_ms", OP_INT, "Time from leaving the queue to the end, or to now.", .example = "60000"),
    REPLY("memory_mib_hours", OP_INT, "The memory limits of their manifests times that time, in MiB hours; tasks without a limit count as none.",
          .example = "512"),
    REPLY("input_tokens", OP_INT, "Tokens that their agents say they read.", .example = "120000"),
    REPLY("output_tokens", OP_INT, "Tokens that their agents say they wrote.", .example = "8000"),
    REPLY("cost_microusd", OP_INT, "What their agents say it cost, in millionths of a dollar; null: none says it.", .nullable = true, .example = "12500"),
};
static const struct op_field task_usage_fields[] = {
    FIELD(struct task_usage_in, user, OP_STR, .max = 255, .example = "alice", .text = "Only of this user."),
    FIELD(struct task_usage_in, since, OP_TIME, TIME_EXAMPLE, .text = "Only of tasks submitted since then."),
};
const struct op op_task_usage = {
    .name = "task_run.usage", .group = "task",
    .text = "Show what the tasks of each user have used.\n"
            "Of the tasks that are kept (setting 'tasks_keep_ms') and that you may see. Tokens and cost are what agents report.",
    .method = "GET", .path = "/holt/v1/usage", .verb = "usage", .perm = PERM_SANDBOX_READ, IN(task_usage_fields, struct task_usage_in),
    .reply = OP_REPLY_LIST, OUT(task_usage_reply, "Usage"), .items = "users",
    .columns = "user,tasks,completed,failed,cpu_ms,wall_ms,memory_mib_hours,input_tokens,output_tokens,cost_microusd",
};

/* --- schedules --- */

#define SCHEDULE_EXAMPLE .example = "ts_01k4r8w2m9h5t7c3xqvd"
static const struct op_field task_schedule_reply[] = {
    REPLY("id", OP_STR, "The schedule's id.", SCHEDULE_EXAMPLE),
    REPLY("name", OP_STR, "Its name.", .example = "nightly"),
    REPLY("cron", OP_STR, "When: minute hour day month weekday, in UTC.", .example = "0 3 * * 1-5"),
    REPLY("owner", OP_STR, "The principal that made it; its tasks are that principal's.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("last_task", OP_STR, "The task that it submitted last; null: none yet.", .nullable = true, ID_EXAMPLE),
    REPLY("next_at", OP_TIME, "When it submits the next one; null: never.", .nullable = true, TIME_EXAMPLE),
    REPLY("manifest", OP_JSON, "The manifest of its tasks.", .types = "object"),
    REPLY("created_at", OP_TIME, "When it was made.", TIME_EXAMPLE),
};
#define SCHEDULE_OUT OUT(task_schedule_reply, "TaskSchedule")
static const struct op_field task_schedule_create_fields[] = {
    FIELD(struct task_schedule_create_in, name, OP_STR, .required = true, .positional = true, .min = 1, .max = 63, .pattern = OP_PATTERN_NAME,
          .example = "nightly", .text = "Its name."),
    FIELD(struct task_schedule_create_in, cron, OP_STR, .required = true, .positional = true, .min = 1, .max = 256, .example = "0 3 * * 1-5",
          .text = "When: minute hour day month weekday in UTC; lists, ranges and steps; @hourly, @daily, @weekly, @monthly."),
    MANIFEST(struct task_schedule_create_in),
};
const struct op op_task_schedule_create = {
    .name = "task_schedule.create", .group = "task",
    .text = "Submit a manifest again and again, at the times of a crontab.\n"
            "While its last task has not ended, no other is submitted; times missed while holtd was down are made up for once.",
    .method = "POST", .path = SCHEDULES, .verb = "task schedule", .perm = PERM_SANDBOX_WRITE, .body_max = 2 << 20,
    IN(task_schedule_create_fields, struct task_schedule_create_in), SCHEDULE_OUT, .status = 201,
};
static const struct op_field task_schedule_list_fields[] = {PAGE(struct task_schedule_list_in)};
const struct op op_task_schedule_list = {
    .name = "task_schedule.list", .group = "task", .text = "List the schedules, oldest first.",
    .method = "GET", .path = SCHEDULES, .verb = "task schedules", .perm = PERM_SANDBOX_READ,
    IN(task_schedule_list_fields, struct task_schedule_list_in), .reply = OP_REPLY_LIST, SCHEDULE_OUT, .items = "schedules",
    .columns = "id,name,cron,next_at,last_task",
};
static const struct op_field task_schedule_id_fields[] = {
    FIELD(struct task_run_id_in, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 64, SCHEDULE_EXAMPLE, .text = "The schedule's id."),
};
const struct op op_task_schedule_remove = {
    .name = "task_schedule.remove", .group = "task", .text = "Remove a schedule; tasks that it submitted stay.",
    .method = "DELETE", .path = SCHEDULES "/{id}", .verb = "task unschedule", .perm = PERM_SANDBOX_WRITE,
    IN(task_schedule_id_fields, struct task_run_id_in), .reply = OP_REPLY_EMPTY, .status = 204,
};
/* clang-format on */
