/* verbs: the table of verbs that are not plain operations, and their flags. */
#include "cli/verbs.h"

#define FLAGS(list) .flags = list, .flag_count = ARRAY_LEN(list)
#define EXAMPLES(...)                                                                              \
    .examples = (const char *const[])                                                              \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* clang-format off */
static const struct cli_flag events_flags[] = {
    {{.name = "follow", .type = OP_BOOL}, 'f'}, /* the operation's flag, with a letter */
};
#define MANIFEST_FILE(need) \
    {{.name = "file", .type = OP_STR, .required = need, .example = "task.yaml", .text = "The manifest, in YAML or JSON; - is standard input."}, 'f'}
static const struct cli_flag task_run_flags[] = {
    MANIFEST_FILE(false),
    {{.name = "wait", .type = OP_BOOL, .text = "Return when it has ended; exit status 1 if it did not complete."}, 'w'},
    {{.name = "follow", .type = OP_BOOL, .text = "Print its output until it ends."}, 0},
    {{.name = "name", .type = OP_STR, .example = "fix the parser", .text = "Without a file: its name."}, 0},
    {{.name = "repo", .type = OP_STR, .example = "https://git.example.com/app.git", .text = "Without a file: the repository."}, 0},
    {{.name = "branch", .type = OP_STR, .example = "main", .text = "Without a file: the branch."}, 0},
    {{.name = "prompt", .type = OP_STR, .example = "Fix the parser", .text = "Without a file: what the agent is asked to do."}, 0},
    {{.name = "provider", .type = OP_STR, .example = "codex", .text = "Without a file: claude, codex, aider, opencode or command."}, 0},
    {{.name = "model", .type = OP_STR, .example = "sonnet", .text = "Without a file: the agent's model."}, 0},
    {{.name = "command", .type = OP_LIST, .positional = true, .example = "-- make report", .text = "Without a file: a command instead of an agent."}, 0, true},
};
static const struct cli_flag diff_flags[] = {
    {{.name = "what", .type = OP_LIST, .required = true, .positional = true, .example = "build@clean",
      .text = "One or two of sandbox, snapshot and image, then absolute paths. One: what it has changed since it was made. Two: before, after."}, 0},
    {{.name = "stat", .type = OP_BOOL, .text = "A line for each file, with the number of lines."}, 0},
    {{.name = "name_only", .type = OP_BOOL, .text = "The paths alone."}, 0},
    {{.name = "json", .type = OP_BOOL, .text = "A JSON object for each change, one per line."}, 0},
    {{.name = "no_pager", .type = OP_BOOL, .text = "Do not page on a terminal (HOLT_PAGER, PAGER, less)."}, 0},
};
static const struct cli_flag export_flags[] = {
    {{.name = "what", .type = OP_LIST, .required = true, .positional = true, .example = "build@clean",
      .text = "One or two of sandbox, snapshot and image, then absolute paths. One: what it has changed since it was made. Two: before, after."}, 0},
};
static const struct cli_flag verify_flags[] = {
    {{.name = "id", .type = OP_STR, .required = true, .positional = true, .example = "nginx", .text = "The playbook's id or name."}, 0},
    {{.name = "base", .type = OP_STR, .required = true, .example = "build@clean", .text = "What it is applied to: a fork of this snapshot or sandbox."}, 0},
    {{.name = "against", .type = OP_STR, .example = "build", .text = "The state that it is to repeat: what differs from it is shown."}, 0},
};
static const struct cli_flag task_schedule_flags[] = {MANIFEST_FILE(true)};
static const struct cli_flag context_add_flags[] = {
    {{.name = "name", .type = OP_STR, .required = true, .positional = true, .example = "work",
      .text = "Name of the context."}, 0},
    {{.name = "url", .type = OP_STR, .required = true, .positional = true, .example = "https://holt.example:8122",
      .text = "Server: http://HOST:PORT, https://HOST:PORT or unix:/PATH."}, 0},
    {{.name = "token_file", .type = OP_STR,
      .text = "File with the token; - is standard input. Default: HOLT_TOKEN, if set."}, 0},
    {{.name = "cacert_file", .type = OP_STR, .text = "PEM file of the authority to trust for this server."}, 0},
    {{.name = "use", .type = OP_BOOL, .text = "Make it the current context; the first context always becomes current."}, 0},
    {{.name = "force", .type = OP_BOOL, .text = "Replace a context of that name."}, 0},
};
static const struct cli_flag context_name_flags[] = {
    {{.name = "name", .type = OP_STR, .required = true, .positional = true, .example = "work",
      .text = "Name of the context."}, 0},
};
static const char *const shells[] = {"bash", "zsh", "fish", NULL};
static const struct cli_flag completion_flags[] = {
    {{.name = "shell", .type = OP_CHOICE, .choices = shells, .required = true, .positional = true, .example = "bash",
      .text = "The shell that runs the script."}, 0},
};
static const struct cli_flag man_flags[] = {
    {{.name = "page", .type = OP_STR, .positional = true, .example = "holt-exec",
      .text = "The page's name, such as holt, holt-exec or holtd."}, 0},
};
static const struct cli_flag help_flags[] = {
    {{.name = "verb", .type = OP_LIST, .positional = true, .text = "The command."}, 0},
};

#define COMMAND {{.name = "command", .type = OP_LIST, .required = true, .positional = true, .example = "-- ls -l", \
                  .text = "The program and its arguments; everything after this point is passed to it unchanged."}, 0, true}
