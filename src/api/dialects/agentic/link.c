/* link: agents on other machines: the stream of AgentService.Connect. */

/*   begin: secret ─▶ registration ─▶ ack, session query ─▶ report ─▶ reconcile ─▶ linked
 * Its sandbox is made at the first registration, and started again if it was stopped.  Which
 * commands it keeps, our rows decide: what we do not know is killed. */
#include "api/dialects/agentic/link.h"

#include "api/dialects/agentic/agentic.h"
#include "base/mem.h"
#include "core/remote/remote.h"
#include "core/remote/remote_secret.h"
#include "net/server.h"

#define REGISTER_MS 30000
#define SHUTDOWN_S 5
#define GRACE_S 5
#define LABELS_MAX 32
#define SESSIONS_MAX REMOTE_COMMANDS_MAX

struct link {
    struct waiter waiter;
    struct list node; /* in struct agentic */
    struct api *api;
    char id[REMOTE_ID_MAX + 1];
    struct remote *remote; /* NULL: it has not registered */
    int64_t since_ms;
};

/* --- to the agent --- */

static int link_send(struct link *l, const struct agentic_management_message *m)
{
    return l->waiter.r ? rpc_send(l->waiter.r, m) : 0;
}

enum { /* the numbers of ManagementMessage's members */
       TO_ACK = 1,
       TO_COMMAND = 2,
       TO_SHUTDOWN = 4,
       TO_STDIN = 6,
       TO_PTY = 7,
       TO_QUERY = 8,
       TO_RECONCILE = 9,
       TO_STORED = 101
};
enum { /* … and of AgentMessage's */
       FROM_REGISTRATION = 1,
       FROM_HEARTBEAT = 2,
       FROM_STDOUT = 3,
       FROM_STDERR = 4,
       FROM_LOG = 5,
       FROM_RESULT = 6,
       FROM_METRICS = 7,
       FROM_REPORT = 8,
       FROM_RECONCILED = 9
};

static int tell_start(void *arg, const struct remote_command *c)
{
    AUTO(arena_done) struct arena a = {0};
    struct agentic_command_request q = {
        .command_id = c->id,
        .command = c->argc > 0 ? c->argv[0] : STR(""),
        .working_dir = c->cwd,
        .run_as = c->user,
        .capture_output = true,
        .allocate_pty = c->pty,
        .pty_cols = c->cols,
        .pty_rows = c->rows,
        .pty_term = c->pty ? STR("xterm-256color") : STR(""),
    };
    struct agentic_management_message m = {.payload_case = TO_COMMAND, .command = &q};

    q.args = arena_zalloc(&a, (c->argc + 1) * sizeof *q.args);
    for (size_t i = 1; i < c->argc; i++)
        q.args[q.args_count++] = c->argv[i];
    q.env = arena_zalloc(&a, (c->env_count + 1) * sizeof *q.env);
    for (size_t i = c->env_count; i > 0; i--) { /* of two equal keys the last wins there */
        struct str value, name = str_cut(c->env[i - 1], '=', &value);

        q.env[q.env_count].key = name;
        q.env[q.env_count++].value = value;
    }
    return link_send(arg, &m);
}

static int tell_input(void *arg, struct str command, struct str bytes, bool eof)
{
    struct agentic_stdin_chunk q = {.command_id = command, .data = bytes, .eof = eof};
    struct agentic_management_message m = {.payload_case = TO_STDIN};

    m.stdin = &q;
    return link_send(arg, &m);
}

static int tell_resize(void *arg, struct str command, uint16_t rows, uint16_t cols)
{
    struct agentic_pty_resize size = {.cols = cols, .rows = rows};
    struct agentic_pty_control q = {.command_id = command, .action_case = 2, .resize = &size};
    struct agentic_management_message m = {.payload_case = TO_PTY, .pty_control = &q};

    return link_send(arg, &m);
}

static int tell_signal(void *arg, struct str command, int signal)
{
    struct agentic_pty_signal s = {.signal_number = signal};
    struct agentic_pty_control q = {.command_id = command, .action_case = 3, .signal = &s};
    struct agentic_management_message m = {.payload_case = TO_PTY, .pty_control = &q};

    return link_send(arg, &m);
}

