/* daemon: starts and stops the parts of holtd. */
#include "daemon/daemon.h"

#include "api/api.h"
#include "api/dialects/dialect.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/starter.h"
#include "base/thread.h"
#include "core/access/access.h"
#include "core/ask/ask.h"
#include "core/blob.h"
#include "core/change/change.h"
#include "core/claim/claim.h"
#include "core/exec/exec.h"
#include "core/identity/tenant.h"
#include "core/imagebuild/build.h"
#include "core/loadout/loadout.h"
#include "core/network/authority.h"
#include "core/network/secret.h"
#include "core/plan/plan.h"
#include "core/playbook/playbook.h"
#include "core/playbook/rollout.h"
#include "core/playbook/target.h"
#include "core/policy/policy.h"
#include "core/remote/remote.h"
#include "core/remote/remote_secret.h"
#include "core/sandbox/crash.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/volume.h"
#include "core/snapshot/snapshot.h"
#include "core/space.h"
#include "core/task/schedule.h"
#include "core/task/share.h"
#include "core/task/task.h"
#include "core/team/revoked.h"
#include "core/template/template.h"
#include "daemon/banner.h"
#include "daemon/notify.h"
#include "daemon/rights.h"
#include "daemon/state.h"
#include "driver/table.h"
#include "net/plain_loop.h"
#include "wire/spawn.h"
#include "wire/virt.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_MS 1000
#define IMAGE_JOBS_MAX 8 /* concurrent pulls and imports */
#define FLUSH_TICKS 60   /* a minute */
#define RETAIN_TICKS 600 /* ten minutes */
#define ACCESS_TICKS 600
#define RETAIN_FIRST 10 /* the first one soon after start-up, since holtd may restart often */

enum { SIG_TERM, SIG_INT, SIG_HUP, SIG_KINDS };
static const int signal_numbers[SIG_KINDS] = {SIGTERM, SIGINT, SIGHUP};

struct daemon {
    uv_loop_t loop;
    bool loop_is_up;
    struct config *conf;
    const struct conf_sources *from;
    struct server_limits limits;
    char *token_file;
    int lock;
    struct store *store;
    struct events *events;
    struct identity *identity;
    struct revoked *revoked;
    struct sandboxes *sandboxes;
    struct asks *asks;
    struct unpacker *unpacker;
    struct images *images;
    struct volumes *volumes;
    struct access *access;
    struct templates *templates;
    struct builds *builds;
    struct loadouts *loadouts;
    struct claims *claims;
    struct plans *plans;
    struct playbooks *playbooks;
    struct targets *targets;
    struct rollouts *rollouts;
    struct policies *policies;
    struct share *share;
    struct tasks *tasks;
    struct schedules *schedules;
    struct remotes *remotes;
    struct remote_secrets *remote_secrets;
    char *share_global; /* mounted read-only by sandboxes of tasks */
    struct snapshots *snapshots;
    struct changes *changes;
    struct blobs *blobs;
    struct secrets *secrets;
    struct authority authority;
    struct space *space;
    bool tries;    /* the default is the first runtime of which a trial says that it works */
    bool isolated; /* of the default runtime: archives are unpacked inside a sandbox */
    const struct driver_ops *drivers[DRIVERS_MAX + 1]; /* NULL at the end */
    char installation[ID_SIZE], node[HOST_NAME_MAX + 1];
    bool foreign; /* the database does not belong to the state directory */
    char *bindir, *compare;
    struct api *api;
    struct server *server;
    uv_signal_t signals[SIG_KINDS];
    uv_timer_t timer;
    bool handles_are_up;
    int64_t ticks;
    bool stopping;
};

/* --- settings of other parts --- */

static void apply_settings(struct daemon *d)
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

static void apply_counts(struct daemon *d)
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

static void apply_ceilings(struct daemon *d)
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

static void log_warnings(const struct config *c)
{
    for (size_t i = 0; i < c->warnings.n; i++)
        log_warn("settings", LOG_C("about", c->warnings.v[i]));
}

static struct pool_config pool_config(const struct config *c)
{
    return (struct pool_config){c->pool_size, c->pool_autosize, c->pool_min, c->pool_max};
}

