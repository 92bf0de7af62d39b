/* traits: the lasting properties of a sandbox, as plain values.  The request (struct
 * sandbox_fields), core's specification, the sandbox, its public state, its row and a driver's spec
 * each hold one struct sandbox_traits, which is copied as a whole and never member by member.
 * To add a trait: its member and its rows here, its column in core/sandbox/traits.c, and the code
 * that acts on it (CONTRIBUTING.md).  No pointers: its holder owns it.  Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sandbox_limits { /* 0: none */
    int64_t memory_bytes, cpu_millis, pids, disk_bytes, nofile;
};

enum sandbox_reach { /* the effect of its network policy */
                     SANDBOX_REACHES_NOTHING,
                     SANDBOX_REACHES_PROXY, /* its connections lead to holt-egress */
                     SANDBOX_REACHES_RAW,   /* an interface, without any policy */
};

struct sandbox_traits {
    struct sandbox_limits limits;
    int64_t ttl_ms, idle_ttl_ms; /* 0: none */
    enum sandbox_reach reach;
    bool rootfs_ro, memory_upper, nesting;
    bool wide;        /* all system calls but the dangerous ones */
    bool relay;       /* processes inside may call the API, as this sandbox */
    bool process_api; /* … and process_api on port 2024 */
    bool hub;         /* … and the team's hub, as its agent: with a relay */
    bool one_shot;    /* destroyed after its first exec, whatever happens */
    bool protected;   /* it cannot be destroyed, not even by its lifetime */
};

/* The fields of requests that decode straight into a trait, for `structure`, which holds struct
 * sandbox_fields as `sandbox`.  A number that is absent is OP_ABSENT until traits_settle. */
#define TRAIT_FIELD(structure, key, member, kind, ...)                                             \
    {.name = key, .type = kind, .offset = offsetof(structure, sandbox.traits.member), __VA_ARGS__}
#define TRAIT_FIELDS(structure)                                                                    \
    TRAIT_FIELD(structure, "memory_bytes", limits.memory_bytes, OP_SIZE, .min = 4194304,           \
                .max = 1LL << 50, .example = "512m", .text = "Memory limit. Default: none."),      \
        TRAIT_FIELD(structure, "cpu_millis", limits.cpu_millis, OP_INT, .min = 10, .max = 1000000, \
                    .example = "1500", .text = "CPU limit, in thousandths of one core."),          \
        TRAIT_FIELD(structure, "pids", limits.pids, OP_INT, .min = 4, .max = 4194304,              \
                    .example = "512", .text = "Limit of processes and threads."),                  \
        TRAIT_FIELD(structure, "disk_bytes", limits.disk_bytes, OP_SIZE, .min = 1048576,           \
                    .max = 1LL << 50, .example = "4g",                                             \
                    .text = "Limit of the size of its own files."),                                \
        TRAIT_FIELD(structure, "nofile", limits.nofile, OP_INT, .min = 16, .max = 1048576,         \
                    .example = "4096", .text = "Limit of open files of one process."),             \
        TRAIT_FIELD(structure, "nesting", nesting, OP_BOOL, .preset = "false", .example = "true",  \
                    .text = "Let it create namespaces and mounts. Weakens isolation; the setting " \
                            "'nesting' must allow it."),                                           \
        TRAIT_FIELD(structure, "relay", relay, OP_BOOL, .preset = "false", .example = "true",      \
                    .text = "Let programs inside call this API at /run/holt.sock, limited to "     \
                            "their own sandbox."),                                                 \
        TRAIT_FIELD(structure, "process_api", process_api, OP_BOOL, .preset = "false",             \
                    .example = "true",                                                             \
                    .text = "Serve process_api (/exec, /file/read and so on), limited to this "    \
                            "sandbox, on port 2024 inside."),                                      \
        TRAIT_FIELD(structure, "hub", hub, OP_BOOL, .preset = "false", .example = "true",          \
                    .text = "Let programs inside use the team's hub at http://hub:8080, as the "   \
                            "sandbox's agent. Includes 'relay'.")

/* Those of a sandbox that outlives its first command. */
#define TRAIT_CREATE_FIELDS(structure)                                                             \
    TRAIT_FIELD(structure, "ttl_ms", ttl_ms, OP_DURATION, .min = 1000, .max = 315360000000,        \
                .example = "1h",                                                                   \
                .text =                                                                            \
                    "Lifetime: it is destroyed this long after its creation. Default: never."),    \
        TRAIT_FIELD(structure, "idle_ttl_ms", idle_ttl_ms, OP_DURATION, .min = 1000,               \
                    .max = 315360000000, .example = "15m",                                         \
                    .text = "It is destroyed after this long without activity. A running command " \
                            "counts as activity."),                                                \
        TRAIT_FIELD(                                                                               \
            structure, "protected", protected, OP_BOOL, .preset = "false", .example = "true",      \
            .text = "Refuse to destroy it, also at the end of its lifetime, until this is false.")

/* Those that may change later, for `structure`, which holds two struct sandbox_traits: `traits`,
 * and `given`, whose members are not 0 if the request has them. */
#define TRAIT_CHANGE(structure, member, kind, ...)                                                 \
    {.name = #member,                                                                              \
     .type = kind,                                                                                 \
     .offset = offsetof(structure, traits.member),                                                 \
     .given = offsetof(structure, given.member),                                                   \
     __VA_ARGS__}
#define TRAIT_CHANGES(structure)                                                                   \
    TRAIT_CHANGE(structure, ttl_ms, OP_DURATION, .max = 315360000000, .example = "2h",             \
                 .text = "Lifetime: it is destroyed this long after its creation; 0: never."),     \
        TRAIT_CHANGE(structure, idle_ttl_ms, OP_DURATION, .max = 315360000000, .example = "30m",   \
                     .text = "It is destroyed after this long without activity; 0: never."),       \
        TRAIT_CHANGE(structure, protected, OP_BOOL, .example = "false",                            \
                     .text = "Refuse to destroy it, also at the end of its lifetime.")

/* The same in replies; core/sandbox/traits.c writes them. */
#define TRAIT_REPLIES                                                                              \
    REPLY("nesting", OP_BOOL, "Whether it may create namespaces and mounts.", .example = "false"), \
        REPLY("syscalls", OP_CHOICE, "The system calls it may use.", .choices = op_syscalls,       \
              .example = "narrow"),                                                                \
        REPLY("rootfs", OP_CHOICE,                                                                 \
              "Whether its root file system is writable ('rw') or not ('ro').",                    \
              .choices = op_rootfs, .example = "rw"),                                              \
        REPLY("upper", OP_CHOICE, "Where its own files are stored.", .choices = op_uppers,         \
              .example = "disk"),                                                                  \
        REPLY("relay", OP_BOOL, "Whether programs inside may call this API at /run/holt.sock.",    \
              .example = "false"),                                                                 \
        REPLY("process_api", OP_BOOL, "Whether process_api is served on port 2024 inside.",        \
              .example = "false"),                                                                 \
        REPLY("hub", OP_BOOL,                                                                      \
              "Whether programs inside may use the team's hub at http://hub:8080.",                \
              .example = "false"),                                                                 \
        REPLY("protected", OP_BOOL, "Whether it is protected from being destroyed.",               \
              .example = "false"),                                                                 \
        REPLY("ttl_ms", OP_INT,                                                                    \
              "Lifetime: it is destroyed this long after its creation; null: never.",              \
              .nullable = true, .example = "3600000"),                                             \
        REPLY("idle_ttl_ms", OP_INT,                                                               \
              "It is destroyed after this long without activity; null: never.", .nullable = true,  \
              .example = "900000")
