/* conf: the settings as data.  One row per setting: key, type, default, range, environment names,
 * flag, help. File (YAML) < environment < flags; `--env-file` is read before the environment.
 * docs/settings.md and `holtd --print-settings` are printed from the same table. */
#pragma once

#include "base/err.h"
#include "base/log.h"

struct conf_list {
    char **v;
    size_t n;
};

#define CONF_GROUPS_MAX 16 /* dialects with settings */

enum conf_auth { CONF_AUTH_TOKEN, CONF_AUTH_OFF };

struct config { /* each member is one row in settings.c; texts are owned */
    struct conf_list listen, preview_listen;
    bool seed_ports;
    char *seed_identity;      /* role of requests without a token on a seed port */
    char *state;              /* directory */
    char *user, *egress_user; /* the users of holtd and holt-egress if they are started as root */
    char *db;                 /* "sqlite:PATH", or "" : STATE/holt.db; "postgres://…" */
    char *node;               /* or "": the installation's name */
    enum conf_auth auth;
    enum log_level log_level;
    enum log_format log_format;
    char *tls_cert, *tls_key;
    /* login of people: see docs/identity.md */
    char *oidc_issuer, *oidc_client_id, *oidc_client_secret, *oidc_redirect, *oidc_scopes;
    char *oidc_person_claim, *oidc_role_claim;
    struct conf_list oidc_roles; /* "VALUE=ROLE" */
    char *ssh_ports;             /* conf_port_range */
    struct conf_list cors_origins, seed_origins;
    struct conf_list egress_internal;
    struct conf_list host_names; /* further names allowed in Host */
    struct conf_list hosts;      /* of virtual machines: conf_host_parse */
    bool metrics;
    bool ready_needs_agents;
    /* network limits: see net/server.h */
    int64_t header_max, header_count_max, body_max, connections_max, connections_per_peer;
    int64_t relay_output_bytes;
    int64_t pending_max, pending_per_peer;
    int64_t requests_per_conn, idle_ms, header_ms, body_idle_ms, write_ms;
    int64_t ws_message_max, grpc_message_max;
    int64_t shutdown_ms;
    /* store and events */
    int64_t events_keep_ms, events_keep_count; /* 0: unlimited */
    int64_t audit_fold_ms;
    int64_t login_failures, login_window_ms, tokens_max;
    int64_t store_writes, store_reads;
    /* sandboxes */
    char *runtime; /* the default; CONF_RUNTIME_AUTO: the strongest that works here */
    struct conf_list oci_runtimes; /* further ones (wire/oci.h) */
    struct conf_list host_mounts;
    enum conf_syscalls { CONF_SYSCALLS_NARROW, CONF_SYSCALLS_WIDE } syscalls;
    enum conf_wide { CONF_WIDE_NEVER, CONF_WIDE_PEOPLE, CONF_WIDE_AGENTS } wide_syscalls;
    int64_t default_pids;
    enum conf_accel { CONF_ACCEL_AUTO, CONF_ACCEL_KVM, CONF_ACCEL_TCG } vm_accel;
    bool nesting, intercept, pool_autosize;
    bool require_limits;
    int64_t pool_size, pool_min, pool_max;
    int64_t sandboxes_max, execs_max, output_bytes, disk_reserve;
    int64_t output_keep_ms, command_time_ms, session_time_ms;
    char *agent_policy;          /* of every agent; "": none */
    char *agentshare;            /* "": STATE/agentshare */
    int64_t remote_heartbeat_ms; /* agents on machines that are not ours */
    char *remote_secrets;        /* "": STATE/secrets */
    /* where playbooks are published to; publish_url "": nowhere */
    char *publish_url, *publish_branch, *publish_user, *publish_secret, *publish_author;
    char *publish_email;
    int64_t tasks_running, tasks_per_user, tasks_max, tasks_keep_ms;
    /* loadouts and builds */
    char *loadouts_dir, *loadout_image; /* loadouts_dir: "": none */
    struct conf_list build_hosts, build_env;
    int64_t build_step_ms, build_cache_max, builds_running;
    /* crash loops: core/sandbox/crash.h */
    int64_t crash_count, crash_window_ms, crash_uptime_ms, crash_cooldown_ms, crash_rebuilds;
    int64_t crash_healthy_ms;
    /* limits for agents: core/sandbox/ceiling.h */
    int64_t agent_memory, agent_memory_max, agent_cpu, agent_cpu_max, agent_pids, agent_pids_max;
    int64_t agent_disk, agent_disk_max, agent_sandboxes, agent_commands, agent_volumes;
    int64_t agent_output;
    int64_t owner_sandboxes, owner_volumes, volumes_max, secrets_max;
    int64_t owner_running, owner_cpu, owner_memory, owner_disk, owner_tasks;
    int64_t tenant_sandboxes, tenant_running, tenant_cpu, tenant_memory, tenant_disk, tenant_tasks;
    int64_t total_running, total_cpu, total_memory, total_disk;
    /* defaults of the described systems' interfaces */
    char *seed_image; /* "": each one's own */
    /* images */
    struct conf_list image_aliases, diff_ignore;
    char *image_registry;
    bool image_insecure;
    int64_t image_bytes_max, image_files_max, image_ms, images_max, snapshots_max, diffs_max;
    /* the team: see core/team/team.h */
    int64_t agent_heartbeat_ms, agent_cycle, agent_missed, task_grace_ms;
    int64_t message_rate, message_bytes, inbox_max, team_max, proposals_max, questions_max;
    struct conf_list approval_two_people; /* kinds of questions */
    struct conf_list webhook_hosts;       /* of receivers: host or host:port */
    char *otlp_endpoint, *otlp_service;   /* of traces; endpoint "": none are sent */
    struct conf_list otlp_headers;        /* "NAME=VALUE" */
    int64_t otlp_ratio;                   /* percent of requests without a trace of their own */
    int64_t file_bytes, file_versions, project_bytes, agent_tasks;
    char *bindir; /* of holt-spawn, holt-init and holt-egress; "": holtd's own */
    char *egress_dns, *egress_ca_file, *raw_bridge, *vm_uri, *vm_pool_dir, *vm_network, *proxy_host,
        *signing_key;
    int64_t proxy_port, egress_ask_ms;
    enum conf_first { CONF_FIRST_NEVER, CONF_FIRST_SEED, CONF_FIRST_ALWAYS } remote_first_contact;
    bool prompts;

