/* exec: operations on commands, and the one-shot run. */
#include "ops/exec.h"

const char *const op_exec_states[] = {"starting", "running", "exited", "failed", "lost", NULL};
const char *const op_streams[] = {"stdout", "stderr", NULL};
const char *const op_attach_roles[] = {"observer", "controller", NULL};
const char *const op_on_full[] = {"drop", "block", NULL};

#define EXAMPLE_SANDBOX "sb_01k4r8w2m9h5t7c3xqvd"
#define EXAMPLE_ID "ex_01k4r8w2m9h5t7c3xqvd"

#define EXEC_REPLY                                                                                 \
    REPLY("id", OP_STR, "The command's id, used in paths and events.", .example = EXAMPLE_ID),     \
        REPLY("sandbox", OP_STR, "The sandbox it runs in.", .example = EXAMPLE_SANDBOX),           \
        REPLY("state", OP_CHOICE, "Its state.", .choices = op_exec_states, .example = "exited"),   \
        REPLY("command", OP_LIST, "The program and its arguments.", .example = "true"),            \
        REPLY("cwd", OP_STR, "Its working directory; null: the user's home.", .nullable = true,    \
              .example = "/workspace"),                                                            \
        REPLY("user", OP_STR, "The user it runs as; null: root.", .nullable = true),               \
        REPLY("pty", OP_BOOL, "Whether it has a terminal.", .example = "false"),                   \
        REPLY("exit_code", OP_INT,                                                                 \
              "Its exit status; 128 + n if signal n ended it; null: none (yet).",                  \
              .nullable = true, .example = "0"),                                                   \
        REPLY("signal", OP_INT, "The signal that ended it.", .nullable = true, .example = "9"),    \
        REPLY("timed_out", OP_BOOL, "Whether it was killed at its deadline.", .example = "false"), \
        REPLY("cancelled", OP_BOOL, "Whether it was killed by a request.", .example = "false"),    \
        REPLY("oom", OP_BOOL, "Whether it was killed because the memory limit was reached.",       \
              .example = "false"),                                                                 \
        REPLY("created_at", OP_TIME, "When it was requested.",                                     \
              .example = "2026-01-02T03:04:05.678Z"),                                              \
        REPLY("started_at", OP_TIME, "When it started to run.", .nullable = true),                 \
        REPLY("ended_at", OP_TIME, "When it ended.", .nullable = true),                            \
        REPLY("duration_ms", OP_INT, "How long it ran, in milliseconds.", .nullable = true,        \
              .example = "12"),                                                                    \
        REPLY("stdout_bytes", OP_INT, "Length of its standard output in bytes.", .example = "6"),  \
        REPLY("stderr_bytes", OP_INT, "Length of its standard error in bytes.", .example = "0"),   \
        REPLY("usage", OP_JSON,                                                                    \
              "Resources it used: user_us, system_us, max_rss_kib; null while it runs.",           \
              .nullable = true, .types = "object"),                                                \
        REPLY("failure", OP_STR, "Why it failed or was lost.", .nullable = true)

static const struct op_field exec_reply[] = {EXEC_REPLY};
#define EXEC_OUT .out = exec_reply, .out_count = ARRAY_LEN(exec_reply), .schema = "Exec"

#define RESULT_REPLY                                                                               \
    EXEC_REPLY,                                                                                    \
        REPLY("stdout", OP_STR,                                                                    \
              "Its standard output; null while it runs, or if it is not UTF-8 text.",              \
              .nullable = true, .example = "hello\n"),                                             \
        REPLY("stderr", OP_STR,                                                                    \
              "Its standard error; null while it runs, or if it is not UTF-8 text.",               \
              .nullable = true, .example = ""),                                                    \
        REPLY("stdout_base64", OP_STR, "Its standard output in base64, if it is not UTF-8 text.",  \
              .nullable = true),                                                                   \
        REPLY("stderr_base64", OP_STR, "Its standard error in base64, if it is not UTF-8 text.",   \
              .nullable = true),                                                                   \
        REPLY("truncated", OP_BOOL,                                                                \
              "Whether output is left out of this reply. Of a long stream it has the beginning "   \
              "and the end, and a line between them with the number of bytes left out. The "       \
              "operation exec.output returns what is kept of it.",                                 \
              .example = "false"),                                                                 \
        REPLY("stdout_omitted", OP_INT, "Bytes of standard output that are left out.",             \
              .example = "0"),                                                                     \
        REPLY("stderr_omitted", OP_INT, "Bytes of standard error that are left out.",              \
              .example = "0")

