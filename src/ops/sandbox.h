/* sandbox: inputs of the operations on sandboxes. */
#pragma once

#include "ops/op.h"
#include "ops/traits.h"

extern const char *const op_sandbox_states[]; /* as enum sandbox_state; then orphan */
extern const char *const op_rootfs[];         /* "rw", "ro" */
extern const char *const op_uppers[];         /* "disk", "memory" */
extern const char *const op_syscalls[];       /* "narrow", "wide" */
extern const char *const op_mount_kinds[];    /* "tmpfs", "host", "own" */

/* Limits of a new sandbox; 0: none. */
#define OP_CPU_MIN 10 /* thousandths of a core */
#define OP_CPU_MAX (1024 * 1000)
#define OP_MEMORY_MIN (4LL << 20)
#define OP_MEMORY_MAX (1LL << 44)

enum { OP_ROOTFS_RW, OP_ROOTFS_RO };
enum { OP_UPPER_DISK, OP_UPPER_MEMORY };
enum { OP_SYSCALLS_NARROW, OP_SYSCALLS_WIDE };

struct sandbox_fields { /* the description of a sandbox; for sandbox.create and run */
    struct str template, loadout, image, runtime, host, tenant, agent, policy;
    struct sandbox_traits traits;
    int rootfs, upper, syscalls; /* -1: absent */
    json_t *network;             /* a mode or a policy, or NULL */
    struct op_list allow;        /* rules of an allowlist */
    bool require_limits, require_paths;
    struct op_map labels;
    json_t *mounts, *volumes, *secrets; /* lists of objects, or NULL */
    struct op_list secret;              /* NAME or NAME=VARIABLE */
};
struct sandbox_create_in {
    struct sandbox_fields sandbox;
    struct str name;
    struct op_map env;
};
struct sandbox_list_in {
    int state; /* -1: any */
    struct op_map label;
    struct str runtime;
    int64_t limit;
    struct str cursor;
};
struct sandbox_id_in { /* id, name or alias */
    struct str id;
};
struct sandbox_update_in {
    struct str id, name;
    json_t *labels; /* an object of texts: replaces all; NULL: as they are */
    struct sandbox_traits traits, given;
    json_t *network;   /* NULL: as it is */
    struct str policy; /* p NULL: as it is */
};
struct sandbox_stop_in { /* of stop and restart */
    struct str id;
    int64_t grace_ms;
    bool force;
};

#define NETWORK_TEXT                                                                               \
    "Network policy: 'none' (the default), 'allowlist', 'open' or 'raw', or an object with mode, " \
    "allow, deny, unknown, connections, bytes. See docs/egress.md."

