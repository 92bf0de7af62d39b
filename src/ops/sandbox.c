/* sandbox: operations on sandboxes. */
#include "ops/sandbox.h"

const char *const op_sandbox_states[] = {"creating", "running", "paused",    "stopping", "stopped",
                                         "starting", "failed",  "destroyed", "orphan",   NULL};
const char *const op_syscalls[] = {"narrow", "wide", NULL};
const char *const op_rootfs[] = {"rw", "ro", NULL};
const char *const op_uppers[] = {"disk", "memory", NULL};
const char *const op_mount_kinds[] = {"tmpfs", "host", "own", NULL};

#define EXAMPLE_ID "sb_01k4r8w2m9h5t7c3xqvd"
#define EXAMPLE_TIME "2026-01-02T03:04:05.678Z"

static const struct op_field sandbox_reply[] = {
    REPLY("id", OP_STR, "The sandbox's id, used in paths and events.", .example = EXAMPLE_ID),
    REPLY("name", OP_STR, "A name that its owner chose, unique among the owner's live sandboxes.",
          .nullable = true, .example = "build"),
    REPLY("aliases", OP_JSON,
          "Its names in dialects: a list of {\"dialect\", \"alias\"}. Each works as an id.",
          .types = "array"),
    REPLY("state", OP_CHOICE,
          "Its state. An orphan was found running but is not in this database: it is stopped, and "
          "its files are kept until somebody destroys it.",
          .choices = op_sandbox_states, .example = "running"),
    REPLY("image", OP_STR, "The image it started from.", .example = "host"),
    REPLY("snapshot", OP_STR,
          "The snapshot that its files began as, or that was last taken or restored; null: none.",
          .nullable = true, .example = "sn_01k4r8w2m9h5t7c3xqvd"),
    REPLY("forked_from", OP_STR, "The snapshot it was made from; null: it is no fork.",
          .nullable = true, .example = "sn_01k4r8w2m9h5t7c3xqvd"),
    REPLY("runtime", OP_STR, "The runtime that runs it.", .example = "native"),
    REPLY("host", OP_STR, "The host of virtual machines it is on; null: this machine.",
          .nullable = true, .example = "rack1"),
    REPLY("tenant", OP_STR, "The tenant it belongs to.", .nullable = true, .example = "acme"),
    REPLY("owner", OP_STR, "The principal that created it.",
          .example = "token/tk_01k4r8w2m9h5t7c3xqvd"),
    REPLY("network", OP_JSON,
          "Its network policy: mode and, if set, allow, deny, unknown, connections, bytes.",
          .types = "object"),
    REPLY("limits", OP_JSON,
          "Its limits: memory_bytes, cpu_millis, pids, disk_bytes, nofile; null: no limit.",
          .types = "object"),
    REPLY("unenforced", OP_LIST,
          "Requested limits that this host cannot enforce. Also 'kill' and 'pause' if they work by "
          "signals, without cgroups, 'network' if the mode is raw, which no rule applies to, and "
          "'paths' if path rules do not hold its commands.",
          .example = "disk"),
    REPLY("warnings", OP_LIST, "Differences from the request, one sentence each.",
          .example = "memory_bytes is not enforced on this host"),
    TRAIT_REPLIES,
    REPLY("agent", OP_STR, "The team's agent that works in it; null: none.", .nullable = true,
          .example = "claude"),
    REPLY("policy", OP_STR, "Its own policy; null: none.", .nullable = true, .example = "careful"),
    REPLY("policies", OP_LIST, "All policies that are in force in it.", .example = "careful"),
    REPLY("labels", OP_MAP, "Labels that the owner chose.", .example = "team=blue"),
    REPLY("mounts", OP_JSON, "Its mounts, as requested.", .types = "array"),
    REPLY("volumes", OP_JSON, "Its volumes: a list of {\"id\", \"name\", \"path\", \"read_only\"}.",
          .types = "array"),
    REPLY("secrets", OP_JSON,
          "The secrets it may use: a list of {\"name\", \"env\", \"unreachable\"}. 'unreachable' "
          "lists the hosts of the secret that its network policy refuses.",
          .types = "array"),
    REPLY("execs_live", OP_INT, "Number of commands that run in it.", .example = "1"),
    REPLY("created_at", OP_TIME, "When it was created.", .example = EXAMPLE_TIME),
    REPLY("started_at", OP_TIME, "When it was last started.", .nullable = true),
    REPLY("ended_at", OP_TIME, "When it stopped, failed or was destroyed.", .nullable = true),
    REPLY("active_at", OP_TIME, "When it was last used.", .nullable = true),
    REPLY("failure", OP_STR, "The reason of its failure.", .nullable = true),
};
#define SANDBOX_OUT .out = sandbox_reply, .out_count = ARRAY_LEN(sandbox_reply), .schema = "Sandbox"

