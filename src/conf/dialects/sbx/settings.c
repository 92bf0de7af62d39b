/* settings: sbx's settings, and its names for ours in variables and SANDBOX_CONFIG's file. */
#include "conf/dialects/sbx/settings.h"

#include "conf/setting.h"
#include "ops/sandbox.h"
#include "proto/policy.h"
#include "proto/quantity.h"

#include <inttypes.h>

/* --- values --- */

static int check_variable(const char *value, struct err *e)
{
    const char *equals = strchr(value, '=');

    if (equals && equals != value)
        return 0;
    return err_set(e, ERR_INVALID, 0, "an entry is not of the form NAME=VALUE");
}

static int check_endpoint(const char *value, struct err *e)
{
    static const char *const schemes[] = {"http://", "https://", "ws://", "wss://"};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strncmp(value, schemes[i], strlen(schemes[i])) == 0 && value[strlen(value) - 1] != '/')
            return 0;
    if (value[0] == '\0')
        return 0;
    return err_set(e, ERR_INVALID, 0, "it must be 'http://HOST:PORT', without a '/' at the end");
}

/* A value that is not a rule would refuse nothing: no sandbox could be made. */
static int check_refused_host(const char *value, struct err *e)
{
    AUTO(arena_done) struct arena a = {0};
    struct str host = str_trim(str_of(value));

    if (host.n == 0 || policy_is_rule(policy_host_rule(host, &a), false))
        return 0;
    return err_set(e, ERR_INVALID, 0, "'%.100s' is not a host, address, network or URL", value);
}

/* --- its names --- */

/* Unknown values mean the first one, as in sbx. */
static int from_volume_mode(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    buf_add_c(to, str_case_eq_c(value, "pvc") ? "pvc" : "emptydir");
    return 0;
}

static int from_cache_mode(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    buf_add_c(to, str_case_eq_c(value, "pvc")        ? "pvc"
                  : str_case_eq_c(value, "hostpath") ? "hostpath"
                                                     : "emptydir");
    return 0;
}

/* Less than a thousandth of a core is more precise than any runtime; Kubernetes rounds up, too. */
static int from_cpu(struct str value, struct buf *to, struct err *e)
{
    int64_t n;

    if (quantity_parse(value, 1000, &n, e) < 0)
        return -1;
    buf_printf(to, "%" PRId64, n > 0 ? i64_max(n, OP_CPU_MIN) : 0);
    return 0;
}

static int from_bytes(struct str value, struct buf *to, struct err *e)
{
    int64_t n;

    if (quantity_parse(value, 1, &n, e) < 0)
        return -1;
    buf_printf(to, "%" PRId64, n);
    return 0;
}

/* Reports an unusable limit at start-up, not with each create. */
static int from_memory(struct str value, struct buf *to, struct err *e)
{
    int64_t n;

    if (quantity_parse(value, 1, &n, e) < 0)
        return -1;
    if (n > 0 && (n < OP_MEMORY_MIN || n > OP_MEMORY_MAX))
        return err_set(e, ERR_INVALID, 0, "a sandbox's memory must be from 4Mi to 16Ti, or 0");
    return from_bytes(value, to, e);
}

/* Unknown values mean the control plane. */
static int from_stream_mode(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    buf_add_c(to, str_case_eq_c(value, "sidecar") ? "sidecar" : "control-plane");
    return 0;
}

/* The later version of sbx has no mode: naming an image enables sidecars. */
static int from_sidecar_image(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    buf_add_c(to, value.n > 0 ? "sidecar" : "control-plane");
    return 0;
}

/* Go's durations: a number has a unit, or it is 0; our parser would take "15" for milliseconds.  A
 * value that is not above 0 disables it. */
static int from_ttl(struct str value, struct buf *to, struct err *e)
{
    bool minus = value.n > 0 && value.p[0] == '-';
    struct str s = minus || (value.n > 0 && value.p[0] == '+') ? str_skip(value, 1) : value;
    int64_t ms, bare;

    if (s.n == 0 || str_parse_duration_ms(s, &ms) < 0 ||
        (str_parse_i64(s, &bare) == 0 && bare != 0))
        return err_set(e, ERR_INVALID, 0, "'%.*s' is not a duration like '30s', '15m' or '1h30m'",
                       (int)size_min(value.n, 40), value.p ? value.p : "");
    buf_printf(to, "%" PRId64, minus ? 0 : ms);
    return 0;
}