static void reload(struct daemon *d)
{
    struct pool_config pool;
    struct err e = {0};

    notify_reloading();
    if (conf_reload(d->conf, d->from, &e) < 0)
        log_error("the settings were not changed", LOG_E(&e));
    else
        log_info("settings were read again");
    apply_settings(d);
    log_warnings(d->conf);
    pool = pool_config(d->conf);
    sandboxes_set_pool(d->sandboxes, &pool);
    apply_ceilings(d);
    apply_counts(d);
    if (remote_secrets_reload(d->remote_secrets, &e) < 0)
        log_error("the credentials of agents were not changed", LOG_E(&e));
    if (d->conf->tls_cert && d->conf->tls_cert[0] && server_reload_tls(d->server, &e) < 0)
        log_error("the certificate was not changed", LOG_E(&e));
    notify_send("READY=1");
}

/* --- shutdown --- */

static void server_gone(void *arg)
{
    struct daemon *d = arg;

    d->server = NULL;
    api_set_server(d->api, NULL);
    uv_stop(&d->loop);
}

static void stop(struct daemon *d, int signum)
{
    if (d->stopping) {
        if (signum != SIGINT)
            return;
        log_warn("interrupted again: stopping without waiting");
        _exit(128 + signum); /* safe at any time: acknowledged data is on disk */
    }
    d->stopping = true;
    log_info("stopping", LOG_N("signal", signum), LOG_N("grace_ms", d->conf->shutdown_ms));
    notify_send("STOPPING=1");
    api_end_streams(d->api);
    server_stop(d->server, d->conf->shutdown_ms, server_gone, d);
}

static void on_signal(uv_signal_t *s, int signum)
{
    struct daemon *d = s->data;

    if (signum != SIGHUP)
        stop(d, signum);
    else if (!d->stopping)
        reload(d);
}

/* --- the tick --- */

static void events_retained(void *arg, const struct err *e)
{
    (void)arg;
    if (e->code != ERR_NONE)
        log_warn("old events could not be removed", LOG_E(e));
}

static void on_tick(uv_timer_t *t)
{
    struct daemon *d = t->data;

    remotes_tick(d->remotes);
    sandboxes_tick(d->sandboxes);
    images_tick(d->images);
    snapshots_tick(d->snapshots);
    changes_tick(d->changes);
    asks_tick(d->asks);
    builds_tick(d->builds);
    tasks_tick(d->tasks);
    rollouts_tick(d->rollouts);
    schedules_tick(d->schedules);
    api_tick(d->api);
    if (d->ticks % ACCESS_TICKS == 0)
        access_tick(d->access);
    if (++d->ticks % FLUSH_TICKS == 0)
        identity_flush(d->identity);
    if (d->ticks % RETAIN_TICKS == RETAIN_FIRST &&
        (d->conf->events_keep_ms || d->conf->events_keep_count))
        events_retain(d->events, d->conf->events_keep_ms, d->conf->events_keep_count,
                      events_retained, d);
}

static void start_handles(struct daemon *d)
{
    for (size_t i = 0; i < SIG_KINDS; i++) {
        int r = uv_signal_init(&d->loop, &d->signals[i]);

        d->signals[i].data = d;
        if (r == 0)
            r = uv_signal_start(&d->signals[i], on_signal, signal_numbers[i]);
        assert(r == 0); /* fails only without memory or file descriptors */
    }
    (void)uv_timer_init(&d->loop, &d->timer);
    d->timer.data = d;
    (void)uv_timer_start(&d->timer, on_tick, TICK_MS, TICK_MS);
    d->handles_are_up = true;
}

static void stop_handles(struct daemon *d)
{
    if (!d->handles_are_up)
        return;
    for (size_t i = 0; i < SIG_KINDS; i++)
        uv_close((uv_handle_t *)&d->signals[i], NULL);
    uv_close((uv_handle_t *)&d->timer, NULL);
    d->handles_are_up = false;
}

/* --- listeners --- */

static bool is_seed_address(const char *address)
{
    if (dialects_want_address(address))
        return true;
    for (size_t i = 0; conf_seed_listen[i]; i++)
        if (strcmp(address, conf_seed_listen[i]) == 0)
            return true;
    return false;
}

static bool is_loopback_port(const char *address)
{
    return conf_is_loopback(address) && !str_starts(str_of(address), STR("unix:"));
}

static bool is_open(const struct server *s, const char *address)
{
    if (str_ends(str_of(address), STR(":0"))) /* another port each time */
        return false;
    for (size_t i = 0; i < server_listener_count(s); i++)
        if (strcmp(server_listener(s, i)->address, address) == 0)
            return true;
    return false;
}

