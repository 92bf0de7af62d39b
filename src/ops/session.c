/* session: operations on sessions, and on the screens of terminals. */
#include "ops/session.h"

const char *const op_screen_forms[] = {"json", "text", "ansi", NULL};

#define EXAMPLE_SANDBOX "sb_01k4r8w2m9h5t7c3xqvd"
#define EXAMPLE_ID "ex_01k4r8w2m9h5t7c3xqvd"

static const struct op_field session_reply[] = {
    REPLY("id", OP_STR, "Its id: that of its command.", .example = EXAMPLE_ID),
    REPLY("name", OP_STR, "Its name, unique among the running ones of its sandbox.",
          .example = "main"),
    REPLY("sandbox", OP_STR, "Where it runs.", .example = EXAMPLE_SANDBOX),
    REPLY("state", OP_CHOICE, "Where its command is in its life.", .choices = op_exec_states,
          .example = "running"),
    REPLY("command", OP_LIST, "The program and its arguments.", .example = "bash"),
    REPLY("rows", OP_INT, "Lines of its terminal.", .example = "24"),
    REPLY("cols", OP_INT, "Columns of its terminal.", .example = "80"),
    REPLY("controller", OP_STR, "The member that types; null: nobody does.", .nullable = true,
          .example = "ada"),
    REPLY("members", OP_INT, "How many clients are attached.", .example = "2"),
    REPLY("output_bytes", OP_INT, "Length of its output so far.", .example = "4096"),
    REPLY("exit_code", OP_INT, "Its exit status, 128 + n for signal n; null: it has none.",
          .nullable = true, .example = "0"),
    REPLY("created_at", OP_TIME, "When it was asked for.", .example = "2026-01-02T03:04:05.678Z"),
    REPLY("ended_at", OP_TIME, "When it ended.", .nullable = true),
};
#define SESSION_OUT                                                                                \
    .out = session_reply, .out_count = ARRAY_LEN(session_reply), .schema = "TerminalSession"

#define ID_FIELD(structure)                                                                        \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,       \
          .example = EXAMPLE_SANDBOX, .text = "The sandbox's id or name.")
/* In the input it is an exec: the handlers are the same. */
#define SESSION_ID_FIELDS(structure)                                                               \
    ID_FIELD(structure), {.name = "session",                                                       \
                          .type = OP_STR,                                                          \
                          .offset = offsetof(structure, exec),                                     \
                          .required = true,                                                        \
                          .positional = true,                                                      \
                          .min = 1,                                                                \
                          .max = 64,                                                               \
                          .example = "main",                                                       \
                          .text = "The session's name or id."}
#define IN(list, structure)                                                                        \
    .in = list, .in_count = ARRAY_LEN(list), .in_size = sizeof(struct structure)

/* --- create, list, get --- */

#define OF_EXEC(key, member, kind, ...)                                                            \
    {.name = key,                                                                                  \
     .type = kind,                                                                                 \
     .offset = offsetof(struct session_create_in, exec.member),                                    \
     __VA_ARGS__}
