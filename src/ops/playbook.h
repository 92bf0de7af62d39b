/* playbook: inputs of the operations on targets, playbooks and rollouts. */
#pragma once

#include "ops/op.h"

struct target_create_in {
    struct str name, address, sandbox, user, host_key;
    struct op_list principals;
    int64_t port, people;
    bool become, shared;
};
struct target_list_in {
    int64_t limit;
    struct str cursor;
};
struct target_id_in { /* of get, check and remove */
    struct str id;
};
struct playbook_create_in {
    struct str name, hosts;
    bool become;
    json_t *tasks;
};
struct playbook_generate_in {
    struct str name, from, to, hosts;
    bool become, all;
    int secrets;
    struct op_list path;
};
struct playbook_list_in {
    int64_t limit;
    struct str cursor;
};
struct playbook_id_in { /* of get and remove */
    struct str id;
};
struct playbook_export_in {
    struct str id;
    int format;
};
struct playbook_task_in { /* of add and change */
    struct str id, task, name, module;
    json_t *params;
};
struct playbook_reorder_in {
    struct str id;
    struct op_list tasks;
};

struct playbook_apply_in {
    struct str id, to, note;
    bool check;
};
struct playbook_publish_in {
    struct str id, branch, message;
    struct op_list reviewers;
};
struct rollout_list_in {
    struct str state, cursor;
    int64_t limit;
};
struct rollout_id_in { /* of get and rollback */
    struct str id;
};
struct rollout_logs_in {
    struct str id;
    int phase; /* enum rollout_phase */
    int64_t offset;
    bool follow;
};
struct rollout_cancel_in {
    struct str id, reason;
};

enum { PLAYBOOK_SECRETS_REFUSE, PLAYBOOK_SECRETS_VAULT };
extern const char *const op_playbook_secrets[];
enum { PLAYBOOK_AS_ANSIBLE, PLAYBOOK_AS_JSON };
extern const char *const op_playbook_formats[]; /* in the order above; NULL after the last */
extern const char *const op_rollout_phases[];   /* in the order of enum rollout_phase */
extern const struct op op_target_create, op_target_list, op_target_get, op_target_check,
    op_target_remove;
extern const struct op op_playbook_generate;
extern const struct op op_playbook_create, op_playbook_list, op_playbook_get, op_playbook_export,
    op_playbook_remove, op_playbook_task_add, op_playbook_task_change, op_playbook_task_remove,
    op_playbook_reorder, op_playbook_apply, op_playbook_publish;
extern const struct op op_rollout_list, op_rollout_get, op_rollout_logs, op_rollout_cancel,
    op_rollout_rollback;
