/* remote: the registry of remotes, and their links. */
#include "core/remote/remote.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/remote/remote_internal.h"
#include "proto/json.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#define REMOTES_MAX 4096
#define GONE_LEAST_MS (5 * 60 * 1000)

/* --- the registry --- */

struct remotes *remotes_new(uv_loop_t *loop, remote_noted note, void *arg, int64_t heartbeat_ms)
{
    struct remotes *all = xzalloc(sizeof *all);

    all->loop = loop;
    all->note = note;
    all->note_arg = arg;
    all->heartbeat_ms = heartbeat_ms;
    return all;
}

/* agent.connected, .disconnected, .provisioning, .ready */
static void remote_note(const struct remote *r, const char *type, const char *why)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    if (!r->all->note || !r->sandbox[0])
        return;
    jw_object(&w);
    jw_kc(&w, "name", r->id);
    jw_kc(&w, "runtime", "remote");
    jw_kc(&w, "hostname", r->hostname);
    jw_kc(&w, "ip_address", r->address);
    jw_kc(&w, "loadout", r->loadout);
    jw_kc(&w, "instance_id", r->instance);
    jw_kc(&w, "step", r->setup);
    jw_kc(&w, "progress", r->progress);
    jw_kc(&w, "reason", why);
    jw_object_end(&w);
    r->all->note(r->all->note_arg, type, r->sandbox, buf_str(&data));
}

static void link_close(struct remote *r, const struct err *why, bool shutdown)
{
    const struct remote_ops *ops = TAKE(r->ops);
    void *arg = TAKE(r->arg);

    remote_conv_close(r);
    r->reported = r->congested = r->held = false;
    if (!ops)
        return;
    remote_note(r, "agent.disconnected", why->msg);
    ops->close(arg, why, shutdown);
}

static void remote_free(struct remote *r)
{
    (void)map_remove(&r->all->by_id, str_of(r->id));
    if (r->sandbox[0])
        (void)map_remove(&r->all->by_sandbox, str_of(r->sandbox));
    while (!list_is_empty(&r->commands))
        remote_cmd_free(r, LIST_ENTRY(r->commands.next, struct remote_cmd, node));
    mem_free(r);
}

struct remotes *remotes_free(struct remotes *all)
{
    struct err e = {.code = ERR_UNAVAILABLE, .msg = "holtd is stopping"};
    struct str key;
    size_t at = 0;
    void *r;

    if (!all)
        return NULL;
    while (map_next(&all->by_id, &at, &key, &r)) {
        link_close(r, &e, false);
        remote_free(r);
    }
    map_done(&all->by_id);
    map_done(&all->by_sandbox);
    mem_free(all);
    return NULL;
}

void remotes_set_heartbeat(struct remotes *all, int64_t heartbeat_ms)
{
    all->heartbeat_ms = heartbeat_ms;
}

int64_t remotes_heartbeat(const struct remotes *all)
{
    return all->heartbeat_ms;
}

int64_t remotes_gone_ms(const struct remotes *all)
{
    return i64_max(GONE_LEAST_MS, 3 * all->heartbeat_ms);
}

struct remote *remotes_find(const struct remotes *all, struct str id)
{
    return map_get(&all->by_id, id);
}

struct remote *remotes_of_sandbox(const struct remotes *all, struct str sandbox)
{
    return all ? map_get(&all->by_sandbox, sandbox) : NULL;
}

bool remotes_next(const struct remotes *all, size_t *at, struct remote **ret)
{
    struct str key;
    void *r;

    if (!map_next(&all->by_id, at, &key, &r))
        return false;
    *ret = r;
    return true;
}

size_t remotes_count(const struct remotes *all)
{
    return all->by_id.count;
}

bool remote_id_is_valid(struct str id)
{
    for (size_t i = 0; i < id.n; i++) {
        char c = id.p[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !(c == '-' && i > 0))
            return false;
    }
    return id.n > 0 && id.n <= REMOTE_ID_MAX;
}

static struct remote *remote_new(struct remotes *all, struct str id)
{
    struct remote *r = xzalloc(sizeof *r);

    r->all = all;
    memcpy(r->id, id.p, id.n);
    list_init(&r->commands);
    r->beat_mono_ms = clock_mono_ms();
    r->heartbeat_ms = clock_wall_ms(); /* silent from here on */
    (void)map_set(&all->by_id, id, r);
    return r;
}

void remote_cut(struct remote *r, const struct err *why)
{
    link_close(r, why, false);
}

/* --- heartbeats --- */

static int64_t silent_ms(const struct remote *r)
{
    return clock_mono_ms() - r->beat_mono_ms;
}

static enum remote_state state_of(const struct remote *r)
{
    if (!r->ops)
        return REMOTE_DISCONNECTED;
    return silent_ms(r) >= r->all->heartbeat_ms / 3 * 2 ? REMOTE_STALE : REMOTE_READY;
}

