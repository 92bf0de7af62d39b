#include "cli/verbs.h"

#define FLAGS(list) .flags = list, .flag_count = ARRAY_LEN(list)
#define EXAMPLES(...)                                                                              \
    .examples = (const char *const[])                                                              \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

/* clang-format off */
static const struct cli_flag events_flags[] = {
    {{.name = "follow", .type = OP_BOOL}, 'f'}, /* the operation's, with a letter */
};
static const struct cli_flag context_add_flags[] = {
    {{.name = "name", .type = OP_STR, .required = true, .positional = true, .example = "work",
      .text = "Name of the context."}, 0},
    {{.name = "url", .type = OP_STR, .required = true, .positional = true, .example = "https://holt.example:8122",
      .text = "Server: http://HOST:PORT, https://HOST:PORT or unix:/PATH."}, 0},
    {{.name = "token_file", .type = OP_STR,
      .text = "File that holds the token; - is standard input; without it HOLT_TOKEN is kept, if set."}, 0},
    {{.name = "cacert_file", .type = OP_STR, .text = "PEM file of the authority to trust for this server."}, 0},
    {{.name = "use", .type = OP_BOOL, .text = "Make it the current context; the first one is by itself."}, 0},
    {{.name = "force", .type = OP_BOOL, .text = "Replace a context of that name."}, 0},
};
static const struct cli_flag context_name_flags[] = {
    {{.name = "name", .type = OP_STR, .required = true, .positional = true, .example = "work",
      .text = "Name of the context."}, 0},
};
static const char *const shells[] = {"bash", NULL};
static const struct cli_flag completion_flags[] = {
    {{.name = "shell", .type = OP_CHOICE, .choices = shells, .required = true, .positional = true, .example = "bash",
      .text = "The shell: bash."}, 0},
};
static const struct cli_flag help_flags[] = {
    {{.name = "verb", .type = OP_LIST, .positional = true, .text = "The command."}, 0},
};

const struct verb verb_table[] = {
    {.verb = "events", FLAGS(events_flags), .run = events_run,
     EXAMPLES("holt events --limit 20", "holt events -f", "holt events -f --type 'token.*' -o json",
              "holt events --since 2026-01-02T00:00:00Z --object token/")},
    {.verb = "audit verify", .run = audit_verify_run,
     EXAMPLES("holt audit verify", "holt audit verify --head 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
              "holt audit verify -o json | jq -r .head > head.txt")},
    {.verb = "login", .run = login_run, EXAMPLES("holt login", "holt login --role observer")},
    {.verb = "context ls", .group = "here", .text = "List the contexts: named servers with their tokens.",
     .run = context_ls_run, EXAMPLES("holt context ls")},
    {.verb = "context add", .group = "here",
     .text = "Add a context: a server and the token for it.\n"
             "Contexts are kept in ~/.config/holt/contexts.json, readable by you alone. A token is read from a file or "
             "HOLT_TOKEN, never from the command line, where every user of the machine could see it.",
     FLAGS(context_add_flags), .run = context_add_run,
     EXAMPLES("holt context add work https://holt.example:8122 --token-file token.txt --use",
              "holt token create laptop --role operator -o json | jq -r .token | holt context add here http://127.0.0.1:8122 --token-file -")},
    {.verb = "context use", .group = "here", .text = "Make a context the current one.", FLAGS(context_name_flags),
     .run = context_use_run, EXAMPLES("holt context use work")},
    {.verb = "context rm", .group = "here", .text = "Remove a context and its token from this machine.",
     FLAGS(context_name_flags), .run = context_rm_run, EXAMPLES("holt context rm work")},
    {.verb = "doctor", .group = "here",
     .text = "Check what this machine can do for sandboxes, what is missing, and how to mend it.\n"
             "Nothing is changed and nothing is left behind. The exit status is 0 unless something that native "
             "sandboxes cannot do without is missing.",
     .run = doctor_run, EXAMPLES("holt doctor", "holt doctor -o json")},
    {.verb = "completion", .group = "here", .text = "Print a script that completes commands, flags and values.",
     FLAGS(completion_flags), .run = completion_run,
     EXAMPLES("source <(holt completion bash)", "holt completion bash > /etc/bash_completion.d/holt")},
    {.verb = "version", .group = "here", .text = "Show the version of this command.", .run = version_run,
     EXAMPLES("holt version")},
    {.verb = "help", .group = "here", .text = "Show this help, or that of one command.", FLAGS(help_flags),
     .run = help_run, EXAMPLES("holt help token create")},
};
/* clang-format on */
const size_t verb_count = ARRAY_LEN(verb_table);