/* A busy port is logged and skipped: the seeds' clients use one or two of them. */
static void listen_if_free(struct daemon *d, const char *address, enum listener_role role)
{
    struct err e = {0};

    if (is_open(d->server, address) || server_listen(d->server, address, role, &e) == 0)
        return;
    if (e.sys == EADDRNOTAVAIL || e.sys == EAFNOSUPPORT) /* a host without IPv6 */
        log_info("this host does not have the address", LOG_C("address", address));
    else
        log_warn("address skipped", LOG_C("address", address), LOG_E(&e));
}

static void listen_for_previews(struct daemon *d)
{
    const struct conf_list *list = &d->conf->preview_listen;
    size_t before = server_listener_count(d->server);

    for (size_t i = 0; i < list->n; i++)
        listen_if_free(d, list->v[i], LISTEN_PREVIEW);
    if (list->n > 0 && server_listener_count(d->server) == before && conf_is_loopback(list->v[0]))
        listen_if_free(d, "127.0.0.1:0", LISTEN_PREVIEW);
}

static int check_auth_off(struct daemon *d, struct err *e)
{
    if (d->conf->auth != CONF_AUTH_OFF)
        return 0;
    for (size_t i = 0; i < server_listener_count(d->server); i++) {
        const struct listener_info *l = server_listener(d->server, i);

        if (l->loopback)
            continue;
        err_set(e, ERR_INVALID, 0, "auth = off, but other machines can reach '%s'", l->address);
        return err_hint(e, "listen on 127.0.0.1 only, or leave auth = token");
    }
    log_warn("AUTH IS OFF: every program and every user of this machine is an admin here");
    return 0;
}

static void listen_on_seed_ports(struct daemon *d)
{
    for (size_t i = 0; dialect_table[i]; i++)
        for (const char *const *a = dialect_table[i]->listen; a && *a; a++)
            listen_if_free(d, *a, LISTEN_SEED);
    for (size_t i = 0; conf_seed_listen[i]; i++)
        listen_if_free(d, conf_seed_listen[i], LISTEN_SEED);
}

/* An address named by a seed's own variable (GRPC_PORT) is like its port: its clients need no
 * token. */
static int start_listening(struct daemon *d, struct err *e)
{
    for (size_t i = 0; i < d->conf->listen.n; i++) {
        const char *address = d->conf->listen.v[i];
        bool optional = d->conf->listen_optional && d->conf->listen_optional[i];
        bool seed = d->conf->seed_ports &&
                    (is_seed_address(address) || (optional && is_loopback_port(address)));
        enum listener_role role = seed ? LISTEN_SEED : LISTEN_API;

        if (optional)
            listen_if_free(d, address, role);
        else if (server_listen(d->server, address, role, e) < 0)
            return -1;
    }
    if (d->conf->seed_ports)
        listen_on_seed_ports(d);
    if (server_listener_count(d->server) == 0)
        return err_set(e, ERR_INVALID, 0, "there is no address to listen on: set 'listen'");
    listen_for_previews(d);
    return check_auth_off(d, e);
}

/* --- start-up --- */

static int open_store(struct daemon *d, struct err *e)
{
    AUTO(mem_free)
    char *url = d->conf->db && d->conf->db[0] ? xstrdup(d->conf->db)
                                              : xasprintf("sqlite:%s/holt.db", d->conf->state);
    struct store_config c = {.loop = &d->loop,
                             .url = url,
                             .node = d->installation,
                             .write_queue = (size_t)d->conf->store_writes,
                             .read_queue = (size_t)d->conf->store_reads};

    if (state_installation(d->conf->state, d->installation, e) < 0)
        return -1;
    if (d->conf->node && d->conf->node[0])
        c.node = d->conf->node;
    if (store_open(&c, &d->store, e) < 0 || events_open(d->store, &d->events, e) < 0 ||
        identity_open(d->store, &d->identity, e) < 0 ||
        revoked_open(d->store, d->events, &d->revoked, e) < 0)
        return -1;
    d->token_file = xasprintf("%s/admin-token", d->conf->state);
    return identity_first_admin(d->identity, d->token_file, e) < 0 ? -1 : 0;
}