static void cut_silent(struct remote *r)
{
    struct err e = {0};

    if (!r->ops || silent_ms(r) < r->all->heartbeat_ms)
        return;
    (void)err_set(&e, ERR_TIMEOUT, 0, "agent '%s' has sent no heartbeat for %lld s", r->id,
                  (long long)(silent_ms(r) / 1000));
    link_close(r, &e, false);
}

void remotes_tick(struct remotes *all)
{
    struct str key;
    size_t at = 0;
    void *v;

    while (map_next(&all->by_id, &at, &key, &v)) {
        struct remote *r = v;

        cut_silent(r);
        if (!r->ops && !r->sandbox[0] && silent_ms(r) > remotes_gone_ms(all))
            remote_free(r); /* it never became a sandbox */
    }
}

static void alive(struct remote *r)
{
    r->beat_mono_ms = clock_mono_ms();
    r->heartbeat_ms = clock_wall_ms();
}

/* --- what it says of itself --- */

static void keep_text(char *to, size_t size, struct str from)
{
    AUTO(buf_done) struct buf text = {0};

    (void)utf8_replace(&text, str_make(from.p, size_min(from.n, size - 1)), false);
    (void)snprintf(to, size, "%s", buf_len(&text) < size ? buf_cstr(&text) : "");
}

void remote_describe(struct remote *r, const struct remote_info *i)
{
    keep_text(r->hostname, sizeof r->hostname, i->hostname);
    keep_text(r->address, sizeof r->address, i->address);
    keep_text(r->profile, sizeof r->profile, i->profile);
    keep_text(r->loadout, sizeof r->loadout, i->loadout);
    keep_text(r->instance, sizeof r->instance, i->instance);
    keep_text(r->os, sizeof r->os, i->os);
    keep_text(r->kernel, sizeof r->kernel, i->kernel);
    r->cpus = i->cpus;
    r->memory_bytes = i->memory_bytes;
    r->disk_bytes = i->disk_bytes;
}

void remote_beat(struct remote *r, bool provisioning, struct str setup, struct str progress)
{
    bool was = r->provisioning, step = !str_eq_c(setup, r->setup);

    alive(r);
    r->provisioning = provisioning;
    keep_text(r->setup, sizeof r->setup, setup);
    keep_text(r->progress, sizeof r->progress,
              progress.n < sizeof r->progress ? progress : STR(""));
    if (provisioning && (!was || step))
        remote_note(r, "agent.provisioning", "");
    else if (!provisioning && (was || !r->ready_told))
        remote_note(r, "agent.ready", "");
    r->ready_told = !provisioning;
}

void remote_measured(struct remote *r, const struct remote_numbers *n)
{
    alive(r);
    if (n->known) {
        int64_t up = r->numbers.uptime_s;

        r->numbers = *n;
        r->numbers.uptime_s = up;
        return;
    }
    r->numbers.cpu_percent = n->cpu_percent;
    r->numbers.memory_used = n->memory_used;
    r->numbers.uptime_s = n->uptime_s;
}

void remote_info(const struct remote *r, struct remote_info *ret)
{
    *ret = (struct remote_info){.id = r->id,
                                .sandbox = r->sandbox,
                                .state = state_of(r),
                                .provisioning = r->provisioning,
                                .hostname = str_of(r->hostname),
                                .address = str_of(r->address),
                                .profile = str_of(r->profile),
                                .loadout = str_of(r->loadout),
                                .instance = str_of(r->instance),
                                .os = str_of(r->os),
                                .kernel = str_of(r->kernel),
                                .setup = str_of(r->setup),
                                .progress = str_of(r->progress),
                                .cpus = r->cpus,
                                .memory_bytes = r->memory_bytes,
                                .disk_bytes = r->disk_bytes,
                                .connected_ms = r->connected_ms,
                                .heartbeat_ms = r->heartbeat_ms,
                                .numbers = r->numbers};
}

/* --- the link --- */

struct remote *remote_join(struct remotes *all, struct str id, const struct remote_ops *ops,
                           void *arg, bool keeps_output, struct err *e)
{
    struct remote *r = remotes_find(all, id);
    struct err why = {0};

    assert(remote_id_is_valid(id));
    if (!r && all->by_id.count >= REMOTES_MAX) {
        (void)err_set(e, ERR_LIMIT, 0, "%d agents are known already", REMOTES_MAX);
        (void)err_limit_fixed(e, REMOTES_MAX, "remove some");
        return NULL;
    }
    r = r ? r : remote_new(all, id);
    (void)err_set(&why, ERR_CONFLICT, 0, "agent '%s' has connected again", r->id);
    link_close(r, &why, false);
    r->ops = ops;
    r->arg = arg;
    r->keeps_output = keeps_output;
    r->gone = false;
    r->connected_ms = clock_wall_ms();
    r->ready_told = false;
    alive(r);
    if (r->sandbox[0])
        remote_note(r, "agent.connected", "");
    return r;
}