static const struct op_field result_reply[] = {RESULT_REPLY};
#define RESULT_OUT .out = result_reply, .out_count = ARRAY_LEN(result_reply), .schema = "ExecResult"

/* The fields of struct exec_fields, which `structure` holds as `exec`. */
#define EXEC_FIELD(structure, key, member, kind, ...)                                              \
    {.name = key, .type = kind, .offset = offsetof(structure, exec.member), __VA_ARGS__}
#define EXEC_FIELDS(structure)                                                                     \
    EXEC_FIELD(structure, "command", command, OP_JSON, .types = "array|string",                    \
               .text = "A list: the program and its arguments; or a string for /bin/sh -c. "       \
                       "Default: the entrypoint and command of the image."),                       \
        EXEC_FIELD(structure, "cwd", cwd, OP_STR, .max = 4095, .example = "/workspace",            \
                   .text = "Working directory. Default: that of the image, or the user's home."),  \
        EXEC_FIELD(structure, "env", env, OP_MAP, .max = 1024, .secret = true, .example = "CI=1",  \
                   .text = "Environment variables, added to those of the image and the sandbox."), \
        EXEC_FIELD(structure, "user", user, OP_STR, .max = 64, .example = "1000:1000",             \
                   .text = "User inside the sandbox: USER or USER:GROUP, names or numbers. "       \
                           "Default: that of the image, or root."),                                \
        EXEC_FIELD(structure, "timeout_ms", timeout_ms, OP_DURATION, .min = 1, .max = 31536000000, \
                   .example = "30s",                                                               \
                   .text = "Deadline: it is killed this long after its start. Default: that of "   \
                           "its policies, else the setting 'command_time_ms'."),                   \
        EXEC_FIELD(structure, "stdin", stdin_text, OP_STR, .max = 16777216, .secret = true,        \
                   .example = "hello",                                                             \
                   .text = "Its complete standard input, as text. The whole body has "             \
                           "at most 'body_max' bytes."),                                           \
        EXEC_FIELD(                                                                                \
            structure, "stdin_base64", stdin_base64, OP_STR, .max = 22369624, .secret = true,      \
            .example = "aGVsbG8=", .text = "Its complete standard input, in base64; likewise."),   \
        EXEC_FIELD(structure, "stdin_open", stdin_open, OP_BOOL, .preset = "false",                \
                   .example = "true",                                                              \
                   .text = "Keep its standard input open for the stdin and attach operations."),   \
        EXEC_FIELD(structure, "pty", pty, OP_JSON, .types = "boolean|object",                      \
                   .text = "Give it a terminal: true, or {\"rows\": 24, \"cols\": 80}."),          \
        EXEC_FIELD(structure, "merge", merge, OP_BOOL, .preset = "false", .example = "true",       \
                   .text = "Send its standard error to its standard output."),                     \
        EXEC_FIELD(structure, "kill_rest", kill_rest, OP_BOOL, .preset = "false",                  \
                   .example = "true", .text = "When it ends, kill the processes it started too."), \
        EXEC_FIELD(structure, "output_bytes", output_bytes, OP_SIZE, .min = 65536,                 \
                   .max = 1LL << 40, .example = "64m",                                             \
                   .text = "Bytes of output to keep; the oldest is dropped. Default: the setting " \
                           "'output_bytes'."),                                                     \
        EXEC_FIELD(structure, "on_full", on_full, OP_CHOICE, .choices = op_on_full,                \
                   .example = "block",                                                             \
                   .text = "When that is full: 'drop' the oldest output, or 'block' the command "  \
                           "until a client has read. Default: 'block' for clients that stream "    \
                           "the output, as holt run does; else 'drop'.")