static void add_driver(struct daemon *d, const struct driver_ops *ops)
{
    size_t n = 0, at;

    while (d->drivers[n])
        if (d->drivers[n++] == ops)
            return;
    if (n == ARRAY_LEN(d->drivers) - 1)
        return;
    /* 'auto': the strongest first; else in the table's order, behind the one that was named */
    for (at = n; d->tries && at > 0 && d->drivers[at - 1]->strength < ops->strength; at--)
        d->drivers[at] = d->drivers[at - 1];
    d->drivers[at] = ops;
}

/* The runtime named by the setting, and the isolating ones.  One without isolation works only if
 * the operator chose it: otherwise any caller who may make a sandbox could act as holtd's user on
 * the host. */
static void choose_isolating(struct daemon *d)
{
    const struct driver_ops *ops, *named = driver_find(d->conf->runtime);

    d->tries = !named; /* it is 'auto': conf_check_runtime */
    if (named)
        add_driver(d, named);
    if (named && !(named->caps & DRIVER_ISOLATES)) {
        log_warn("what runs in a sandbox is NOT ISOLATED from this machine",
                 LOG_C("runtime", d->conf->runtime));
        return; /* chosen for tests: no isolating runtime beside it */
    }
    for (size_t i = 0; (ops = driver_at(i)); i++)
        if (ops->caps & DRIVER_ISOLATES)
            add_driver(d, ops);
}

/* Machines that join are no choice of a client: theirs comes last. */
static void choose_drivers(struct daemon *d)
{
    const struct driver_ops *ops;

    choose_isolating(d);
    for (size_t i = 0; (ops = driver_at(i)); i++)
        if (ops->caps & DRIVER_JOINS)
            add_driver(d, ops);
}

/* A directory of the host's root with content stays unchanged: root inside a sandbox is another
 * user. */
static void warn_of_foreign(const char *dir, const char *key)
{
    struct stat st;

    if (stat(dir, &st) < 0 || st.st_uid != 0 || st.st_mode & 0002)
        return;
    log_warn("sandboxes cannot write to the directory of a setting: give it to the user id that "
             "root inside has on the host, with chown -R",
             LOG_C("setting", key), LOG_C("directory", dir), LOG_N("owner", st.st_uid),
             LOG_N("wanted", SPAWN_STORED_ID));
}

/* The hosts of machines: those of the setting, or the one of vm_uri. */
struct machine_hosts {
    struct conf_host *own; /* the texts of v */
    struct driver_host *v;
    size_t n;
};

static void machine_hosts_done_p(struct machine_hosts *h)
{
    for (size_t i = 0; i < h->n; i++)
        conf_host_done(&h->own[i]);
    mem_free(h->own);
    mem_free(h->v);
}

static const char *text_or(const char *text, const char *preset)
{
    return text ? text : preset;
}

static int machine_hosts_read(const struct config *c, struct machine_hosts *ret, struct err *e)
{
    size_t n = c->hosts.n > 0 ? c->hosts.n : 1;

    ret->own = xzalloc(n * sizeof *ret->own);
    ret->v = xzalloc(n * sizeof *ret->v);
    if (c->hosts.n == 0)
        ret->own[ret->n++] =
            (struct conf_host){.name = xstrdup(VIRT_HOST_PRESET), .uri = xstrdup(c->vm_uri)};
    for (; ret->n < c->hosts.n; ret->n++)
        if (conf_host_parse(c->hosts.v[ret->n], &ret->own[ret->n], e) < 0)
            return err_wrap(e, "setting 'hosts'");
    for (size_t i = 0; i < n; i++) {
        const struct conf_host *h = &ret->own[i];

        ret->v[i] = (struct driver_host){.name = h->name,
                                         .uri = h->uri,
                                         .pool_dir = text_or(h->pool_dir, c->vm_pool_dir),
                                         .network = text_or(h->network, c->vm_network),
                                         .ssh_config = text_or(h->ssh_config, ""),
                                         .memory_bytes = h->memory_bytes,
                                         .cpus = h->cpus,
                                         .machines = h->machines};
    }
    return 0;
}

