/* create: creates sbx sandboxes. */
#include "api/dialects/sbx/sbx.h"
#include "api/idempotency.h"
#include "api/share/create_join.h"
#include "api/share/sandbox.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "core/sandbox/volume.h"
#include "proto/policy.h"
#include "proto/quantity.h"

#define ID_MAX (ALIAS_MAX - sizeof SBX_PREFIX)
#define HOSTS_MAX 256
#define ENV_MAX 512
#define SHARED "sbx-cache" /* the shared volume */
#define WORKSPACE_CLAIM (10LL << 30)
#define CLAIM_MIN (1LL << 20)
#define CLAIM_MAX (1LL << 40)

struct create_request {
    struct str id, image, volume_mode, cache_mode, cache_size, cache_class, cache_access;
    struct sbx_strings command, allowed, disallowed;
    struct sbx_map env;
    int64_t cache_bytes;
    const char *token; /* for its sidecars */
};

struct wait_job {
    struct waiter waiter;
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
    (void)e; /* its record has the result */
    if (x)
        sbx_sidecar_begin(arg, x);
}

static void sandbox_made(struct request *r, struct sandbox *s, const struct err *e)
{
    const struct create_request *q = r->in;
    struct sbx *counts = sbx_of(r->api);
    struct sandbox_info info;

    if (e->code != ERR_NONE) {
        sbx_refuse(r, e);
        return;
    }
    sandbox_info(s, &info);
    counts->creates++;
    counts->warm_hits += info.warm;
    counts->ready_count++;
    counts->ready_ms_last = (clock_mono_ns() - r->started_ns) / 1000000;
    counts->ready_ms_sum += counts->ready_ms_last;
    if (q->command.n > 0) {
        const struct exec_spec spec = {
            .argv = q->command.v, .argc = q->command.n, .cwd = sbx_workdir(s), .standing = true};
        const struct principal by = request_who(r);

        exec_start(s, &spec, &by, command_started, counts);
    }
    if (q->cache_class.n > 0) /* the same warning as Kubernetes gives */
        xchg_add_header(r->x, "warning",
                        STR("299 - \"cache_pvc_storage_class has no effect: claims are in holt's "
                            "state directory\""));
    sbx_send_names(r, s, NULL, q->token);
}

static void create_joined(struct request *r, struct sandbox *s, const struct err *e)
{
    if (e->code != ERR_NONE)
        sbx_refuse(r, e);
    else
        sbx_send_names(r, s, NULL, NULL);
}

/* A DNS label (RFC 1123), but as long as an alias may be. */
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

#define MADE_GONE "the sandbox of this Idempotency-Key is gone"

/* The sandbox that the same request made before. */
static int made_id(struct request *r, struct create_request *q, struct err *e)
{
    const struct sandbox *s =
        sandbox_find(r->api->c.sandboxes, &r->who, idem_made(r), &(struct err){0});

    if (!s)
        return err_set(e, ERR_CONFLICT, 0, MADE_GONE);
    q->id = arena_str(xchg_arena(r->x), sbx_namespace(s));
    return 0;
}

/* A returned id may be sent back: the prefix is not part of the id. */
static int read_id(struct request *r, struct create_request *q, struct err *e)
{
    unsigned char bytes[6];
    char *hex;

    if (idem_made(r).n > 0 && made_id(r, q, e) < 0)
        return -1;
    if (q->id.n == 0) {
        rnd_bytes(bytes, sizeof bytes);
        hex = arena_alloc(xchg_arena(r->x), 2 * sizeof bytes + 1);
        enc_hex(bytes, sizeof bytes, hex);
        q->id = str_of(hex);
    }
    if (str_starts(q->id, STR(SBX_PREFIX)))
        q->id = str_skip(q->id, strlen(SBX_PREFIX));
    if (!is_label(q->id))
        return err_set(e, ERR_INVALID, 0,
                       "id must be DNS-1123 compatible (lowercase letters, numbers, '-')");
    if (q->id.n > ID_MAX)
        return err_set(e, ERR_INVALID, 0, "id must have at most %zu characters", ID_MAX);
    return 0;
}