#define ID_FIELD(structure)                                                                        \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,       \
          .example = EXAMPLE_SANDBOX, .text = "The sandbox's id or name.")
#define EXEC_ID_FIELDS(structure)                                                                  \
    ID_FIELD(structure),                                                                           \
        FIELD(structure, exec, OP_STR, .required = true, .positional = true, .min = 1, .max = 64,  \
              .example = EXAMPLE_ID,                                                               \
              .text = "The command's id, or the name of a session; '" OP_EXEC_NEWEST               \
                      "' is the one started last.")

static const struct op_field exec_create_fields[] = {
    ID_FIELD(struct exec_create_in),
    EXEC_FIELDS(struct exec_create_in),
    FIELD(struct exec_create_in, background, OP_BOOL, .preset = "false", .example = "true",
          .text = "Reply with status 202 as soon as it runs."),
    FIELD(struct exec_create_in, cancel_on_disconnect, OP_BOOL, .preset = "false",
          .example = "true",
          .text = "Kill it if the client disconnects before its end. A restart of holtd is no "
                  "disconnect. Not together with 'background'."),
};
const struct op op_exec_create = {
    .name = "exec.create",
    .group = "exec",
    .text = "Run a command in a sandbox and reply with its output.\nThe reply is sent when the "
            "command has ended, unless 'background' is set. The command continues if the client "
            "disconnects. Its output can be read again from any offset, also after its end.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/execs",
    .perm = PERM_SANDBOX_WRITE,
    .in = exec_create_fields,
    .in_count = ARRAY_LEN(exec_create_fields),
    .in_size = sizeof(struct exec_create_in),
    RESULT_OUT,
    .creates = true,
    .later =
        "'background' was set: the command as it is now, without output. 'state' is 'running', "
        "or 'failed' if it could not be started; a short one, or a repetition with its "
        "Idempotency-Key, may have ended.",
};

static const struct op_field run_reply[] = {
    RESULT_REPLY,
    REPLY("warnings", OP_LIST, "Differences of its sandbox from the request, one sentence each.",
          .example = "memory_bytes is not enforced on this host"),
};
static const struct op_field run_fields[] = {
    FIELD(struct run_in, name, OP_STR, .max = 63, .pattern = OP_PATTERN_NAME, .example = "build",
          .text = "A name for its sandbox while it runs, unique among your live sandboxes."),
    EXEC_FIELDS(struct run_in),
    SANDBOX_FIELDS(struct run_in),
};
const struct op op_run = {
    .name = "run",
    .group = "exec",
    .text = "Create a sandbox, run one command in it, destroy it, and reply with its output.\nThe "
            "sandbox is always destroyed, also if the client disconnects.",
    .method = "POST",
    .path = "/holt/v1/run",
    .creates = true,
    .perm = PERM_SANDBOX_WRITE,
    .in = run_fields,
    .in_count = ARRAY_LEN(run_fields),
    .in_size = sizeof(struct run_in),
    .out = run_reply,
    .out_count = ARRAY_LEN(run_reply),
    .schema = "RunResult",
};

const struct op op_run_attach = {
    .name = "run.attach",
    .group = "exec",
    .text =
        "Run one command in a sandbox of its own, over a WebSocket.\nThe first text message is the "
        "body of the run operation; after it the protocol is that of exec.attach as controller. "
        "The sandbox is destroyed after the exit message, or when the client disconnects.",
    .method = "GET",
    .path = "/holt/v1/run",
    .perm = PERM_SANDBOX_WRITE,
    .reply = OP_REPLY_SOCKET,
};