static int tell_stored(void *arg, struct str command, uint64_t out, uint64_t err, bool ended)
{
    struct agentic_output_stored q = {
        .command_id = command, .stdout_offset = out, .stderr_offset = err, .ended = ended};
    struct agentic_management_message m = {.payload_case = TO_STORED, .output_stored = &q};

    return link_send(arg, &m);
}

static void hold(void *arg, bool on)
{
    struct link *l = arg;

    if (l->waiter.r)
        rpc_hold(l->waiter.r, on);
}

static struct request *link_free(struct link *l)
{
    struct request *r = waiter_end(&l->waiter);

    list_unlink(&l->node);
    mem_free(l);
    return r;
}

static void link_close(void *arg, const struct err *why, bool shutdown)
{
    struct link *l = arg;
    struct agentic_shutdown_signal s = {.reason = str_of(why->msg),
                                        .grace_period_seconds = SHUTDOWN_S};
    const struct agentic_management_message m = {.payload_case = TO_SHUTDOWN, .shutdown = &s};
    struct request *r;

    if (shutdown)
        (void)!link_send(l, &m); /* the last message */
    r = link_free(l);
    if (r && shutdown)
        rpc_end(r);
    else if (r)
        request_fail(r, why);
}

static const struct remote_ops ops = {
    .start = tell_start,
    .input = tell_input,
    .resize = tell_resize,
    .signal = tell_signal,
    .stored = tell_stored,
    .hold = hold,
    .close = link_close,
};

/* It broke the contract, or may not go on. */
static void link_fail(struct link *l, const struct err *e)
{
    struct request *r;

    if (l->remote)
        remote_left(l->remote, l);
    r = link_free(l);
    if (r)
        request_fail(r, e);
}

static void link_gone(struct waiter *w)
{
    struct link *l = CONTAINER_OF(w, struct link, waiter);

    if (l->remote)
        remote_left(l->remote, l);
    (void)link_free(l);
}

static void link_drained(void *arg)
{
    struct link *l = arg;

    if (l->waiter.r && l->remote)
        remote_drained(l->remote);
}

/* --- who it is --- */

static bool may_come_first(const struct request *r)
{
    enum conf_first when = r->api->c.conf->remote_first_contact;

    return when == CONF_FIRST_ALWAYS || (when == CONF_FIRST_SEED && r->how == AUTH_IMPLIED);
}

static int refuse(struct err *e, const char *text)
{
    return err_set(e, ERR_UNAUTHENTICATED, 0, "%s", text);
}

/* The first contact decides the secret. */
static int accept_first(struct request *r, struct str id, struct str secret, struct err *e)
{
    struct principal by = r->who;

    if (!may_come_first(r)) {
        (void)refuse(e, "Invalid agent secret");
        return err_hint(e, "make one: holt remote add; or the setting "
                           "remote_first_contact");
    }
    if (!remote_secret_is_valid(secret)) {
        (void)refuse(e, "Invalid agent secret");
        return err_hint(e, "a secret is 64 hex digits: openssl rand -hex 32");
    }
    if (by.role == ROLE_NONE)
        by = remote_secret_owner(r->api->c.remote_secrets, id);
    return remote_secret_set(r->api->c.remote_secrets, id, secret, &by, NULL, NULL, e);
}

static int authenticate(struct request *r, struct str id, struct err *e)
{
    struct str secret = http_req_header(xchg_req(r->x), "x-agent-secret");
    struct auth_view v = request_view(r);
    int64_t retry_ms = 0;

    if (!id.p)
        return refuse(e, "Missing x-agent-id header");
    if (auth_throttle(&r->api->auth, &v, &retry_ms, e) < 0)
        return -1;
    if (!remote_id_is_valid(id)) {
        (void)err_set(e, ERR_INVALID, 0, "x-agent-id is not an agent's id");
        return err_hint(e, "up to %d of a-z, 0-9 and '-', not '-' first", REMOTE_ID_MAX);
    }
    switch (remote_secret_match(r->api->c.remote_secrets, id, secret)) {
    case REMOTE_RIGHT:
        return 0;
    case REMOTE_UNKNOWN:
        return accept_first(r, id, secret, e);
    case REMOTE_WRONG:
        break;
    }
    auth_failed(&r->api->auth, &v);
    return refuse(e, "Invalid agent secret");
}

