/* team: inputs of the operations on agents and messages. */
#pragma once

#include "ops/op.h"

extern const char *const op_agent_modes[];    /* in the order of enum agent_mode */
extern const char *const op_agent_statuses[]; /* of enum agent_status */

struct team_list_in {
    int64_t limit;
    struct str cursor;
};
struct agent_register_in {
    struct str name, type;
    int mode; /* -1: the default */
    struct op_list capabilities;
    int64_t max_tasks;
    json_t *metadata;
};
struct agent_list_in {
    struct str capability;
    int status;
    int64_t limit;
    struct str cursor;
};
struct agent_name_in {
    struct str name;
};
struct agent_update_in {
    struct str name;
    int mode;
    struct op_list capabilities;
    bool clear_capabilities;
    struct str description;
    int64_t max_tasks;
};
struct agent_default_mode_in {
    int mode;
    struct str type;
};
struct agent_checkpoint_in {
    struct str name, task_id, state, rationale;
    json_t *metadata;
};
struct agent_checkpoints_in {
    struct str name;
    int64_t limit;
};
struct agent_pause_in {
    struct str name, reason;
};
struct agent_revoke_in {
    struct str name, reason;
    bool flush, stop;
};
struct agent_ack_in {
    struct str name, id;
};
struct revocation_list_in {
    int64_t limit;
};
extern const struct op op_agent_register, op_agent_list, op_agent_get, op_agent_update,
    op_agent_remove, op_agent_heartbeat, op_agent_default_mode, op_agent_checkpoint,
    op_agent_checkpoints, op_agent_pause, op_agent_resume, op_agent_revoke, op_agent_revocation,
    op_agent_ack, op_revocation_list;

struct message_send_in {
    struct str to, content, from, type;
};
struct message_inbox_in {
    struct str agent;
    bool unread;
    int64_t limit;
};
struct message_id_in {
    struct str id;
};
struct message_history_in {
    struct str a, b;
    int64_t limit;
};
extern const struct op op_message_send, op_message_inbox, op_message_ack, op_message_history,
    op_message_graph;
