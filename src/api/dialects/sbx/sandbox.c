#include "api/sandbox.h"
#include "api/creating.h"
#include "api/dialects/sbx/sbx.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "proto/policy.h"

#define PREFIX "sbx-"
#define ID_MAX (ALIAS_MAX - sizeof PREFIX)
#define HOSTS_MAX 256
#define ENV_MAX 512

/* --- finding --- */

bool sbx_alias_of(struct request *r, struct alias_name *ret)
{
    *ret = (struct alias_name){STR(SBX_DIALECT), r->params.v[0]};
    return r->params.v[0].n > 0;
}

struct sandbox *sbx_find(struct request *r)
{
    struct alias_name n;
    struct err e = {0};
    struct sandbox *s;

    if (!sbx_alias_of(r, &n))
        return NULL;
    s = sandbox_find_as(r->api->c.sandboxes, n.dialect, n.alias, &e);
    return s && sandbox_check(s, &r->who, &e) == 0 ? s : NULL;
}

/* One that another interface made has none of its own: its id stands for it. */
struct str sbx_namespace(const struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    for (const struct alias *a = i.aliases; a; a = a->next)
        if (str_eq_c(a->name.dialect, SBX_DIALECT) && str_starts(a->name.alias, STR(PREFIX)))
            return a->name.alias;
    return str_of(i.id);
}

void sbx_audit(struct request *r, const struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    request_audit(r, "request.read", arena_printf(xchg_arena(r->x), "sandbox/%s", i.id), 200);
}

static bool isolates(const struct sandbox *s)
{
    const struct sandboxes *all = sandbox_registry(s);
    const struct driver_ops *d;
    struct sandbox_info i;

    sandbox_info(s, &i);
    for (size_t n = 0; (d = sandboxes_driver(all, n)); n++)
        if (str_eq_c(i.runtime, d->name))
            return d->caps & DRIVER_ISOLATES;
    return false;
}

struct str sbx_workdir(const struct sandbox *s)
{
    return isolates(s) ? STR("/workspace") : STR("");
}

/* --- telling --- */

/* token: for its sidecars, told to who made it and never again; or NULL. */
static void send_names(struct request *r, const struct sandbox *s, const char *phase,
                       const char *token)
{
    struct jw w = request_json(r);
    struct str name = sbx_namespace(s);

    jw_object(&w);
    jw_kstr(&w, "id", name);
    jw_kstr(&w, "namespace", name);
    if (phase)
        jw_kc(&w, "phase", phase);
    jw_kc(&w, "pod_name", SBX_POD);
    if (token)
        jw_kc(&w, "ingest_token", token);
    jw_object_end(&w);
    sbx_send(r, 200);
}

/* Kubernetes' words for a pod. */
static const char *phase_of(enum sandbox_state s)
{
    switch (s) {
    case SANDBOX_CREATING:
    case SANDBOX_STARTING:
        return "Pending";
    case SANDBOX_RUNNING:
    case SANDBOX_PAUSED:
        return "Running";
    case SANDBOX_STOPPING:
    case SANDBOX_STOPPED:
        return "Succeeded";
    case SANDBOX_FAILED:
    case SANDBOX_DESTROYED:
    case SANDBOX_STATE_COUNT:
        break;
    }
    return "Failed";
}

void sbx_get(struct request *r)
{
    struct sandbox *s = sbx_find(r);
    struct sandbox_info i;

    if (!s) {
        sbx_error(r, 404, "pods \"" SBX_POD "\" not found");
        return;
    }
    sandbox_info(s, &i);
    send_names(r, s, phase_of(i.state), NULL);
}

/* The largest unit, cut. */
static char *age_text(int64_t ms, char to[24])
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    int64_t seconds = i64_max(ms, 0) / 1000;
    size_t i = 0;

    while (i < ARRAY_LEN(units) - 1 && seconds < units[i].seconds)
        i++;
    (void)snprintf(to, 24, "%lld%c", (long long)(seconds / units[i].seconds), units[i].unit);
    return to;
}

static int64_t last_exec_ms(struct sandbox *s)
{
    struct exec_info x = {0};
    int64_t last = 0;

    for (struct exec *e = exec_next(s, STR("")); e; e = exec_next(s, str_of(x.id))) {
        exec_info(e, &x);
        last = i64_max(last, i64_max(x.ended_ms, x.created_ms));
    }
    return last;
}

