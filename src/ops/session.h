/* session: inputs of the operations on sessions: named terminals in sandboxes. */
#pragma once

#include "ops/exec.h"

extern const char *const op_screen_forms[]; /* "json", "text", "ansi" */
enum { OP_SCREEN_JSON, OP_SCREEN_TEXT, OP_SCREEN_ANSI };

struct session_create_in {
    struct str id, name;
    struct exec_fields exec;
    int64_t rows, cols;
};
struct session_list_in {
    struct str id; /* of session.list alone */
    bool all;
    int64_t limit;
    struct str cursor;
};
struct exec_screen_in {
    struct str id, exec;
    int format;
    bool cells, history;
    int64_t offset; /* OP_ABSENT: now */
};
struct session_send_in {
    struct str id, exec;
    struct str text;
    struct op_list keys;
    bool take;
};
struct session_recording_in {
    struct str id, exec;
    bool follow;
    int64_t idle_ms; /* OP_ABSENT: as it was */
    int64_t limit;   /* bytes; OP_ABSENT: none */
};
struct session_search_in {
    struct str id, exec;
    struct str text;
    int64_t limit;
};

extern const struct op op_session_create, op_session_list, op_session_list_all, op_session_get;
extern const struct op op_session_screen, op_exec_screen, op_session_send, op_session_resize;
extern const struct op op_session_kill, op_session_members, op_session_attach;
extern const struct op op_session_recording, op_session_search;
