#include "conf/setting.h"

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

/* A quantity of Kubernetes: a decimal number, then a power of ten or of 1024, or 'm'. */
static int quantity(struct str value, double *ret, struct err *e)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {
        {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"m", 1e-3},
        {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"", 1},
    };
    double n;

    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        struct str suffix = str_of(units[i].suffix);

        if (!str_ends(value, suffix))
            continue;
        if (str_parse_double(str_make(value.p, value.n - suffix.n), &n) < 0 || !(n >= 0) ||
            n * units[i].factor > 0x1p50)
            break;
        *ret = n * units[i].factor;
        return 0;
    }
    return err_set(e, ERR_INVALID, 0, "'%.*s' is no quantity like '500m', '2' or '512Mi'",
                   (int)size_min(value.n, 40), value.p);
}

static int64_t rounded_up(double n)
{
    int64_t whole = (int64_t)n;

    return whole + ((double)whole < n);
}

static int from_cpu(struct str value, struct buf *to, struct err *e)
{
    double n;

    if (quantity(value, &n, e) < 0)
        return -1;
    buf_printf(to, "%" PRId64, rounded_up(n * 1000));
    return 0;
}

static int from_bytes(struct str value, struct buf *to, struct err *e)
{
    double n;

    if (quantity(value, &n, e) < 0)
        return -1;
    buf_printf(to, "%" PRId64, rounded_up(n));
    return 0;
}

/* "-1s" and "0" switch it off. */
static int from_ttl(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    if (value.n > 0 && value.p[0] == '-')
        buf_add_c(to, "0");
    else
        buf_add_str(to, value);
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
const struct setting_alias sbx_idle_ttl_alias[] = NAMES("SANDBOX_IDLE_TTL", "idle_ttl", from_ttl);
const struct setting_alias sbx_cpu_alias[] = NAMES("SANDBOX_CPU_LIMIT", "cpu_limit", from_cpu);
const struct setting_alias sbx_memory_alias[] = NAMES("SANDBOX_MEM_LIMIT", "mem_limit", from_bytes);
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