static void write_row(struct jw *w, struct sandbox *s)
{
    struct str name = sbx_namespace(s);
    int64_t last = last_exec_ms(s);
    struct sandbox_info i;
    char text[CLOCK_TEXT], age[24];

    sandbox_info(s, &i);
    jw_object(w);
    jw_kstr(w, "id", name);
    jw_kstr(w, "namespace", name);
    jw_kc(w, "age", age_text(clock_wall_ms() - i.created_ms, age));
    jw_kc(w, "state", i.state == SANDBOX_STOPPING ? "Terminating" : "Active");
    jw_kc(w, "allocated", "true");
    if (last > 0) /* "2026-01-02T03:04:05", then the zone without the fraction */
        (void)snprintf(clock_text(last, text) + 19, sizeof text - 19, "Z");
    jw_kc(w, "last_exec_time", last > 0 ? text : "-");
    jw_object_end(w);
}

static int by_namespace(const void *a, const void *b)
{
    struct str x = sbx_namespace(*(struct sandbox *const *)a);
    struct str y = sbx_namespace(*(struct sandbox *const *)b);
    int order = memcmp(x.p, y.p, size_min(x.n, y.n));

    return order ? order : (x.n > y.n) - (x.n < y.n);
}

void sbx_list(struct request *r)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct sandbox **found =
        arena_alloc(xchg_arena(r->x), (sandboxes_count(all) + 1) * sizeof *found);
    struct sandbox_info i;
    struct err e = {0};
    struct jw w;
    size_t n = 0;

    for (struct sandbox *s = sandbox_next(all, STR("")); s; s = sandbox_next(all, str_of(i.id))) {
        sandbox_info(s, &i);
        if (i.state != SANDBOX_DESTROYED && str_starts(sbx_namespace(s), STR(PREFIX)) &&
            sandbox_check(s, &r->who, &e) == 0)
            found[n++] = s;
    }
    qsort(found, n, sizeof(struct sandbox *), by_namespace);
    w = request_json(r);
    jw_array(&w);
    for (size_t k = 0; k < n; k++)
        write_row(&w, found[k]);
    jw_array_end(&w);
    sbx_send(r, 200);
}

/* --- creating --- */

struct create_request {
    struct str id, image, volume_mode, cache_mode, cache_size, cache_class, cache_access;
    struct sbx_strings command, allowed, disallowed;
    struct sbx_map env;
    const char *token; /* of its sidecars */
};

#define MEMBER(n, k, member) {n, k, offsetof(struct create_request, member)}
static const struct sbx_field create_fields[] = {
    MEMBER("id", SBX_STRING, id),
    MEMBER("image", SBX_STRING, image),
    MEMBER("command", SBX_STRINGS, command),
    MEMBER("volume_mode", SBX_STRING, volume_mode),
    MEMBER("cache_mode", SBX_STRING, cache_mode),
    MEMBER("cache_pvc_size", SBX_STRING, cache_size),
    MEMBER("cache_pvc_storage_class", SBX_STRING, cache_class),
    MEMBER("cache_pvc_access_mode", SBX_STRING, cache_access),
    MEMBER("env", SBX_MAP, env),
    MEMBER("allowed_hosts", SBX_STRINGS, allowed),
    MEMBER("disallowed_hosts", SBX_STRINGS, disallowed),
};
static const struct sbx_form create_form = {"CreateSandboxRequest", create_fields,
                                            ARRAY_LEN(create_fields)};

static void command_started(void *arg, struct exec *x, const struct err *e)
{
    (void)arg, (void)x, (void)e; /* its record says how it went */
}

static void refused(struct request *r, const struct err *e)
{
    int status = err_table[e->code].http;

    sbx_error(r, status >= 400 && status < 500 ? status : 500, "%s", e->msg);
}

static void made(struct request *r, struct sandbox *s, const struct err *e)
{
    const struct create_request *q = r->in;
    struct sbx *counts = r->api->sbx;

    if (e->code != ERR_NONE) {
        refused(r, e);
        return;
    }
    counts->creates++;
    counts->ready_count++;
    counts->ready_ms_last = (clock_mono_ns() - r->started_ns) / 1000000;
    counts->ready_ms_sum += counts->ready_ms_last;
    if (q->command.n > 0) {
        const struct exec_spec spec = {
            .argv = q->command.v, .argc = q->command.n, .cwd = sbx_workdir(s)};
        const struct principal by = request_who(r);

        exec_start(s, &spec, &by, command_started, NULL);
    }
    send_names(r, s, NULL, q->token);
}

static void joined(struct request *r, struct sandbox *s, const struct err *e)
{
    if (e->code != ERR_NONE)
        refused(r, e);
    else
        send_names(r, s, NULL, NULL);
}

/* A DNS label (RFC 1123), but of any length that an alias may have. */
static bool is_label(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        bool edge = i == 0 || i == s.n - 1;

        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
            (edge || s.p[i] != '-'))
            return false;
    }
    return s.n > 0;
}