static const struct op_field session_create_fields[] = {
    ID_FIELD(struct session_create_in),
    FIELD(struct session_create_in, name, OP_STR, .min = 1, .max = 63, .pattern = OP_PATTERN_NAME,
          .preset = "main", .example = "main",
          .text = "Its name, unique among the running sessions of the sandbox."),
    OF_EXEC("command", command, OP_JSON, .types = "array|string",
            .text = "A list: the program and its arguments; or one text for /bin/sh -c. Absent: "
                    "a shell."),
    OF_EXEC("cwd", cwd, OP_STR, .max = 4095, .example = "/workspace",
            .text = "Directory to run it in; the image's, or the user's home, by default."),
    OF_EXEC("env", env, OP_MAP, .max = 1024, .secret = true, .example = "CI=1",
            .text = "More environment for it, above the sandbox's and the image's."),
    OF_EXEC("user", user, OP_STR, .max = 64, .example = "1000:1000",
            .text = "User inside the sandbox: USER or USER:GROUP, names or numbers."),
    OF_EXEC("timeout_ms", timeout_ms, OP_DURATION, .min = 1, .max = 31536000000, .example = "8h",
            .text = "It is killed this long after its start. Default: that of its policies, else "
                    "the setting 'session_time_ms'."),
    OF_EXEC("output_bytes", output_bytes, OP_SIZE, .min = 65536, .max = 1LL << 40, .example = "64m",
            .text = "Bytes of output to keep; the oldest is dropped. Default: the setting "
                    "'output_bytes'."),
    FIELD(struct session_create_in, rows, OP_INT, .min = 1, .max = 1000, .preset = "24",
          .example = "50", .text = "Lines of its terminal."),
    FIELD(struct session_create_in, cols, OP_INT, .min = 1, .max = 1000, .preset = "80",
          .example = "160", .text = "Columns of its terminal."),
};
const struct op op_session_create = {
    .name = "session.create",
    .group = "session",
    .text = "Start a session in a sandbox: a command with a terminal that has a name.\n"
            "It runs until its command ends, whoever is attached or not, also over a restart of "
            "holtd.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/sessions",
    .verb = "session create",
    .perm = PERM_SANDBOX_WRITE,
    IN(session_create_fields, session_create_in),
    SESSION_OUT,
    .status = 201,
    .creates = true,
};

