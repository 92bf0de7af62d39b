/* exec: inputs of the operations on commands, and of the one-shot run. */
#pragma once

#include "ops/sandbox.h"

#define OP_EXEC_NEWEST "newest" /* instead of an id: the command started last */
#define OP_PTY_SIDE_MAX 4096    /* rows, and columns, of a terminal */

extern const char *const op_exec_states[];  /* in the order of enum exec_state */
extern const char *const op_streams[];      /* "stdout", "stderr" */
extern const char *const op_attach_roles[]; /* "observer", "controller" */
extern const char *const op_on_full[];      /* "drop", "block" */

enum { OP_STREAM_STDOUT, OP_STREAM_STDERR };
enum { OP_ATTACH_OBSERVER, OP_ATTACH_CONTROLLER };
enum { OP_ON_FULL_DROP, OP_ON_FULL_BLOCK };

struct exec_fields { /* the description of a command; for exec.create and run */
    json_t *command; /* a list of texts, or one text for /bin/sh -c */
    struct str cwd, user;
    struct op_map env;
    int64_t timeout_ms; /* OP_ABSENT: none */
    struct str stdin_text, stdin_base64;
    bool stdin_open, merge, kill_rest;
    json_t *pty; /* true or {"rows", "cols"}; NULL or false: none */
    int64_t output_bytes;
    int on_full; /* -1: the operation's default */
};
struct exec_create_in {
    struct str id;
    struct exec_fields exec;
    bool background, cancel_on_disconnect;
};
struct run_in {
    struct str name;
    struct sandbox_fields sandbox;
    struct exec_fields exec;
};
struct exec_list_in {
    struct str id;
    int state; /* -1: any */
    int64_t limit;
    struct str cursor;
};
struct exec_id_in {
    struct str id, exec;
};
struct exec_output_in {
    struct str id, exec;
    int stream;
    int64_t offset;
    bool follow;
};
struct exec_logs_in {
    struct str id, exec; /* exec is absent: the newest */
    int64_t tail;        /* OP_ABSENT: everything kept */
    bool follow;
};
struct exec_attach_in {
    struct str id, exec;
    int role; /* -1: controller if there is none */
    bool take;
    struct str name;
    bool raw, repaint, screen;
    int64_t updates;
    int64_t stdout_offset, stderr_offset;
};
struct exec_signal_in {
    struct str id, exec, signal;
};
struct exec_stdin_in {
    struct str id, exec;
    bool eof;
};
struct exec_resize_in {
    struct str id, exec;
    int64_t rows, cols;
};

/* The fields of struct exec_attach_in after the ids. */
#define ATTACH_FIELDS(structure)                                                                   \
    FIELD(structure, role, OP_CHOICE, .choices = op_attach_roles, .example = "observer",           \
          .text = "A controller types and resizes, an observer only reads. Default: controller, "  \
                  "if there is none yet."),                                                        \
        FIELD(structure, take, OP_BOOL, .preset = "false", .example = "true",                      \
              .text = "Become the controller even if there is one, which becomes an observer."),   \
        FIELD(structure, stdout_offset, OP_INT, .min = -1, .max = 1LL << 53, .preset = "0",        \
              .example = "4096",                                                                   \
              .text = "Start of standard output: a byte offset; -1: only new output."),            \
        FIELD(structure, stderr_offset, OP_INT, .min = -1, .max = 1LL << 53, .preset = "0",        \
              .example = "4096",                                                                   \
              .text = "Start of standard error: a byte offset; -1: only new output."),             \
        FIELD(structure, name, OP_STR, .max = 64, .example = "ada",                                \
              .text = "What the other members call you; the name of your token by default."),      \
        FIELD(structure, raw, OP_BOOL, .preset = "true", .example = "false",                       \
              .text = "Send the output as it is."),                                                \
        FIELD(structure, repaint, OP_BOOL, .preset = "false", .example = "true",                   \
              .text = "Begin with bytes that draw the terminal's screen as it is, instead of at "  \
                      "an offset."),                                                               \
        FIELD(structure, screen, OP_BOOL, .preset = "false", .example = "true",                    \
              .text = "Send the terminal's screen: first all of it, then what changes."),          \
        FIELD(structure, updates, OP_INT, .min = 1, .max = 60, .preset = "10", .example = "4",     \
              .text = "Send the screen at most this often in a second.")

extern const struct op op_exec_create, op_exec_list, op_exec_get, op_exec_output, op_exec_attach;
extern const struct op op_exec_signal, op_exec_stdin, op_exec_resize, op_exec_wait, op_exec_cancel;
extern const struct op op_sandbox_logs, op_run, op_run_attach;