static int read_size(struct request *r, struct create_request *q, struct err *e)
{
    q->cache_bytes = sbx_settings(r->api->c.conf)->cache_pvc_bytes;
    if (q->cache_size.n == 0)
        return 0;
    if (quantity_parse(q->cache_size, 1, &q->cache_bytes, e) < 0)
        return err_wrap(e, "cache_pvc_size");
    if (q->cache_bytes < CLAIM_MIN || q->cache_bytes > CLAIM_MAX)
        return err_set(e, ERR_INVALID, 0, "cache_pvc_size must be from 1Mi to 1Ti");
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

/* Removes spaces and empty entries of hand-written lists. */
static void tidy(struct sbx_strings *hosts)
{
    size_t n = 0;

    for (size_t i = 0; i < hosts->n; i++) {
        struct str host = str_trim(hosts->v[i]);

        if (host.n > 0)
            hosts->v[n++] = host;
    }
    hosts->n = n;
}

/* Lists that were not requested come from the settings. */
static void take_hosts(struct request *r, struct sbx_strings *hosts, const struct conf_list *preset)
{
    tidy(hosts);
    if (hosts->n > 0 || preset->n == 0)
        return;
    hosts->v = arena_alloc(xchg_arena(r->x), preset->n * sizeof *hosts->v);
    for (; hosts->n < preset->n; hosts->n++)
        hosts->v[hosts->n] = arena_str(xchg_arena(r->x), str_of(preset->v[hosts->n]));
    tidy(hosts);
}

static struct str join(struct request *r, const struct sbx_strings *s)
{
    AUTO(buf_done) struct buf all = {0};

    for (size_t i = 0; i < s->n; i++)
        buf_printf(&all, "%s" STR_FMT, i ? "," : "", STR_ARG(s->v[i]));
    return arena_str(xchg_arena(r->x), buf_str(&all));
}

static const char *events_dir(const struct config *conf)
{
    return strcmp(sbx_settings(conf)->stream_mode, "sidecar") == 0 ? sbx_settings(conf)->events_dir
                                                                   : NULL;
}

/* The first source of a variable wins: the request, then the lists of hosts, then the settings, of
 * which a later one wins. */
static size_t make_env(struct request *r, const struct create_request *q, struct pair **ret)
{
    const struct conf_list *conf = &sbx_settings(r->api->c.conf)->env;
    struct pair *env = arena_zalloc(xchg_arena(r->x), (q->env.n + conf->n + 5) * sizeof *env);
    const char *endpoint = sbx_settings(r->api->c.conf)->stream_endpoint;
    const char *events = events_dir(r->api->c.conf);
    size_t n = q->env.n;

    if (n > 0)
        memcpy(env, q->env.v, n * sizeof *env);
    if (q->allowed.n > 0)
        env[n++] = (struct pair){STR("SBX_ALLOWED_HOSTS"), join(r, &q->allowed)};
    if (q->disallowed.n > 0)
        env[n++] = (struct pair){STR("SBX_DISALLOWED_HOSTS"), join(r, &q->disallowed)};
    if (endpoint[0]) {
        env[n++] = (struct pair){
            STR("SBX_SANDBOX_ID"),
            str_of(arena_printf(xchg_arena(r->x), SBX_PREFIX STR_FMT, STR_ARG(q->id)))};
        env[n++] =
            (struct pair){STR("SBX_STREAM_ENDPOINT"),
                          str_of(arena_printf(xchg_arena(r->x), "%s/t/%s", endpoint, q->token))};
    }
    if (events)
        env[n++] = (struct pair){STR("SBX_EVENTS_DIR"), str_of(events)};
    for (size_t i = conf->n; i > 0; i--) {
        struct pair *p = &env[n++];

        p->key = str_cut(arena_str(xchg_arena(r->x), str_of(conf->v[i - 1])), '=', &p->value);
    }
    *ret = env;
    return n;
}

/* Stored in the sandbox's row: the lists of hosts, and the hash of its sidecars' token. */
static void write_note(const struct create_request *q, const char *events, struct buf *to)
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
    if (events)
        jw_kc(&w, "events", events);
    jw_object_end(&w);
}

/* A host that is not a valid rule can be allowed, but never reached; a create that refuses such a
 * host fails, or the host would be open. */