#define INTERACTIVE {{.name = "interactive", .type = OP_BOOL, .preset = "true", \
                      .text = "Pass standard input to the command; --no-interactive does not read it."}, 'i', false}
#define TTY {{.name = "tty", .type = OP_BOOL, .text = "Give the command a terminal."}, 't', false}
#define DETACH_FLAG {{.name = "detach_keys", .type = OP_STR, .preset = "ctrl-p,ctrl-q", \
                      .text = "Keys that leave a terminal while its command continues; none: no keys."}, 0, false}
/* Flags shared with Docker's run and create, with its letters and spellings. */
#define MAKE_FLAGS \
    {{.name = "env", .type = OP_MAP}, 'e'}, {{.name = "memory_bytes", .type = OP_SIZE}, 'm'}, \
    {{.name = "cpu_millis", .type = OP_INT}, .also = "cpus"}, {{.name = "labels", .type = OP_MAP}, 'l', .also = "label"}, \
    {{.name = "pids", .type = OP_INT}, .also = "pids-limit"}, {{.name = "network", .type = OP_JSON}, .also = "net"}, \
    {{.name = "volume", .type = OP_LIST, .example = "cache:/cache", \
      .text = "SRC is a volume's name, or the path of a directory on the server's machine, which its setting host_mounts must " \
              "allow; repeatable."}, 'v', .whole = true, .label = "SRC:DST[:ro]"}
#define SANDBOXES {{.name = "sandboxes", .type = OP_LIST, .required = true, .positional = true, .example = "build", \
                    .text = "Ids or names of sandboxes."}, .label = "SANDBOX"}
#define RUN_FILLS "stdin,stdin_base64,stdin_open,pty,command"

static const struct cli_flag run_flags[] = {
    {{.name = "command", .type = OP_LIST, .positional = true, .example = "-- ls -l",
      .text = "The program and its arguments; everything after this point is passed to it unchanged. With --image the default is the image's own command."}, 0, true}, INTERACTIVE, TTY, MAKE_FLAGS,
    {{.name = "user", .type = OP_STR}, 'u'},
    {{.name = "cwd", .type = OP_STR}, 'w', .also = "workdir"},
    {{.name = "detach", .type = OP_BOOL,
      .text = "Leave the command running, print its sandbox's id and exit. The sandbox stays until `holt rm`; with "
              "--rm it is removed after the command."}, 'd'},
    {{.name = "rm", .type = OP_BOOL, .text = "Remove the sandbox when the command ends. Without -d that is always done."}, 0},
};
static const struct cli_flag exec_flags[] = {
    COMMAND, INTERACTIVE, TTY, DETACH_FLAG,
    {{.name = "env", .type = OP_MAP}, 'e', false},
    {{.name = "user", .type = OP_STR}, 'u', false},
    {{.name = "cwd", .type = OP_STR}, 'w', .also = "workdir"},
    {{.name = "background", .type = OP_BOOL}, 'd', .also = "detach"},
};
static const struct cli_flag shell_flags[] = {
    DETACH_FLAG,
    {{.name = "shell", .type = OP_STR, .example = "/bin/bash", .text = "Shell to run. Default: $SHELL inside, bash or sh."}, 0, false},
    {{.name = "env", .type = OP_MAP}, 'e', false},
    {{.name = "user", .type = OP_STR}, 'u', false},
    {{.name = "cwd", .type = OP_STR}, 'w', false},
};
static const struct cli_flag ssh_flags[] = {
    {{.name = "sandbox", .type = OP_STR, .required = true, .positional = true, .example = "build", .text = "The sandbox's id or name."}, 0},
    {{.name = "command", .type = OP_LIST, .positional = true, .example = "-- ls -l", .text = "Command for the user's shell there. Default: a login shell."}, 0, true},
    {{.name = "user", .type = OP_STR, .example = "root", .text = "The user inside. Default: root."}, 'l'},
    {{.name = "tty", .type = OP_BOOL, .text = "Give the command a terminal."}, 't'},
    {{.name = "forward", .type = OP_LIST, .max = 64, .example = "8080:127.0.0.1:80", .text = "Forward a local port or socket, as ssh -L does; repeatable."}, 'L', .whole = true},
    {{.name = "ttl_ms", .type = OP_DURATION, .min = 60000, .max = 600000, .example = "5m", .text = "How long the certificate is valid: 1 to 10 minutes. The session may last longer."}, 0},
};
static const struct cli_flag access_ca_flags[] = {
    {{.name = "dir", .type = OP_STR, .example = "ca", .text = "Instead, make an authority in this folder: the files ssh-ca and ssh-ca.pub. No server is needed."}, 0},
};
static const struct cli_flag attach_flags[] = {
    DETACH_FLAG,
    {{.name = "exec", .type = OP_STR, .positional = true}, .optional = true},
    {{.name = "observe", .type = OP_BOOL, .text = "Only watch; Ctrl-C leaves."}, 0, false},
};
static const struct cli_flag wait_flags[] = {
    {{.name = "exec", .type = OP_STR, .positional = true}, .optional = true},
};
static const struct cli_flag cp_flags[] = {
    {{.name = "from", .type = OP_STR, .required = true, .positional = true, .example = "data",
      .text = "Source: PATH or SANDBOX:PATH. A directory with /. after it means its content; - reads a tar archive from standard input."}, 0, false},
    {{.name = "to", .type = OP_STR, .required = true, .positional = true, .example = "build:/workspace",
      .text = "Destination: an existing directory, into which it is copied, or the new name; - writes a tar archive to standard output."}, 0, false},
};
static const struct cli_flag image_import_flags[] = {
    {{.name = "file", .type = OP_STR, .required = true, .positional = true, .example = "app.tar",
      .text = "An archive, a root directory or OCI layout on this machine, or - for standard input."}, 0, false},
};
static const struct cli_flag cat_flags[] = {
    {{.name = "file", .type = OP_STR, .required = true, .positional = true, .example = "build:/etc/os-release",
      .text = "SANDBOX:PATH."}, 0, false},
};
static const struct cli_flag logs_flags[] = {
    {{.name = "follow", .type = OP_BOOL}, 'f', false},
    {{.name = "exec", .type = OP_STR, .positional = true}, 0, false},
};
static const struct cli_flag create_flags[] = {MAKE_FLAGS};
static const struct cli_flag each_flags[] = {SANDBOXES};
static const struct cli_flag kill_flags[] = {
    SANDBOXES,
    {{.name = "signal", .type = OP_STR, .example = "HUP",
      .text = "Send this signal to the newest command instead."}, 's'},
};
static const struct cli_flag ls_flags[] = {
    {{.name = "all", .type = OP_BOOL, .text = "List sandboxes in every state; this is the default."}, 'a'},
};
static const struct cli_flag ps_flags[] = {
    {{.name = "id", .type = OP_STR, .positional = true}, .optional = true},
    {{.name = "all", .type = OP_BOOL, .text = "Without SANDBOX: list stopped sandboxes too."}, 'a'},
};
static const struct cli_flag secret_set_flags[] = {
    {{.name = "host", .type = OP_LIST, .example = "api.github.com",
      .text = "A host whose requests get the value: a name, or '*.example.com' for all names below it; repeatable."}, 0, false},
    {{.name = "method", .type = OP_LIST, .example = "GET", .text = "Only requests with this method; repeatable."}, 0, false},
    {{.name = "value_file", .type = OP_STR, .example = "token.txt",
      .text = "File with the value; - is standard input. Default: a prompt on a terminal, else standard input."}, 0, false},
    {{.name = "keep_value", .type = OP_BOOL, .text = "Keep the value and change only the other fields."}, 0, false},
};
static const struct cli_flag rm_flags[] = {
    {{.name = "sandboxes", .type = OP_LIST, .positional = true, .example = "build", .text = "Ids or names of sandboxes."},
     .label = "SANDBOX"},
    {{.name = "all", .type = OP_BOOL, .text = "All sandboxes that you can see; asks first, unless --yes."}, 'a'},
    {{.name = "yes", .type = OP_BOOL, .text = "Do not ask for confirmation."}, 'y'},
    {{.name = "force", .type = OP_BOOL, .text = "The same as --yes; running sandboxes are destroyed in any case."}, 'f'},
};
static const struct cli_flag top_flags[] = {
    {{.name = "interval", .type = OP_DURATION, .preset = "2s", .text = "Time between two updates."}, 'n', false},
    {{.name = "once", .type = OP_BOOL, .text = "Print one table and exit; the default if the output is not a terminal."}, 0, false},
};
static const struct cli_flag port_forward_flags[] = {
    {{.name = "sandbox", .type = OP_STR, .required = true, .positional = true, .example = "build",
      .text = "The sandbox's id or name."}, 0, false},
    {{.name = "ports", .type = OP_LIST, .required = true, .positional = true, .example = "8080:80",
      .text = "LOCAL:REMOTE. A single number means both; :REMOTE uses a free local port."}, 0, false},
    {{.name = "address", .type = OP_STR, .preset = "127.0.0.1",
      .text = "Address to listen on. Every client that can connect to it reaches the sandbox's port."}, 0, false},
};

