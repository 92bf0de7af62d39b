/* board: inputs of the operations on projects, their tasks and their files. */
#pragma once

#include "ops/op.h"

extern const char *const op_card_statuses[]; /* in the order of enum card_status */
extern const char *const op_priorities[];

struct project_create_in {
    struct str name, creator;
};
struct project_list_in {
    struct str member;
    int64_t limit;
    struct str cursor;
};
struct project_id_in {
    struct str id;
};
struct project_join_in {
    struct str id, agent;
};
struct project_limit_in {
    struct str id;
    int status;
    int64_t cards;
};
extern const struct op op_project_create, op_project_list, op_project_get, op_project_remove,
    op_project_join, op_project_limit, op_project_metrics;

struct project_file_in {
    struct str id, path;
    int64_t version;
};
struct project_file_write_in {
    struct str id, path, uploader;
};
struct project_file_list_in {
    struct str id, path;
    int64_t limit;
    struct str cursor;
};
extern const struct op op_project_file_read, op_project_file_write, op_project_file_remove,
    op_project_file_list;

struct task_create_in {
    struct str project, title, description, assigned_to, parent, created_by;
    int priority;
    struct op_list capabilities;
    int64_t reviews;
};
struct task_list_in {
    struct str project, agent;
    int status;
    int64_t limit;
    struct str cursor;
};
struct task_id_in {
    struct str id;
};
struct task_ready_in {
    struct str project, agent;
    struct op_list capabilities;
};
struct task_claim_in {
    struct str id, agent;
};
struct task_move_in {
    struct str id;
    int status;
    struct str agent, note, blocked_reason, blocked_by;
};
extern const struct op op_task_create, op_task_list, op_task_get, op_task_ready, op_task_claim,
    op_task_assign, op_task_unassign, op_task_move, op_task_review, op_task_history;