static void put_hosts(struct jw *w, const struct sbx_strings *hosts, bool allow, struct arena *a)
{
    jw_key(w, allow ? "allow" : "deny");
    jw_array(w);
    for (size_t i = 0; i < hosts->n; i++) {
        struct str rule = policy_host_rule(hosts->v[i], a);

        if (!allow || policy_is_rule(rule, true))
            jw_str(w, rule);
    }
    jw_array_end(w);
}

static bool names_all(const struct sbx_strings *hosts)
{
    for (size_t i = 0; i < hosts->n; i++)
        if (str_eq_c(hosts->v[i], "*"))
            return true;
    return false;
}

/* A list of allowed hosts allows nothing else; without one, or with "*" in it, everything but the
 * refused hosts is allowed. */
static void write_policy(const struct create_request *q, struct arena *a, struct buf *to)
{
    bool listed = q->allowed.n > 0 && !names_all(&q->allowed);
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "mode", policy_modes[listed ? POLICY_ALLOWLIST : POLICY_OPEN]);
    put_hosts(&w, &q->allowed, true, a);
    put_hosts(&w, &q->disallowed, false, a);
    jw_object_end(&w);
}

static struct str cache_mode(const struct request *r, const struct create_request *q)
{
    return q->cache_mode.n > 0 ? q->cache_mode : str_of(sbx_settings(r->api->c.conf)->cache_mode);
}

/* The cache shared by sandboxes: a volume, or the host directory that the operator named. */
static bool is_shared(const struct request *r, const struct create_request *q)
{
    return str_case_eq_c(cache_mode(r, q), "hostpath");
}

static bool is_volume(const struct request *r, const struct create_request *q)
{
    return is_shared(r, q) && !sbx_settings(r->api->c.conf)->cache_hostpath[0];
}

/* A claim has its own size and is removed with its sandbox, as with its namespace in Kubernetes. */
static void make_mounts(const struct request *r, const struct create_request *q,
                        struct sandbox_mount to[2])
{
    const struct config *conf = r->api->c.conf;
    struct str mode =
        q->volume_mode.n > 0 ? q->volume_mode : str_of(sbx_settings(conf)->volume_mode);

    to[0] = (struct sandbox_mount){.kind = STR("own"), .target = STR("/workspace")};
    to[1] = (struct sandbox_mount){.kind = STR("own"), .target = STR("/cache")};
    if (str_case_eq_c(mode, "pvc"))
        to[0].size_bytes = WORKSPACE_CLAIM;
    if (str_case_eq_c(cache_mode(r, q), "pvc"))
        to[1].size_bytes = q->cache_bytes;
    /* The host's directory is for people only: files that an agent or a tenant put there would be
     * run by others. */
    if (!is_shared(r, q) || is_volume(r, q) || r->who.role == ROLE_AGENT || r->who.tenant[0])
        return;
    to[1].kind = STR("host");
    to[1].source = str_of(sbx_settings(conf)->cache_hostpath);
}

static void begin(struct request *r, struct create_request *q, struct alias_name name)
{
    const struct config *conf = r->api->c.conf;
    const struct principal by = request_who(r);
    const struct alias_name aliases[] = {name, {STR(SBX_DIALECT), q->id}};
    struct sandbox_mount mounts[2];
    const struct volume_use shared = {.name = STR(SHARED), .path = STR("/cache")};
    AUTO(buf_done) struct buf note = {0}, network = {0};
    struct sandbox_spec spec;
    struct pair *env;
    size_t env_count;
    bool house =
        q->allowed.n == 0 && q->disallowed.n == 0 && sbx_settings(conf)->allowed_hosts.n > 0;

    q->token = sbx_ingest_token(xchg_arena(r->x));
    take_hosts(r, &q->allowed, &sbx_settings(conf)->allowed_hosts);
    take_hosts(r, &q->disallowed, &sbx_settings(conf)->disallowed_hosts);
    env_count = make_env(r, q, &env);
    write_note(q, events_dir(conf), &note);
    write_policy(q, xchg_arena(r->x), &network);
    make_mounts(r, q, mounts);
    spec = (struct sandbox_spec){
        .image = q->image.n > 0        ? q->image
                 : conf->seed_image[0] ? str_of(conf->seed_image)
                                       : STR("ubuntu:22.04"),
        .runtime = str_of(sbx_settings(conf)->runtime),
        .traits = {.limits = {.memory_bytes = sbx_settings(conf)->memory_bytes,
                              .cpu_millis = sbx_settings(conf)->cpu_millis},
                   .idle_ttl_ms = sbx_settings(conf)->idle_ttl_ms},
        .env = env,
        .env_count = env_count,
        .mounts = mounts,
        .mount_count = ARRAY_LEN(mounts) - is_volume(r, q),
        .volumes = &shared,
        .volume_count = is_volume(r, q),
        .network = buf_str(&network),
        .house_network = house,
        .dialect = STR(SBX_DIALECT),
        .note = buf_str(&note),
        .aliases = aliases,
        .alias_count = ARRAY_LEN(aliases),
    };
    spec.tx_hook = idem_of_sandbox(r, &spec.tx_hook_arg);
    sandbox_create(r->api->c.sandboxes, &spec, &by, create_join_end,
                   create_join_begin(r, name, sandbox_made));
}

