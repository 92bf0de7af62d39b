/* daemon: starts and stops the parts of holtd. */
#include "daemon/daemon.h"

#include "api/api.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/starter.h"
#include "base/thread.h"
#include "core/access/access.h"
#include "core/ask/ask.h"
#include "core/blob.h"
#include "core/change/change.h"
#include "core/claim/claim.h"
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
#include "core/sandbox/volume.h"
#include "core/snapshot/snapshot.h"
#include "core/space.h"
#include "core/task/schedule.h"
#include "core/task/share.h"
#include "core/task/task.h"
#include "core/team/revoked.h"
#include "core/template/template.h"
#include "daemon/banner.h"
#include "daemon/daemon_internal.h"
#include "daemon/notify.h"
#include "daemon/rights.h"
#include "net/plain_loop.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_MS 1000
#define FLUSH_TICKS 60   /* a minute */
#define RETAIN_TICKS 600 /* ten minutes */
#define ACCESS_TICKS 600
#define RETAIN_FIRST 10 /* the first one soon after start-up, since holtd may restart often */

static const int signal_numbers[SIG_KINDS] = {SIGTERM, SIGINT, SIGHUP};

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
        daemon_reload(d);
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

/* --- start and end --- */

static int start(struct daemon *d, struct err *e)
{
    int r = plain_loop_init(&d->loop);

    if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "start the event loop");
    d->loop_is_up = true;
    if (daemon_open_store(d, e) < 0)
        return -1;
    daemon_apply_settings(d);
    if (policies_open(d->store, &d->policies, e) < 0 ||
        policies_set_agents(d->policies, str_of(d->conf->agent_policy), e) < 0 ||
        daemon_open_share(d, e) < 0 || daemon_open_remotes(d, e) < 0 ||
        daemon_open_sandboxes(d, e) < 0 || daemon_open_asks(d, e) < 0 ||
        daemon_open_images(d, e) < 0 || volumes_open(d->store, d->sandboxes, &d->volumes, e) < 0 ||
        access_open(&(struct access_config){.store = d->store,
                                            .identity = d->identity,
                                            .revoked = d->revoked,
                                            .sandboxes = d->sandboxes,
                                            .state = d->conf->state},
                    &d->access, e) < 0 ||
        templates_open(d->store, d->sandboxes, &d->templates, e) < 0 ||
        claims_open(d->store, &d->claims, e) < 0 || plans_open(d->store, &d->plans, e) < 0 ||
        playbooks_open(d->store, &d->playbooks, e) < 0 ||
        targets_open(d->store, d->sandboxes, &d->targets, e) < 0 ||
        daemon_open_rollouts(d, e) < 0 || daemon_open_tasks(d, e) < 0 ||
        blobs_open(&(struct blobs_config){.loop = &d->loop,
                                          .store = d->store,
                                          .state = d->conf->state,
                                          .space = d->space,
                                          .keep_strays = d->foreign},
                   &d->blobs, e) < 0 ||
        daemon_open_secrets(d, e) < 0)
        return -1;
    daemon_open_builds(d);
    if (daemon_open_server(d, e) < 0)
        return -1;
    daemon_apply_counts(d);
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
    daemon_apply_settings(d);
    daemon_log_warnings(conf);
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