static bool is_listed(const struct str *ids, size_t n, const char *id)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq_c(ids[i], id))
            return true;
    return false;
}

/* One whose end we know is kept for core, whatever the agent says. */
void remote_reported(struct remote *r, const struct str *ids, size_t n)
{
    remote_conv_close(r);
    LIST_EACH (&r->commands, node) {
        struct remote_cmd *c = LIST_ENTRY(node, struct remote_cmd, node);

        if (!c->ended && !is_listed(ids, n, c->id))
            remote_cmd_free(r, c);
    }
    for (size_t i = 0; i < n; i++) {
        struct remote_cmd *c = remote_cmd_find(r, ids[i]);

        if (!c)
            c = remote_cmd_new(r, ids[i]);
        if (c)
            c->out[0].unknown = c->out[1].unknown = c->out[0].end == 0 && c->out[1].end == 0;
    }
    r->reported = true;
}

bool remote_has(const struct remote *r, struct str command)
{
    return remote_cmd_find(r, command) != NULL;
}

void remote_drained(struct remote *r)
{
    r->congested = false;
    remote_conv_wake(r);
}

void remote_left(struct remote *r, void *arg)
{
    if (r->arg != arg || !r->ops)
        return;
    r->ops = NULL;
    r->arg = NULL;
    remote_conv_close(r);
    r->reported = r->congested = r->held = false;
    remote_note(r, "agent.disconnected", "the agent closed its link");
}

/* --- the driver --- */

void remote_expect(struct remote *r, bool on)
{
    r->expected = on;
}

static void bind_to(struct remote *r, const char *sandbox)
{
    (void)snprintf(r->sandbox, sizeof r->sandbox, "%s", sandbox);
    (void)map_set(&r->all->by_sandbox, str_of(sandbox), r);
}

int remote_bind(struct remotes *all, struct str id, const char *sandbox, bool again, struct err *e)
{
    struct remote *r = remotes_find(all, id);

    if (!r || !r->ops || (!again && !r->expected)) {
        (void)err_set(e, ERR_CONFLICT, 0, "no agent '" STR_FMT "' is connected",
                      (int)size_min(id.n, REMOTE_ID_MAX), id.p ? id.p : "");
        return err_hint(e, "its sandbox is made when its agent connects: start holt-agent there");
    }
    if (r->sandbox[0] && strcmp(r->sandbox, sandbox) != 0)
        return err_set(e, ERR_CONFLICT, 0, "agent '%s' is sandbox '%s'", r->id, r->sandbox);
    if (!r->sandbox[0]) {
        bind_to(r, sandbox);
        remote_note(r, "agent.connected", "");
    }
    r->expected = false;
    return 0;
}

void remote_known(struct remotes *all, struct str id, const char *sandbox)
{
    struct remote *r;

    if (!remote_id_is_valid(id))
        return;
    r = remotes_find(all, id);
    r = r ? r : remote_new(all, id);
    bind_to(r, sandbox);
}

int remote_connect(struct remotes *all, struct str sandbox, int *ret_fd, struct err *e)
{
    struct remote *r = remotes_of_sandbox(all, sandbox);
    int fds[2];

    if (!r || !r->ops || !r->reported)
        return err_set(e, ERR_UNAVAILABLE, 0, "its agent is not connected");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return err_set(e, ERR_INTERNAL, errno, "make a socket pair");
    remote_conv_open(r, fds[0]);
    *ret_fd = fds[1];
    return 0;
}

void remote_kill(struct remotes *all, struct str sandbox)
{
    struct remote *r = remotes_of_sandbox(all, sandbox);

    if (!r)
        return;
    LIST_EACH (&r->commands, node) {
        struct remote_cmd *c = LIST_ENTRY(node, struct remote_cmd, node);

        if (!c->ended && r->ops)
            remote_signal(r, c, SIGKILL);
    }
}

void remotes_on_forget(struct remotes *all, void (*forgot)(void *arg, const char *id), void *arg)
{
    all->forgot = forgot;
    all->forgot_arg = arg;
}

void remote_gone(struct remote *r)
{
    r->gone = true;
}

void remote_release(struct remotes *all, struct str sandbox, enum remote_release how)
{
    struct remote *r = remotes_of_sandbox(all, sandbox);
    struct err e = {0};

    if (!r)
        return;
    (void)err_set(&e, ERR_GONE, 0, "the sandbox of agent '%s' was %s", r->id,
                  how == REMOTE_STOPPED ? "stopped" : "destroyed");
    link_close(r, &e, true);
    if (how == REMOTE_DESTROYED && !r->gone && all->forgot)
        all->forgot(all->forgot_arg, r->id);
    if (how != REMOTE_STOPPED)
        remote_free(r);
}