static int open_sandboxes(struct daemon *d, struct err *e)
{
    static const char *const vm_accels[] = {"auto", "kvm", "tcg"};
    const struct config *c = d->conf;
    struct conf_list dirs = c->host_mounts; /* and those we mount ourselves */
    AUTO(mem_free) char **all = xzalloc((dirs.n + CONF_DIRS_MAX + 1) * sizeof *all);
    struct conf_dir own[CONF_DIRS_MAX];
    size_t own_count = conf_dirs(c, own, ARRAY_LEN(own));
    struct driver_allows allows = {.host_dirs = all,
                                   .nesting = c->nesting,
                                   .syscalls = c->syscalls == CONF_SYSCALLS_WIDE     ? "wide"
                                               : c->wide_syscalls == CONF_WIDE_NEVER ? "narrow"
                                                                                     : "either",
                                   .pids = c->default_pids,
                                   .bridge = c->raw_bridge[0] ? c->raw_bridge : NULL,
                                   .runtimes = c->oci_runtimes.v,
                                   .runtime_count = c->oci_runtimes.n,
                                   .machines = {.accel = vm_accels[c->vm_accel]}};
    const struct pool_config pool = pool_config(c);
    AUTO(machine_hosts_done) struct machine_hosts hosts = {0};

    if (machine_hosts_read(c, &hosts, e) < 0)
        return -1;
    allows.machines.hosts = hosts.v;
    allows.machines.host_count = hosts.n;
    for (size_t i = 0; i < dirs.n; i++)
        all[allows.host_dir_count++] = dirs.v[i];
    for (size_t i = 0; i < own_count; i++) {
        if (own[i].shared)
            warn_of_foreign(own[i].path, own[i].key);
        all[allows.host_dir_count++] = own[i].path;
    }
    all[allows.host_dir_count++] = d->share_global;
    choose_drivers(d);
    if (dialects_probe(c, e) < 0)
        return -1;
    d->space = space_new(c->state, c->disk_reserve);
    if (state_is_foreign(c->state, d->installation, d->store, &d->foreign, e) < 0)
        return -1;
    if (d->foreign)
        log_warn("this is not the database that the state directory was used with; objects of that "
                 "database are kept, its sandboxes as orphans: use that database, or remove them "
                 "with holt rm",
                 LOG_C("state", c->state));
    d->bindir = c->bindir && c->bindir[0] ? xstrdup(c->bindir) : state_bindir();
    if (gethostname(d->node, sizeof d->node) < 0)
        (void)snprintf(d->node, sizeof d->node, "localhost");
    d->node[sizeof d->node - 1] = '\0';
    if (c->intercept && authority_open(c->state, d->node, &d->authority, e) < 0)
        return -1;
    if (sandboxes_open(
            &(struct sandboxes_config){.loop = &d->loop,
                                       .store = d->store,
                                       .events = d->events,
                                       .commands = &exec_commands,
                                       .drivers = d->drivers,
                                       .try_drivers = d->tries,
                                       .state = c->state,
                                       .bindir = d->bindir,
                                       .allows = &allows,
                                       .node = d->node,
                                       .installation = d->installation,
                                       .space = d->space,
                                       .pool = &pool,
                                       .keep_strays = d->foreign,
                                       .authority = c->intercept ? &d->authority : NULL,
                                       .egress_user = c->egress_user,
                                       .egress_dns = c->egress_dns,
                                       .egress_internal = (const char *const *)c->egress_internal.v,
                                       .egress_internal_count = c->egress_internal.n,
                                       .egress_ca_file = c->egress_ca_file,
                                       .proxy_host = c->proxy_host,
                                       .proxy_port = c->proxy_port,
                                       .signing_key = c->signing_key,
                                       .session_dialect = dialects_session_name(),
                                       .wide = c->syscalls == CONF_SYSCALLS_WIDE,
                                       .sandboxes_max = c->sandboxes_max,
                                       .execs_max = c->execs_max,
                                       .output_bytes = c->output_bytes,
                                       .output_keep_ms = c->output_keep_ms,
                                       .command_time_ms = c->command_time_ms,
                                       .session_time_ms = c->session_time_ms,
                                       .policies = d->policies,
                                       .remotes = d->remotes,
                                       .relay_output_bytes = c->relay_output_bytes},
            &d->sandboxes, e) < 0)
        return -1;
    apply_ceilings(d);
    return 0;
}

/* After volumes_open. */
static int open_tasks(struct daemon *d, struct err *e)
{
    if (tasks_open(&(struct tasks_config){.loop = &d->loop,
                                          .store = d->store,
                                          .sandboxes = d->sandboxes,
                                          .volumes = d->volumes,
                                          .share = d->share,
                                          .space = d->space,
                                          .loadouts = d->loadouts},
                   &d->tasks, e) < 0)
        return -1;
    return schedules_open(d->store, d->identity, d->tasks, &d->schedules, e);
}

