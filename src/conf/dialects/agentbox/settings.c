/* settings: agentbox's settings, and its variables for ours. */
#include "conf/dialects/agentbox/settings.h"

#include "conf/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <unistd.h>

/* --- its names --- */

static int from_port(struct str value, struct buf *to, struct err *e)
{
    uint64_t port;

    if (alias_port(value, 65535, &port, e) < 0)
        return -1;
    buf_printf(to, "127.0.0.1:%" PRIu64 ",[::1]:%" PRIu64, port, port);
    return 0;
}

static int from_runtime(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    if (value.n > 0)
        buf_add_str(to, value);
    else
        buf_add_c(to, "auto");
    return 0;
}

/* Relative to the working directory unless absolute, as in the original. */
static int from_path(struct str value, struct buf *to, struct err *e)
{
    char here[PATH_MAX];

    if (value.n == 0 || value.p[0] == '/') {
        buf_add_str(to, value);
        return 0;
    }
    if (!getcwd(here, sizeof here))
        return err_set(e, ERR_INTERNAL, errno, "find the working directory");
    if (str_starts(value, STR("./")))
        value = str_skip(value, 2);
    buf_printf(to, "%s/" STR_FMT, here, STR_ARG(value));
    return 0;
}

static const struct setting_names names[] = {
    {"listen",
     (const struct setting_alias[]){{"GRPC_PORT", from_port, .adds = true, .optional = true},
                                    {NULL}}},
    {"seed_image", (const struct setting_alias[]){{"SANDBOX_IMAGE"}, {NULL}}},
    {"proxy_host", (const struct setting_alias[]){{"PROXY_HOST"}, {NULL}}},
    {"proxy_port", (const struct setting_alias[]){{"PROXY_PORT"}, {NULL}}},
    {"signing_key", (const struct setting_alias[]){{"SIGNING_KEY"}, {NULL}}},
    {NULL},
};
static const struct setting_alias session_timeout_alias[] = {
    {"SESSION_TIMEOUT", alias_seconds},
    {NULL},
};
static const struct setting_alias runtime_alias[] = {{"SANDBOX_RUNTIME", from_runtime}, {NULL}};
static const struct setting_alias storage_path_alias[] = {{"STORAGE_PATH", from_path}, {NULL}};

/* --- the rows --- */

static const char *const runtimes[] = {"auto", "native", "runsc", "runc", NULL};

#define HOUR (3600 * 1000)
#define ROW(key, member, kind, ...)                                                                \
    .f = {.name = key,                                                                             \
          .type = kind,                                                                            \
          .offset = offsetof(struct agentbox_settings, member),                                    \
          __VA_ARGS__}

/* clang-format off */
static const struct setting rows[] = {
    {ROW("session_timeout_ms", session_timeout_ms, OP_DURATION, .preset = "1800s", .max = 36500LL * 24 * HOUR,
         .text = "An agentbox session unused for this long ends, unless a command runs in it; 0: never."),
     .alias = session_timeout_alias, .reload = true},
    {ROW("agentbox_runtime", runtime, OP_CHOICE, .preset = "auto", .choices = runtimes,
         .text = "What runs agentbox's sessions; 'auto': runsc where it works, else native. One that is named and cannot work stops the start."),
     .as_text = true, .alias = runtime_alias},
    {ROW("agentbox_process_api", process_api, OP_BOOL, .preset = "false",
         .text = "Whether sessions of agentbox serve process_api on port 2024 inside, if their request does not "
                 "say. See docs/agentbox.md."),
     .reload = true},
    {ROW("storage_path", storage_path, OP_STR, .preset = "", .max = 1024,
         .text = "Directory of the host for /workspace and /mnt/user-data/outputs of each tenant of agentbox, shared "
                 "by the tenant's sessions and kept after them. Empty: they are removed with the session."),
     .alias = storage_path_alias, .check = setting_check_path, .dir = SETTING_DIR_TENANTS},
};
/* clang-format on */

const struct setting_group agentbox_setting_group = {
    .name = "agentbox",
    .size = sizeof(struct agentbox_settings),
    .rows = rows,
    .count = ARRAY_LEN(rows),
    .names = names,
};

const struct agentbox_settings *agentbox_settings(const struct config *c)
{
    return conf_group(c, &agentbox_setting_group);
}