    /* beside the rows */
    bool *listen_optional;         /* per member of listen: if it is busy, warn and continue */
    struct conf_list files;        /* that were read */
    bool *listen_added;            /* per member of listen: added by a variable */
    struct conf_list warnings;     /* for the daemon to log: recognised settings without effect */
    char **sources;                /* per row: "default", "holt.yaml:3", "flag --listen" */
    void *groups[CONF_GROUPS_MAX]; /* the dialects' own: conf_group */
};

extern const char holt_version[];
char *conf_default_state(void); /* the default state directory; heap */
/* Addresses that `--seed-ports` opens besides `listen` and the dialects' own: for clients that use
 * the native API on another system's ports, and a dashboard's development server.  A busy one is
 * skipped.  An address that is also in `listen` is a seed port: its clients need no token. */
extern const char *const conf_seed_listen[]; /* NULL at the end */
/* whether the text names a loopback address, not reachable from outside */
bool conf_is_loopback(const char *address);

/* The runtimes of this build, NULL-terminated, the default first: the choices of the setting
 * `runtime`, besides 'auto' and those of 'oci_runtimes'.  Call it before loading or printing; the
 * names must stay valid. */
void conf_set_runtimes(const char *const *names);
#define CONF_RUNTIME_AUTO "auto"

/* A dialect's own settings in this config: a structure of the group's (src/conf/dialects). */
struct setting_group;
const void *conf_group(const struct config *c, const struct setting_group *g);

/* Directories of the host that dialects' settings name, for sandboxes: holtd makes them before it
 * gives up its rights. */
struct conf_dir {
    const char *key;
    char *path;  /* the config's */
    bool shared; /* it is mounted itself; else it holds one directory for each tenant */
};
#define CONF_DIRS_MAX 8
size_t conf_dirs(const struct config *c, struct conf_dir *to, size_t room);

/* "": 0 to 0, any port; "2200-2299"; "off": -1 to -1.  False: it is none of these. */
bool conf_port_range(const char *text, int *ret_first, int *ret_last);

/* One entry of `hosts`: where virtual machines are made. */
struct conf_host {
    char *name, *uri;                      /* owned, as the others */
    char *network, *pool_dir, *ssh_config; /* NULL: not given */
    int64_t memory_bytes, cpus, machines;  /* the most to use; 0: all that it has */
};
CHECKED int conf_host_parse(const char *text, struct conf_host *ret, struct err *e);
void conf_host_done(struct conf_host *h);

struct conf_sources {
    int argc;
    char **argv;
    char **environ;
};

/* Reads all sources; *e names the key, its value, and its place (file:line, variable or flag).  1:
 * the program should print *ret_text and exit 0 (--help, --version, --print-settings …). */
CHECKED int conf_load(const struct conf_sources *from, struct config **ret, char **ret_text,
                      struct err *e);
/* Reads all sources again; reloadable rows change in *c, c->warnings names changed rows that are
 * not reloadable.  On an error nothing has changed. */
CHECKED int conf_reload(struct config *c, const struct conf_sources *from, struct err *e);
struct config *config_free(struct config *c); /* takes NULL; returns NULL */
DEFINE_AUTO(struct config *, config_free)

struct buf;
void conf_print_markdown(struct buf *to);                     /* docs/settings.md */
void conf_print_yaml(const struct config *c, struct buf *to); /* --print-settings */
void conf_print_help(struct buf *to);                         /* --help */
void conf_print_man(struct buf *to);                          /* holtd(8), as roff */
/* The reply of settings.list: {"settings": [{"key", "value", "default", "source", …}], "cursor":
 * null}; a secret's value is not shown. */
void conf_print_json(const struct config *c, struct buf *to);
