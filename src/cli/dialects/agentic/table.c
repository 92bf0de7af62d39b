/* table: the commands of sandboxctl, one row each. */
#include "cli/dialects/agentic/sandboxctl.h"

#define FLAGS(...)                                                                                 \
    .flags = (const struct ctl_flag[])                                                             \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL                                                                                   \
        }                                                                                          \
    }
#define API "/api/v1"
#define SINCE                                                                                      \
    {"source", 0, CTL_TEXT, CTL_OWN, .label = "NAME"},                                             \
        {"since", 0, CTL_TEXT, CTL_OWN, .label = "1h|TIME"},                                       \
        {"event-type", 0, CTL_TEXT, CTL_OWN, .label = "TYPE"}
#define REPLAY {"replay-from", 0, CTL_NUMBER, CTL_OWN, .label = "N"}
#define PATH {"path", 0, CTL_TEXT, CTL_QUERY, .label = "PATH"}
#define FILE_FLAG {"file", 'f', CTL_TEXT, CTL_OWN, .label = "FILE|-"}
#define WAIT {"wait", 0, CTL_BOOL, CTL_OWN}
#define AGENT_COLUMNS "ID=id,HOSTNAME=hostname,IP=ip_address,STATUS=status,PROFILE=profile"
#define STORAGE_COLUMNS "KIND=kind,NAME=name,SIZE=size_bytes,MODE=mode,MODIFIED=modified"

