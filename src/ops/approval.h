/* approval: inputs of the operations on questions to people and grants. */
#pragma once

#include "ops/op.h"

extern const char *const op_approval_states[],
    *const op_approval_kinds[], *const op_approval_scopes[], *const op_ask_kinds[],
                                                                 *const op_urgencies[];

struct approval_ask_in {
    struct str question, action, refused, sandbox, note, key;
    int kind, urgency;
    json_t *arguments, *attachments;
    struct op_list alternatives;
    int64_t people, expires_ms, wait_ms;
};
struct approval_list_in {
    struct str agent, sandbox, key, cursor;
    int kind, state;
    int64_t limit;
};
struct approval_get_in {
    struct str id;
    int64_t wait_ms;
};
struct approval_id_in {
    struct str id;
};
struct approval_cancel_in {
    struct str id, reason;
};
struct approval_decide_in {
    struct str id, reason, choice, pattern;
    int scope;
    int64_t for_ms;
    bool preview;
};
struct approval_answer_in {
    struct str id, text;
};
struct approval_answers_in {
    json_t *answers;
};
extern const struct op op_approval_ask, op_approval_list, op_approval_get, op_approval_watch,
    op_approval_approve, op_approval_deny, op_approval_answer, op_approval_answers,
    op_approval_cancel;

struct grant_list_in {
    struct str cursor;
    int64_t limit;
};
struct grant_id_in {
    struct str id;
};
extern const struct op op_grant_list, op_grant_revoke;

struct gate_add_in {
    struct str operation, label, command, path, reason;
    int role;
    int64_t people;
};
extern const struct op op_gate_add, op_gate_list, op_gate_remove;
