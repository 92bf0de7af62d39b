/* session: agentbox sessions: create, get, list, destroy. */
#include "api/dialects/agentbox/agentbox.h"
#include "api/idempotency.h"
#include "api/share/create_join.h"
#include "api/share/sandbox.h"
#include "base/enc.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "core/identity/tenant.h"
#include "proto/digest.h"
#include "proto/jwt.h"

#define ID_MAX ALIAS_MAX
#define HOSTS_MAX 256
#define GRPC_UNKNOWN 2

/* --- finding --- */

static const char *alias_of(const struct sandbox_info *i)
{
    for (const struct alias *a = i->aliases; a; a = a->next)
        if (str_eq_c(a->name.dialect, AGENTBOX_DIALECT))
            return a->name.alias.p;
    return NULL;
}

static bool is_going(const struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    return i.destroying;
}

/* As in the original, a session being created does not exist yet. */
static bool is_live(const struct sandbox_info *i)
{
    return i->state != SANDBOX_CREATING && i->state != SANDBOX_DESTROYED && !i->destroying;
}

/* Including one that is being created or destroyed. */
static struct sandbox *find(const struct request *r, struct str id)
{
    struct err e = {0};

    return id.n ? sandbox_find_as(r->api->c.sandboxes, &r->who, STR(AGENTBOX_DIALECT), id, &e)
                : NULL;
}

struct sandbox *agentbox_session(struct request *r, struct str id)
{
    struct sandbox *s = find(r, id);
    struct sandbox_info i;

    if (!s)
        return NULL;
    sandbox_info(s, &i);
    if (!is_live(&i))
        return NULL;
    sandbox_touch(s);
    return s;
}

/* --- replies --- */

static struct str container_id(struct request *r, const char *id)
{
    unsigned char hash[SHA256_SIZE];
    char *hex = arena_alloc(xchg_arena(r->x), 13);

    sha256(str_of(id), hash);
    enc_hex(hash, 6, hex);
    return str_make(hex, 12);
}

/* Docker's words, as passed on by the original. */
static struct str status_of(enum sandbox_state s)
{
    switch (s) {
    case SANDBOX_CREATING:
    case SANDBOX_STARTING:
        return STR("created");
    case SANDBOX_RUNNING:
        return STR("running");
    case SANDBOX_PAUSED:
        return STR("paused");
    case SANDBOX_STOPPING:
    case SANDBOX_STOPPED:
        return STR("exited");
    case SANDBOX_FAILED:
    case SANDBOX_DESTROYED:
    case SANDBOX_STATE_COUNT:
        break;
    }
    return STR("dead");
}

static void fill(struct request *r, const struct sandbox *s, struct agentbox_session_info *to)
{
    struct sandbox_info i;
    const char *alias;

    sandbox_info(s, &i);
    alias = alias_of(&i);
    *to = (struct agentbox_session_info){
        .session_id = str_of(alias ? alias : i.id),
        .container_id = container_id(r, i.id),
        .created_at = (double)i.created_ms / 1000,
        .last_activity = (double)i.last_activity_ms / 1000,
        .status = status_of(i.state),
        .has_tenant_id = i.tenant.n > 0,
        .tenant_id = i.tenant,
        .sandbox_id = str_of(i.id),
    };
    agentbox_hosts(s, xchg_arena(r->x), &to->allowed_hosts, &to->allowed_hosts_count);
}

/* Callers who may only read get no proxy. */
static void add_proxy(struct request *r, const struct sandbox *s, struct agentbox_session_info *to)
{
    AUTO(buf_done) struct buf url = {0}, hosts = {0};

    if (!request_may(r, PERM_SANDBOX_WRITE))
        return;
    for (size_t i = 0; i < to->allowed_hosts_count && buf_len(&hosts) < JWT_TEXT_MAX / 4; i++)
        buf_printf(&hosts, "%s" STR_FMT, i ? "," : "", STR_ARG(to->allowed_hosts[i]));
    to->has_proxy_url = sandbox_proxy_url(s, buf_str(&hosts), &url);
    to->proxy_url = arena_str(xchg_arena(r->x), buf_str(&url));
}