static void remote_forgot(void *arg, const char *id)
{
    struct daemon *d = arg;
    struct err e;

    /* one without a secret has none to end */
    (void)!remote_secret_remove(d->remote_secrets, &principal_system, str_of(id), NULL, NULL, &e);
}

static int open_remotes(struct daemon *d, struct err *e)
{
    const struct config *c = d->conf;
    AUTO(mem_free)
    char *dir =
        c->remote_secrets[0] ? xstrdup(c->remote_secrets) : xasprintf("%s/secrets", c->state);

    d->remotes = remotes_new(&d->loop, remote_event_write, d->store, c->remote_heartbeat_ms);
    remotes_on_forget(d->remotes, remote_forgot, d);
    return remote_secrets_open(&d->loop, dir, &d->remote_secrets, e);
}

/* After targets_open, snapshots_open and access_open. */
static int open_rollouts(struct daemon *d, struct err *e)
{
    return rollouts_open(&(struct rollouts_config){.store = d->store,
                                                   .events = d->events,
                                                   .sandboxes = d->sandboxes,
                                                   .snapshots = d->snapshots,
                                                   .access = d->access,
                                                   .targets = d->targets,
                                                   .state = d->conf->state,
                                                   .questions_max = &d->conf->questions_max},
                         &d->rollouts, e);
}

static int open_share(struct daemon *d, struct err *e)
{
    const struct config *c = d->conf;
    AUTO(mem_free)
    char *root = c->agentshare[0] ? xstrdup(c->agentshare) : xasprintf("%s/agentshare", c->state);

    d->share_global = xasprintf("%s/%s:ro", root, share_area_name(SHARE_GLOBAL));
    return share_open(root, &d->share, e);
}

static int open_asks(struct daemon *d, struct err *e)
{
    return asks_open(&(struct asks_config){.store = d->store,
                                           .events = d->events,
                                           .sandboxes = d->sandboxes,
                                           .wait_ms = &d->conf->egress_ask_ms},
                     &d->asks, e);
}

/* A runtime without isolation has no mounts: only there, archives are unpacked by a plain child. */
static int open_images(struct daemon *d, struct err *e)
{
    const struct config *c = d->conf;
    AUTO(mem_free) char *program = xasprintf("%s/holt-unpack", d->bindir);

    d->compare = xasprintf("%s/holt-compare", d->bindir);

    d->isolated = d->drivers[0]->caps & DRIVER_ISOLATES;
    d->unpacker = d->isolated ? unpacker_sandbox_new(d->sandboxes, program)
                              : unpacker_process_new(&d->loop, c->state, program);
    if (images_open(&(struct images_config){.loop = &d->loop,
                                            .store = d->store,
                                            .state = c->state,
                                            .keep_strays = d->foreign,
                                            .unpacker = d->unpacker,
                                            .remove = sandboxes_remove_layer,
                                            .remove_arg = d->sandboxes,
                                            .limits = {.bytes_max = c->image_bytes_max,
                                                       .files_max = c->image_files_max,
                                                       .time_ms = c->image_ms},
                                            .images_max = c->images_max,
                                            .jobs_max = IMAGE_JOBS_MAX,
                                            .space = d->space,
                                            .aliases = &c->image_aliases},
                    &d->images, e) < 0)
        return -1;
    sandboxes_set_images(d->sandboxes, d->images);
    if (snapshots_open(&(struct snapshots_config){.store = d->store,
                                                  .sandboxes = d->sandboxes,
                                                  .images = d->images,
                                                  .space = d->space,
                                                  .state = c->state,
                                                  .count_max = &c->snapshots_max},
                       &d->snapshots, e) < 0)
        return -1;
    images_sweep(d->images);
    return changes_open(&(struct changes_config){.store = d->store,
                                                 .sandboxes = d->sandboxes,
                                                 .snapshots = d->snapshots,
                                                 .images = d->images,
                                                 .program = d->compare,
                                                 .ignore = &c->diff_ignore,
                                                 .jobs_max = &c->diffs_max},
                        &d->changes, e);
}