/* What was returned may be sent again: the prefix is not part of the id. */
static int read_id(struct request *r, struct create_request *q, struct err *e)
{
    unsigned char bytes[6];
    char *hex;

    if (q->id.n == 0) {
        rnd_bytes(bytes, sizeof bytes);
        hex = arena_alloc(xchg_arena(r->x), 2 * sizeof bytes + 1);
        enc_hex(bytes, sizeof bytes, hex);
        q->id = str_of(hex);
    }
    if (str_starts(q->id, STR(PREFIX)))
        q->id = str_skip(q->id, strlen(PREFIX));
    if (!is_label(q->id))
        return err_set(e, ERR_INVALID, 0,
                       "id must be DNS-1123 compatible (lowercase letters, numbers, '-')");
    if (q->id.n > ID_MAX)
        return err_set(e, ERR_INVALID, 0, "id must have at most %zu characters", ID_MAX);
    return 0;
}

static int check(const struct create_request *q, struct err *e)
{
    if (q->allowed.n > HOSTS_MAX || q->disallowed.n > HOSTS_MAX)
        return err_set(e, ERR_INVALID, 0, "at most %d allowed_hosts and disallowed_hosts",
                       HOSTS_MAX);
    if (q->env.n > ENV_MAX)
        return err_set(e, ERR_INVALID, 0, "at most %d variables in env", ENV_MAX);
    for (size_t i = 0; i < q->env.n; i++)
        if (q->env.v[i].key.n == 0 || str_index(q->env.v[i].key, '=') >= 0)
            return err_set(e, ERR_INVALID, 0, "env: a name is empty or has '='");
    return 0;
}

/* What was not asked for is the setting's. */
static void take_hosts(struct request *r, struct sbx_strings *hosts, const struct conf_list *preset)
{
    if (hosts->n > 0 || preset->n == 0)
        return;
    hosts->v = arena_alloc(xchg_arena(r->x), preset->n * sizeof *hosts->v);
    for (; hosts->n < preset->n; hosts->n++)
        hosts->v[hosts->n] = arena_str(xchg_arena(r->x), str_of(preset->v[hosts->n]));
}

static struct str join(struct request *r, const struct sbx_strings *s)
{
    AUTO(buf_done) struct buf all = {0};

    for (size_t i = 0; i < s->n; i++)
        buf_printf(&all, "%s" STR_FMT, i ? "," : "", STR_ARG(s->v[i]));
    return arena_str(xchg_arena(r->x), buf_str(&all));
}

/* The first that names a variable wins: the request's, then the lists of hosts, then the
 * settings', of which a later one is stronger. */
static size_t make_env(struct request *r, const struct create_request *q, struct pair **ret)
{
    const struct conf_list *conf = &r->api->c.conf->sbx_env;
    struct pair *env = arena_zalloc(xchg_arena(r->x), (q->env.n + conf->n + 4) * sizeof *env);
    const char *endpoint = r->api->c.conf->sbx_stream_endpoint;
    size_t n = q->env.n;

    if (n > 0)
        memcpy(env, q->env.v, n * sizeof *env);
    if (q->allowed.n > 0)
        env[n++] = (struct pair){STR("SBX_ALLOWED_HOSTS"), join(r, &q->allowed)};
    if (q->disallowed.n > 0)
        env[n++] = (struct pair){STR("SBX_DISALLOWED_HOSTS"), join(r, &q->disallowed)};
    if (endpoint[0]) {
        env[n++] =
            (struct pair){STR("SBX_SANDBOX_ID"),
                          str_of(arena_printf(xchg_arena(r->x), PREFIX STR_FMT, STR_ARG(q->id)))};
        env[n++] =
            (struct pair){STR("SBX_STREAM_ENDPOINT"),
                          str_of(arena_printf(xchg_arena(r->x), "%s/t/%s", endpoint, q->token))};
    }
    for (size_t i = conf->n; i > 0; i--) {
        struct pair *p = &env[n++];

        p->key = str_cut(arena_str(xchg_arena(r->x), str_of(conf->v[i - 1])), '=', &p->value);
    }
    *ret = env;
    return n;
}

/* What the sandbox's row keeps: the lists of hosts, and the hash of its sidecars' token. */
static void write_note(const struct create_request *q, struct buf *to)
{
    const struct sbx_strings *lists[] = {&q->allowed, &q->disallowed};
    static const char *const names[] = {"allowed_hosts", "disallowed_hosts"};
    struct jw w = {.to = to};
    char hash[SBX_INGEST_HASH];

    jw_object(&w);
    for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
        jw_key(&w, names[k]);
        jw_array(&w);
        for (size_t i = 0; i < lists[k]->n; i++)
            jw_str(&w, lists[k]->v[i]);
        jw_array_end(&w);
    }
    sbx_ingest_hash(str_of(q->token), hash);
    jw_kc(&w, "ingest", hash);
    jw_object_end(&w);
}