static void create(struct request *r);

/* The previous sandbox of that name is removed. */
static void failed_sandbox_cleared(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct wait_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    (void)s;
    if (r && e->code != ERR_NONE)
        sbx_refuse(r, e);
    else if (r)
        create(r);
}

/* An existing one stays; one being deleted is awaited, then created again. */
static void take_old(struct request *r, struct sandbox *s)
{
    const struct principal by = request_who(r);
    struct sandbox_info i;
    struct wait_job *j;

    sandbox_info(s, &i);
    if (!i.destroying) {
        sbx_send_names(r, s, NULL, NULL);
        return;
    }
    j = xzalloc(sizeof *j);
    request_wait(r, &j->waiter);
    sandbox_destroy(s, &by, failed_sandbox_cleared, j);
}

static void create(struct request *r)
{
    struct create_request *q = r->in;
    const struct alias_name name = {
        STR(SBX_DIALECT),
        str_of(arena_printf(xchg_arena(r->x), SBX_PREFIX STR_FMT, STR_ARG(q->id)))};
    struct sandbox *s;

    if (create_join_try(r, name, create_joined))
        return;
    s = sandbox_own(r->api->c.sandboxes, &r->who, name);
    if (s)
        take_old(r, s);
    else if (idem_made(r).n > 0) /* it was being destroyed */
        sbx_error(r, 409, MADE_GONE);
    else
        begin(r, q, name);
}

/* Another request may have created it meanwhile. */
static void volume_made(void *arg, struct named *n, const struct err *e)
{
    AUTO(mem_free) struct wait_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    (void)n;
    if (r && e->code != ERR_NONE && e->code != ERR_CONFLICT)
        sbx_refuse(r, e);
    else if (r)
        create(r);
}

static void make_volume(struct request *r)
{
    const struct principal by = request_who(r);
    const struct volume_spec spec = {.name = STR(SHARED), .kind = VOLUME_DISK};
    struct wait_job *j = xzalloc(sizeof *j);
    struct err e = {0};

    if (volume_create(r->api->c.volumes, &spec,
                      &(struct named_call){.by = &by, .done = volume_made, .arg = j}, &e) == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    sbx_refuse(r, &e);
}

static void create_with(struct request *r, struct str body)
{
    struct create_request *q = arena_zalloc(xchg_arena(r->x), sizeof *q);
    const struct volume_asker asker = {str_of(r->who.tenant), &r->who};
    struct err e = {0};

    if (sbx_read_body(body, &create_form, xchg_arena(r->x), &r->body, q, &e) < 0 ||
        read_id(r, q, &e) < 0 || read_size(r, q, &e) < 0 || check(q, &e) < 0) {
        sbx_error(r, err_table[e.code].http, "%s", e.msg);
        return;
    }
    r->in = q;
    if (is_volume(r, q) && !volume_is_there(r->api->c.volumes, STR(SHARED), &asker))
        make_volume(r);
    else
        create(r);
}

void sbx_create(struct request *r)
{
    request_collect(r, create_with);
}
