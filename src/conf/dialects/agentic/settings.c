/* settings: agentic-sandbox's settings, and its names for ours in variables. */
#include "conf/dialects/agentic/settings.h"

#include "conf/setting.h"

#include <inttypes.h>

/* "host:P" opens P, P+1 and P+2: gRPC, WebSocket and HTTP; here each speaks all. */
static int from_listen_addr(struct str value, struct buf *to, struct err *e)
{
    size_t at = value.n;
    uint64_t port;

    while (at > 0 && value.p[at - 1] != ':')
        at--;
    if (at < 2)
        return err_set(e, ERR_INVALID, 0, "'%.*s' is not 'host:port'", (int)size_min(value.n, 100),
                       value.p);
    if (alias_port(str_skip(value, at), 65533, &port, e) < 0)
        return -1;
    for (uint64_t i = 0; i < 3; i++)
        buf_printf(to, "%s%.*s%" PRIu64, i ? "," : "", (int)at, value.p, port + i);
    return 0;
}

static int from_unix_path(struct str value, struct buf *to, struct err *e)
{
    (void)e;
    buf_add_c(to, "unix:");
    buf_add_str(to, value);
    return 0;
}

static const struct setting_names names[] = {
    {"listen",
     (const struct setting_alias[]){
         {"LISTEN_ADDR", from_listen_addr, .optional = true},
         {"AGENTIC_MGMT_UDS", from_unix_path, .adds = true, .optional = true},
         {NULL},
     }},
    {"remote_secrets", (const struct setting_alias[]){{"SECRETS_DIR"}, {NULL}}},
    {"remote_heartbeat_ms",
     (const struct setting_alias[]){{"HEARTBEAT_TIMEOUT", alias_seconds}, {NULL}}},
    {NULL},
};

/* clang-format off */
static const char *const foreign[] = {
    "LOG_FILE", "LOG_FILE_ROTATION", "AIWG_*",
    "DOCKER_MONITOR_ENABLED", "DOCKER_POLL_INTERVAL_SECS", "DOCKER_ORPHANED_AGE_SECS", "TASKS_ROOT",
    "PROVISION_SCRIPT", "DESTROY_SCRIPT", "AGENTIC_MGMT_UDS_GROUP", NULL,
};

#define ROW(member, kind, ...)                                                                     \
    .f = {.name = "agentic_" #member, .type = kind, .offset = offsetof(struct agentic_settings, member), __VA_ARGS__}

static const struct setting rows[] = {
    {ROW(vm_image, OP_STR, .preset = "host", .min = 1, .max = 255,
         .text = "Image of virtual machines that agentic-sandbox's clients create; 'host': the base of holt image build-vm."),
     .reload = true},
};
/* clang-format on */

const struct setting_group agentic_setting_group = {
    .name = "agentic",
    .size = sizeof(struct agentic_settings),
    .rows = rows,
    .count = ARRAY_LEN(rows),
    .names = names,
    .foreign = foreign,
};

const struct agentic_settings *agentic_settings(const struct config *c)
{
    return conf_group(c, &agentic_setting_group);
}