static const struct op_field sandbox_create_fields[] = {
    FIELD(struct sandbox_create_in, name, OP_STR, .max = 63, .pattern = OP_PATTERN_NAME,
          .example = "build",
          .text = "A name for it, unique among your live sandboxes. Default: no name."),
    SANDBOX_FIELDS(struct sandbox_create_in),
    TRAIT_CREATE_FIELDS(struct sandbox_create_in),
    FIELD(struct sandbox_create_in, env, OP_MAP, .max = 1024, .secret = true, .example = "CI=1",
          .text = "Environment variables of every command in it."),
};
const struct op op_sandbox_create = {
    .name = "sandbox.create",
    .group = "sandbox",
    .text = "Create a sandbox from an image and start it.\nThe reply is sent once it runs. Limits "
            "that this host cannot enforce are listed in 'unenforced'.",
    .method = "POST",
    .path = "/holt/v1/sandboxes",
    .verb = "create",
    .perm = PERM_SANDBOX_WRITE,
    .in = sandbox_create_fields,
    .in_count = ARRAY_LEN(sandbox_create_fields),
    .in_size = sizeof(struct sandbox_create_in),
    SANDBOX_OUT,
    .status = 201,
    .creates = true,
};

static const struct op_field sandbox_list_fields[] = {
    FIELD(struct sandbox_list_in, state, OP_CHOICE, .choices = op_sandbox_states,
          .example = "running", .text = "Only those in this state."),
    FIELD(struct sandbox_list_in, label, OP_MAP, .max = 64, .example = "team=blue",
          .text = "Only those with this label. May be repeated: only those with all of them."),
    FIELD(struct sandbox_list_in, runtime, OP_STR, .max = 32, .pattern = OP_PATTERN_NAME,
          .example = "native", .text = "Only those of this runtime."),
    FIELD(struct sandbox_list_in, limit, OP_INT, .min = 1, .max = 1000, .preset = "100",
          .example = "20", .text = "Maximum number of items in one page."),
    FIELD(struct sandbox_list_in, cursor, OP_STR, .max = 64, .example = EXAMPLE_ID,
          .text = "Continue after the previous page: the cursor of its reply."),
};
const struct op op_sandbox_list = {
    .name = "sandbox.list",
    .group = "sandbox",
    .text = "List the sandboxes, oldest first. An agent sees only its own.",
    .method = "GET",
    .path = "/holt/v1/sandboxes",
    .verb = "ls",
    .perm = PERM_SANDBOX_READ,
    .in = sandbox_list_fields,
    .in_count = ARRAY_LEN(sandbox_list_fields),
    .in_size = sizeof(struct sandbox_list_in),
    .reply = OP_REPLY_LIST,
    SANDBOX_OUT,
    .items = "sandboxes",
    .columns = "id,name,state,image,runtime,execs_live,created_at",
};

#define ID_FIELD(structure)                                                                        \
    FIELD(structure, id, OP_STR, .required = true, .positional = true, .min = 1, .max = 255,       \
          .example = EXAMPLE_ID, .text = "The sandbox's id, name or alias.")

static const struct op_field sandbox_id_fields[] = {ID_FIELD(struct sandbox_id_in)};
#define SANDBOX_ID_IN                                                                              \
    .in = sandbox_id_fields, .in_count = ARRAY_LEN(sandbox_id_fields),                             \
    .in_size = sizeof(struct sandbox_id_in)

const struct op op_sandbox_get = {
    .name = "sandbox.get",
    .group = "sandbox",
    .text = "Show one sandbox.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}",
    .verb = "inspect",
    .perm = PERM_SANDBOX_READ,
    SANDBOX_ID_IN,
    SANDBOX_OUT,
};

