/* instance: virtual machines and containers: lists, states, start, stop, delete. */
#include "api/dialects/agentic/agentic.h"

#include "base/mem.h"

#include <inttypes.h>

#define STOP_SECONDS 15
#define STOP_SECONDS_MAX 3600

/* --- finding --- */

struct str agentic_name(const struct sandbox_info *i)
{
    return i->name.n > 0 ? i->name : str_of(i->id);
}

bool agentic_is(const struct sandbox_info *i, enum agentic_kind kind)
{
    bool vm = str_eq_c(i->runtime, AGENTIC_VM);

    if (i->state == SANDBOX_DESTROYED || i->destroying)
        return false;
    if (str_eq_c(i->runtime, AGENTIC_REMOTE))
        return kind == AGENTIC_ANY; /* neither: a machine that joined */
    return kind == AGENTIC_ANY || vm == (kind == AGENTIC_VMS);
}

struct sandbox *agentic_find(struct request *r, enum agentic_kind kind)
{
    struct str ref = r->params.v[0];
    int n = (int)size_min(ref.n, 64);
    struct err e = {0};
    struct sandbox *s =
        sandbox_find_as(r->api->c.sandboxes, &r->who, STR(AGENTIC_DIALECT), ref, &e);
    struct sandbox_info i;

    if (s) {
        sandbox_info(s, &i);
        if (agentic_is(&i, kind))
            return s;
    }
    if (kind == AGENTIC_VMS)
        agentic_code(r, 404, "VM_NOT_FOUND", "VM '" STR_FMT "' not found", n, ref.p);
    else if (kind == AGENTIC_CONTAINERS)
        agentic_error(r, 404, "container not found: " STR_FMT, n, ref.p);
    else
        agentic_error(r, 404, "Agent '" STR_FMT "' not found", n, ref.p);
    return NULL;
}

/* --- as JSON --- */

static const char *vm_state(const struct sandbox_info *i)
{
    switch (i->state) {
    case SANDBOX_RUNNING:
        return "running";
    case SANDBOX_PAUSED:
        return "paused";
    case SANDBOX_STOPPING:
        return "shutdown";
    case SANDBOX_STOPPED:
        return "stopped";
    case SANDBOX_FAILED:
        return "crashed";
    case SANDBOX_CREATING:
    case SANDBOX_STARTING:
    case SANDBOX_DESTROYED:
    case SANDBOX_STATE_COUNT:
        break;
    }
    return "unknown";
}

static void write_vm(struct jw *w, const struct sandbox_info *i)
{
    const struct sandbox_limits *l = &i->traits.limits;

    jw_kstr(w, "name", agentic_name(i));
    jw_kc(w, "state", vm_state(i));
    jw_kc(w, "uuid", i->id);
    jw_kint(w, "vcpus", l->cpu_millis > 0 ? (l->cpu_millis + 999) / 1000 : 0);
    jw_kint(w, "memory_mb", l->memory_bytes >> 20);
    if (i->state == SANDBOX_RUNNING && i->started_ms > 0)
        jw_kint(w, "uptime_seconds", (clock_wall_ms() - i->started_ms) / 1000);
}

static void write_container(struct jw *w, const struct sandbox_info *i)
{
    jw_object(w);
    jw_kc(w, "id", i->id);
    jw_kstr(w, "name", agentic_name(i));
    jw_kstr(w, "image", i->image);
    jw_kc(w, "status", i->state == SANDBOX_RUNNING ? "running" : "stopped");
    if (i->ended_ms > 0)
        jw_ktime(w, "finished_at", i->ended_ms);
    jw_object_end(w);
}

/* --- lists --- */

/* state: "running", "stopped", or all. */
static bool is_wanted(struct str state, const struct sandbox_info *i)
{
    if (str_eq_c(state, "running"))
        return i->state == SANDBOX_RUNNING;
    if (str_eq_c(state, "stopped"))
        return i->state != SANDBOX_RUNNING;
    return true;
}

static void list_instances(struct request *r, enum agentic_kind kind, struct str state,
                           struct str prefix)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct jw w = request_json(r);
    struct sandbox_info i;
    int64_t n = 0;

    jw_object(&w);
    jw_key(&w, kind == AGENTIC_VMS ? "vms" : "containers");
    jw_array(&w);
    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        if (!agentic_is(&i, kind) || !is_wanted(state, &i) || !str_starts(agentic_name(&i), prefix))
            continue;
        n++;
        if (kind == AGENTIC_VMS) {
            jw_object(&w);
            write_vm(&w, &i);
            jw_object_end(&w);
        } else {
            write_container(&w, &i);
        }
    }
    jw_array_end(&w);
    jw_kint(&w, "total", n);
    jw_object_end(&w);
    request_send_json(r, 200);
}