void agentic_connect_begin(struct request *r)
{
    struct str id = http_req_header(xchg_req(r->x), "x-agent-id");
    struct agentic *g = agentic_of(r->api);
    struct link *l;
    struct err e = {0};

    if (!r->api->c.remotes)
        (void)err_set(&e, ERR_UNSUPPORTED, 0, "no agents are accepted");
    if (e.code != ERR_NONE || authenticate(r, id, &e) < 0) {
        request_refuse(r, &e);
        return;
    }
    xchg_trust(r->x);
    l = xzalloc(sizeof *l);
    l->api = r->api;
    memcpy(l->id, id.p, id.n);
    l->since_ms = clock_mono_ms();
    l->waiter.gone = link_gone;
    list_push(&g->links, &l->node);
    request_wait(r, &l->waiter);
    rpc_on_drained(r, link_drained, l);
}

/* --- registration --- */

struct making {
    struct api *api;
    char id[REMOTE_ID_MAX + 1];
};

/* The agent learns of it: without a sandbox it is of no use. */
static void sandbox_made(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct making *m = arg;
    struct agentic *g = agentic_of(m->api);

    (void)s;
    if (e->code == ERR_NONE || !g)
        return;
    LIST_EACH (&g->links, node) {
        struct link *l = LIST_ENTRY(node, struct link, node);

        if (l->remote && strcmp(l->id, m->id) == 0) {
            link_fail(l, e);
            return;
        }
    }
}

static struct making *making_new(struct link *l)
{
    struct making *m = xzalloc(sizeof *m);

    m->api = l->api;
    memcpy(m->id, l->id, sizeof m->id);
    return m;
}

static void add_label(struct pair *to, size_t *n, struct str key, struct str value)
{
    if (*n < LABELS_MAX && value.n > 0 && value.n <= REMOTE_TEXT_MAX && key.n > 0 &&
        key.n <= REMOTE_TEXT_MAX)
        to[(*n)++] = (struct pair){key, value};
}

static void sandbox_ensure(struct link *l, const struct agentic_agent_registration *q)
{
    struct sandboxes *all = l->api->c.sandboxes;
    struct remote_info i;
    struct pair labels[LABELS_MAX];
    struct sandbox_spec spec = {.name = str_of(l->id),
                                .runtime = STR(AGENTIC_REMOTE),
                                .image = STR("host"),
                                .dialect = STR(AGENTIC_DIALECT),
                                .labels = labels};
    struct principal by;
    struct sandbox *s;
    struct sandbox_info si;
    struct err e;

    remote_info(l->remote, &i);
    s = i.sandbox[0] ? sandbox_find(all, &principal_system, str_of(i.sandbox), &e) : NULL;
    if (s) {
        sandbox_info(s, &si);
        if (si.state == SANDBOX_STOPPED || si.state == SANDBOX_FAILED)
            sandbox_start(s, &principal_system, sandbox_made, making_new(l));
        return;
    }
    add_label(labels, &spec.label_count, STR("profile"), q->profile);
    add_label(labels, &spec.label_count, STR("loadout"), q->loadout);
    for (size_t k = 0; k < q->labels_count; k++)
        add_label(labels, &spec.label_count, q->labels[k].key, q->labels[k].value);
    by = remote_secret_owner(l->api->c.remote_secrets, str_of(l->id));
    remote_expect(l->remote, true);
    sandbox_create(all, &spec, &by, sandbox_made, making_new(l));
}

static void describe(struct link *l, const struct agentic_agent_registration *q)
{
    struct remote_info i = {.hostname = q->hostname,
                            .address = q->ip_address,
                            .profile = q->profile,
                            .loadout = q->loadout,
                            .instance = q->instance_id};

    if (q->system) {
        i.os = q->system->os;
        i.kernel = q->system->kernel;
        i.cpus = q->system->cpu_cores;
        i.memory_bytes = q->system->memory_bytes;
        i.disk_bytes = q->system->disk_bytes;
    }
    remote_describe(l->remote, &i);
}

