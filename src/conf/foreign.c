#include "conf/setting.h"

/* What the described systems can be told that this build has no use for: understood, so that their
 * files and environments start holtd, and warned about, so that nobody believes it had an effect.
 * A '*' at the end stands for any rest. */
/* clang-format off */
static const char *const foreign[] = {
    /* agentic-sandbox */
    "SECRETS_DIR", "LOG_FILE", "LOG_FILE_ROTATION", "HEARTBEAT_TIMEOUT", "AIWG_*",
    "DOCKER_MONITOR_ENABLED", "DOCKER_POLL_INTERVAL_SECS", "DOCKER_ORPHANED_AGE_SECS", "TASKS_ROOT",
    "PROVISION_SCRIPT", "DESTROY_SCRIPT", "AGENTIC_MGMT_UDS_GROUP",
    /* fluid: the main daemon's variables and keys, then its agent's */
    "LIBVIRT_URI", "LIBVIRT_NETWORK", "BASE_IMAGE_DIR", "SSH_KEY_INJECT_METHOD",
    "SOCKET_VMNET_WRAPPER", "DEFAULT_VCPUS", "DEFAULT_MEMORY_MB", "COMMAND_TIMEOUT_SEC",
    "IP_DISCOVERY_TIMEOUT_SEC", "SSH_PROXY_JUMP", "SSH_CA_KEY_PATH", "SSH_CA_PUB_KEY_PATH",
    "SSH_KEY_DIR", "SSH_CERT_TTL_SEC", "ANSIBLE_INVENTORY_PATH", "ANSIBLE_PLAYBOOKS_DIR",
    "ANSIBLE_IMAGE", "ENABLE_ANONYMOUS_USAGE", "TELEMETRY_API_KEY", "TELEMETRY_ENDPOINT",
    "JANITOR_ENABLED", "JANITOR_INTERVAL",
    "api.read_timeout", "api.write_timeout", "api.idle_timeout", "database.max_open_conns",
    "database.max_idle_conns", "database.conn_max_lifetime", "database.auto_migrate",
    "libvirt.*", "vm.*", "ssh.*", "ansible.*", "telemetry.*", "hosts",
    "janitor.*",
    "TMUX_AGENT_*", "server.*", "tmux.*", "file.*", "command.*", "human.*", "plan.*", "audit.*",
    "security.*", "sandbox.*",
    /* sbx; SANDBOX_IMAGE and SANDBOX_RUNTIME are agentbox's too */
    "SANDBOX_*", "cache_*", "warm_*", "create_ready_timeout", "cpu_request", "mem_request",
    "stream_*",
};

/* Those that will never have one here, and why. */
static const struct {
    const char *variable, *key, *why;
} reasons[] = {
    {"SANDBOX_CPU_REQUEST", "cpu_request", "nothing is reserved on one host; SANDBOX_CPU_LIMIT limits"},
    {"SANDBOX_MEM_REQUEST", "mem_request", "nothing is reserved on one host; SANDBOX_MEM_LIMIT limits"},
    {"SANDBOX_CREATE_READY_TIMEOUT", "create_ready_timeout", "a create answers when the sandbox is ready"},
    {"SANDBOX_CACHE_PVC_STORAGE_CLASS", "cache_pvc_storage_class", "all claims are in the state directory"},
    {"SANDBOX_CACHE_PVC_ACCESS_MODE", "cache_pvc_access_mode", "a claim is its one sandbox's, read and write"},
};
/* clang-format on */

const char *setting_foreign_why(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (str_eq_c(name, reasons[i].variable) || str_eq_c(name, reasons[i].key))
            return reasons[i].why;
    return "this build has no use for it";
}

bool setting_is_foreign(struct str name)
{
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
        struct str known = str_of(foreign[i]);

        if (known.p[known.n - 1] == '*' ? str_starts(name, str_make(known.p, known.n - 1))
                                        : str_eq(name, known))
            return true;
    }
    return false;
}

bool setting_is_section(struct str prefix)
{
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        if (str_starts(str_of(foreign[i]), prefix))
            return true;
    for (size_t i = 0; i < setting_count; i++)
        for (const struct setting_alias *a = setting_table[i].alias; a && a->name; a++)
            if (str_starts(str_of(a->name), prefix))
                return true;
    return false;
}
