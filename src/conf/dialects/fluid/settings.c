/* settings: the settings of fluid's interface, and the names of its two daemons for ours. */
#include "conf/dialects/fluid/settings.h"

#include "conf/setting.h"
#include "ops/sandbox.h"
#include "proto/policy.h"

#include <inttypes.h>

#define HOUR (3600LL * 1000)

static int from_megabytes(struct str value, struct buf *to, struct err *e)
{
    int64_t n;

    if (str_parse_i64(value, &n) < 0 || n < 0 || n > OP_MEMORY_MAX >> 20)
        return err_set(e, ERR_INVALID, 0, "'%.*s' is not a number of MiB",
                       (int)size_min(value.n, 40), value.p);
    buf_printf(to, "%" PRId64 "m", n);
    return 0;
}

static const struct setting_names names[] = {
    {"vm_pool_dir",
     (const struct setting_alias[]){{"SANDBOX_WORKDIR"}, {"libvirt.work_dir"}, {NULL}}},
    {NULL},
};

/* clang-format off */
static const char *const foreign[] = {
    /* the main daemon's variables and keys, then its agent's */
    "BASE_IMAGE_DIR", "SSH_KEY_INJECT_METHOD", "SOCKET_VMNET_WRAPPER",
    "IP_DISCOVERY_TIMEOUT_SEC", "SSH_PROXY_JUMP", "SSH_CA_KEY_PATH", "SSH_CA_PUB_KEY_PATH",
    "SSH_KEY_DIR", "SSH_CERT_TTL_SEC", "ANSIBLE_INVENTORY_PATH", "ANSIBLE_PLAYBOOKS_DIR",
    "ANSIBLE_IMAGE", "ENABLE_ANONYMOUS_USAGE", "TELEMETRY_API_KEY", "TELEMETRY_ENDPOINT",
    "JANITOR_ENABLED", "JANITOR_INTERVAL",
    "api.read_timeout", "api.write_timeout", "api.idle_timeout", "database.max_open_conns",
    "database.max_idle_conns", "database.conn_max_lifetime", "database.auto_migrate",
    "libvirt.*", "vm.*", "ssh.*", "ansible.*", "telemetry.*",
    "janitor.*",
    "TMUX_AGENT_*", "server.*", "tmux.*", "file.*", "command.*", "human.*", "plan.*", "audit.*",
    "security.*", "sandbox.*",
    NULL,
};

/* Why some of them never will have an effect. */
static const struct setting_reason reasons[] = {
    {"BASE_IMAGE_DIR", "libvirt.base_image_dir", "base images are holt's own: `holt image build-vm`, `holt image pull`"},
    {"SSH_KEY_INJECT_METHOD", "libvirt.ssh_key_inject_method", "keys are written by the init inside"},
    {"SSH_CA_KEY_PATH", "ssh.ca_key_path", "the authority's key is 'ssh-ca' in the state directory; put yours there"},
    {"SSH_CA_PUB_KEY_PATH", "ssh.ca_pub_path", "it is made of the authority's key"},
    {"SSH_KEY_DIR", "ssh.key_dir", "commands do not go through SSH: there are no keys to keep"},
    {"SSH_PROXY_JUMP", "ssh.proxy_jump", "commands do not go through SSH; hosts take ProxyJump of the SSH client's configuration"},
    {"IP_DISCOVERY_TIMEOUT_SEC", "vm.ip_discovery_timeout", "an address is there as soon as the sandbox runs"},
    {"JANITOR_ENABLED", "janitor.enabled", "lifetimes always act"},
    {"JANITOR_INTERVAL", "janitor.interval", "lifetimes are looked at every second"},
    {"ENABLE_ANONYMOUS_USAGE", "telemetry.enable_anonymous_usage", "holt sends nothing home"},
    {"TELEMETRY_API_KEY", "telemetry.api_key", "holt sends nothing home"},
    {"TELEMETRY_ENDPOINT", "telemetry.endpoint", "holt sends nothing home"},
    {NULL, NULL, NULL},
};

static const struct setting_alias cpus_alias[] = {{"DEFAULT_VCPUS"}, {"vm.default_vcpus"}, {NULL}};
static const struct setting_alias memory_alias[] = {
    {"DEFAULT_MEMORY_MB", from_megabytes}, {"vm.default_memory_mb", from_megabytes}, {NULL}};
static const struct setting_alias timeout_alias[] = {
    {"COMMAND_TIMEOUT_SEC", alias_seconds}, {"vm.command_timeout", alias_seconds}, {NULL}};

static const struct setting_alias delete_alias[] = {{"file.allow_delete"}, {NULL}};

#define ROW(member, kind, ...)                                                                     \
    .f = {.name = "fluid_" #member, .type = kind, .offset = offsetof(struct fluid_settings, member), __VA_ARGS__}

static const struct setting rows[] = {
    {ROW(runtime, OP_STR, .preset = "", .max = 63,
         .text = "Runtime of sandboxes that fluid's clients make from images; 'vm': each is a virtual machine. "
                 "Empty: the setting 'runtime'."),
     .reload = true},
    {ROW(network, OP_CHOICE, .preset = "open", .choices = policy_modes,
         .text = "Network of sandboxes that fluid's clients make from images."),
     .as_text = true, .reload = true},
    {ROW(cpus, OP_INT, .preset = "2", .max = 1024,
         .text = "Cores of such a sandbox, if its request does not say; 0: no limit."),
     .alias = cpus_alias, .reload = true},
    {ROW(memory_bytes, OP_SIZE, .preset = "2g", .max = OP_MEMORY_MAX,
         .text = "Memory of such a sandbox, if its request does not say; 0: no limit."),
     .alias = memory_alias, .reload = true},
    {ROW(command_timeout_ms, OP_DURATION, .preset = "10m", .min = 1, .max = 366LL * 24 * HOUR,
         .text = "Time limit of a command of fluid's clients that requests none."),
     .alias = timeout_alias, .reload = true},
    {ROW(key_dirs, OP_LIST, .preset = "", .max = 64,
         .text = "Directories below which requests of fluid's clients may name a private key. Keys are not read: "
                 "commands need none. Empty: a request that names one is refused."),
     .check = setting_check_path, .reload = true},
    {ROW(agent_sandbox, OP_STR, .preset = "fluid-agent", .min = 1, .max = 63,
         .text = "Name of the sandbox in which tmux, file and command act for a caller that names no other; each "
                 "caller has its own, made on first use."),
     .reload = true},
    {ROW(agent_policy, OP_STR, .preset = "fluid-defaults", .max = 63,
         .text = "Policy whose rules command/run and the paths of file are held to there. Empty: none."),
     .reload = true},
    {ROW(file_delete, OP_BOOL, .preset = "false", .text = "Whether file/delete may remove files."),
     .alias = delete_alias, .reload = true},
};
/* clang-format on */

const struct setting_group fluid_setting_group = {
    .name = "fluid",
    .size = sizeof(struct fluid_settings),
    .rows = rows,
    .count = ARRAY_LEN(rows),
    .names = names,
    .foreign = foreign,
    .reasons = reasons,
};

const struct fluid_settings *fluid_settings(const struct config *c)
{
    return conf_group(c, &fluid_setting_group);
}