static const struct cli_flag board_show_flags[] = {
    {{.name = "project", .type = OP_STR, .required = true, .positional = true, .example = "pj_01k4r8w2m9h5t7c3xqvd",
      .text = "The project's id."}, 0, false},
    {{.name = "lanes", .type = OP_BOOL, .text = "One lane per owner."}, 0, false},
};
static const struct cli_flag project_put_flags[] = {
    {{.name = "file", .type = OP_STR, .required = true, .positional = true, .example = "plan.md",
      .text = "A file of this machine, or - for standard input."}, 0, false},
};

static const struct cli_flag session_create_flags[] = {
    {{.name = "command", .type = OP_LIST, .positional = true, .example = "-- vim notes.txt",
      .text = "The program and its arguments; everything after this point is passed to it unchanged. A shell by default."}, 0, true},
};
static const struct cli_flag session_attach_flags[] = {
    DETACH_FLAG,
    {{.name = "write", .type = OP_BOOL, .text = "Take control: what you type goes to the session."}, 'w', false},
};
static const struct cli_flag session_watch_flags[] = {DETACH_FLAG};
static const struct cli_flag session_record_flags[] = {
    {{.name = "file", .type = OP_STR, .required = true, .positional = true, .example = "work.cast",
      .text = "The new file; - is standard output."}, 0, false},
};
static const struct cli_flag session_replay_flags[] = {
    {{.name = "speed", .type = OP_INT, .min = 10, .max = 10000, .preset = "100", .text = "Speed in percent."}, 0, false},
};

#define STATE_FLAG {{.name = "state", .type = OP_STR, .example = "/var/lib/holt", \
                     .text = "Its state directory. Default: HOLT_STATE, or the usual one."}, 0, false}
