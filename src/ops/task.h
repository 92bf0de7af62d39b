/* task: inputs of the operations on task runs and their schedules. */
#pragma once

#include "ops/op.h"

struct task_run_create_in {
    json_t *manifest;
    struct str card;
};
struct task_run_list_in {
    struct op_list state;
    struct str user, label, parent;
    int64_t limit;
    struct str cursor;
};
struct task_usage_in {
    struct str user;
    int64_t since;
};
struct task_run_id_in {
    struct str id;
};
struct task_run_cancel_in {
    struct str id, reason;
};
struct task_run_logs_in {
    struct str id;
    int64_t offset;
    bool follow;
};
struct task_run_artifact_in {
    struct str id, path;
};
struct task_schedule_create_in {
    struct str name, cron;
    json_t *manifest;
};
struct task_schedule_list_in {
    int64_t limit;
    struct str cursor;
};

extern const char *const op_task_states[];
extern const struct op op_task_run_create, op_task_run_list, op_task_run_get, op_task_run_cancel,
    op_task_run_retry, op_task_run_logs, op_task_run_artifacts, op_task_run_artifact, op_task_usage;
extern const struct op op_task_schedule_create, op_task_schedule_list, op_task_schedule_remove;