#define LIST_FIELDS                                                                                \
    FIELD(struct session_list_in, all, OP_BOOL, .preset = "false", .example = "true",              \
          .text = "Those that have ended too."),                                                   \
        FIELD(struct session_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",       \
              .example = "20", .text = "At most this many in one page."),                          \
        FIELD(struct session_list_in, cursor, OP_STR, .max = 64, .example = EXAMPLE_ID,            \
              .text = "Continue after the last page: the cursor of its reply.")
static const struct op_field session_list_fields[] = {
    ID_FIELD(struct session_list_in),
    LIST_FIELDS,
};
static const struct op_field session_list_all_fields[] = {LIST_FIELDS};
#define LIST_OUT                                                                                   \
    .reply = OP_REPLY_LIST, SESSION_OUT, .items = "sessions",                                      \
    .columns = "id,name,sandbox,state,command,controller,members,created_at"

const struct op op_session_list = {
    .name = "session.list",
    .group = "session",
    .text = "List the sessions of a sandbox.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/sessions",
    .perm = PERM_SANDBOX_READ,
    IN(session_list_fields, session_list_in),
    LIST_OUT,
};

const struct op op_session_list_all = {
    .name = "session.list_all",
    .group = "session",
    .text = "List the sessions of all sandboxes that you may see.",
    .method = "GET",
    .path = "/holt/v1/sessions",
    .verb = "session ls",
    .perm = PERM_SANDBOX_READ,
    IN(session_list_all_fields, session_list_in),
    LIST_OUT,
};

static const struct op_field session_id_fields[] = {SESSION_ID_FIELDS(struct exec_id_in)};

const struct op op_session_get = {
    .name = "session.get",
    .group = "session",
    .text = "Show one session.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}",
    .verb = "session show",
    .perm = PERM_SANDBOX_READ,
    IN(session_id_fields, exec_id_in),
    SESSION_OUT,
};

static const struct op_field member_reply[] = {
    REPLY("name", OP_STR, "What the member calls itself.", .example = "ada"),
    REPLY("by", OP_STR, "Whose token it has.", .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("role", OP_CHOICE, "Only a controller types.", .choices = op_attach_roles,
          .example = "observer"),
    REPLY("since", OP_TIME, "When it came.", .example = "2026-01-02T03:04:05.678Z"),
};
const struct op op_session_members = {
    .name = "session.members",
    .group = "session",
    .text = "List the clients that are attached to a session, the first 100.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}/members",
    .verb = "session members",
    .perm = PERM_SANDBOX_READ,
    IN(session_id_fields, exec_id_in),
    .reply = OP_REPLY_LIST,
    .out = member_reply,
    .out_count = ARRAY_LEN(member_reply),
    .schema = "SessionMember",
    .items = "members",
};

/* --- the screen --- */

#define SCREEN_FIELDS                                                                              \
    FIELD(struct exec_screen_in, format, OP_CHOICE, .choices = op_screen_forms, .preset = "json",  \
          .example = "text",                                                                       \
          .text = "An object; plain text, a line per row; or text with colours and attributes as " \
                  "ANSI sequences."),                                                              \
        FIELD(struct exec_screen_in, cells, OP_BOOL, .preset = "false", .example = "true",         \
              .text = "In the object: each row as runs of text with the same attributes, too."),   \
        FIELD(struct exec_screen_in, history, OP_BOOL, .preset = "false", .example = "true",       \
              .text = "With the lines above the screen that are kept."),                           \
        FIELD(struct exec_screen_in, offset, OP_INT, .min = 0, .max = 1LL << 53,                   \
              .example = "4096",                                                                   \
              .text = "As it was at this byte of the output; as it is now if absent.")

static const struct op_field screen_reply[] = {
    REPLY("rows", OP_INT, "Lines of the terminal.", .example = "24"),
    REPLY("cols", OP_INT, "Columns of the terminal.", .example = "80"),
    REPLY("cursor", OP_JSON, "Where the cursor is, from 0: row, col, visible.", .types = "object"),
    REPLY("alternate", OP_BOOL, "Does a full-screen program show its own screen?",
          .example = "false"),
    REPLY("reverse", OP_BOOL, "Are all colours exchanged?", .example = "false"),
    REPLY("title", OP_STR, "The title that programs have set.", .example = "vim"),
    REPLY("history", OP_INT, "Lines above the screen that are kept.", .example = "12"),
    REPLY("forgotten", OP_INT, "Lines above those, which are not kept.", .example = "0"),
    REPLY("offset", OP_INT, "Bytes of output that made it.", .example = "4096"),
    REPLY("complete", OP_BOOL,
          "Was it made from all output? Otherwise the oldest output was dropped already.",
          .example = "true"),
    REPLY("text", OP_STR, "The rows as plain text.", .example = "$ \n"),
    REPLY("lines", OP_JSON, "With 'cells': the rows as runs.", .types = "array", .optional = true),
};
#define SCREEN_OUT                                                                                 \
    .out = screen_reply, .out_count = ARRAY_LEN(screen_reply), .schema = "Screen",                 \
    .also = "text/plain", .audited = true, .perm = PERM_SANDBOX_CONTENT

static const struct op_field exec_screen_fields[] = {
    ID_FIELD(struct exec_screen_in),
    FIELD(struct exec_screen_in, exec, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 64, .example = EXAMPLE_ID,
          .text = "The command's id; '" OP_EXEC_NEWEST "' is the one started last."),
    SCREEN_FIELDS,
};
const struct op op_exec_screen = {
    .name = "exec.screen",
    .group = "exec",
    .text = "Show the screen of a command's terminal, as it is or as it was.\n"
            "It is computed from the output, at the sizes that the terminal had.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/execs/{exec}/screen",
    IN(exec_screen_fields, exec_screen_in),
    SCREEN_OUT,
};

static const struct op_field session_screen_fields[] = {
    SESSION_ID_FIELDS(struct exec_screen_in),
    SCREEN_FIELDS,
};
const struct op op_session_screen = {
    .name = "session.screen",
    .group = "session",
    .text = "Show the screen of a session, as it is or as it was.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}/screen",
    .verb = "session screen",
    IN(session_screen_fields, exec_screen_in),
    SCREEN_OUT,
};

/* --- acting on it --- */

static const struct op_field session_send_fields[] = {
    SESSION_ID_FIELDS(struct session_send_in),
    FIELD(struct session_send_in, text, OP_STR, .positional = true, .max = 65536, .secret = true,
          .example = "ls\n", .text = "Typed as it is."),
    FIELD(struct session_send_in, keys, OP_LIST, .max = 1000, .secret = true, .example = "Enter",
          .text = "Keys by name, pressed after the text: Enter, Escape, Up, F5, C-c, M-x, or one "
                  "character."),
    FIELD(struct session_send_in, take, OP_BOOL, .preset = "false", .example = "true",
          .text = "Also while another member controls it: that one observes from then on."),
};
const struct op op_session_send = {
    .name = "session.send",
    .group = "session",
    .text = "Type into a session: text, keys, or both.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}/send",
    .verb = "session send",
    .perm = PERM_SANDBOX_WRITE,
    IN(session_send_fields, session_send_in),
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

static const struct op_field session_resize_fields[] = {
    SESSION_ID_FIELDS(struct exec_resize_in),
    FIELD(struct exec_resize_in, rows, OP_INT, .required = true, .positional = true, .min = 1,
          .max = 1000, .example = "24", .text = "Lines of the terminal."),
    FIELD(struct exec_resize_in, cols, OP_INT, .required = true, .positional = true, .min = 1,
          .max = 1000, .example = "80", .text = "Columns of the terminal."),
};
const struct op op_session_resize = {
    .name = "session.resize",
    .group = "session",
    .text = "Change the size of a session's terminal.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}/resize",
    .verb = "session resize",
    .perm = PERM_SANDBOX_WRITE,
    IN(session_resize_fields, exec_resize_in),
    SESSION_OUT,
};

const struct op op_session_kill = {
    .name = "session.kill",
    .group = "session",
    .text = "End a session: its command and everything that it started are killed.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}/kill",
    .verb = "session kill",
    .perm = PERM_SANDBOX_WRITE,
    IN(session_id_fields, exec_id_in),
    SESSION_OUT,
};

static const struct op_field session_attach_fields[] = {
    SESSION_ID_FIELDS(struct exec_attach_in),
    ATTACH_FIELDS(struct exec_attach_in),
};
const struct op op_session_attach = {
    .name = "session.attach",
    .group = "session",
    .text = "Attach to a session over a WebSocket, as exec.attach does.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}/attach",
    .perm = PERM_SANDBOX_CONTENT,
    IN(session_attach_fields, exec_attach_in),
    .reply = OP_REPLY_SOCKET,
    .audited = true,
};

/* --- what was --- */

static const struct op_field session_recording_fields[] = {
    SESSION_ID_FIELDS(struct session_recording_in),
    FIELD(struct session_recording_in, follow, OP_BOOL, .preset = "false", .example = "true",
          .text = "Go on until the session ends."),
    {.name = "idle",
     .type = OP_DURATION,
     .offset = offsetof(struct session_recording_in, idle_ms),
     .min = 1,
     .max = 3600000,
     .example = "2s",
     .text = "Shorten pauses to this length."},
    FIELD(struct session_recording_in, limit, OP_SIZE, .min = 1024, .max = 1LL << 40,
          .example = "64m", .text = "End after this many bytes."),
};
const struct op op_session_recording = {
    .name = "session.recording",
    .group = "session",
    .text = "Read a session's recording: asciicast v2, made from its output.\n"
            "It begins with the oldest output that is kept.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}/recording",
    .perm = PERM_SANDBOX_CONTENT,
    IN(session_recording_fields, session_recording_in),
    .reply = OP_REPLY_BYTES,
    .media = "application/x-asciicast",
    .audited = true,
};

static const struct op_field match_reply[] = {
    REPLY("offset", OP_INT, "Where the line ends in the output.", .example = "4096"),
    REPLY("time", OP_TIME, "When it was written.", .example = "2026-01-02T03:04:05.678Z"),
    REPLY("line", OP_STR, "The line, as text.", .example = "make: *** [all] Error 1"),
};
static const struct op_field session_search_fields[] = {
    SESSION_ID_FIELDS(struct session_search_in),
    FIELD(struct session_search_in, text, OP_STR, .required = true, .positional = true, .min = 1,
          .max = 1000, .example = "Error", .text = "What to find; upper and lower case differ."),
    FIELD(struct session_search_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "At most this many lines."),
};
const struct op op_session_search = {
    .name = "session.search",
    .group = "session",
    .text = "Find the lines of a session's output that have a text, oldest first.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/sessions/{session}/search",
    .verb = "session search",
    .perm = PERM_SANDBOX_CONTENT,
    IN(session_search_fields, session_search_in),
    .reply = OP_REPLY_LIST,
    .out = match_reply,
    .out_count = ARRAY_LEN(match_reply),
    .schema = "SessionMatch",
    .items = "matches",
    .columns = "time,offset,line",
    .audited = true,
};