static const struct cli_flag down_flags[] = {STATE_FLAG};
static const char *const vm_networks[] = {"isolated", "allowlist", "full", NULL};
#define VM_NAME {{.name = "name", .type = OP_STR, .required = true, .positional = true, .min = 1, .max = 63, .example = "agent-01", \
                  .text = "The machine's name."}, 0, false}
#define VM_CONFIG {{.name = "config", .type = OP_STR, .example = "/etc/holt/holt.yaml", \
                    .text = "Settings file of the holtd that is started for this command if none runs."}, 0, false}
static const struct cli_flag vm_flags[] = {VM_NAME, STATE_FLAG, VM_CONFIG};
static const struct cli_flag vm_ssh_flags[] = {
    VM_NAME, STATE_FLAG, VM_CONFIG,
    {{.name = "command", .type = OP_LIST, .positional = true, .example = "-- uname -r",
      .text = "The program and its arguments, passed to it unchanged. A shell by default."}, 0, true},
};
static const struct cli_flag vm_provision_flags[] = {
    VM_NAME, STATE_FLAG, VM_CONFIG,
    {{.name = "profile", .type = OP_STR, .preset = "basic", .example = "python",
      .text = "'basic', or a template (holt template ls) that sets what the flags do not."}, 0, false},
    {{.name = "loadout", .type = OP_STR, .example = "claude-only",
      .text = "A loadout (holt loadout ls): its steps run in the machine before it is ready. They reach what the machine reaches."}, 0, false},
    {{.name = "cpus", .type = OP_INT, .min = 1, .max = 1000, .example = "8", .text = "Number of processors."}, 0, false},
    {{.name = "memory", .type = OP_STR, .example = "16G", .text = "Memory: 16G, or a number of MiB."}, 0, false},
    {{.name = "disk", .type = OP_STR, .example = "100G", .text = "Disk: 100G, or a number of MiB."}, 0, false},
    {{.name = "network_mode", .type = OP_CHOICE, .choices = vm_networks, .preset = "isolated", .example = "allowlist",
      .text = "'isolated' (none), 'allowlist', or 'full' (every host)."}, 0, false},
    {{.name = "allow", .type = OP_LIST, .example = "*.example.com", .text = "Hosts of the allowlist; repeatable."}, 0, false},
    {{.name = "host", .type = OP_STR, .example = "rack1", .text = "Host to make it on. Default: the least loaded."}, 0, false},
    {{.name = "start", .type = OP_BOOL, .text = "Leave it running; otherwise it is stopped when it is ready."}, 0, false},
};
static const struct cli_flag build_vm_flags[] = {
    STATE_FLAG,
    {{.name = "release", .type = OP_STR, .example = "bookworm", .text = "Code name of the Debian release. Default: that of this machine."}, 0},
    {{.name = "mirror", .type = OP_STR, .text = "URL of the packages of another release."}, 0},
    {{.name = "size", .type = OP_STR, .preset = "10G", .text = "Size of the root disk, such as 10G or 512M."}, 0},
    {{.name = "minimal", .type = OP_BOOL, .text = "A root disk with busybox only: small and fast."}, 0},
};
#define DETACH_BUILD {{.name = "detach", .type = OP_BOOL, .text = "Do not wait: print the build's id."}, 'd', false}
static const struct cli_flag loadout_resolve_flags[] = {
    {{.name = "file", .type = OP_STR, .example = "loadout.yaml", .text = "A file with the declaration; - is standard input."}, 'f', false},
};
static const struct cli_flag loadout_build_flags[] = {
    {{.name = "file", .type = OP_STR, .example = "loadout.yaml", .text = "A file with the declaration; - is standard input."}, 'f', false},
    DETACH_BUILD,
};
static const struct cli_flag image_build_flags[] = {
    {{.name = "dir", .type = OP_STR, .required = true, .positional = true, .example = ".",
      .text = "The directory with the Dockerfile, and the files that COPY takes."}, 0, false, .label = "DIRECTORY"},
    {{.name = "tag", .type = OP_STR, .required = true, .min = 1, .max = 255, .example = "team/app:1.2", .text = "Name of the new image."}, 't', false},
    {{.name = "file", .type = OP_STR, .example = "docker/Dockerfile", .text = "The Dockerfile; - is standard input. Default: that of the directory."},
     'f', false},
    {{.name = "build_arg", .type = OP_MAP, .example = "VERSION=1", .text = "The value of an ARG; repeatable."}, 0, false},
    DETACH_BUILD,
};
static const struct cli_flag purge_flags[] = {
    STATE_FLAG,
    {{.name = "yes", .type = OP_BOOL, .text = "Do not ask for confirmation."}, 'y', false},
};

#define ATTACH(kind, words) {{.name = kind, .type = OP_LIST, .example = "FILE", .text = words}, .whole = true, .label = "FILE"}
static const struct cli_flag approval_ask_flags[] = {
    ATTACH("diff", "Attach a diff; repeatable."), ATTACH("playbook", "Attach a playbook; repeatable."),
    ATTACH("screen", "Attach the text of a terminal; repeatable."),
    {{.name = "command", .type = OP_STR, .example = "rm -r /srv/old", .text = "Attach a command line."}},
};