/* clang-format off */
const struct ctl_verb ctl_verbs[] = {
    {"config set-context", "NAME --server URL", "Keep a server under a name; the first becomes the current one.", 1, .local = true, .run = ctl_set_context,
     FLAGS({"token", 0, CTL_TEXT, CTL_OWN, .label = "TOKEN"}, {"role", 0, CTL_TEXT, CTL_OWN, .preset = "operator", .label = "ROLE"})},
    {"config use-context", "NAME", "Make it the current one.", 1, .local = true, .run = ctl_use_context},
    {"config whoami", "", "Show the server, the context and the role in use.", .run = ctl_whoami},
    {"config contexts", "", "List the contexts.", .local = true, .run = ctl_contexts},

    {"agent list", "", "List the agents.", .method = "GET", .target = API "/agents", FLAGS({"state", 0, CTL_TEXT, CTL_QUERY, .label = "STATE"}),
     .items = "agents", .columns = AGENT_COLUMNS},
    {"agent get", "ID", "Show an agent.", 1, .method = "GET", .target = API "/agents/%s"},
    {"agent stop", "ID", "Stop an agent.", 1, .method = "POST", .target = API "/agents/%s/stop", .changes = true},
    {"agent rotate-secret", "ID", "Give an agent another secret.", 1, .method = "POST", .target = API "/agents/%s/rotate-secret", .changes = true,
     FLAGS(WAIT), .waits = true},
    {"agent shell", "ID", "Open a terminal in an agent.", 1, .changes = true, FLAGS({"cmd", 0, CTL_TEXT, CTL_OWN, .label = "COMMAND"}), .run = ctl_shell},
    {"agent exec", "ID COMMAND…", "Run a command in an agent.", 1, .command = true, .changes = true, .rest = "",
     FLAGS({"timeout", 0, CTL_NUMBER, CTL_OWN, .label = "SECONDS"}, {"stream", 0, CTL_BOOL, CTL_OWN}), .run = ctl_exec},

    {"session list", "", "List the sessions.", FLAGS({"agent", 0, CTL_TEXT, CTL_OWN, .label = "ID"}),
     .columns = "SESSION_ID=session_id,AGENT=agent_id,NAME=name,ATT=attachment_count,LAG=max_client_lag", .run = ctl_session_list},
    {"session get", "ID", "Show a session.", 1, .run = ctl_session_get},
    {"session kill", "ID", "Send a signal to a session.", 1, .method = "DELETE", .target = API "/sessions/%s", .changes = true, .destroys = true,
     FLAGS({"signal", 0, CTL_TEXT, CTL_QUERY, .preset = "TERM", .label = "SIGNAL"})},
    {"session tail", "ID", "Follow a session's output.", 1, FLAGS(REPLAY), .run = ctl_session_tail},
    {"session record", "ID -o FILE|-", "Record a session (asciicast) until it ends.", 1,
     FLAGS({"output", 'o', CTL_TEXT, CTL_OWN, .label = "FILE|-"}, REPLAY), .run = ctl_session_record},
    {"session input", "ID -f FILE|-", "Type the content of a file.", 1, .changes = true, FLAGS(FILE_FLAG), .run = ctl_session_input},
    {"session resize", "ID --cols N --rows N", "Change the size of its terminal.", 1, .changes = true,
     FLAGS({"cols", 0, CTL_NUMBER, CTL_OWN, .label = "N"}, {"rows", 0, CTL_NUMBER, CTL_OWN, .label = "N"}), .run = ctl_session_resize},
    {"session attach", "ID", "Watch a session; with --write also type. Ctrl-A d leaves it running.", 1,
     FLAGS({"write", 0, CTL_BOOL, CTL_OWN}, REPLAY), .run = ctl_session_attach},

    {"container list", "", "List the containers.", .method = "GET", .target = API "/containers",
     FLAGS({"state", 0, CTL_TEXT, CTL_QUERY, .field = "status", .label = "STATE"}), .items = "containers",
     .columns = "NAME=name,ID=id,STATUS=status,FINISHED=finished_at"},
    {"container get", "NAME", "Show a container.", 1, .method = "GET", .target = API "/containers/%s"},
    {"container create", "NAME --image IMAGE [-- COMMAND…]", "Make a container.", 1, .method = "POST", .target = API "/containers", .changes = true,
     .into = "name", .rest = "cmd",
     FLAGS({"image", 0, CTL_TEXT, CTL_BODY, .label = "IMAGE"}, {"env", 'e', CTL_LIST, CTL_BODY, .label = "K=V"},
           {"volume", 'v', CTL_LIST, CTL_BODY, .field = "mounts", .label = "VOLUME:PATH"}, {"network", 0, CTL_TEXT, CTL_BODY, .label = "NETWORK"},
           {"loadout", 0, CTL_TEXT, CTL_BODY, .label = "LOADOUT"})},
    {"container start", "NAME", "Start a container.", 1, .method = "POST", .target = API "/containers/%s/start", .changes = true},
    {"container stop", "NAME", "Stop a container.", 1, .method = "POST", .target = API "/containers/%s/stop", .changes = true,
     FLAGS({"timeout", 0, CTL_NUMBER, CTL_QUERY, .preset = "10", .label = "SECONDS"})},
    {"container delete", "NAME", "Remove a container.", 1, .method = "DELETE", .target = API "/containers/%s", .changes = true, .destroys = true},

    {"vm create", "NAME", "Make a machine.", 1, .method = "POST", .target = API "/vms", .into = "name", .changes = true, .waits = true,
     FLAGS({"profile", 0, CTL_TEXT, CTL_BODY, .label = "PROFILE"}, {"loadout", 0, CTL_TEXT, CTL_BODY, .label = "LOADOUT"},
           {"vcpus", 0, CTL_NUMBER, CTL_BODY, .label = "N"}, {"memory", 0, CTL_NUMBER, CTL_BODY, .field = "memory_mb", .label = "MB"},
           {"disk", 0, CTL_NUMBER, CTL_BODY, .field = "disk_gb", .label = "GB"}, {"agentshare", 0, CTL_BOOL, CTL_BODY},
           {"start", 0, CTL_BOOL, CTL_BODY}, WAIT)},
    {"vm list", "", "List the machines.", .method = "GET", .target = API "/vms",
     FLAGS({"state", 0, CTL_TEXT, CTL_QUERY, .label = "STATE"}, {"prefix", 0, CTL_TEXT, CTL_QUERY, .preset = "*", .label = "PREFIX"}),
     .items = "vms", .columns = "NAME=name,STATE=state,IP=ip_address,PROFILE=profile"},
    {"vm get", "NAME", "Show a machine.", 1, .method = "GET", .target = API "/vms/%s"},
    {"vm start", "NAME", "Start a machine.", 1, .method = "POST", .target = API "/vms/%s/start", .changes = true},
    {"vm stop", "NAME", "Stop a machine.", 1, .method = "POST", .target = API "/vms/%s/stop", .changes = true,
     FLAGS({"force", 0, CTL_BOOL, CTL_QUERY}, {"timeout", 0, CTL_NUMBER, CTL_QUERY, .preset = "15", .label = "SECONDS"})},
    {"vm restart", "NAME", "Stop a machine and start it again.", 1, .method = "POST", .target = API "/vms/%s/restart", .changes = true, .waits = true,
     FLAGS({"hard", 0, CTL_BOOL, CTL_BODY, .field = "mode", .value = "hard"}, {"timeout", 0, CTL_NUMBER, CTL_BODY, .field = "timeout_seconds", .preset = "15", .label = "SECONDS"}, WAIT)},
    {"vm destroy", "NAME", "Remove a machine.", 1, .method = "DELETE", .target = API "/vms/%s", .changes = true, .destroys = true,
     FLAGS({"force", 0, CTL_BOOL, CTL_QUERY}, {"delete-disk", 0, CTL_BOOL, CTL_QUERY, .field = "delete_disk"})},
    {"vm reprovision", "NAME", "Make a machine anew, with a fresh disk.", 1, .method = "POST", .target = API "/agents/%s/reprovision", .changes = true,
     .destroys = true, .waits = true, FLAGS(WAIT)},
    {"vm deploy-agent", "NAME", "Look that the agent inside answers.", 1, .method = "POST", .target = API "/vms/%s/deploy-agent", .changes = true,
     .waits = true, FLAGS(WAIT)},

    {"task submit", "-f FILE", "Submit a task.", .changes = true, FLAGS(FILE_FLAG, WAIT), .run = ctl_task_submit},
    {"task list", "", "List the tasks.", .method = "GET", .target = API "/tasks",
     FLAGS({"state", 0, CTL_TEXT, CTL_QUERY, .label = "STATE"}, {"limit", 0, CTL_NUMBER, CTL_QUERY, .label = "N"},
           {"offset", 0, CTL_NUMBER, CTL_QUERY, .label = "N"}),
     .items = "tasks", .columns = "ID=id,NAME=name,STATE=state,CREATED=created_at"},
    {"task get", "ID", "Show a task.", 1, .method = "GET", .target = API "/tasks/%s"},
    {"task cancel", "ID", "Cancel a task.", 1, .method = "DELETE", .target = API "/tasks/%s", .changes = true,
     FLAGS({"reason", 0, CTL_TEXT, CTL_QUERY, .label = "TEXT"})},
    {"task logs", "ID", "Show a task's output.", 1, FLAGS({"follow", 'f', CTL_BOOL, CTL_OWN}), .run = ctl_task_logs},
    {"task artifacts list", "ID", "List what a task has made.", 1, .method = "GET", .target = API "/tasks/%s/artifacts", .items = "artifacts",
     .columns = "NAME=name,SIZE=size_bytes,CONTENT_TYPE=content_type"},

    {"hitl list", "", "List the questions that wait for an answer.", .method = "GET", .target = API "/hitl", .items = "requests",
     .columns = "ID=hitl_id,AGENT=agent_id,SESSION=session_id,PROMPT=prompt"},
    {"hitl respond", "ID --text TEXT", "Answer one.", 1, .method = "POST", .target = API "/hitl/%s/respond", .changes = true,
     FLAGS({"text", 0, CTL_TEXT, CTL_BODY, .label = "TEXT"})},

    {"loadout list", "", "List the loadouts.", .method = "GET", .target = API "/loadouts",
     FLAGS({"category", 0, CTL_TEXT, CTL_QUERY, .label = "CATEGORY"}, {"complexity", 0, CTL_TEXT, CTL_QUERY, .label = "COMPLEXITY"}),
     .items = "loadouts", .columns = "NAME=name,DESCRIPTION=description,CATEGORY=category"},
    {"loadout get", "NAME", "Show a loadout.", 1, .method = "GET", .target = API "/loadouts/%s"},
    {"loadout registry", "", "Show what loadouts are composed of.", .method = "GET", .target = API "/loadout/registry"},

    {"storage global ls", "", "List the files for all agents.", .method = "GET", .target = API "/storage/global", FLAGS(PATH),
     .items = "entries", .columns = STORAGE_COLUMNS},
    {"storage global push", "--path PATH -f FILE", "Write a file for all agents.", .changes = true, .target = API "/storage/global",
     FLAGS(PATH, FILE_FLAG), .run = ctl_push},
    {"storage inbox ls", "AGENT", "List an agent's inbox.", 1, .method = "GET", .target = API "/storage/inbox/%s", FLAGS(PATH), .items = "entries",
     .columns = STORAGE_COLUMNS},
    {"storage inbox push", "AGENT --path PATH -f FILE", "Write a file into an agent's inbox.", 1, .changes = true, .target = API "/storage/inbox/%s",
     FLAGS(PATH, FILE_FLAG), .run = ctl_push},
    {"storage outbox ls", "TASK", "List a task's outbox.", 1, .method = "GET", .target = API "/storage/outbox/%s", FLAGS(PATH), .items = "entries",
     .columns = STORAGE_COLUMNS},

    {"event list", "", "List the newest events.", FLAGS(SINCE, {"limit", 0, CTL_NUMBER, CTL_OWN, .label = "N"}), .items = "events",
     .columns = "TIMESTAMP=timestamp,TYPE=event_type,SOURCE=vm_name,AGENT=agent_id", .run = ctl_event_list},
    {"event tail", "", "Follow the events.", FLAGS(SINCE, {"filter", 0, CTL_TEXT, CTL_OWN, .label = "REGEX"}), .run = ctl_event_tail},

    {"health status", "", "Ask the server's probes; fails if one fails.", .columns = "PROBE=probe,PATH=path,STATUS=status", .items = "probes",
     .run = ctl_health},
    {"health watchdog", "", "Show how long the server runs, and what it does.", .method = "GET", .target = API "/health"},

    {"ops get", "ID", "Show an operation.", 1, .method = "GET", .target = API "/operations/%s"},
    {"ops wait", "ID", "Wait until an operation has ended.", 1, FLAGS({"timeout", 0, CTL_TEXT, CTL_OWN, .preset = "5m", .label = "TIME"}),
     .run = ctl_ops_wait},

    {"exec", "AGENT COMMAND…", "Run a command in an agent; its exit status is this one's.", 1, .command = true, .changes = true, .rest = "",
     FLAGS({"timeout", 0, CTL_NUMBER, CTL_OWN, .label = "SECONDS"}, {"stream", 0, CTL_BOOL, CTL_OWN}), .run = ctl_exec},
    {"attach", "AGENT [SESSION]", "Attach to an agent's session, and type.", 2, .optional = 1, .changes = true, .run = ctl_attach},
    {"agents", "", "List the agents.", .method = "GET", .target = API "/agents", .items = "agents", .columns = AGENT_COLUMNS},
    {"audit-log tail", "", "Show the newest lines of this command's own log.", FLAGS({"lines", 'n', CTL_NUMBER, CTL_OWN, .preset = "20", .label = "N"}),
     .local = true, .run = ctl_audit_tail},
    {"audit-log grep", "TEXT", "Show its lines that have a text.", 1, .local = true, .run = ctl_audit_grep},
    {"audit-log path", "", "Show where it is.", .local = true, .run = ctl_audit_path},
    {"completions", "bash|zsh|fish", "Print the words that complete a command line.", 1, .local = true, .run = ctl_completions},
};
/* clang-format on */
const size_t ctl_verb_count = ARRAY_LEN(ctl_verbs);
