#include "conf/setting.h"
#include "ops/sandbox.h"
#include "proto/quantity.h"

#include <inttypes.h>

/* Names by which sbx sets the same things: variables, and keys of the file that SANDBOX_CONFIG
 * names. */

/* What it does not know is the first, as there. */
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

/* A tenth of a percent of a core is less than any runtime can count; Kubernetes' own rounds up,
 * too.
 */
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

/* What no sandbox can be made with is told at the start, not with each create. */
static int from_memory(struct str value, struct buf *to, struct err *e)
{
    int64_t n;

    if (quantity_parse(value, 1, &n, e) < 0)
        return -1;
    if (n > 0 && (n < OP_MEMORY_MIN || n > OP_MEMORY_MAX))
        return err_set(e, ERR_INVALID, 0, "a sandbox's memory must be from 4Mi to 16Ti, or 0");
    return from_bytes(value, to, e);
}

/* What it does not know is the control plane. */
static int from_stream_mode(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    buf_add_c(to, str_case_eq_c(value, "sidecar") ? "sidecar" : "control-plane");
    return 0;
}

/* The later version of sbx has no mode: who names an image wants sidecars. */
static int from_sidecar_image(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    buf_add_c(to, value.n > 0 ? "sidecar" : "control-plane");
    return 0;
}

/* Go's durations: a number has a unit, or it is 0; ours would take "15" for milliseconds.  What is
 * not above 0 switches it off. */
static int from_ttl(struct str value, struct buf *to, struct err *e)
{
    bool minus = value.n > 0 && value.p[0] == '-';
    struct str s = minus || (value.n > 0 && value.p[0] == '+') ? str_skip(value, 1) : value;
    int64_t ms, bare;

    if (s.n == 0 || str_parse_duration_ms(s, &ms) < 0 ||
        (str_parse_i64(s, &bare) == 0 && bare != 0))
        return err_set(e, ERR_INVALID, 0, "'%.*s' is no duration like '30s', '15m' or '1h30m'",
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

const struct setting_alias sbx_volume_mode_alias[] =
    NAMES("SANDBOX_VOLUME_MODE", "volume_mode", from_volume_mode);
const struct setting_alias sbx_cache_mode_alias[] =
    NAMES("SANDBOX_CACHE_MODE", "cache_mode", from_cache_mode);
const struct setting_alias sbx_cache_pvc_bytes_alias[] =
    NAMES("SANDBOX_CACHE_PVC_SIZE", "cache_pvc_size", from_bytes);
const struct setting_alias sbx_cache_hostpath_alias[] =
    NAMES("SANDBOX_CACHE_HOSTPATH", "cache_hostpath", NULL);
const struct setting_alias sbx_stream_mode_alias[] = {
    {"SANDBOX_STREAM_MODE", from_stream_mode},
    {"SANDBOX_STREAM_SIDECAR_IMAGE", from_sidecar_image},
    {"stream_mode", from_stream_mode},
    {"stream_sidecar_image", from_sidecar_image},
    {NULL},
};
const struct setting_alias sbx_events_dir_alias[] =
    NAMES("SANDBOX_STREAM_EVENTS_DIR", "stream_events_dir", NULL);
const struct setting_alias sbx_idle_ttl_alias[] = NAMES("SANDBOX_IDLE_TTL", "idle_ttl", from_ttl);
const struct setting_alias sbx_cpu_alias[] = NAMES("SANDBOX_CPU_LIMIT", "cpu_limit", from_cpu);
const struct setting_alias sbx_memory_alias[] =
    NAMES("SANDBOX_MEM_LIMIT", "mem_limit", from_memory);
const struct setting_alias sbx_allowed_hosts_alias[] =
    NAMES("SANDBOX_ALLOWED_HOSTS", "allowed_hosts", NULL);
const struct setting_alias sbx_disallowed_hosts_alias[] =
    NAMES("SANDBOX_DISALLOWED_HOSTS", "disallowed_hosts", NULL);
const struct setting_alias sbx_env_alias[] = {
    {"SANDBOX_ENV_*", .adds = true},
    {"env.*", .adds = true},
    {NULL},
};
const struct setting_alias sbx_stream_buffer_alias[] =
    NAMES("SANDBOX_STREAM_BUFFER", "stream_buffer", NULL);
/* There a '/' at the end does not matter. */
static int from_endpoint(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    while (value.n > 0 && value.p[value.n - 1] == '/')
        value.n--;
    buf_add_str(to, value);
    return 0;
}

const struct setting_alias sbx_stream_endpoint_alias[] =
    NAMES("SANDBOX_STREAM_ENDPOINT", "stream_endpoint", from_endpoint);
const struct setting_alias sbx_async_exec_alias[] = {
    {"SANDBOX_USE_ASYNC_EXEC", from_bool},
    {"SANDBOX_ASYNC_EXEC", from_bool},
    {"use_async_exec", from_bool},
    {"async_exec", from_bool},
    {NULL},
};
const struct setting_alias sbx_exec_keep_alias[] =
    NAMES("SANDBOX_EXEC_STATUS_RETENTION", "exec_status_retention", from_ttl);
const struct setting_alias sbx_exec_timeout_alias[] =
    NAMES("SANDBOX_EXEC_TIMEOUT", "exec_timeout", from_ttl);
const struct setting_alias sbx_exec_max_timeout_alias[] =
    NAMES("SANDBOX_EXEC_MAX_TIMEOUT", "exec_max_timeout", from_ttl);
const struct setting_alias pool_size_alias[] =
    NAMES("SANDBOX_WARM_POOL_SIZE", "warm_pool_size", NULL);
const struct setting_alias pool_autosize_alias[] =
    NAMES("SANDBOX_WARM_POOL_AUTOSIZE", "warm_pool_autosize", from_bool);
const struct setting_alias pool_min_alias[] = NAMES("SANDBOX_WARM_POOL_MIN", "warm_pool_min", NULL);
const struct setting_alias pool_max_alias[] = NAMES("SANDBOX_WARM_POOL_MAX", "warm_pool_max", NULL);