static int open_server(struct daemon *d, struct err *e)
{
    const struct config *c = d->conf;
    bool tls = c->tls_cert && c->tls_cert[0];

    if (api_new(&(struct api_config){.conf = c,
                                     .store = d->store,
                                     .events = d->events,
                                     .identity = d->identity,
                                     .revoked = d->revoked,
                                     .sandboxes = d->sandboxes,
                                     .asks = d->asks,
                                     .images = d->images,
                                     .volumes = d->volumes,
                                     .access = d->access,
                                     .templates = d->templates,
                                     .builds = d->builds,
                                     .loadouts = d->loadouts,
                                     .claims = d->claims,
                                     .plans = d->plans,
                                     .playbooks = d->playbooks,
                                     .targets = d->targets,
                                     .rollouts = d->rollouts,
                                     .policies = d->policies,
                                     .tasks = d->tasks,
                                     .schedules = d->schedules,
                                     .remotes = d->remotes,
                                     .remote_secrets = d->remote_secrets,
                                     .share = d->share,
                                     .snapshots = d->snapshots,
                                     .changes = d->changes,
                                     .blobs = d->blobs,
                                     .secrets = d->secrets,
                                     .authority = c->intercept ? &d->authority : NULL,
                                     .space = d->space,
                                     .version = holt_version},
                &d->api, e) < 0)
        return -1;
    if (server_new(&(struct server_config){.loop = &d->loop,
                                           .limits = &d->limits,
                                           .tls_cert = tls ? c->tls_cert : NULL,
                                           .tls_key = tls ? c->tls_key : NULL,
                                           .handler = api_handle,
                                           .error = api_write_error,
                                           .arg = d->api},
                   &d->server, e) < 0)
        return -1;
    api_set_server(d->api, d->server);
    return start_listening(d, e);
}

static int open_secrets(struct daemon *d, struct err *e)
{
    if (secrets_open(d->store, d->conf->state, &d->secrets, e) < 0)
        return -1;
    sandboxes_set_secrets(d->sandboxes, d->secrets);
    return 0;
}

static void open_builds(struct daemon *d)
{
    const struct config *c = d->conf;

    d->builds = builds_new(&(struct builds_config){.loop = &d->loop,
                                                   .sandboxes = d->sandboxes,
                                                   .images = d->images,
                                                   .space = d->space,
                                                   .step_ms = &c->build_step_ms,
                                                   .cache_max = &c->build_cache_max,
                                                   .running = &c->builds_running,
                                                   .hosts = &c->build_hosts,
                                                   .env = &c->build_env});
    loadouts_start(d->loadouts, d->builds, d->images);
}

static int start(struct daemon *d, struct err *e)
{
    int r = plain_loop_init(&d->loop);

    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "start the event loop");
    d->loop_is_up = true;
    if (open_store(d, e) < 0)
        return -1;
    apply_settings(d);
    if (policies_open(d->store, &d->policies, e) < 0 ||
        policies_set_agents(d->policies, str_of(d->conf->agent_policy), e) < 0 ||
        open_share(d, e) < 0 || open_remotes(d, e) < 0 || open_sandboxes(d, e) < 0 ||
        open_asks(d, e) < 0 || open_images(d, e) < 0 ||
        volumes_open(d->store, d->sandboxes, &d->volumes, e) < 0 ||
        access_open(&(struct access_config){.store = d->store,
                                            .identity = d->identity,
                                            .revoked = d->revoked,
                                            .sandboxes = d->sandboxes,
                                            .state = d->conf->state},
                    &d->access, e) < 0 ||
        templates_open(d->store, d->sandboxes, &d->templates, e) < 0 ||
        claims_open(d->store, &d->claims, e) < 0 || plans_open(d->store, &d->plans, e) < 0 ||
        playbooks_open(d->store, &d->playbooks, e) < 0 ||
        targets_open(d->store, d->sandboxes, &d->targets, e) < 0 || open_rollouts(d, e) < 0 ||
        open_tasks(d, e) < 0 ||
        blobs_open(&(struct blobs_config){.loop = &d->loop,
                                          .store = d->store,
                                          .state = d->conf->state,
                                          .space = d->space,
                                          .keep_strays = d->foreign},
                   &d->blobs, e) < 0 ||
        open_secrets(d, e) < 0)
        return -1;
    open_builds(d);
    if (open_server(d, e) < 0)
        return -1;
    apply_counts(d);
    start_handles(d);
    return 0;
}