static int on_registration(struct link *l, const struct agentic_agent_registration *q,
                           struct err *e)
{
    int64_t beat_s = i64_max(remotes_heartbeat(l->api->c.remotes) / 3000, 1);
    struct agentic_registration_ack_config_entry counts = {STR("output_stored"), STR("true")};
    struct agentic_registration_ack ack = {.accepted = true,
                                           .config = &counts,
                                           .config_count = q && q->keeps_output,
                                           .message = STR("registered"),
                                           .heartbeat_interval_seconds = (int32_t)beat_s};
    struct agentic_session_query all = {.report_all = true};
    struct agentic_management_message m = {.payload_case = TO_ACK, .registration_ack = &ack};

    if (!q || (q->agent_id.n > 0 && !str_eq_c(q->agent_id, l->id)))
        return err_set(e, ERR_INVALID, 0, "the registration is of another agent than x-agent-id");
    l->remote = remote_join(l->api->c.remotes, str_of(l->id), &ops, l, q->keeps_output, e);
    if (!l->remote)
        return -1;
    describe(l, q);
    (void)!link_send(l, &m); /* two small messages */
    m = (struct agentic_management_message){.payload_case = TO_QUERY, .session_query = &all};
    (void)!link_send(l, &m);
    sandbox_ensure(l, q);
    return 0;
}

/* --- reconciliation --- */

static bool is_ours(struct link *l, struct sandbox *s, struct str command)
{
    struct exec_info i;
    struct exec *x;
    struct err e;

    if (remote_has(l->remote, command))
        return true;
    x = s ? exec_find(s, command, &e) : NULL;
    if (!x)
        return false;
    exec_info(x, &i);
    return i.state == EXEC_RUNNING || i.state == EXEC_STARTING;
}

static int on_report(struct link *l, const struct agentic_session_report *q, struct err *e)
{
    struct agentic_session_reconcile back = {.grace_period_seconds = GRACE_S};
    const struct agentic_management_message m = {.payload_case = TO_RECONCILE,
                                                 .session_reconcile = &back};
    struct str keep[SESSIONS_MAX], end[SESSIONS_MAX];
    struct remote_info i;
    struct sandbox *s;
    struct err none;

    if (!q || q->sessions_count > SESSIONS_MAX)
        return err_set(e, ERR_TOO_LARGE, 0, "more than %d sessions", SESSIONS_MAX);
    remote_info(l->remote, &i);
    s = i.sandbox[0]
            ? sandbox_find(l->api->c.sandboxes, &principal_system, str_of(i.sandbox), &none)
            : NULL;
    back.keep_session_ids = keep;
    back.kill_session_ids = end;
    for (size_t k = 0; k < q->sessions_count; k++) {
        struct str id = q->sessions[k].command_id;

        if (is_ours(l, s, id))
            keep[back.keep_session_ids_count++] = id;
        else
            end[back.kill_session_ids_count++] = id;
    }
    if (q->sessions_count > 0)
        (void)!link_send(l, &m);
    remote_reported(l->remote, keep, back.keep_session_ids_count);
    return 0;
}

/* --- the other messages --- */

static void on_heartbeat(struct link *l, const struct agentic_heartbeat *q)
{
    const struct remote_numbers n = {.cpu_percent = (double)q->cpu_percent,
                                     .memory_used = q->memory_used_bytes,
                                     .uptime_s = q->uptime_seconds};

    remote_measured(l->remote, &n);
    remote_beat(l->remote,
                q->status == AGENTIC_AGENT_STATUS_AGENT_STATUS_PROVISIONING ||
                    q->status == AGENTIC_AGENT_STATUS_AGENT_STATUS_STARTING,
                q->setup_status, q->setup_progress_json);
}

static void on_metrics(struct link *l, const struct agentic_metrics *q)
{
    struct remote_numbers n = {.known = true,
                               .cpu_percent = (double)q->cpu_percent,
                               .memory_used = q->memory_used_bytes,
                               .memory_total = q->memory_total_bytes,
                               .disk_used = q->disk_used_bytes,
                               .disk_total = q->disk_total_bytes};

    for (size_t i = 0; i < size_min(q->load_avg_count, ARRAY_LEN(n.load)); i++)
        n.load[i] = (double)q->load_avg[i];
    remote_measured(l->remote, &n);
}