/* What is no host name or address can be asked for, and never be reached. */
static void put_hosts(struct jw *w, const char *key, const struct sbx_strings *hosts)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; i < hosts->n; i++) {
        struct str host = hosts->v[i];
        struct host h;
        struct err e;

        if (host_parse(str_starts(host, STR("*.")) ? str_skip(host, 2) : host, &h, &e) == 0)
            jw_str(w, host);
    }
    jw_array_end(w);
}

/* A list of hosts that are allowed allows nothing else; without one all are but those refused. */
static void write_policy(const struct create_request *q, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "mode", policy_modes[q->allowed.n > 0 ? POLICY_ALLOWLIST : POLICY_OPEN]);
    put_hosts(&w, "allow", &q->allowed);
    put_hosts(&w, "deny", &q->disallowed);
    jw_object_end(&w);
}

static void begin(struct request *r, struct create_request *q, struct alias_name name)
{
    const struct config *conf = r->api->c.conf;
    const struct principal by = request_who(r);
    const struct alias_name aliases[] = {name, {STR(SBX_DIALECT), q->id}};
    const struct sandbox_mount mounts[] = {
        {.kind = STR("own"), .target = STR("/workspace")},
        {.kind = STR("own"), .target = STR("/cache")},
    };
    AUTO(buf_done) struct buf note = {0}, network = {0};
    struct pair *env;
    size_t env_count;

    q->token = sbx_ingest_token(xchg_arena(r->x));
    take_hosts(r, &q->allowed, &conf->sbx_allowed_hosts);
    take_hosts(r, &q->disallowed, &conf->sbx_disallowed_hosts);
    env_count = make_env(r, q, &env);
    write_note(q, &note);
    write_policy(q, &network);
    sandbox_create(
        r->api->c.sandboxes,
        &(struct sandbox_spec){
            .image = q->image.n > 0        ? q->image
                     : conf->seed_image[0] ? str_of(conf->seed_image)
                                           : STR("ubuntu:22.04"),
            .limits = {.memory_bytes = conf->sbx_memory_bytes, .cpu_millis = conf->sbx_cpu_millis},
            .idle_ttl_ms = conf->sbx_idle_ttl_ms,
            .env = env,
            .env_count = env_count,
            .mounts = mounts,
            .mount_count = ARRAY_LEN(mounts),
            .network = buf_str(&network),
            .dialect = STR(SBX_DIALECT),
            .note = buf_str(&note),
            .aliases = aliases,
            .alias_count = ARRAY_LEN(aliases),
        },
        &by, creating_end, creating_begin(r, name, made));
}

static void create_with(struct request *r, struct str body)
{
    struct create_request *q = arena_zalloc(xchg_arena(r->x), sizeof *q);
    struct alias_name name = {STR(SBX_DIALECT), {0}};
    struct sandbox *s;
    struct err e = {0};

    if (sbx_read_body(r, body, &create_form, q, &e) < 0 || read_id(r, q, &e) < 0 ||
        check(q, &e) < 0) {
        sbx_error(r, 400, "%s", e.msg);
        return;
    }
    r->in = q;
    name.alias = str_of(arena_printf(xchg_arena(r->x), PREFIX STR_FMT, STR_ARG(q->id)));
    if (creating_join(r, name, joined))
        return;
    s = sandbox_find_as(r->api->c.sandboxes, name.dialect, name.alias, &e);
    if (!s)
        begin(r, q, name);
    else if (sandbox_check(s, &r->who, &e) < 0)
        request_refuse(r, &e);
    else
        send_names(r, s, NULL, NULL);
}

void sbx_create(struct request *r)
{
    request_collect(r, create_with);
}

/* --- deleting --- */

struct delete_job {
    struct waiter waiter;
};

static void deleted(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct delete_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    (void)s;
    if (r && e->code != ERR_NONE) {
        refused(r, e);
        return;
    }
    if (!r)
        return;
    r->api->sbx->deletes++;
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "status", "deleted");
    jw_object_end(&w);
    sbx_send(r, 200);
}

void sbx_delete(struct request *r)
{
    struct sandbox *s = sbx_find(r);
    const struct principal by = request_who(r);
    struct delete_job *j;

    if (!s) {
        sbx_error(r, 404, "namespaces \"" STR_FMT "\" not found",
                  (int)size_min(r->params.v[0].n, 100), r->params.v[0].p);
        return;
    }
    j = xzalloc(sizeof *j);
    request_wait(r, &j->waiter);
    sandbox_destroy(s, &by, deleted, j);
}
