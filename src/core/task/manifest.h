/* manifest: what a task is asked to do: repository, agent, sandbox, secrets, limits of time.  Read
 * from JSON or YAML (docs/tasks.md has all fields); keys that nobody knows become warnings.  Pure.
 * Ownership: every text is the arena's.  Errors: -1 with *e set: the path of the wrong field. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "core/texts.h"
#include "proto/json.h"

#define MANIFEST_MAX (1 << 20) /* bytes of its text */
#define MANIFEST_ID_MAX 64
#define MANIFEST_ITEMS_MAX 64 /* of each list */

enum manifest_network { MANIFEST_ISOLATED, MANIFEST_OUTBOUND, MANIFEST_FULL };

struct manifest_list {
    struct str *v;
    size_t n;
};

struct manifest_secret {
    struct str env, key; /* the variable inside; the secret's name in holt */
};

struct manifest {
    struct str id, name, parent, card;
    struct pair *labels;
    size_t label_count;
    struct str url, branch, commit, subpath;
    struct str provider; /* "claude", "codex", "aider", "opencode", "command" */
    struct str prompt, model, output_format, mcp_config; /* mcp_config: JSON, or empty */
    bool headless, skip_permissions;
    struct manifest_list allowed_tools, command;
    struct pair *env; /* of the command, beside holt's own variables */
    size_t env_count;
    int64_t max_turns; /* 0: not limited */
    struct str box;    /* a sandbox that is there, by name or id; empty: any, or a new one */
    struct str image, runtime, template, profile, loadout;
    int64_t cpu_millis, memory_bytes, disk_bytes; /* 0: not said */
    enum manifest_network network;
    struct manifest_list allowed_hosts;
    struct manifest_secret *secrets;
    size_t secret_count;
    int64_t timeout_ms, hang_ms; /* hang_ms 0: silence is no fault */
    int64_t retries, priority;
    bool preserve; /* keep the sandbox of a failed one */
    struct manifest_list artifacts;
    int64_t children_max; /* at a time; 0: not limited */
    bool wait_for_children, aggregate_artifacts;
    struct manifest_list warnings;
};

/* A text of either form as JSON: YAML includes JSON. */
CHECKED int manifest_parse(struct str text, json_t **ret, struct err *e);
/* strict: a repository with its branch is required. */
CHECKED int manifest_read(const json_t *from, bool strict, struct arena *a, struct manifest *ret,
                          struct err *e);
/* Whether this can be an id: it names files. */
bool manifest_id_fits(struct str id);

/* The agent's command line; argv is the arena's, NULL-terminated. */
void manifest_argv(const struct manifest *m, struct arena *a, struct str **ret, size_t *ret_n);
/* The network policy as JSON: of the agent; of the clone, which reaches the repository only. */
struct str manifest_policy(const struct manifest *m, struct arena *a);
struct str manifest_clone_policy(const struct manifest *m, struct arena *a);
