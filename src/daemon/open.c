/* open: opens the parts of holtd, each with what it needs of the others. */
#include "daemon/daemon_internal.h"

#include "api/api.h"
#include "api/dialects/dialect.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/access/access.h"
#include "core/ask/ask.h"
#include "core/change/change.h"
#include "core/exec/exec.h"
#include "core/imagebuild/build.h"
#include "core/loadout/loadout.h"
#include "core/network/authority.h"
#include "core/network/secret.h"
#include "core/playbook/rollout.h"
#include "core/playbook/target.h"
#include "core/remote/remote.h"
#include "core/remote/remote_secret.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/volume.h"
#include "core/snapshot/snapshot.h"
#include "core/space.h"
#include "core/task/schedule.h"
#include "core/task/share.h"
#include "core/task/task.h"
#include "core/team/revoked.h"
#include "daemon/state.h"
#include "driver/table.h"
#include "wire/spawn.h"
#include "wire/virt.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMAGE_JOBS_MAX 8 /* concurrent pulls and imports */

int daemon_open_store(struct daemon *d, struct err *e)
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

int daemon_open_sandboxes(struct daemon *d, struct err *e)
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
    const struct pool_config pool = daemon_pool_config(c);
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
    daemon_apply_ceilings(d);
    return 0;
}

/* After volumes_open. */
int daemon_open_tasks(struct daemon *d, struct err *e)
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

int daemon_open_remotes(struct daemon *d, struct err *e)
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
int daemon_open_rollouts(struct daemon *d, struct err *e)
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

int daemon_open_share(struct daemon *d, struct err *e)
{
    const struct config *c = d->conf;
    AUTO(mem_free)
    char *root = c->agentshare[0] ? xstrdup(c->agentshare) : xasprintf("%s/agentshare", c->state);

    d->share_global = xasprintf("%s/%s:ro", root, share_area_name(SHARE_GLOBAL));
    return share_open(root, &d->share, e);
}

int daemon_open_asks(struct daemon *d, struct err *e)
{
    return asks_open(&(struct asks_config){.store = d->store,
                                           .events = d->events,
                                           .sandboxes = d->sandboxes,
                                           .wait_ms = &d->conf->egress_ask_ms},
                     &d->asks, e);
}

/* A runtime without isolation has no mounts: only there, archives are unpacked by a plain child. */
int daemon_open_images(struct daemon *d, struct err *e)
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

int daemon_open_server(struct daemon *d, struct err *e)
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
    return daemon_listen(d, e);
}

int daemon_open_secrets(struct daemon *d, struct err *e)
{
    if (secrets_open(d->store, d->conf->state, &d->secrets, e) < 0)
        return -1;
    sandboxes_set_secrets(d->sandboxes, d->secrets);
    return 0;
}

void daemon_open_builds(struct daemon *d)
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
