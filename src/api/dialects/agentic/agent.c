/* agent: agents: every sandbox is one, and its init is the program that keeps the link. */
#include "api/dialects/agentic/agentic.h"

#include "base/mem.h"
#include "core/remote/remote.h"

#include <sys/utsname.h>
#include <unistd.h>

static const char *running_status(const struct sandbox_info *i, const struct remote_info *remote)
{
    if (remote->id && remote->state == REMOTE_DISCONNECTED)
        return "Disconnected";
    if (i->reconnecting || (remote->id && remote->state == REMOTE_STALE))
        return "Stale";
    if (remote->provisioning)
        return "Provisioning";
    return i->execs_live > 0 ? "Busy" : "Ready";
}

const char *agentic_status(const struct api *a, const struct sandbox_info *i)
{
    const struct remote *r = remotes_of_sandbox(a->c.remotes, str_of(i->id));
    struct remote_info remote = {0};

    if (r)
        remote_info(r, &remote);
    switch (i->state) {
    case SANDBOX_CREATING:
        return "Provisioning";
    case SANDBOX_STARTING:
        return "Starting";
    case SANDBOX_RUNNING:
        return running_status(i, &remote);
    case SANDBOX_PAUSED:
        return "Stale";
    case SANDBOX_STOPPING:
        return "ShuttingDown";
    case SANDBOX_FAILED:
        return "Error";
    case SANDBOX_STOPPED:
    case SANDBOX_DESTROYED:
    case SANDBOX_STATE_COUNT:
        break;
    }
    return "Disconnected";
}

static struct str label_of(const struct sandbox_info *i, const char *key)
{
    for (size_t k = 0; k < i->label_count; k++)
        if (str_eq_c(i->labels[k].key, key))
            return i->labels[k].value;
    return STR("");
}

static void write_system(struct jw *w, const struct sandbox_info *i)
{
    const struct sandbox_limits *l = &i->traits.limits;
    struct utsname u = {0};

    if (str_eq_c(i->runtime, AGENTIC_VM) || uname(&u) < 0)
        return; /* a machine's kernel is its own */
    jw_key(w, "system_info");
    jw_object(w);
    jw_kc(w, "os", u.sysname);
    jw_kc(w, "kernel", u.release);
    jw_kint(w, "cpu_cores",
            l->cpu_millis > 0 ? (l->cpu_millis + 999) / 1000 : sysconf(_SC_NPROCESSORS_ONLN));
    jw_kint(w, "memory_bytes", l->memory_bytes);
    jw_kint(w, "disk_bytes", l->disk_bytes);
    jw_object_end(w);
}

static void write_load(struct jw *w, const double *load)
{
    jw_key(w, "load_avg");
    jw_array(w);
    for (int i = 0; load && i < 3; i++)
        jw_double(w, load[i]);
    jw_array_end(w);
}

static void write_numbers(struct jw *w, const struct remote_numbers *n)
{
    jw_key(w, "cpu_percent");
    jw_double(w, n->cpu_percent);
    jw_kint(w, "memory_used_bytes", n->memory_used);
    jw_kint(w, "memory_total_bytes", n->memory_total);
    jw_kint(w, "disk_used_bytes", n->disk_used);
    jw_kint(w, "disk_total_bytes", n->disk_total);
    write_load(w, n->load);
    jw_kint(w, "uptime_seconds", n->uptime_s);
}

void agentic_write_metrics(struct jw *w, const struct api *a, const struct sandbox_info *i,
                           const struct driver_stats *s)
{
    const struct remote *r = remotes_of_sandbox(a->c.remotes, str_of(i->id));
    struct remote_info remote;
    int64_t up_ms = i64_max(clock_wall_ms() - i->started_ms, 1);

    if (r) {
        remote_info(r, &remote);
        write_numbers(w, &remote.numbers);
        return;
    }
    jw_key(w, "cpu_percent"); /* since its start */
    jw_double(w, (double)s->cpu_us / (double)up_ms / 10.0);
    jw_kint(w, "memory_used_bytes", s->memory_bytes);
    jw_kint(w, "memory_total_bytes", i->traits.limits.memory_bytes);
    jw_kint(w, "disk_used_bytes", s->disk_bytes);
    jw_kint(w, "disk_total_bytes", i->traits.limits.disk_bytes);
    write_load(w, NULL);
    jw_kint(w, "uptime_seconds", up_ms / 1000);
}

/* What an agent on another machine says of itself. */
static void write_remote(struct jw *w, const struct remote_info *i)
{
    jw_kstr(w, "hostname", i->hostname);
    jw_kstr(w, "ip_address", i->address);
    if (i->setup.n > 0)
        jw_kstr(w, "setup_status", i->setup);
    if (i->progress.n > 0)
        jw_kstr(w, "setup_progress_json", i->progress);
    jw_kint(w, "connected_at", i->connected_ms);
    jw_kint(w, "last_heartbeat", i->heartbeat_ms);
    if (i->os.n == 0)
        return;
    jw_key(w, "system_info");
    jw_object(w);
    jw_kstr(w, "os", i->os);
    jw_kstr(w, "kernel", i->kernel);
    jw_kint(w, "cpu_cores", i->cpus);
    jw_kint(w, "memory_bytes", i->memory_bytes);
    jw_kint(w, "disk_bytes", i->disk_bytes);
    jw_object_end(w);
}