static int from_bool(struct str value, struct buf *to, struct err *e)
{
    static const char *const yes[] = {"1", "true", "yes", "y", "on"};
    static const char *const no[] = {"0", "false", "no", "n", "off"};

    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        if (str_case_eq_c(value, yes[i]) || str_case_eq_c(value, no[i])) {
            buf_add_c(to, str_case_eq_c(value, yes[i]) ? "true" : "false");
            return 0;
        }
    return err_set(e, ERR_INVALID, 0, "'%.*s' is neither true nor false",
                   (int)size_min(value.n, 40), value.p);
}

#define NAMES(variable, key, convert)                                                              \
    {                                                                                              \
        {variable, convert}, {key, convert},                                                       \
        {                                                                                          \
            NULL                                                                                   \
        }                                                                                          \
    }

static const struct setting_alias volume_mode_alias[] =
    NAMES("SANDBOX_VOLUME_MODE", "volume_mode", from_volume_mode);
static const struct setting_alias cache_mode_alias[] =
    NAMES("SANDBOX_CACHE_MODE", "cache_mode", from_cache_mode);
static const struct setting_alias cache_pvc_bytes_alias[] =
    NAMES("SANDBOX_CACHE_PVC_SIZE", "cache_pvc_size", from_bytes);
static const struct setting_alias cache_hostpath_alias[] =
    NAMES("SANDBOX_CACHE_HOSTPATH", "cache_hostpath", NULL);
static const struct setting_alias stream_mode_alias[] = {
    {"SANDBOX_STREAM_MODE", from_stream_mode},
    {"SANDBOX_STREAM_SIDECAR_IMAGE", from_sidecar_image},
    {"stream_mode", from_stream_mode},
    {"stream_sidecar_image", from_sidecar_image},
    {NULL},
};
static const struct setting_alias events_dir_alias[] =
    NAMES("SANDBOX_STREAM_EVENTS_DIR", "stream_events_dir", NULL);
static const struct setting_alias idle_ttl_alias[] =
    NAMES("SANDBOX_IDLE_TTL", "idle_ttl", from_ttl);
static const struct setting_alias cpu_alias[] = NAMES("SANDBOX_CPU_LIMIT", "cpu_limit", from_cpu);
static const struct setting_alias memory_alias[] =
    NAMES("SANDBOX_MEM_LIMIT", "mem_limit", from_memory);
static const struct setting_alias allowed_hosts_alias[] =
    NAMES("SANDBOX_ALLOWED_HOSTS", "allowed_hosts", NULL);
static const struct setting_alias disallowed_hosts_alias[] =
    NAMES("SANDBOX_DISALLOWED_HOSTS", "disallowed_hosts", NULL);
static const struct setting_alias env_alias[] = {
    {"SANDBOX_ENV_*", .adds = true},
    {"env.*", .adds = true},
    {NULL},
};
static const struct setting_alias stream_buffer_alias[] =
    NAMES("SANDBOX_STREAM_BUFFER", "stream_buffer", NULL);
/* sbx ignores a '/' at the end. */
static int from_endpoint(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    while (value.n > 0 && value.p[value.n - 1] == '/')
        value.n--;
    buf_add_str(to, value);
    return 0;
}

static const struct setting_alias stream_endpoint_alias[] =
    NAMES("SANDBOX_STREAM_ENDPOINT", "stream_endpoint", from_endpoint);
static const struct setting_alias async_exec_alias[] = {
    {"SANDBOX_USE_ASYNC_EXEC", from_bool},
    {"SANDBOX_ASYNC_EXEC", from_bool},
    {"use_async_exec", from_bool},
    {"async_exec", from_bool, .zero_counts = true},
    {NULL},
};
static const struct setting_alias exec_keep_alias[] =
    NAMES("SANDBOX_EXEC_STATUS_RETENTION", "exec_status_retention", from_ttl);
static const struct setting_alias exec_timeout_alias[] =
    NAMES("SANDBOX_EXEC_TIMEOUT", "exec_timeout", from_ttl);
static const struct setting_alias exec_max_timeout_alias[] =
    NAMES("SANDBOX_EXEC_MAX_TIMEOUT", "exec_max_timeout", from_ttl);