static const struct op_field sandbox_update_fields[] = {
    ID_FIELD(struct sandbox_update_in),
    FIELD(struct sandbox_update_in, name, OP_STR, .max = 63, .pattern = OP_PATTERN_NAME,
          .example = "build-2", .text = "Its new name."),
    FIELD(struct sandbox_update_in, labels, OP_JSON, .types = "object",
          .text = "Its new labels, which replace all others: an object whose values are strings."),
    TRAIT_CHANGES(struct sandbox_update_in),
    FIELD(struct sandbox_update_in, network, OP_JSON, .types = "string|object",
          .text = NETWORK_TEXT),
    FIELD(struct sandbox_update_in, policy, OP_STR, .max = 64, .example = "careful",
          .text =
              "Its policy, by name or id; empty: none. Not for agents. Acts at once on files, and "
              "on commands that start from then on."),
};
const struct op op_sandbox_update = {
    .name = "sandbox.update",
    .group = "sandbox",
    .text = "Change a sandbox's name, labels, lifetime, network or policy. Absent fields keep "
            "their values.",
    .method = "PATCH",
    .path = "/holt/v1/sandboxes/{id}",
    .verb = "update",
    .perm = PERM_SANDBOX_WRITE,
    .in = sandbox_update_fields,
    .in_count = ARRAY_LEN(sandbox_update_fields),
    .in_size = sizeof(struct sandbox_update_in),
    SANDBOX_OUT,
};

const struct op op_sandbox_destroy = {
    .name = "sandbox.destroy",
    .group = "sandbox",
    .text = "Destroy a sandbox: kill its commands and remove its files.",
    .method = "DELETE",
    .path = "/holt/v1/sandboxes/{id}",
    .verb = "rm",
    .perm = PERM_SANDBOX_WRITE,
    SANDBOX_ID_IN,
    .reply = OP_REPLY_EMPTY,
    .status = 204,
};

const struct op op_sandbox_start = {
    .name = "sandbox.start",
    .group = "sandbox",
    .text = "Start a stopped sandbox again, with its files.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/start",
    .verb = "start",
    .perm = PERM_SANDBOX_WRITE,
    SANDBOX_ID_IN,
    SANDBOX_OUT,
};

static const struct op_field sandbox_stop_fields[] = {
    ID_FIELD(struct sandbox_stop_in),
    FIELD(struct sandbox_stop_in, grace_ms, OP_DURATION, .max = 3600000, .preset = "10s",
          .example = "30s", .text = "Commands get SIGTERM, and SIGKILL after this time."),
    FIELD(struct sandbox_stop_in, force, OP_BOOL, .preset = "false", .example = "true",
          .text = "Kill the commands at once."),
};
#define SANDBOX_STOP_IN                                                                            \
    .in = sandbox_stop_fields, .in_count = ARRAY_LEN(sandbox_stop_fields),                         \
    .in_size = sizeof(struct sandbox_stop_in)

const struct op op_sandbox_stop = {
    .name = "sandbox.stop",
    .group = "sandbox",
    .text = "Stop a sandbox: end its commands, keep its files.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/stop",
    .verb = "stop",
    .perm = PERM_SANDBOX_WRITE,
    SANDBOX_STOP_IN,
    SANDBOX_OUT,
};

const struct op op_sandbox_restart = {
    .name = "sandbox.restart",
    .group = "sandbox",
    .text = "Stop a sandbox and start it again.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/restart",
    .verb = "restart",
    .perm = PERM_SANDBOX_WRITE,
    SANDBOX_STOP_IN,
    SANDBOX_OUT,
};

const struct op op_sandbox_reprovision = {
    .name = "sandbox.reprovision",
    .group = "sandbox",
    .text =
        "Make a sandbox anew: its own files are removed, and it starts as it was created.\n"
        "Its id, name, host, network, secrets and settings stay. Commands in it are ended. Volumes "
        "are not touched.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/reprovision",
    .verb = "reprovision",
    .perm = PERM_SANDBOX_WRITE,
    SANDBOX_ID_IN,
    SANDBOX_OUT,
};

/* clang-format off */
static const struct op_field crashes_reply[] = {
    REPLY("id", OP_STR, "The sandbox.", .example = "sb_01k4r8w2m9h5t7c3xqvd"),
    REPLY("state", OP_STR, "How it is: healthy, recovering (it crashed not long ago), crash_loop (it is not started any more) or failed "
          "(neither by a rebuild).", .example = "crash_loop"),
    REPLY("crashes", OP_INT, "How often its init has ended by itself.", .example = "7"),
    REPLY("rebuilds", OP_INT, "Rebuilds since it was healthy.", .example = "1"),
    REPLY("loop_since", OP_TIME, "Since when it is in a crash loop; null: it is in none.", .nullable = true, .example = "2026-01-02T03:04:05.678Z"),
    REPLY("rebuild_at", OP_TIME, "When it will be rebuilt; null: it waits for a person.", .nullable = true, .example = "2026-01-02T03:34:05.678Z"),
    REPLY("history", OP_JSON, "The last crashes, the newest first: at, uptime_ms (null: not known), why.", .types = "array"),
};
/* clang-format on */
const struct op op_sandbox_crashes = {
    .name = "sandbox.crashes",
    .group = "sandbox",
    .text = "Show the crashes of a sandbox, and whether it is in a crash loop.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/crashes",
    .verb = "crashes",
    .perm = PERM_SANDBOX_READ,
    SANDBOX_ID_IN,
    .out = crashes_reply,
    .out_count = ARRAY_LEN(crashes_reply),
    .schema = "Crashes",
};