void agentic_vms(struct request *r)
{
    struct str prefix = agentic_query(r, "prefix");

    list_instances(r, AGENTIC_VMS, agentic_query(r, "state"),
                   str_eq_c(prefix, "*") ? STR("") : prefix);
}

void agentic_containers(struct request *r)
{
    struct str status = agentic_query(r, "status");

    list_instances(r, AGENTIC_CONTAINERS, status.n > 0 ? status : agentic_query(r, "state"),
                   STR(""));
}

void agentic_vm(struct request *r)
{
    struct sandbox *s = agentic_find(r, AGENTIC_VMS);
    struct sandbox_info i;
    struct jw w;

    if (!s)
        return;
    sandbox_info(s, &i);
    w = request_json(r);
    jw_object(&w);
    write_vm(&w, &i);
    if (i.state == SANDBOX_RUNNING && !i.reconnecting) {
        jw_key(&w, "agent");
        jw_object(&w);
        jw_kbool(&w, "connected", true);
        jw_kint(&w, "connected_at", i.started_ms);
        jw_kstr(&w, "hostname", agentic_name(&i));
        jw_object_end(&w);
    }
    jw_object_end(&w);
    request_send_json(r, 200);
}

void agentic_container(struct request *r)
{
    struct sandbox *s = agentic_find(r, AGENTIC_CONTAINERS);
    struct sandbox_info i;
    struct jw w;

    if (!s)
        return;
    sandbox_info(s, &i);
    w = request_json(r);
    write_container(&w, &i);
    request_send_json(r, 200);
}

/* --- start, stop, delete --- */

struct act { /* one change and its reply */
    struct waiter waiter;
    enum agentic_kind kind;
    enum { ACT_START, ACT_STOP, ACT_DESTROY, ACT_DELETE } what;
    const char *state, *note;
    char *name;
    bool disk;
    int64_t timeout;
};

static void send_changed(struct request *r, const struct act *c)
{
    struct jw w = request_json(r);

    jw_object(&w);
    if (c->what == ACT_DELETE) {
        jw_kbool(&w, "deleted", true);
        jw_kc(&w, "name", c->name);
        if (c->kind != AGENTIC_CONTAINERS)
            jw_kbool(&w, "disk_deleted", c->disk);
    } else if (c->kind == AGENTIC_CONTAINERS) {
        jw_kc(&w, "name", c->name);
        jw_kc(&w, "action", c->what == ACT_START ? "start" : "stop");
        jw_kc(&w, "status", c->what == ACT_START ? "running" : "stopped");
        if (c->what != ACT_START)
            jw_kint(&w, "timeout", c->timeout);
    } else {
        jw_key(&w, "vm");
        jw_object(&w);
        jw_kc(&w, "name", c->name);
        jw_kc(&w, "state", c->state);
        jw_object_end(&w);
        if (c->note)
            jw_kc(&w, "message", c->note);
    }
    jw_object_end(&w);
    request_send_json(r, 200);
}

static void refuse_change(struct request *r, const struct act *c, const struct err *e)
{
    int status = err_table[e->code].http;

    if (c->kind == AGENTIC_VMS)
        agentic_code(r, status, status == 409 ? "VM_STATE_CONFLICT" : "LIBVIRT_ERROR", "%s",
                     e->msg);
    else
        agentic_fail(r, status, e);
}

static void change_done(void *arg, struct sandbox *s, const struct err *e)
{
    struct act *c = arg;
    struct request *r = waiter_end(&c->waiter);

    (void)s;
    if (r && e->code != ERR_NONE)
        refuse_change(r, c, e);
    else if (r)
        send_changed(r, c);
    mem_free(c->name);
    mem_free(c);
}

static struct act *change_begin(struct request *r, const struct sandbox_info *i,
                                enum agentic_kind kind)
{
    struct act *c = xzalloc(sizeof *c);

    c->kind = kind;
    c->name = str_dup(agentic_name(i));
    request_wait(r, &c->waiter);
    return c;
}

static void nothing_to_do(struct request *r, struct act *c)
{
    (void)waiter_end(&c->waiter);
    send_changed(r, c);
    mem_free(c->name);
    mem_free(c);
}

static void start_instance(struct request *r, enum agentic_kind kind)
{
    struct sandbox *s = agentic_find(r, kind);
    const struct principal by = request_who(r);
    struct sandbox_info i;
    struct act *c;

    if (!s)
        return;
    sandbox_info(s, &i);
    c = change_begin(r, &i, kind);
    c->what = ACT_START;
    c->state = "running";
    if (i.state == SANDBOX_RUNNING) {
        c->note = "VM is already running";
        nothing_to_do(r, c);
    } else {
        sandbox_start(s, &by, change_done, c);
    }
}

static int64_t timeout_of(const struct request *r, int64_t preset)
{
    int64_t seconds;

    if (str_parse_i64(agentic_query(r, "timeout"), &seconds) < 0)
        return preset;
    return i64_min(i64_max(seconds, 0), STOP_SECONDS_MAX);
}