static const struct setting_names names[] = {
    {"pool_size",
     (const struct setting_alias[])NAMES("SANDBOX_WARM_POOL_SIZE", "warm_pool_size", NULL)},
    {"pool_autosize", (const struct setting_alias[])NAMES("SANDBOX_WARM_POOL_AUTOSIZE",
                                                          "warm_pool_autosize", from_bool)},
    {"pool_min",
     (const struct setting_alias[])NAMES("SANDBOX_WARM_POOL_MIN", "warm_pool_min", NULL)},
    {"pool_max",
     (const struct setting_alias[])NAMES("SANDBOX_WARM_POOL_MAX", "warm_pool_max", NULL)},
    {"seed_image", (const struct setting_alias[]){{"image"}, {NULL}}},
    {NULL},
};

/* --- names without effect here --- */

/* SANDBOX_IMAGE and SANDBOX_RUNTIME are names of other dialects, too */
static const char *const foreign[] = {
    "SANDBOX_*",   "cache_*",     "warm_*",   "create_ready_timeout",
    "cpu_request", "mem_request", "stream_*", NULL,
};

/* clang-format off */
static const struct setting_reason reasons[] = {
    {"SANDBOX_CPU_REQUEST", "cpu_request", "holt reserves no CPU; SANDBOX_CPU_LIMIT sets the limit"},
    {"SANDBOX_MEM_REQUEST", "mem_request", "holt reserves no memory; SANDBOX_MEM_LIMIT sets the limit"},
    {"SANDBOX_CREATE_READY_TIMEOUT", "create_ready_timeout", "a create replies when the sandbox is ready"},
    {"SANDBOX_CACHE_PVC_STORAGE_CLASS", "cache_pvc_storage_class", "all volume claims are in the state directory"},
    {"SANDBOX_CACHE_PVC_ACCESS_MODE", "cache_pvc_access_mode", "a volume claim belongs to one sandbox, read and "
                                                               "write"},
    {NULL},
};

/* --- the rows --- */

static const char *const volume_modes[] = {"emptydir", "pvc", NULL};
static const char *const cache_modes[] = {"emptydir", "hostpath", "pvc", NULL};
static const char *const stream_modes[] = {"control-plane", "sidecar", NULL};