static int on_output(struct link *l, const struct agentic_output_chunk *q, bool err, struct err *e)
{
    int64_t at = q->has_offset ? (int64_t)q->offset : -1;

    if (q->has_offset && at < 0)
        return err_set(e, ERR_INVALID, 0, "an offset is out of range");
    return remote_output(l->remote, q->stream_id, err, at, q->data, e);
}

static void on_result(struct link *l, const struct agentic_command_result *q)
{
    bool never = q->exit_code < 0 || (q->exit_code >= 125 && q->exit_code <= 127);
    struct remote_result result = {.exit_code = q->exit_code, .duration_ms = q->duration_ms};

    if (q->error.n > 0 && never)
        result.failure = q->error;
    remote_result(l->remote, q->command_id, &result);
}

static int on_message(struct link *l, const struct agentic_agent_message *m, struct err *e)
{
    if (!l->remote)
        return m->payload_case == FROM_REGISTRATION
                   ? on_registration(l, m->registration, e)
                   : err_set(e, ERR_INVALID, 0, "the first message must be the registration");
    switch (m->payload_case) {
    case FROM_REGISTRATION: /* an update of what it is */
        describe(l, m->registration);
        return 0;
    case FROM_HEARTBEAT:
        on_heartbeat(l, m->heartbeat);
        return 0;
    case FROM_STDOUT:
        return on_output(l, m->stdout, false, e);
    case FROM_STDERR:
        return on_output(l, m->stderr, true, e);
    case FROM_LOG:
        return on_output(l, m->log, true, e);
    case FROM_RESULT:
        on_result(l, m->command_result);
        return 0;
    case FROM_METRICS:
        on_metrics(l, m->metrics);
        return 0;
    case FROM_REPORT:
        return on_report(l, m->session_report, e);
    case FROM_RECONCILED:
    default: /* what it kept or killed is seen by its commands; or it is newer than we are */
        return 0;
    }
}

void agentic_connect(struct request *r, const void *in)
{
    struct link *l;
    struct err e = {0};

    if (!r->waiter)
        return; /* it was refused */
    l = CONTAINER_OF(r->waiter, struct link, waiter);
    if (on_message(l, in, &e) < 0 && r->waiter)
        link_fail(l, &e);
}

/* --- time --- */

/* Gone for too long: its sandbox goes. */
static void remove_gone(struct api *a)
{
    struct remotes *all = a->c.remotes;
    int64_t now = clock_wall_ms();
    struct remote *r;
    size_t at = 0;

    while (remotes_next(all, &at, &r)) {
        struct remote_info i;
        struct sandbox *s;
        struct err e;

        remote_info(r, &i);
        if (i.state != REMOTE_DISCONNECTED || !i.sandbox[0] ||
            now - i.heartbeat_ms < remotes_gone_ms(all))
            continue;
        s = sandbox_find(a->c.sandboxes, &principal_system, str_of(i.sandbox), &e);
        remote_gone(r);
        if (s)
            sandbox_destroy(s, NULL, NULL, NULL);
        return; /* the list may have changed; the others in the next second */
    }
}

void agentic_links_tick(struct api *a, struct agentic *g)
{
    struct err e = {0};

    (void)err_set(&e, ERR_TIMEOUT, 0, "the agent has not registered");
    LIST_EACH (&g->links, node) {
        struct link *l = LIST_ENTRY(node, struct link, node);

        if (!l->remote && clock_mono_ms() - l->since_ms > REGISTER_MS)
            link_fail(l, &e);
    }
    if (a->c.remotes)
        remove_gone(a);
}

void agentic_links_end(struct agentic *g)
{
    struct err e = {0};

    (void)err_set(&e, ERR_UNAVAILABLE, 0, "holtd is stopping");
    while (!list_is_empty(&g->links))
        link_fail(LIST_ENTRY(g->links.next, struct link, node), &e);
}