const struct verb verb_table[] = {
    {.verb = "create", FLAGS(create_flags), .run = create_run,
     .text = "Create a sandbox from an image, start it and print its id.\n-o table shows all fields. It stays until `holt rm`, --ttl or --idle-ttl.",
     EXAMPLES("holt create", "holt create --name build -m 512m --cpus 1.5 -l team=blue -e CI=1",
              "holt create --rootfs ro --idle-ttl 15m", "holt create -v cache:/cache -v /srv/data:/data:ro",
              "id=$(holt create) && holt exec $id -- make")},
    {.verb = "approval ask", .fills = "attachments", FLAGS(approval_ask_flags), .run = approval_ask_run,
     .text = "Ask a person for a decision.\n"
             "With --wait it returns with the decision, also across lost connections and restarts of the server. Exit status: 0 "
             "approved, 1 rejected, expired or cancelled, 75 still pending.",
     EXAMPLES("holt approval ask 'May I deploy?' --wait 1h", "holt approval ask 'Apply this?' --diff change.patch --kind destructive",
              "holt approval ask 'the build needs it' --refused rf_01k4r8w2m9h5t7c3xqvd --wait 1h && make deploy")},
    {.verb = "approval watch", .group = "approval", .run = approval_watch_run,
     .text = "Show the pending approvals and decide at the terminal.\n"
             "Keys: j and k move, a approves, r rejects, c adds a comment to the next decision, q leaves. Without a terminal it "
             "lists them once.",
     EXAMPLES("holt approval watch")},
    {.verb = "start", .fills = "id", .text = "Start stopped sandboxes again, with their files; prints their names.",
     FLAGS(each_flags), .run = each_run, EXAMPLES("holt start build", "holt start build test -o json")},
    {.verb = "stop", .fills = "id", .text = "Stop sandboxes: end their commands, keep their files; prints their names.",
     FLAGS(each_flags), .run = each_run, EXAMPLES("holt stop build", "holt stop build --grace 30s", "holt stop $(holt ps -q)")},
    {.verb = "restart", .fills = "id", .text = "Stop sandboxes and start them again; prints their names.",
     FLAGS(each_flags), .run = each_run, EXAMPLES("holt restart build")},
    {.verb = "pause", .fills = "id", .text = "Freeze all processes in sandboxes; prints the names.",
     FLAGS(each_flags), .run = each_run, EXAMPLES("holt pause build")},
    {.verb = "resume", .fills = "id", .text = "Continue paused sandboxes; prints the names.",
     FLAGS(each_flags), .run = each_run, EXAMPLES("holt resume build")},
    {.verb = "kill", .group = "sandbox",
     .text = "Kill all processes of sandboxes at once, like `holt stop --force`; keep their files.\nTo end one command, use `holt cancel SANDBOX EXEC`.",
     FLAGS(kill_flags), .run = kill_run, EXAMPLES("holt kill build", "holt kill -s HUP build")},
    {.verb = "ls", FLAGS(ls_flags), .run = op_verb_run, EXAMPLES("holt ls", "holt ls --state stopped --label team=blue", "holt ls -q")},
    {.verb = "ps", .text = "List the running sandboxes; with SANDBOX its commands, oldest first.\n"
                           "`holt ps` and `holt ps -a` work as in Docker; `holt ls` lists sandboxes in every state.",
     FLAGS(ps_flags), .run = ps_run, EXAMPLES("holt ps", "holt ps -aq", "holt ps build", "holt ps build --state running")},
    {.verb = "rm", .op = "sandbox.destroy", .fills = "id",
     .text = "Destroy sandboxes, running or not: kill their commands and remove their files.",
     FLAGS(rm_flags), .run = rm_run, EXAMPLES("holt rm build", "holt rm $(holt ls -q --state stopped)", "holt rm --all")},
    {.verb = "run", .op = "run", .fills = RUN_FILLS, .failed = 125,
     .text = "Run one command in a new sandbox; the sandbox is removed afterwards.\n"
             "Standard input, output, error and signals pass through. The exit status is the command's: 128+n if "
             "signal n ended it, 127 if it was not found, 126 if it cannot be run, 125 if holt failed. A second Ctrl-C "
             "within a second does not wait for the command.",
     FLAGS(run_flags), .run = run_run,
     EXAMPLES("holt run -- python3 -c 'print(1)'", "holt run -it --image ubuntu:22.04 -- bash",
              "holt run -d --name web -v site:/site:ro -- python3 -m http.server -d /site 8000", "tar c src | holt run --memory 512m --timeout 30s -- sh -c 'tar x && make -C src'",
              "holt run --allow api.example.com -- curl -s https://api.example.com")},
    {.verb = "exec", .op = "exec.create", .fills = RUN_FILLS ",cancel_on_disconnect", .failed = 125,
     .text = "Run a command in a sandbox.\n"
             "Standard input, output and error, signals and the exit status pass through as with `holt run`. With -d "
             "it continues in the background, and the command with its id is printed.",
     FLAGS(exec_flags), .run = exec_run,
     EXAMPLES("holt exec build -- make -j4", "holt exec build -t -- top", "holt exec build -d -- ./server")},
    {.verb = "shell", .op = "exec.create", .fills = RUN_FILLS ",cancel_on_disconnect,background,merge,timeout_ms", .failed = 125,
     .text = "Open a shell in a sandbox.\nCtrl-P Ctrl-Q leaves it running; `holt attach` returns to it.",
     FLAGS(shell_flags), .run = shell_run, EXAMPLES("holt shell build", "holt shell build -u 1000 --shell /bin/sh")},
    {.verb = "ssh", .group = "access", .failed = 255,
     .text = "Log into a sandbox by SSH, with a certificate of minutes for this one session.\n"
             "The key is in memory only; the sandbox's host key is checked. The exit status is that of ssh.",
     FLAGS(ssh_flags), .run = ssh_run, EXAMPLES("holt ssh build", "holt ssh build -- make test", "holt ssh build -L 8080:127.0.0.1:80")},
    {.verb = "access ca", FLAGS(access_ca_flags), .run = access_ca_verb_run, EXAMPLES("holt access ca", "holt access ca --dir ca")},
    {.verb = "attach", .op = "exec.attach", .fills = "role,stdout_offset,stderr_offset", .failed = 125,
     .text = "Attach to a command: see its output from the start, type into it.\n"
             "The default is the command that was started last. If somebody else controls it, you only watch; --take "
             "takes over.",
     FLAGS(attach_flags), .run = attach_run,
     EXAMPLES("holt attach build", "holt attach build ex_01k4r8w2m9h5t7c3xqvd --observe")},
    {.verb = "wait", .op = "exec.wait", .failed = 125,
     .text = "Wait until a command has ended; the exit status is the command's.\nThe default is the command that was started last.",
     FLAGS(wait_flags), .run = wait_run, EXAMPLES("holt wait build", "holt wait build ex_01k4r8w2m9h5t7c3xqvd")},
    {.verb = "session create", .fills = "command", FLAGS(session_create_flags), .run = session_create_verb_run,
     EXAMPLES("holt session create build", "holt session create build --name edit --rows 50 --cols 160 -- vim notes.txt")},
    {.verb = "session ls", .run = op_verb_run, EXAMPLES("holt session ls", "holt session ls --all -o json")},
    {.verb = "session screen", .run = session_screen_verb_run,
     EXAMPLES("holt session screen build main", "holt session screen build main --format ansi --history", "holt session screen build main --cells -o json")},
    {.verb = "session attach", .op = "session.attach", .fills = "role,take,stdout_offset,stderr_offset,raw,repaint,screen,updates", .failed = 125,
     .text = "Attach to a session: see its screen as it is, then what changes.\n"
             "You only watch, unless --write takes control. Ctrl-P Ctrl-Q leaves; the session goes on.",
     FLAGS(session_attach_flags), .run = session_attach_verb_run,
     EXAMPLES("holt session attach build main", "holt session attach build main --write")},
    {.verb = "session watch", .op = "session.attach", .fills = "role,take,stdout_offset,stderr_offset,raw,repaint,screen,updates", .failed = 125,
     .text = "Watch a session, without any way to type into it; Ctrl-C or Ctrl-P Ctrl-Q leaves.",
     FLAGS(session_watch_flags), .run = session_watch_verb_run, EXAMPLES("holt session watch build main")},
    {.verb = "session record", .op = "session.recording", .fills = "follow",
     .text = "Record a session into a file, from its beginning until it ends: asciicast v2.\n"
             "`asciinema play FILE` shows it, too.",
     FLAGS(session_record_flags), .run = session_record_verb_run,
     EXAMPLES("holt session record build main work.cast", "holt session record build main - --limit 64m | gzip > work.cast.gz")},
    {.verb = "session export", .op = "session.recording", .fills = "follow",
     .text = "Write a session's recording so far into a file: asciicast v2.",
     FLAGS(session_record_flags), .run = session_export_verb_run, EXAMPLES("holt session export build main work.cast --idle 2s")},
    {.verb = "session replay", .op = "session.recording", .fills = "follow,limit",
     .text = "Show what happened in a session so far, as fast as it did.",
     FLAGS(session_replay_flags), .run = session_replay_verb_run, EXAMPLES("holt session replay build main --idle 1s --speed 200")},
    {.verb = "image pull", .run = image_pull_run,
     EXAMPLES("holt image pull registry.example.org/team/app:1.2", "holt image pull 127.0.0.1:5000/app --name app")},
    {.verb = "image import", FLAGS(image_import_flags), .run = image_import_run,
     EXAMPLES("docker save app:1.2 | holt image import -", "holt image import rootfs.tar.gz --name base",
              "holt image import ./rootfs --name base")},
    {.verb = "image build", .fills = "name,dockerfile,context,args,wait", FLAGS(image_build_flags), .run = image_build_verb_run,
     .text = "Build an image from a Dockerfile.\n"
             "FROM, RUN, COPY, ENV, ARG, WORKDIR, USER, CMD, ENTRYPOINT and LABEL are known. Each step runs in a sandbox, and is kept "
             "as a layer for the next build.",
     EXAMPLES("holt image build -t app:1 .", "holt image build -t app:1 --build-arg VERSION=2 --allow packages.example.com .")},
    {.verb = "loadout resolve", FLAGS(loadout_resolve_flags), .run = loadout_resolve_run,
     EXAMPLES("holt loadout resolve full-suite", "holt loadout resolve -f mine.yaml -o json")},
    {.verb = "loadout apply", .fills = "wait", FLAGS(loadout_build_flags), .run = loadout_build_verb_run,
     EXAMPLES("holt loadout apply agent-01 claude-only", "holt loadout apply agent-01 -f mine.yaml")},
    {.verb = "loadout build", .fills = "wait", FLAGS(loadout_build_flags), .run = loadout_build_verb_run,
     .text = "Build the image of a loadout; `holt create --loadout` and `holt run --loadout` take it.\n"
             "Each step runs once in a sandbox and is kept as a layer. What the steps reach is set by the server's build_hosts.",
     EXAMPLES("holt loadout build claude-only", "holt loadout build -f mine.yaml --base debian:13")},
    {.verb = "image build-vm", .group = "image",
     .text = "Build the base of virtual machines from Debian packages: kernel, initrd and root disk.\n"
             "Needs root, and lists the packages that are missing. holtd uses the base after its next start.",
     FLAGS(build_vm_flags), .run = build_vm_run,
     EXAMPLES("sudo holt image build-vm --state /var/lib/holt", "sudo holt image build-vm --release bookworm --size 20G")},
    {.verb = "vm provision", .group = "vm",
     .text = "Make a virtual machine.\n"
             "Where no holtd runs on this state directory, one is started for this command; a later holtd finds the machine.",
     FLAGS(vm_provision_flags), .run = vm_provision_run,
     EXAMPLES("holt vm provision agent-01 --profile basic --cpus 8 --memory 16G --disk 100G --network-mode allowlist --start",
              "holt vm provision agent-02 --memory 8192 --start")},
    {.verb = "vm destroy", .group = "vm", .text = "Destroy a virtual machine with its disk.", FLAGS(vm_flags), .run = vm_destroy_run,
     EXAMPLES("holt vm destroy agent-01")},
    {.verb = "vm reprovision", .group = "vm", .text = "Make a virtual machine anew: the same name and settings, a fresh disk.",
     FLAGS(vm_flags), .run = vm_reprovision_run, EXAMPLES("holt vm reprovision agent-01")},
    {.verb = "vm ssh", .group = "vm",
     .text = "Open a shell in a virtual machine, or run a command in it.\n"
             "It goes over the machine's guest channel: the machine needs no network.",
     FLAGS(vm_ssh_flags), .run = vm_ssh_run, EXAMPLES("holt vm ssh agent-01", "holt vm ssh agent-01 -- uname -r")},
    {.verb = "secret set", .fills = "value,hosts,methods", FLAGS(secret_set_flags), .run = secret_set_run,
     EXAMPLES("holt secret set github-token --host api.github.com", "pass show openai | holt secret set openai --host api.openai.com --in header",
              "holt secret set openai --keep-value --path '/v1/*'")},
    {.verb = "cp", .group = "file", .text = "Copy files and directories between this machine and a sandbox.",
     FLAGS(cp_flags), .run = cp_run,
     EXAMPLES("holt cp src build:/workspace", "holt cp build:/workspace/out.bin .", "holt cp build:/etc/. etc-copy",
              "holt cp build:/workspace - | tar t")},
    {.verb = "cat", .group = "file", .text = "Print a file of a sandbox.", FLAGS(cat_flags), .run = cat_run,
     EXAMPLES("holt cat build:/etc/os-release")},
    {.verb = "logs", FLAGS(logs_flags), .run = op_verb_run,
     EXAMPLES("holt logs build", "holt logs -f build", "holt logs build ex_01k4r8w2m9h5t7c3xqvd --tail 64k")},
    {.verb = "top", .group = "sandbox", .text = "Watch the resource use of running sandboxes; q quits.", FLAGS(top_flags), .run = top_run,
     EXAMPLES("holt top", "holt top --once")},
    {.verb = "port-forward", .group = "port",
     .text = "Connect a port of this machine to one inside a sandbox, until Ctrl-C.\n"
             "For a browser use `holt preview`: a browser sends its cookies for an address, also the dashboard's "
             "session, to every port of that address.",
     FLAGS(port_forward_flags), .run = port_forward_run,
     EXAMPLES("holt port-forward build 8080:80", "holt port-forward build :5432")},
    {.verb = "preview", .run = link_run, EXAMPLES("holt preview build 8000", "xdg-open \"$(holt preview build 3000)\"")},
    {.verb = "board show", .group = "board", .text = "Show a project's board, column by column.", FLAGS(board_show_flags),
     .run = board_show_run, EXAMPLES("holt board show pj_01k4r8w2m9h5t7c3xqvd", "holt board show pj_01k4r8w2m9h5t7c3xqvd --lanes")},
    {.verb = "project put", .op = "project.file.write", .text = "Upload a file of this machine to a project, as its next version.",
     FLAGS(project_put_flags), .run = project_put_run,
     EXAMPLES("holt project put pj_01k4r8w2m9h5t7c3xqvd docs/plan.md plan.md", "make report | holt project put pj_01k4r8w2m9h5t7c3xqvd out/report.txt -")},
    {.verb = "task run", .fills = "manifest", FLAGS(task_run_flags), .run = task_run_run,
     EXAMPLES("holt task run -f task.yaml --wait", "holt task run --name report -- make report",
              "holt task run --repo https://git.example.com/app.git --branch main --prompt 'Fix the parser' --follow")},
    {.verb = "task logs", .run = task_logs_run, EXAMPLES("holt task logs tr_01k4r8w2m9h5t7c3xqvd")},
    {.verb = "rollout logs", .run = task_logs_run,
     EXAMPLES("holt rollout logs ro_01k4r8w2m9h5t7c3xqvd", "holt rollout logs ro_01k4r8w2m9h5t7c3xqvd --phase check")},
    {.verb = "task schedule", .fills = "manifest", FLAGS(task_schedule_flags), .run = task_schedule_run,
     EXAMPLES("holt task schedule nightly '0 3 * * *' -f task.yaml")},
    {.verb = "snapshot tree", .op = "snapshot.list", .fills = "limit,cursor",
     .text = "Show snapshots as a tree: each below the one before it, forks beside each other.",
     .run = snapshot_tree_run, EXAMPLES("holt snapshot tree build", "holt snapshot tree --all")},
    {.verb = "apply", .run = apply_run,
     EXAMPLES("holt apply try-3 --onto build --dry-run", "holt apply try-3 --onto build",
              "holt apply try-3 --onto build --theirs / --ours /etc/hosts")},
    {.verb = "diff", .op = "change.diff", .fills = "from,to,path,text,stream,limit", FLAGS(diff_flags), .run = diff_run,
     EXAMPLES("holt diff build", "holt diff build@clean build --stat", "holt diff build@s1 build@s2 /etc /home",
              "holt diff debian:12 build --name-only")},
    {.verb = "playbook verify", .group = "playbook",
     .text = "Apply a playbook twice to a fresh fork, and show what is left to the state that it is to repeat.\n"
             "Exit status 1 if the second time changes something. The fork is destroyed afterwards.",
     FLAGS(verify_flags), .run = playbook_verify_run, EXAMPLES("holt playbook verify nginx --base build@clean --against build")},
    {.verb = "export", .op = "change.export", .fills = "from,to,path", FLAGS(export_flags), .run = export_run,
     EXAMPLES("holt export build --as tar > layer.tar", "holt export build@clean build --as shell > change.sh",
              "holt export build@clean build /etc --as puppet > change.pp")},
    {.verb = "events", FLAGS(events_flags), .run = events_run,
     EXAMPLES("holt events --limit 20", "holt events -f", "holt events -f --type 'token.*' -o json",
              "holt events --since 2026-01-02T00:00:00Z --object token/")},
    {.verb = "audit verify", .run = audit_verify_run,
     EXAMPLES("holt audit verify", "holt audit verify --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
              "holt audit verify -o json | jq -r .head > head.txt")},
    {.verb = "login", .run = link_run, EXAMPLES("holt login", "holt login --role observer")},
    {.verb = "context ls", .group = "machine", .text = "List the contexts: named servers with their tokens.",
     .run = context_ls_run, EXAMPLES("holt context ls")},
    {.verb = "context add", .group = "machine",
     .text = "Add a context: a server and its token.\n"
             "Contexts are kept in ~/.config/holt/contexts.json, readable only by you. A token is read from a file or "
             "HOLT_TOKEN, never from the command line, where every user of the machine could see it.",
     FLAGS(context_add_flags), .run = context_add_run,
     EXAMPLES("holt context add work https://holt.example:8122 --token-file token.txt --use",
              "holt token create laptop --role operator -o json | jq -r .token | holt context add here http://127.0.0.1:8122 --token-file -")},
    {.verb = "context use", .group = "machine", .text = "Make a context the current one.", FLAGS(context_name_flags),
     .run = context_use_run, EXAMPLES("holt context use work")},
    {.verb = "context rm", .group = "machine", .text = "Remove a context and its token from this machine.",
     FLAGS(context_name_flags), .run = context_rm_run, EXAMPLES("holt context rm work")},
    {.verb = "down", .group = "machine",
     .text = "End all processes of an installation on this machine: holtd, its sandboxes, holt-spawn and holt-egress.\n"
             "Sandboxes with their files on disk can be started again when holtd runs again; files in memory are lost. "
             "Ctrl-C ends only holtd.",
     FLAGS(down_flags), .run = down_run, EXAMPLES("holt down", "sudo holt down --state /var/lib/holt")},
    {.verb = "purge", .group = "machine",
     .text = "End all processes of an installation on this machine and remove its state directory.\n"
             "Sandboxes, volumes, images, secrets, tokens and the event log are removed for good. A PostgreSQL "
             "database and directories of settings (storage_path, host_mounts) stay.",
     FLAGS(purge_flags), .run = purge_run, EXAMPLES("holt purge", "holt purge --yes --state ./state")},
    {.verb = "doctor", .group = "machine",
     .text = "Check this machine for everything that sandboxes need, and print fixes.\n"
             "It changes nothing. The exit status is 0 unless a requirement of native sandboxes is missing.",
     .run = doctor_run, EXAMPLES("holt doctor", "holt doctor -o json")},
    {.verb = "completion", .group = "machine", .text = "Print a script that completes commands, flags and values.",
     FLAGS(completion_flags), .run = completion_run,
     EXAMPLES("source <(holt completion bash)", "source <(holt completion zsh)", "holt completion fish | source")},
    {.verb = "man", .group = "machine",
     .text = "Print a manual page as roff; without PAGE, list the pages.\n"
             "`make install` installs all of them: `man holt`, `man holt-exec`, `man holtd`.",
     FLAGS(man_flags), .run = man_run, EXAMPLES("holt man", "holt man holt-exec | man -l -")},
    {.verb = "version", .group = "machine", .text = "Show the version of this command.", .run = version_run,
     EXAMPLES("holt version")},
    {.verb = "help", .group = "machine", .text = "Show this help, or that of one command.", FLAGS(help_flags),
     .run = help_run, EXAMPLES("holt help token create")},
};
/* clang-format on */
const size_t verb_count = ARRAY_LEN(verb_table);

const struct verb_alias verb_aliases[] = {
    {"list", "ls"},         {"delete", "rm"},    {"remove", "rm"},       {"destroy", "rm"},
    {"images", "image ls"}, {"rmi", "image rm"}, {"pull", "image pull"}, {"unpause", "resume"},
    {"copy", "cp"},         {"stats", "top"},    {"info", "status"},     {"show", "inspect"},
};
const size_t verb_alias_count = ARRAY_LEN(verb_aliases);