void agentbox_get_session(struct request *r, const void *in)
{
    const struct agentbox_get_session_request *q = in;
    struct sandbox *s = agentbox_session(r, q->session_id);
    struct agentbox_session_info info;
    const struct agentbox_get_session_response a = {.session = &info};
    struct err e = {0};

    if (!s) {
        err_set(&e, ERR_NOT_FOUND, 0, AGENTBOX_NO_SESSION);
        request_fail(r, &e);
        return;
    }
    fill(r, s, &info);
    add_proxy(r, s, &info);
    rpc_reply(r, &a);
}

static bool is_listed(const struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    return str_eq_c(i.dialect, AGENTBOX_DIALECT) && is_live(&i);
}

void agentbox_list_sessions(struct request *r, const void *in)
{
    struct agentbox_list_sessions_response a = {0};
    struct sandboxes *all = r->api->c.sandboxes;
    struct sandbox_info i;

    (void)in;
    a.sessions =
        arena_alloc(xchg_arena(r->x), size_max(sandboxes_count(all), 1) * sizeof *a.sessions);
    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        if (is_listed(s))
            fill(r, s, &a.sessions[a.sessions_count++]);
    }
    rpc_reply(r, &a);
}

/* --- order ---
 * Sessions of one id are created and ended one after the other, like by the original's lock: a
 * request waits while one is being created or ended. */

struct end_job {
    struct waiter waiter;
};

static void wait_for_end(struct request *r, struct sandbox *s, sandbox_cb ended)
{
    const struct principal by = request_who(r);
    struct end_job *j = xzalloc(sizeof *j);

    request_wait(r, &j->waiter);
    sandbox_destroy(s, &by, ended, j);
}

/* --- creating --- */

static void ask(struct request *r);
static void ended_for_create(void *arg, struct sandbox *s, const struct err *e);

struct create_job {
    struct create_join *creating;
    struct api *api;
    struct principal by;
    char *id, *tenant;
    bool process_api, preset_hosts;
    const struct tx_hook *tx_hook; /* or NULL */
    void *tx_hook_arg;
    struct buf hosts; /* in the form of the session's note */
};

static void session_reply(struct request *r, struct sandbox *s, const struct err *e)
{
    struct agentbox_session_info info;
    const struct agentbox_create_session_response a = {.session = &info};
    struct err wrapped = *e;

    if (e->code == ERR_NONE && is_going(s)) { /* another request has already ended it */
        wait_for_end(r, s, ended_for_create);
        return;
    }
    if (e->code == ERR_NONE) {
        fill(r, s, &info);
        add_proxy(r, s, &info);
        rpc_reply(r, &a);
        return;
    }
    if (e->code == ERR_INVALID || e->code == ERR_FORBIDDEN || e->code == ERR_LIMIT) {
        request_fail(r, e);
        return;
    }
    (void)err_wrap(&wrapped, "Exception calling application");
    rpc_fail_as(r, GRPC_UNKNOWN, &wrapped);
}

static void session_created(void *arg, struct sandbox *s, const struct err *e)
{
    struct create_job *j = arg;

    create_join_end(j->creating, s, e);
    if (j->tx_hook)
        j->tx_hook->free(j->tx_hook_arg);
    mem_free(j->id);
    mem_free(j->tenant);
    buf_done(&j->hosts);
    mem_free(j);
}

static struct str random_uuid(struct request *r)
{
    char *to = arena_alloc(xchg_arena(r->x), 37);
    unsigned char b[16];