static const struct op_field exec_list_fields[] = {
    ID_FIELD(struct exec_list_in),
    FIELD(struct exec_list_in, state, OP_CHOICE, .choices = op_exec_states, .example = "running",
          .text = "Only those in this state."),
    FIELD(struct exec_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct exec_list_in, cursor, OP_STR, .max = 64, .example = EXAMPLE_ID,
          .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_exec_list = {
    .name = "exec.list",
    .group = "exec",
    .text = "List a sandbox's commands, oldest first.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/execs",
    .verb = "ps",
    .perm = PERM_SANDBOX_READ,
    .in = exec_list_fields,
    .in_count = ARRAY_LEN(exec_list_fields),
    .in_size = sizeof(struct exec_list_in),
    .reply = OP_REPLY_LIST,
    EXEC_OUT,
    .items = "execs",
    .columns = "id,state,command,exit_code,duration_ms,created_at",
};

static const struct op_field exec_id_fields[] = {EXEC_ID_FIELDS(struct exec_id_in)};
#define EXEC_ID_IN                                                                                 \
    .in = exec_id_fields, .in_count = ARRAY_LEN(exec_id_fields),                                   \
    .in_size = sizeof(struct exec_id_in)

const struct op op_exec_get = {
    .name = "exec.get",
    .group = "exec",
    .text = "Show one command.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}",
    .perm = PERM_SANDBOX_READ,
    EXEC_ID_IN,
    EXEC_OUT,
};

static const struct op_field exec_output_fields[] = {
    EXEC_ID_FIELDS(struct exec_output_in),
    FIELD(struct exec_output_in, stream, OP_CHOICE, .choices = op_streams, .preset = "stdout",
          .example = "stderr", .text = "The stream to read."),
    FIELD(struct exec_output_in, offset, OP_INT, .min = -(1LL << 40), .max = 1LL << 53,
          .preset = "0", .example = "4096",
          .text = "Start at this byte. A negative offset counts from the end."),
    FIELD(struct exec_output_in, follow, OP_BOOL, .preset = "false", .example = "true",
          .text = "Follow the output until the command ends."),
};
const struct op op_exec_output = {
    .name = "exec.output",
    .group = "exec",
    .text = "Read a command's output from any offset, also after its end.\nX-Holt-Offset is the "
            "offset of the first byte. An offset that is no longer kept is an error, which names "
            "the first offset that is. With follow, trailers carry the command's end.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}/output",
    .perm = PERM_SANDBOX_CONTENT,
    .in = exec_output_fields,
    .in_count = ARRAY_LEN(exec_output_fields),
    .in_size = sizeof(struct exec_output_in),
    .reply = OP_REPLY_BYTES,
    .audited = true,
};

static const struct op_field logs_fields[] = {
    ID_FIELD(struct exec_logs_in),
    FIELD(struct exec_logs_in, exec, OP_STR, .max = 64, .example = EXAMPLE_ID,
          .text = "The command's id. Default: the newest command."),
    FIELD(struct exec_logs_in, tail, OP_SIZE, .max = 1LL << 40, .example = "64k",
          .text = "Only about this many bytes at the end of each stream."),
    FIELD(struct exec_logs_in, follow, OP_BOOL, .preset = "false", .example = "true",
          .text = "Follow the output until the command ends."),
};
const struct op op_sandbox_logs = {
    .name = "sandbox.logs",
    .group = "exec",
    .text =
        "Read both output streams of a sandbox's newest command, in the order they were written.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/logs",
    .verb = "logs",
    .perm = PERM_SANDBOX_CONTENT,
    .in = logs_fields,
    .in_count = ARRAY_LEN(logs_fields),
    .in_size = sizeof(struct exec_logs_in),
    .reply = OP_REPLY_BYTES,
    .audited = true,
};

static const struct op_field exec_attach_fields[] = {
    EXEC_ID_FIELDS(struct exec_attach_in),
    ATTACH_FIELDS(struct exec_attach_in),
};
const struct op op_exec_attach = {
    .name = "exec.attach",
    .group = "exec",
    .text = "Attach to a command over a WebSocket: input, output, resize, signals.\n"
            "Subprotocol holt.attach.v1. To holt: binary messages are a zero byte and input; text "
            "messages have the types input, eof, resize, signal, take, release, hand_over, "
            "keyframe and detach. From holt: binary messages are the stream (1 stdout, 2 stderr), "
            "its offset in 8 bytes, big-endian, and output; text messages have the types started, "
            "role, members, size, repaint, screen, gap, lag, exit and error.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}/attach",
    .perm = PERM_SANDBOX_CONTENT,
    .in = exec_attach_fields,
    .in_count = ARRAY_LEN(exec_attach_fields),
    .in_size = sizeof(struct exec_attach_in),
    .reply = OP_REPLY_SOCKET,
    .audited = true,
};

static const struct op_field exec_signal_fields[] = {
    EXEC_ID_FIELDS(struct exec_signal_in),
    FIELD(struct exec_signal_in, signal, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 16, .example = "TERM", .text = "Name or number of the signal."),
};
const struct op op_exec_signal = {
    .name = "exec.signal",
    .group = "exec",
    .text = "Send a signal to a command.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}/signal",
    .verb = "signal",
    .perm = PERM_SANDBOX_WRITE,
    .in = exec_signal_fields,
    .in_count = ARRAY_LEN(exec_signal_fields),
    .in_size = sizeof(struct exec_signal_in),
    EXEC_OUT,
};

static const struct op_field exec_stdin_fields[] = {
    EXEC_ID_FIELDS(struct exec_stdin_in),
    FIELD(struct exec_stdin_in, eof, OP_BOOL, .preset = "false", .example = "true",
          .text = "Close its standard input after these bytes."),
};
const struct op op_exec_stdin = {
    .name = "exec.stdin",
    .group = "exec",
    .text = "Write to the standard input of a command that was started with it open.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}/stdin",
    .perm = PERM_SANDBOX_WRITE,
    .in = exec_stdin_fields,
    .in_count = ARRAY_LEN(exec_stdin_fields),
    .in_size = sizeof(struct exec_stdin_in),
    .upload = "application/octet-stream",
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field exec_resize_fields[] = {
    EXEC_ID_FIELDS(struct exec_resize_in),
    FIELD(struct exec_resize_in, rows, OP_INT, .required = true, .min = 1, .max = OP_PTY_SIDE_MAX,
          .example = "24", .text = "Number of lines of the terminal."),
    FIELD(struct exec_resize_in, cols, OP_INT, .required = true, .min = 1, .max = OP_PTY_SIDE_MAX,
          .example = "80", .text = "Number of columns of the terminal."),
};
const struct op op_exec_resize = {
    .name = "exec.resize",
    .group = "exec",
    .text = "Change the size of a command's terminal.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}/resize",
    .perm = PERM_SANDBOX_WRITE,
    .in = exec_resize_fields,
    .in_count = ARRAY_LEN(exec_resize_fields),
    .in_size = sizeof(struct exec_resize_in),
    EXEC_OUT,
};

const struct op op_exec_wait = {
    .name = "exec.wait",
    .group = "exec",
    .text = "Wait until a command has ended. The reply is that of exec.get.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}/wait",
    .perm = PERM_SANDBOX_READ,
    EXEC_ID_IN,
    EXEC_OUT,
};

const struct op op_exec_cancel = {
    .name = "exec.cancel",
    .group = "exec",
    .text = "Kill a command and all processes it started.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}/cancel",
    .verb = "cancel",
    .perm = PERM_SANDBOX_WRITE,
    EXEC_ID_IN,
    EXEC_OUT,
};