#define MIB (1024 * 1024)
#define HOUR (3600 * 1000)
#define ROW(member, kind, ...)                                                                     \
    .f = {.name = "sbx_" #member, .type = kind, .offset = offsetof(struct sbx_settings, member), __VA_ARGS__}

static const struct setting rows[] = {
    {ROW(runtime, OP_STR, .preset = "", .max = 32,
         .text = "Runtime of sbx sandboxes; empty: the setting 'runtime'. One that cannot work here "
                 "is an error of each create, which names it."),
     .reload = true},
    {ROW(volume_mode, OP_CHOICE, .preset = "emptydir", .choices = volume_modes,
         .text = "Kind of /workspace of an sbx sandbox: files of the sandbox, on disk and removed with it. 'pvc' "
                 "has at most 10 GiB."),
     .as_text = true, .alias = volume_mode_alias, .reload = true},
    {ROW(cache_mode, OP_CHOICE, .preset = "emptydir", .choices = cache_modes,
         .text = "Kind of /cache of an sbx sandbox. 'emptydir' and 'pvc' are files of the sandbox, on disk and "
                 "removed with it; 'pvc' has at most sbx_cache_pvc_bytes. 'hostpath' is one directory that such "
                 "sandboxes share (sbx_cache_hostpath)."),
     .as_text = true, .alias = cache_mode_alias, .reload = true},
    {ROW(cache_pvc_bytes, OP_SIZE, .preset = "5g", .min = MIB, .max = 1LL << 40,
         .text = "Maximum size of /cache with 'pvc', if the request does not say."),
     .alias = cache_pvc_bytes_alias, .reload = true},
    {ROW(cache_hostpath, OP_STR, .preset = "", .max = 1024,
         .text = "Directory of the host to mount as /cache with 'hostpath'. Empty: the volume 'sbx-cache', so that "
                 "no directory of the host is used. A change takes effect when holt-spawn starts again."),
     .alias = cache_hostpath_alias, .check = setting_check_path, .dir = SETTING_DIR_SHARED},
    {ROW(idle_ttl_ms, OP_DURATION, .preset = "15m", .max = 36500LL * 24 * HOUR,
         .text = "An sbx sandbox unused for this long is deleted, unless a command runs in it; 0: never."),
     .alias = idle_ttl_alias, .reload = true},
    {ROW(cpu_millis, OP_INT, .preset = "0", .max = 1000000,
         .text = "CPU limit of an sbx sandbox, in thousandths of one core; 0: none."),
     .alias = cpu_alias, .reload = true},
    {ROW(memory_bytes, OP_SIZE, .preset = "0", .max = OP_MEMORY_MAX,
         .text = "Memory limit of an sbx sandbox; 0: none."),
     .alias = memory_alias, .reload = true},
    {ROW(allowed_hosts, OP_LIST, .preset = "", .max = 256,
         .text = "Hosts that an sbx sandbox may reach, if its request names none."),
     .alias = allowed_hosts_alias, .reload = true},
    {ROW(disallowed_hosts, OP_LIST, .preset = "", .max = 256,
         .text = "Hosts that an sbx sandbox may not reach, if its request names none."),
     .alias = disallowed_hosts_alias, .check = check_refused_host, .reload = true},
    {ROW(env, OP_LIST, .preset = "", .max = 512, .secret = true,
         .text = "Environment variables of every sbx sandbox, 'NAME=VALUE'. Those of a request override them. Never "
                 "shown."),
     .alias = env_alias, .check = check_variable, .reload = true},
    {ROW(stream_buffer, OP_INT, .preset = "200", .min = 1, .max = 10000,
         .text = "Number of past events that a new reader of an sbx sandbox's stream gets."),
     .alias = stream_buffer_alias, .reload = true},
    {ROW(stream_endpoint, OP_STR, .preset = "", .max = 1024,
         .text = "Address of holtd for sidecars inside sbx sandboxes, 'http://HOST:PORT'. The variable "
                 "SBX_STREAM_ENDPOINT inside holds it, with the sandbox's own token. Empty: that variable is not "
                 "set."),
     .alias = stream_endpoint_alias, .check = check_endpoint, .reload = true},
    {ROW(stream_mode, OP_CHOICE, .preset = "control-plane", .choices = stream_modes,
         .text = "With 'sidecar', the output of commands is also written to files inside sbx sandboxes, in "
                 "sbx_events_dir, as sbx's sidecars expect. The stream is the same in both modes."),
     .as_text = true, .alias = stream_mode_alias, .reload = true},
    {ROW(events_dir, OP_STR, .preset = "/sbx-events", .min = 2, .max = 255,
         .text = "Directory inside sbx sandboxes for these files: EXEC.stdout, EXEC.stderr, and EXEC.exit at the "
                 "end."),
     .alias = events_dir_alias, .check = setting_check_path, .reload = true},
    {ROW(async_exec, OP_BOOL, .preset = "true",
         .text = "Whether sbx's exec replies before the command has ended, if its request does not say. The output "
                 "is then in the stream."),
     .alias = async_exec_alias, .reload = true},
    {ROW(exec_keep_ms, OP_DURATION, .preset = "30m", .max = 36500LL * 24 * HOUR,
         .text = "How long sbx reports a command after its end; 0: as long as it is kept."),
     .alias = exec_keep_alias, .reload = true},
    {ROW(exec_timeout_ms, OP_DURATION, .preset = "0", .max = 366LL * 24 * HOUR,
         .text = "Time limit of sbx's commands that request none; 0: none."),
     .alias = exec_timeout_alias, .reload = true},
    {ROW(exec_max_timeout_ms, OP_DURATION, .preset = "6h", .max = 366LL * 24 * HOUR,
         .text = "Maximum time limit that a request to sbx's exec may have; 0: any."),
     .alias = exec_max_timeout_alias, .reload = true},
};
/* clang-format on */

const struct setting_group sbx_setting_group = {
    .name = "sbx",
    .size = sizeof(struct sbx_settings),
    .rows = rows,
    .count = ARRAY_LEN(rows),
    .names = names,
    .foreign = foreign,
    .reasons = reasons,
    .file_variable = "SANDBOX_CONFIG",
};

const struct sbx_settings *sbx_settings(const struct config *c)
{
    return conf_group(c, &sbx_setting_group);
}