    rnd_bytes(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4 (RFC 9562) */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    (void)snprintf(to, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                   b[13], b[14], b[15]);
    return str_make(to, 36);
}

static int check(const struct agentbox_create_session_request *q, struct err *e)
{
    if (q->session_id.n > ID_MAX || str_index(q->session_id, '\0') >= 0)
        return err_set(e, ERR_INVALID, 0, "a session_id has at most %d bytes and no NUL", ID_MAX);
    if (q->allowed_hosts_count > HOSTS_MAX)
        return err_set(e, ERR_INVALID, 0, "at most %d allowed_hosts", HOSTS_MAX);
    if (agentbox_hosts_check(q->allowed_hosts, q->allowed_hosts_count, e) < 0)
        return -1;
    return tenant_check(q->tenant_id, e);
}

/* The writable parts of the read-only root.  A tenant's sessions share host directories for the
 * first two; /tmp is as large as the disk limit, since pip unpacks there. */
static const char *const shared_names[] = {"workspace", "outputs", NULL};
static const char *const writable[] = {"/workspace", "/mnt/user-data/outputs", "/tmp"};

static bool is_shared(const struct create_job *j)
{
    return j->tenant[0] && agentbox_settings(j->api->c.conf)->storage_path[0];
}

static void make_mounts(const struct create_job *j, struct buf paths[2], struct sandbox_mount *to)
{
    for (size_t i = 0; i < ARRAY_LEN(writable); i++) {
        to[i] = (struct sandbox_mount){.kind = STR("own"), .target = str_of(writable[i])};
        if (!is_shared(j) || i >= 2)
            continue;
        buf_printf(&paths[i], "%s/%s/%s", agentbox_settings(j->api->c.conf)->storage_path,
                   j->tenant, shared_names[i]);
        to[i].kind = STR("host");
        to[i].source = buf_str(&paths[i]);
    }
}

static void create(struct create_job *j)
{
    const struct config *conf = j->api->c.conf;
    const struct alias_name alias = {STR(AGENTBOX_DIALECT), str_of(j->id)};
    /* The root is read-only: packages go where pip --user finds them, and cannot break what a
     * distribution's EXTERNALLY-MANAGED (PEP 668) protects. */
    const struct pair env[] = {
        {STR("PIP_BREAK_SYSTEM_PACKAGES"), STR("1")},
        {STR("PYTHONUSERBASE"), STR("/workspace/.local")},
        {STR("PATH"), STR("/workspace/.local/bin:/usr/local/sbin:/usr/local/bin:"
                          "/usr/sbin:/usr/bin:/sbin:/bin")},
    };
    AUTO(buf_done) struct buf network = {0};
    struct buf paths[2] = {{0}, {0}};
    struct sandbox_mount mounts[ARRAY_LEN(writable)];

    make_mounts(j, paths, mounts);
    agentbox_hosts_policy(buf_str(&j->hosts), &network);
    sandbox_create(j->api->c.sandboxes,
                   &(struct sandbox_spec){
                       .image = conf->seed_image[0] ? str_of(conf->seed_image)
                                                    : STR("agentbox-sandbox:latest"),
                       .runtime = str_of(agentbox_of(j->api)->runtime),
                       .tenant = str_of(j->tenant),
                       .traits = {.limits = {.memory_bytes = 4LL << 30, .cpu_millis = 4000},
                                  .rootfs_ro = true,
                                  .process_api = j->process_api,
                                  .idle_ttl_ms = agentbox_settings(conf)->session_timeout_ms},
                       .env = env,
                       .env_count = ARRAY_LEN(env),
                       .mounts = mounts,
                       .mount_count = ARRAY_LEN(mounts),
                       .network = buf_str(&network),
                       .house_network = j->preset_hosts,
                       .dialect = STR(AGENTBOX_DIALECT),
                       .note = buf_str(&j->hosts),
                       .aliases = &alias,
                       .alias_count = 1,
                       .tx_hook = TAKE(j->tx_hook),
                       .tx_hook_arg = j->tx_hook_arg,
                   },
                   &j->by, session_created, j);
    buf_done(&paths[0]);
    buf_done(&paths[1]);
}

/* The log says which it is. */
static void runtime_tried(void *arg, struct sandbox *none, const struct err *e)
{
    struct create_job *j = arg;
    struct agentbox *a = agentbox_of(j->api);

    (void)none;
    if (a->weaker) {
        if (e->code != ERR_NONE)
            a->runtime = a->weaker;
        a->weaker = NULL;
        log_info("agentbox's sessions", LOG_C("runtime", a->runtime),
                 LOG_C("why", e->code == ERR_NONE ? "gVisor works here" : e->msg));
    }
    create(j);
}

static void try_and_create(struct create_job *j)
{
    const struct agentbox *a = agentbox_of(j->api);

    if (a->weaker)
        sandboxes_try(j->api->c.sandboxes, str_of(a->runtime), runtime_tried, j);
    else
        create(j);
}

static void storage_made(void *arg, const struct err *e)
{
    if (e->code == ERR_NONE)
        try_and_create(arg);
    else
        session_created(arg, NULL, e);
}

static void begin(struct request *r, struct str id, const struct agentbox_create_session_request *q)
{
    struct create_job *j = xzalloc(sizeof *j);

    j->api = r->api;
    j->by = request_who(r);
    j->id = str_dup(id);
    j->tenant = str_dup(q->tenant_id);
    j->process_api =
        q->has_process_api ? q->process_api : agentbox_settings(r->api->c.conf)->process_api;
    j->preset_hosts = agentbox_hosts_are_preset(q->allowed_hosts, q->allowed_hosts_count);
    agentbox_hosts_note(q->allowed_hosts, q->allowed_hosts_count, &j->hosts);
    j->tx_hook = idem_of_sandbox(r, &j->tx_hook_arg);
    j->creating =
        create_join_begin(r, (struct alias_name){STR(AGENTBOX_DIALECT), id}, session_reply);
    if (is_shared(j))
        tenant_make_dirs(server_loop(r->api->server), &j->by,
                         (struct tenant_dirs){agentbox_settings(r->api->c.conf)->storage_path,
                                              str_of(j->tenant), shared_names},
                         storage_made, j);
    else
        try_and_create(j);
}

/* The session that the same request made before. */
static int made_id(struct request *r, struct str *ret, struct err *e)
{
    struct sandbox *s = sandbox_find(r->api->c.sandboxes, &r->who, idem_made(r), &(struct err){0});
    struct sandbox_info i;

    if (!s || is_going(s))
        return err_set(e, ERR_CONFLICT, 0, "the session of this Idempotency-Key is gone");
    sandbox_info(s, &i);
    *ret = arena_str(xchg_arena(r->x), str_of(alias_of(&i)));
    return 0;
}

static void ask(struct request *r)
{
    const struct agentbox_create_session_request *q = r->in;
    struct str id = q->session_id;
    const struct err none = {0};
    struct sandbox *s;
    struct err e = {0};

    if (idem_made(r).n > 0 && made_id(r, &id, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    if (id.n == 0)
        id = random_uuid(r);
    if (create_join_try(r, (struct alias_name){STR(AGENTBOX_DIALECT), id}, session_reply))
        return;
    s = sandbox_own(r->api->c.sandboxes, &r->who, (struct alias_name){STR(AGENTBOX_DIALECT), id});
    if (!s) {
        begin(r, id, q);
        return;
    }
    sandbox_touch(s);
    session_reply(r, s, &none);
}

static void ended_for_create(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct end_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        session_reply(r, s, e);
    else if (r)
        ask(r);
}

void agentbox_create_session(struct request *r, const void *in)
{
    struct err e = {0};

    if (check(in, &e) < 0)
        request_fail(r, &e);
    else
        ask(r);
}

/* --- destroying --- */

static void answer_destroy(struct request *r, bool success)
{
    const struct agentbox_destroy_session_response a = {.success = success};

    rpc_reply(r, &a);
}

static void session_destroyed(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct end_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    (void)s;
    if (r)
        answer_destroy(r, e->code == ERR_NONE);
}

static void destroyed_by_other(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct end_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    (void)s, (void)e;
    if (r)
        answer_destroy(r, false);
}

static void session_destroy(struct request *r, struct sandbox *s, const struct err *e)
{
    if (s && e->code == ERR_NONE)
        wait_for_end(r, s, is_going(s) ? destroyed_by_other : session_destroyed);
    else
        answer_destroy(r, false);
}

void agentbox_destroy_session(struct request *r, const void *in)
{
    const struct agentbox_destroy_session_request *q = in;
    const struct err none = {0};

    if (!create_join_try(r, (struct alias_name){STR(AGENTBOX_DIALECT), q->session_id},
                         session_destroy))
        session_destroy(r, find(r, q->session_id), &none);
}