static void stop_instance(struct request *r, enum agentic_kind kind, bool force, int64_t seconds)
{
    struct sandbox *s = agentic_find(r, kind);
    const struct principal by = request_who(r);
    struct sandbox_info i;
    struct act *c;

    if (!s)
        return;
    sandbox_info(s, &i);
    c = change_begin(r, &i, kind);
    c->what = ACT_STOP;
    c->timeout = seconds;
    c->state = force || i.state == SANDBOX_STOPPED ? "stopped" : "shutdown";
    c->note = i.state == SANDBOX_STOPPED ? "VM is already stopped"
              : force                    ? "VM was stopped by force"
                                         : "VM was stopped";
    if (i.state == SANDBOX_STOPPED || i.state == SANDBOX_FAILED)
        nothing_to_do(r, c);
    else
        sandbox_stop(s, seconds * 1000, force, &by, change_done, c);
}

static void delete_instance(struct request *r, enum agentic_kind kind, bool force)
{
    struct sandbox *s = agentic_find(r, kind);
    const struct principal by = request_who(r);
    struct sandbox_info i;
    struct act *c;

    if (!s)
        return;
    sandbox_info(s, &i);
    if (!force && i.state == SANDBOX_RUNNING) {
        agentic_code(r, 409, "VM_RUNNING",
                     "VM '" STR_FMT "' is running; stop it, or use force=true",
                     STR_ARG(agentic_name(&i)));
        return;
    }
    c = change_begin(r, &i, kind);
    c->what = ACT_DELETE;
    c->disk = agentic_query_is(r, "delete_disk", false);
    sandbox_destroy(s, &by, change_done, c);
}

void agentic_vm_start(struct request *r)
{
    start_instance(r, AGENTIC_VMS);
}

void agentic_vm_stop(struct request *r)
{
    stop_instance(r, AGENTIC_VMS, agentic_query_is(r, "force", false), timeout_of(r, STOP_SECONDS));
}

void agentic_vm_destroy(struct request *r)
{
    stop_instance(r, AGENTIC_VMS, true, 0);
}

void agentic_vm_delete(struct request *r)
{
    delete_instance(r, AGENTIC_VMS, agentic_query_is(r, "force", false));
}

void agentic_container_start(struct request *r)
{
    start_instance(r, AGENTIC_CONTAINERS);
}

void agentic_container_stop(struct request *r)
{
    stop_instance(r, AGENTIC_CONTAINERS, false, timeout_of(r, 10));
}

void agentic_container_delete(struct request *r)
{
    delete_instance(r, AGENTIC_CONTAINERS, true);
}

/* Of an agent, whatever it runs in. */
void agentic_agent_start(struct request *r)
{
    start_instance(r, AGENTIC_ANY);
}

void agentic_agent_stop(struct request *r)
{
    stop_instance(r, AGENTIC_ANY, false, timeout_of(r, STOP_SECONDS));
}

void agentic_agent_destroy(struct request *r)
{
    stop_instance(r, AGENTIC_ANY, true, 0);
}

void agentic_agent_delete(struct request *r)
{
    delete_instance(r, AGENTIC_ANY, agentic_query_is(r, "force", true));
}

/* --- restart --- */

struct restart {
    struct operation *op;
    struct principal by;
};

static void restart_stopped(void *arg, struct sandbox *s, const struct err *e)
{
    struct restart *j = arg;

    if (e->code != ERR_NONE || !s)
        operation_end(j->op, s, e);
    else
        sandbox_start(s, &j->by, operation_end, j->op);
    mem_free(j);
}

static void restart_read(struct request *r, const json_t *body)
{
    struct sandbox *s = agentic_find(r, AGENTIC_VMS);
    const json_t *seconds = json_object_get(body, "timeout_seconds");
    int64_t wait = json_is_integer(seconds) ? json_integer_value(seconds) : 60;
    bool hard = str_eq_c(agentic_member(body, "mode"), "hard");
    struct sandbox_info i;
    struct restart *j;
    struct jw w;

    if (!s)
        return;
    sandbox_info(s, &i);
    if (i.state != SANDBOX_RUNNING) {
        agentic_code(r, 409, "VM_NOT_RUNNING", "VM '" STR_FMT "' is not running",
                     STR_ARG(agentic_name(&i)));
        return;
    }
    j = xzalloc(sizeof *j);
    j->by = request_who(r);
    j->op = operation_begin(r, "vm_restart", agentic_name(&i));
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "operation");
    operation_write(&w, j->op);
    jw_object_end(&w);
    request_send_json(r, 202);
    sandbox_stop(s, i64_min(i64_max(wait, 0), STOP_SECONDS_MAX) * 1000, hard, &j->by,
                 restart_stopped, j);
}

void agentic_vm_restart(struct request *r)
{
    agentic_collect(r, restart_read);
}