static void announce(struct daemon *d)
{
    char code[TOKEN_TEXT];

    banner_print(&(struct banner){
        .conf = d->conf,
        .server = d->server,
        .version = holt_version,
        .token_file = d->token_file,
        .login_code = identity_login_code(d->identity, ROLE_ADMIN, NULL, code),
    });
    mem_wipe(code, sizeof code);
    log_info("ready", LOG_C("version", holt_version), LOG_N("pid", getpid()),
             LOG_C("state", d->conf->state));
    notify_send("READY=1");
}

static size_t count_alive(struct daemon *d)
{
    struct sandbox_info i = {.id = ""};
    size_t n = 0;

    for (struct sandbox *s = sandbox_next(d->sandboxes, &principal_system, STR("")); s;
         s = sandbox_next(d->sandboxes, &principal_system, str_of(i.id))) {
        sandbox_info(s, &i);
        n += i.state == SANDBOX_RUNNING || i.state == SANDBOX_PAUSED;
    }
    return n;
}

/* In the reverse order of start-up; also after a failed start. */
static void finish(struct daemon *d)
{
    if (d->server) { /* start-up failed */
        server_stop(d->server, 0, server_gone, d);
        (void)uv_run(&d->loop, UV_RUN_DEFAULT);
    }
    stop_handles(d);
    if (d->identity)
        identity_flush(d->identity);
    if (d->images)
        images_close(d->images);
    d->asks = asks_close(d->asks);
    tasks_close(d->tasks);
    rollouts_close(d->rollouts);
    d->changes = changes_free(d->changes);
    if (d->builds)
        builds_close(d->builds);
    d->sandboxes = sandboxes_close(d->sandboxes);
    d->remotes = remotes_free(d->remotes);
    d->remote_secrets = remote_secrets_free(d->remote_secrets);
    d->events = events_close(d->events);
    store_close(d->store);
    if (d->loop_is_up)
        (void)uv_run(&d->loop, UV_RUN_DEFAULT); /* the last handles close */
    d->api = api_free(d->api);
    d->revoked = revoked_close(d->revoked);
    d->snapshots = snapshots_free(d->snapshots);
    d->images = images_free(d->images);
    d->volumes = volumes_free(d->volumes);
    d->access = access_free(d->access);
    d->templates = templates_free(d->templates);
    d->loadouts = loadouts_free(d->loadouts);
    d->builds = builds_free(d->builds);
    d->claims = claims_free(d->claims);
    d->plans = plans_free(d->plans);
    d->playbooks = playbooks_free(d->playbooks);
    d->targets = targets_free(d->targets);
    d->rollouts = rollouts_free(d->rollouts);
    d->policies = policies_free(d->policies);
    d->schedules = schedules_free(d->schedules);
    d->tasks = tasks_free(d->tasks);
    d->share = share_free(d->share);
    mem_free(d->share_global);
    d->blobs = blobs_free(d->blobs);
    d->secrets = secrets_free(d->secrets);
    authority_done(&d->authority);
    d->space = space_free(d->space);
    d->unpacker =
        d->isolated ? unpacker_sandbox_free(d->unpacker) : unpacker_process_free(d->unpacker);
    d->identity = identity_close(d->identity);
    if (d->loop_is_up) {
        (void)uv_run(&d->loop, UV_RUN_DEFAULT);
        if (uv_loop_close(&d->loop) < 0)
            log_warn("a handle was still open at the end");
    }
    fd_close(d->lock);
    mem_free(d->token_file);
    mem_free(d->bindir);
    mem_free(d->compare);
    config_free(d->conf);
}

int daemon_run(struct config *conf, const struct conf_sources *from, struct err *e)
{
    struct daemon *d = xzalloc(sizeof *d);
    size_t alive;
    int r;

    d->conf = conf;
    d->from = from;
    d->lock = -1;
    (void)umask(077);
    (void)signal(SIGPIPE, SIG_IGN);
    apply_settings(d);
    log_warnings(conf);
    r = loadouts_open(
        &(struct loadouts_config){.dir = conf->loadouts_dir, .image = &conf->loadout_image},
        &d->loadouts, e);
    if (r == 0)
        r = rights_give_up(conf, &d->lock, e);
    if (r == 0)
        r = start(d, e);
    if (r == 0) {
        starter_seal();
        announce(d);
        thread_claim_loop();
        (void)uv_run(&d->loop, UV_RUN_DEFAULT);
        alive = count_alive(d);
        banner_goodbye(conf, alive);
        log_info("stopped", LOG_N("sandboxes", (int64_t)alive));
    }
    finish(d);
    mem_free(d);
    return r;
}