/* The fields of struct sandbox_fields, which `structure` holds as `sandbox`. */
#define SANDBOX_FIELD(structure, member, kind, ...)                                                \
    {.name = #member, .type = kind, .offset = offsetof(structure, sandbox.member), __VA_ARGS__}
#define SANDBOX_FIELDS(structure)                                                                  \
    SANDBOX_FIELD(structure, template, OP_STR, .min = 1, .max = 255, .example = "python",          \
                  .text = "Template to start from, by id or name: it sets what the request does "  \
                          "not."),                                                                 \
        SANDBOX_FIELD(structure, loadout, OP_STR, .min = 1, .max = 255, .example = "claude-only",  \
                      .text = "Loadout that it has, by name or path: one that is built "           \
                              "(docs/loadouts.md). 'image' is then the image it was built on."),   \
        SANDBOX_FIELD(                                                                             \
            structure, image, OP_STR, .min = 1, .max = 255, .preset = "host", .example = "host",   \
            .text = "Image to start from. 'host' means the programs of this machine, read-only."), \
        SANDBOX_FIELD(structure, runtime, OP_STR, .max = 32, .pattern = OP_PATTERN_NAME,           \
                      .example = "native",                                                         \
                      .text = "Runtime to use. Default: the setting 'runtime'."),                  \
        SANDBOX_FIELD(structure, host, OP_STR, .max = 40, .pattern = OP_PATTERN_NAME,              \
                      .example = "rack1",                                                          \
                      .text = "Host of virtual machines to make it on. Default: of those it fits " \
                              "on, the least loaded."),                                            \
        SANDBOX_FIELD(structure, tenant, OP_STR, .max = 100, .pattern = OP_PATTERN_NAME,           \
                      .example = "acme",                                                           \
                      .text = "Tenant it belongs to. Each tenant has its own volumes."),           \
        TRAIT_FIELDS(structure),                                                                   \
        SANDBOX_FIELD(structure, rootfs, OP_CHOICE, .choices = op_rootfs, .preset = "rw",          \
                      .example = "ro",                                                             \
                      .text = "With 'ro', only /tmp, /run and mounts are writable."),              \
        SANDBOX_FIELD(structure, upper, OP_CHOICE, .choices = op_uppers, .example = "memory",      \
                      .text =                                                                      \
                          "Where its own files are stored. Default: 'disk'; for run: 'memory'."),  \
        SANDBOX_FIELD(structure, network, OP_JSON, .types = "string|object",                       \
                      .text = NETWORK_TEXT),                                                       \
        SANDBOX_FIELD(structure, allow, OP_LIST, .max = 256, .example = "*.example.com",           \
                      .text = "Hosts it may reach: rules of an allowlist, as in network.allow."),  \
        SANDBOX_FIELD(                                                                             \
            structure, syscalls, OP_CHOICE, .choices = op_syscalls, .example = "wide",             \
            .text = "System calls it may use: 'narrow' allows those that common programs need, "   \
                    "'wide' all but the dangerous ones. Default: the setting 'syscalls'."),        \
        SANDBOX_FIELD(structure, require_limits, OP_BOOL, .preset = "false", .example = "true",    \
                      .text = "Fail if this host cannot enforce one of the limits. Without it, "   \
                              "the reply only has a warning."),                                    \
        SANDBOX_FIELD(structure, agent, OP_STR, .max = 128, .example = "claude",                   \
                      .text = "The team's agent that works in it. Requests from inside act as "    \
                              "this agent and as no other."),                                      \
        SANDBOX_FIELD(structure, policy, OP_STR, .max = 64, .example = "careful",                  \
                      .text = "Its policy, by name or id: rules for commands, paths, time and "    \
                              "output. See docs/policies.md."),                                    \
        SANDBOX_FIELD(structure, require_paths, OP_BOOL, .preset = "false", .example = "true",     \
                      .text = "Fail if path rules of its policies do not hold its commands too. "  \
                              "Without it, the reply only has a warning."),                        \
        SANDBOX_FIELD(structure, labels, OP_MAP, .max = 64, .example = "team=blue",                \
                      .text = "Labels of your choice, to find it by."),                            \
        SANDBOX_FIELD(                                                                             \
            structure, mounts, OP_JSON, .types = "array",                                          \
            .text =                                                                                \
                "A list of {\"kind\": \"tmpfs\", \"host\" or \"own\", \"source\", \"target\", "    \
                "\"readonly\", \"size_bytes\"}. \"own\" is a directory of its root that stays "    \
                "writable with rootfs 'ro'; with \"size_bytes\" it has a disk limit of its own."), \
        SANDBOX_FIELD(structure, volumes, OP_JSON, .types = "array",                               \
                      .text = "Volumes to mount: a list of {\"name\": a volume's name or id, "     \
                              "\"path\", \"read_only\"}."),                                        \
        SANDBOX_FIELD(                                                                             \
            structure, secrets, OP_JSON, .types = "array",                                         \
            .text = "Secrets it may use: a list of {\"name\", \"env\"}. The variable holds a "     \
                    "placeholder; the value never enters the sandbox. See docs/secrets.md."),      \
        SANDBOX_FIELD(structure, secret, OP_LIST, .max = 32, .example = "github-token=GH_TOKEN",   \
                      .text = "The same in short form: NAME or NAME=VARIABLE. Default variable: "  \
                              "the name in capitals.")

extern const struct op op_sandbox_create, op_sandbox_list, op_sandbox_get, op_sandbox_update;
extern const struct op op_sandbox_destroy, op_sandbox_start, op_sandbox_stop, op_sandbox_restart;
extern const struct op op_sandbox_reprovision;
extern const struct op op_sandbox_crashes, op_sandbox_crash_reset, op_sandbox_pause,
    op_sandbox_resume, op_sandbox_stats, op_sandbox_stats_list;
struct sandbox_stats_list_in {
    bool follow;
};