static void write_ours(struct jw *w, const struct sandbox_info *i)
{
    jw_kstr(w, "hostname", agentic_name(i));
    jw_kc(w, "ip_address", "");
    jw_kint(w, "connected_at", i->started_ms);
    jw_kint(w, "last_heartbeat",
            i->state == SANDBOX_RUNNING && !i->reconnecting ? clock_wall_ms()
                                                            : i->last_activity_ms);
    write_system(w, i);
}

void agentic_write_agent(struct jw *w, const struct api *a, const struct sandbox *s,
                         const struct driver_stats *stats)
{
    const struct remote *r;
    struct remote_info remote = {0};
    struct sandbox_info i;
    struct str profile, loadout;

    sandbox_info(s, &i);
    r = remotes_of_sandbox(a->c.remotes, str_of(i.id));
    if (r)
        remote_info(r, &remote);
    profile = remote.profile.n > 0 ? remote.profile : label_of(&i, "profile");
    loadout = remote.loadout.n > 0 ? remote.loadout : label_of(&i, "loadout");
    jw_object(w);
    jw_kstr(w, "id", agentic_name(&i));
    jw_kstr(w, "instance_id", remote.instance.n > 0 ? remote.instance : str_of(i.id));
    jw_kstr(w, "runtime", i.runtime);
    if (profile.n > 0)
        jw_kstr(w, "profile", profile);
    if (loadout.n > 0)
        jw_kstr(w, "loadout", loadout);
    jw_kc(w, "status", agentic_status(a, &i));
    if (r)
        write_remote(w, &remote);
    else
        write_ours(w, &i);
    if (stats) {
        jw_key(w, "metrics");
        jw_object(w);
        agentic_write_metrics(w, a, &i, stats);
        jw_object_end(w);
    }
    jw_object_end(w);
}

/* --- lists: one sandbox after the other is measured --- */

struct listing {
    struct waiter waiter;
    const struct api *api;
    struct arena arena;
    struct sandbox **boxes; /* with references */
    size_t count, at;
    bool single;
    struct buf json;
    struct jw w;
};

static void listing_free(struct listing *l)
{
    for (size_t i = 0; i < l->count; i++)
        sandbox_unref(l->boxes[i]);
    buf_done(&l->json);
    arena_done(&l->arena);
    mem_free(l);
}

static void listing_end(struct listing *l)
{
    struct request *r = waiter_end(&l->waiter);

    if (!l->single) {
        jw_array_end(&l->w);
        jw_object_end(&l->w);
    }
    if (r)
        request_send(r, 200, "application/json", buf_str(&l->json));
    listing_free(l);
}

static void measure_next(struct listing *l);

static void measured(void *arg, const struct driver_stats *s, const struct err *e)
{
    struct listing *l = arg;

    agentic_write_agent(&l->w, l->api, l->boxes[l->at++], e->code == ERR_NONE ? s : NULL);
    measure_next(l);
}

static void measure_next(struct listing *l)
{
    struct sandbox_info i;

    while (l->at < l->count) {
        sandbox_info(l->boxes[l->at], &i);
        if (i.state == SANDBOX_RUNNING) {
            sandbox_stats(l->boxes[l->at], measured, l);
            return;
        }
        agentic_write_agent(&l->w, l->api, l->boxes[l->at++], NULL);
    }
    listing_end(l);
}

static struct listing *listing_new(struct request *r, size_t most)
{
    struct listing *l = xzalloc(sizeof *l);

    l->api = r->api;
    l->w.to = &l->json;
    l->boxes = arena_zalloc(&l->arena, (most + 1) * sizeof *l->boxes);
    request_wait(r, &l->waiter);
    return l;
}

void agentic_agents(struct request *r)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct listing *l = listing_new(r, sandboxes_count(all));
    struct str state = agentic_query(r, "state");
    struct sandbox_info i;

    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        if (agentic_is(&i, AGENTIC_ANY) && (state.n == 0 || str_case_eq_c(state, "all") ||
                                            str_case_eq_c(state, agentic_status(r->api, &i))))
            l->boxes[l->count++] = sandbox_ref(s);
    }
    jw_object(&l->w);
    jw_key(&l->w, "agents");
    jw_array(&l->w);
    measure_next(l);
}

void agentic_agent(struct request *r)
{
    struct sandbox *s = agentic_find(r, AGENTIC_ANY);
    struct listing *l;

    if (!s)
        return;
    l = listing_new(r, 1);
    l->boxes[l->count++] = sandbox_ref(s);
    l->single = true;
    measure_next(l);
}

void agentic_counts(const struct request *r, int64_t *ret_connected, int64_t *ret_ready)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct sandbox_info i;

    *ret_connected = *ret_ready = 0;
    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        *ret_connected += i.state == SANDBOX_RUNNING;
        *ret_ready += i.state == SANDBOX_RUNNING && !i.reconnecting && i.execs_live == 0;
    }
}