const struct op op_sandbox_crash_reset = {
    .name = "sandbox.crash_reset",
    .group = "sandbox",
    .text = "End a crash loop: the sandbox may be started again, and its crashes count anew.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/crash-reset",
    .verb = "crash-reset",
    .perm = PERM_SANDBOX_WRITE,
    SANDBOX_ID_IN,
    SANDBOX_OUT,
};

const struct op op_sandbox_pause = {
    .name = "sandbox.pause",
    .group = "sandbox",
    .text = "Freeze all processes of a sandbox.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/pause",
    .verb = "pause",
    .perm = PERM_SANDBOX_WRITE,
    SANDBOX_ID_IN,
    SANDBOX_OUT,
};

const struct op op_sandbox_resume = {
    .name = "sandbox.resume",
    .group = "sandbox",
    .text = "Continue a paused sandbox.",
    .method = "POST",
    .path = "/holt/v1/sandboxes/{id}/resume",
    .verb = "resume",
    .perm = PERM_SANDBOX_WRITE,
    SANDBOX_ID_IN,
    SANDBOX_OUT,
};

static const struct op_field stats_reply[] = {
    REPLY("id", OP_STR, "The sandbox.", .example = EXAMPLE_ID),
    REPLY("memory_bytes", OP_INT, "Memory in use.", .example = "1048576"),
    REPLY("memory_peak_bytes", OP_INT, "Peak memory use.", .example = "2097152"),
    REPLY("cpu_us", OP_INT, "Processor time used, in microseconds.", .example = "15000"),
    REPLY("pids", OP_INT, "Processes and threads.", .example = "3"),
    REPLY("oom_kills", OP_INT, "Processes killed because the memory limit was reached.",
          .example = "0"),
    REPLY("disk_bytes", OP_INT, "Size of its own files in bytes.", .example = "4096"),
    REPLY("net_rx_bytes", OP_INT, "Bytes received from the network.", .example = "0"),
    REPLY("net_tx_bytes", OP_INT, "Bytes sent to the network.", .example = "0"),
};
const struct op op_sandbox_stats = {
    .name = "sandbox.stats",
    .group = "sandbox",
    .text = "Show a sandbox's resource use: processor, memory, processes, disk, network.",
    .method = "GET",
    .path = "/holt/v1/sandboxes/{id}/stats",
    .verb = "stat",
    .perm = PERM_SANDBOX_READ,
    SANDBOX_ID_IN,
    .out = stats_reply,
    .out_count = ARRAY_LEN(stats_reply),
    .schema = "SandboxStats",
};

static const struct op_field stats_list_fields[] = {
    FIELD(struct sandbox_stats_list_in, follow, OP_BOOL, .preset = "false", .example = "true",
          .text = "Stream them, every two seconds."),
};
const struct op op_sandbox_stats_list = {
    .name = "sandbox.stats_list",
    .group = "sandbox",
    .text =
        "List or follow the resource use of all running sandboxes.\nWith follow=true or "
        "'Accept: text/event-stream' the reply is a stream of server-sent events 'stats': "
        "{\"at\": TIME, \"all\": BOOL, \"stats\": […]}. The first has all sandboxes, each later "
        "one those whose use has changed.",
    .method = "GET",
    .path = "/holt/v1/stats",
    .perm = PERM_SANDBOX_READ,
    .in = stats_list_fields,
    .in_count = ARRAY_LEN(stats_list_fields),
    .in_size = sizeof(struct sandbox_stats_list_in),
    .reply = OP_REPLY_LIST,
    .out = stats_reply,
    .out_count = ARRAY_LEN(stats_reply),
    .schema = "SandboxStats",
    .items = "stats",
    .streams = true,
};
