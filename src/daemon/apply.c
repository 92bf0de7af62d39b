/* apply: hands settings to the parts that use them. */
#include "daemon/daemon_internal.h"

#include "core/network/secret.h"
#include "core/remote/remote.h"
#include "core/remote/remote_secret.h"
#include "core/sandbox/crash.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/volume.h"
#include "core/task/task.h"
#include "daemon/notify.h"

void daemon_apply_settings(struct daemon *d)
{
    const struct config *c = d->conf;

    log_setup(c->log_level, c->log_format);
    d->limits = (struct server_limits){
        .header_max = c->header_max,
        .header_count_max = c->header_count_max,
        .body_max = c->body_max,
        .connections_max = c->connections_max,
        .connections_per_peer = c->connections_per_peer,
        .pending_max = c->pending_max,
        .pending_per_peer = c->pending_per_peer,
        .requests_per_conn = c->requests_per_conn,
        .idle_ms = c->idle_ms,
        .header_ms = c->header_ms,
        .body_idle_ms = c->body_idle_ms,
        .write_ms = c->write_ms,
        .ws_message_max = c->ws_message_max,
        .grpc_message_max = c->grpc_message_max,
    };
    if (d->identity) {
        identity_set_throttle(d->identity, c->login_failures, c->login_window_ms);
        identity_set_max(d->identity, c->tokens_max);
    }
    if (d->events)
        events_set_fold(d->events, c->audit_fold_ms);
}

void daemon_apply_counts(struct daemon *d)
{
    const struct config *c = d->conf;

    tasks_set_limits(d->tasks, &(struct tasks_limits){.tasks_running = c->tasks_running,
                                                      .tasks_per_user = c->tasks_per_user,
                                                      .tasks_max = c->tasks_max,
                                                      .tasks_keep_ms = c->tasks_keep_ms});
    remotes_set_heartbeat(d->remotes, c->remote_heartbeat_ms);
    volumes_set_max(d->volumes, d->conf->volumes_max);
    secrets_set_max(d->secrets, d->conf->secrets_max);
}

static void set_sums(const struct config *c, int64_t to[CEILING_SCOPES][CEILING_SUMS])
{
    int64_t *owner = to[CEILING_OWNER], *tenant = to[CEILING_TENANT], *all = to[CEILING_ALL];

    owner[CEILING_SUM_RUNNING] = c->owner_running; /* their number: owner_sandboxes */
    owner[CEILING_SUM_CPU] = c->owner_cpu;
    owner[CEILING_SUM_MEMORY] = c->owner_memory;
    owner[CEILING_SUM_DISK] = c->owner_disk;
    owner[CEILING_SUM_TASKS] = c->owner_tasks;
    tenant[CEILING_SUM_SANDBOXES] = c->tenant_sandboxes;
    tenant[CEILING_SUM_RUNNING] = c->tenant_running;
    tenant[CEILING_SUM_CPU] = c->tenant_cpu;
    tenant[CEILING_SUM_MEMORY] = c->tenant_memory;
    tenant[CEILING_SUM_DISK] = c->tenant_disk;
    tenant[CEILING_SUM_TASKS] = c->tenant_tasks;
    all[CEILING_SUM_RUNNING] = c->total_running;
    all[CEILING_SUM_CPU] = c->total_cpu;
    all[CEILING_SUM_MEMORY] = c->total_memory;
    all[CEILING_SUM_DISK] = c->total_disk;
}

void daemon_apply_ceilings(struct daemon *d)
{
    const struct config *c = d->conf;

    struct ceilings all = (struct ceilings){.agent_memory = c->agent_memory,
                                            .agent_memory_max = c->agent_memory_max,
                                            .agent_cpu = c->agent_cpu,
                                            .agent_cpu_max = c->agent_cpu_max,
                                            .agent_pids = c->agent_pids,
                                            .agent_pids_max = c->agent_pids_max,
                                            .agent_disk = c->agent_disk,
                                            .agent_disk_max = c->agent_disk_max,
                                            .agent_sandboxes = c->agent_sandboxes,
                                            .agent_commands = c->agent_commands,
                                            .agent_volumes = c->agent_volumes,
                                            .agent_output = c->agent_output,
                                            .owner_sandboxes = c->owner_sandboxes,
                                            .owner_volumes = c->owner_volumes};

    set_sums(c, all.sums);
    sandboxes_set_ceilings(d->sandboxes, &all);
    sandboxes_set_crashes(d->sandboxes,
                          &(struct crash_rules){.crash_count = c->crash_count,
                                                .crash_window_ms = c->crash_window_ms,
                                                .crash_uptime_ms = c->crash_uptime_ms,
                                                .crash_cooldown_ms = c->crash_cooldown_ms,
                                                .crash_rebuilds = c->crash_rebuilds,
                                                .crash_healthy_ms = c->crash_healthy_ms});
}

void daemon_log_warnings(const struct config *c)
{
    for (size_t i = 0; i < c->warnings.n; i++)
        log_warn("settings", LOG_C("about", c->warnings.v[i]));
}

struct pool_config daemon_pool_config(const struct config *c)
{
    return (struct pool_config){c->pool_size, c->pool_autosize, c->pool_min, c->pool_max};
}

void daemon_reload(struct daemon *d)
{
    struct pool_config pool;
    struct err e = {0};

    notify_reloading();
    if (conf_reload(d->conf, d->from, &e) < 0)
        log_error("the settings were not changed", LOG_E(&e));
    else
        log_info("settings were read again");
    daemon_apply_settings(d);
    daemon_log_warnings(d->conf);
    pool = daemon_pool_config(d->conf);
    sandboxes_set_pool(d->sandboxes, &pool);
    daemon_apply_ceilings(d);
    daemon_apply_counts(d);
    if (remote_secrets_reload(d->remote_secrets, &e) < 0)
        log_error("the credentials of agents were not changed", LOG_E(&e));
    if (d->conf->tls_cert && d->conf->tls_cert[0] && server_reload_tls(d->server, &e) < 0)
        log_error("the certificate was not changed", LOG_E(&e));
    notify_send("READY=1");
}
