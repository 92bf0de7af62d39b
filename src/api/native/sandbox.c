/* sandbox: sandboxes: create, list, get, update, start, stop, destroy. */
#include "api/share/sandbox.h"

#include "api/idempotency.h"
#include "api/native/handlers.h"
#include "api/native/write.h"
#include "api/reply_list.h"
#include "base/mem.h"
#include "core/network/secret.h"
#include "core/policy/policy.h"
#include "core/sandbox/crash.h"
#include "core/sandbox/traits.h"
#include "core/sandbox/volume.h"

/* --- finding the object of a request --- */

struct principal request_who(const struct request *r)
{
    struct principal who = r->who;

    who.token = NULL;
    return who;
}

/* Records which content was read: rows fold by object, so a file's path is part of its name. */
static void audit_read(struct request *r, const struct sandbox *s)
{
    struct str path = {0};
    struct sandbox_info i;
    const char *object;

    if (!r->op->audited || r->audited)
        return;
    r->audited = true;
    sandbox_info(s, &i);
    if (http_query_get(xchg_req(r->x)->query, "path", xchg_arena(r->x), &path) < 0)
        path = (struct str){0};
    object = arena_printf(xchg_arena(r->x), "sandbox/%s%s" STR_FMT, i.id, path.n ? ":" : "",
                          (int)size_min(path.n, EVENT_NAME_MAX / 2), path.n ? path.p : "");
    request_audit(r, "request.read", object, 200);
}

struct sandbox *request_sandbox(struct request *r, struct str ref)
{
    struct err e = {0};
    struct sandbox *s = sandbox_find(r->api->c.sandboxes, &r->who, ref, &e);

    if (s) {
        audit_read(r, s);
        return s;
    }
    if (!e.object[0])
        (void)snprintf(e.object, sizeof e.object, "sandbox/" STR_FMT, (int)size_min(ref.n, 64),
                       ref.p);
    if (e.code == ERR_FORBIDDEN)
        request_refuse(r, &e);
    else
        request_fail(r, &e);
    return NULL;
}

struct exec *request_exec(struct request *r, struct str sandbox, struct str exec)
{
    struct sandbox *s = request_sandbox(r, sandbox);
    struct err e = {0};
    struct exec *x;

    if (!s)
        return NULL;
    x = exec_named(s, exec);
    if (!x)
        x = str_eq_c(exec, OP_EXEC_NEWEST) ? exec_newest(s, &e) : exec_find(s, exec, &e);
    if (x)
        return exec_ref(x);
    if (!e.object[0])
        (void)snprintf(e.object, sizeof e.object, "exec/" STR_FMT, (int)size_min(exec.n, 64),
                       exec.p);
    request_fail(r, &e);
    return NULL;
}

struct guest *request_guest(struct request *r, struct str ref)
{
    struct sandbox *s = request_sandbox(r, ref);
    struct err e = {0};
    struct guest *g;

    if (!s)
        return NULL;
    g = sandbox_guest(s, &e);
    if (!g)
        request_fail(r, &e);
    return g;
}

/* --- as JSON --- */

/* Whether it has a disk limit of its own. */
static bool asks_for_disk(const struct sandbox_info *i)
{
    for (size_t k = 0; k < i->mount_count; k++)
        if (str_eq_c(i->mounts[k].kind, "own") && i->mounts[k].size_bytes > 0)
            return true;
    return i->traits.limits.disk_bytes > 0;
}

static void warn_unenforced(struct jw *w, const char *limit)
{
    char text[128];

    (void)snprintf(text, sizeof text, "%s is not enforced on this host (holt doctor shows why)",
                   limit);
    jw_c(w, text);
}

/* The name comes from the caller and the operator: an alias is matched completely. */
static void warn_image(struct jw *w, const struct sandbox_info *i)
{
    AUTO(buf_done) struct buf text = {0};

    if (i->asked_image.n == 0)
        return;
    buf_printf(&text, "'" STR_FMT "' means ", STR_ARG(i->asked_image));
    if (str_eq_c(i->image, "host"))
        buf_printf(&text,
                   "the host's own files here (setting image_aliases); `holt image pull " STR_FMT
                   "` downloads the image",
                   STR_ARG(i->asked_image));
    else
        buf_printf(&text, "image " STR_FMT " here (setting image_aliases)", STR_ARG(i->image));
    jw_str(w, buf_str(&text));
}

static bool is_missing(const struct trait *c, const struct sandbox_info *i)
{
    bool asked = c->bit == LIMIT_DISK ? asks_for_disk(i) : trait_number(c, &i->traits) != 0;

    return asked && !(i->enforced & c->bit);
}

static void write_unenforced(struct jw *w, const struct sandbox_info *i)
{
    jw_key(w, "unenforced");
    jw_array(w);
    for (size_t k = 0; k < trait_count; k++)
        if (trait_table[k].type == TRAIT_LIMIT && is_missing(&trait_table[k], i))
            jw_c(w, trait_table[k].name);
    if (!(i->enforced & LIMIT_KILL))
        jw_c(w, "kill");
    if (!(i->enforced & LIMIT_PAUSE))
        jw_c(w, "pause");
    if (i->traits.reach == SANDBOX_REACHES_RAW)
        jw_c(w, "network");
    if (i->path_rules && !(i->enforced & LIMIT_PATHS))
        jw_c(w, "paths");
    jw_array_end(w);
}

static void write_warnings(struct jw *w, const struct sandbox_info *i)
{
    jw_key(w, "warnings");
    jw_array(w);
    warn_image(w, i);
    for (size_t k = 0; k < trait_count; k++)
        if (trait_table[k].type == TRAIT_LIMIT && is_missing(&trait_table[k], i))
            warn_unenforced(w, trait_table[k].name);
    if (i->path_rules && !(i->enforced & LIMIT_PATHS))
        jw_c(w, "path rules hold for the file API, but not for commands: the kernel inside has no "
                "Landlock, or one without truncate (Linux 6.2)");
    jw_array_end(w);
}

static void write_limits(struct jw *w, const struct sandbox_info *i)
{
    jw_key(w, "limits");
    jw_object(w);
    for (size_t k = 0; k < trait_count; k++) {
        const struct trait *t = &trait_table[k];

        if (t->type == TRAIT_LIMIT)
            jw_kint_if(w, t->name, trait_number(t, &i->traits) != 0, trait_number(t, &i->traits));
    }
    jw_object_end(w);
}

void sandbox_write_brief(struct jw *w, const struct sandbox *sandbox)
{
    struct sandbox_info i;

    sandbox_info(sandbox, &i);
    jw_object(w);
    jw_kstr(w, "id", str_of(i.id));
    jw_kstr(w, "image", i.image);
    write_unenforced(w, &i);
    write_warnings(w, &i);
    jw_object_end(w);
}

void sandbox_write_warnings(struct jw *w, const struct sandbox *sandbox)
{
    struct sandbox_info i;

    sandbox_info(sandbox, &i);
    write_warnings(w, &i);
}

static void write_labels(struct jw *w, const struct sandbox_info *i)
{
    AUTO(buf_done) struct buf key = {0};

    jw_key(w, "labels");
    jw_object(w);
    for (size_t k = 0; k < i->label_count; k++) {
        buf_clear(&key);
        buf_add_str(&key, i->labels[k].key);
        jw_key(w, buf_cstr(&key));
        jw_str(w, i->labels[k].value);
    }
    jw_object_end(w);
}

static void write_mounts(struct jw *w, const struct sandbox_info *i)
{
    jw_key(w, "mounts");
    jw_array(w);
    for (size_t k = 0; k < i->mount_count; k++) {
        const struct sandbox_mount *m = &i->mounts[k];

        if (volume_is_mount(m))
            continue;
        jw_object(w);
        jw_kstr(w, "kind", m->kind);
        jw_ktext(w, "source", m->source);
        jw_kstr(w, "target", m->target);
        jw_kbool(w, "readonly", m->readonly);
        jw_kint_if(w, "size_bytes", m->size_bytes != 0, m->size_bytes);
        jw_object_end(w);
    }
    jw_array_end(w);
}

/* An index of op_sandbox_states. */
static int shown_state(const struct sandbox_info *i)
{
    return i->orphan ? SANDBOX_STATE_COUNT : (int)i->state;
}

static void write_aliases(struct jw *w, const struct sandbox_info *i)
{
    jw_key(w, "aliases");
    jw_array(w);
    for (const struct alias *a = i->aliases; a; a = a->next) {
        jw_object(w);
        jw_kstr(w, "dialect", a->name.dialect);
        jw_kstr(w, "alias", a->name.alias);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void write_volumes(struct jw *w, const struct sandbox *s, const struct sandbox_info *i)
{
    struct volumes *all = sandboxes_volumes(sandbox_registry(s));

    jw_key(w, "volumes");
    jw_array(w);
    for (size_t k = 0; k < i->mount_count; k++) {
        const struct sandbox_mount *m = &i->mounts[k];
        struct volume_info v = {0};
        struct volume *at;
        struct err e;

        if (!volume_is_mount(m))
            continue;
        at = all ? volume_find(all, &principal_system, VOLUME_SEE, STR(""), m->source, &e) : NULL;
        if (at)
            volume_info(at, &v);
        jw_object(w);
        jw_kstr(w, "id", m->source);
        jw_ktext(w, "name", v.name);
        jw_kstr(w, "path", m->target);
        jw_kbool(w, "read_only", m->readonly);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void write_secrets(struct jw *w, const struct sandbox *s, const struct sandbox_info *i)
{
    jw_key(w, "secrets");
    jw_array(w);
    for (size_t k = 0; k < i->secret_count; k++) {
        jw_object(w);
        jw_kc(w, "name", i->secrets[k].name);
        jw_kc(w, "env", i->secrets[k].env);
        jw_key(w, "unreachable");
        sandbox_secret_unreached(s, k, w);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void write_policies(struct jw *w, const struct sandbox *s, const struct sandbox_info *i)
{
    struct policy_force f;
    struct policy_info p;

    jw_ktext(w, "policy", i->policy);
    sandbox_policies(s, &f);
    jw_key(w, "policies");
    jw_array(w);
    for (size_t k = 0; k < f.n; k++) {
        policy_info(f.v[k], &p);
        jw_str(w, p.name);
    }
    jw_array_end(w);
}

void sandbox_write_json(struct jw *w, const struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_ktext(w, "name", i.name);
    write_aliases(w, &i);
    jw_kc(w, "state", op_sandbox_states[shown_state(&i)]);
    jw_kstr(w, "image", i.image);
    jw_ktext(w, "snapshot", i.snapshot);
    jw_ktext(w, "forked_from", i.forked_from);
    jw_kstr(w, "runtime", i.runtime);
    jw_ktext(w, "host", i.host);
    jw_ktext(w, "tenant", i.tenant);
    jw_kstr(w, "owner", i.owner);
    jw_key(w, "network");
    jw_raw(w, i.network);
    write_limits(w, &i);
    write_unenforced(w, &i);
    write_warnings(w, &i);
    traits_reply(w, &i.traits);
    jw_ktext(w, "agent", i.agent);
    write_policies(w, s, &i);
    write_labels(w, &i);
    write_mounts(w, &i);
    write_volumes(w, s, &i);
    write_secrets(w, s, &i);
    jw_kint(w, "execs_live", i.execs_live);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "started_at", i.started_ms);
    jw_ktime(w, "ended_at", i.ended_ms);
    jw_ktime(w, "active_at", i.last_activity_ms);
    jw_ktext(w, "failure", i.failure);
    jw_object_end(w);
}

/* --- changes: each is a job that replies at its end --- */

struct sandbox_job {
    struct waiter waiter;
    struct api *api;
    struct principal by;
    struct idem *idem; /* of create, or NULL: the key is held until the end */
    bool empty;        /* the reply has no body */
};

static struct sandbox_job *job_new(struct request *r)
{
    struct sandbox_job *j = xzalloc(sizeof *j);

    j->api = r->api;
    j->by = request_who(r);
    request_wait(r, &j->waiter);
    return j;
}

static void job_free(struct sandbox_job *j)
{
    idem_unref(j->idem);
    mem_free(j);
}

static void job_done(void *arg, struct sandbox *s, const struct err *e)
{
    struct sandbox_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (r && j->empty) {
        request_send_empty(r);
    } else if (r) {
        struct jw w = request_json(r);

        sandbox_write_json(&w, s);
        request_send_json(r, 0);
    }
    job_free(j);
}

/* --- create --- */

static void put_created(const void *object, struct buf *name, struct buf *reply)
{
    struct jw w = {.to = reply};
    struct sandbox_info i;

    sandbox_info(object, &i);
    buf_printf(name, "sandbox/%s", i.id);
    sandbox_write_json(&w, object);
    buf_add_char(reply, '\n');
}

void sandbox_create_run(struct request *r)
{
    const struct sandbox_create_in *in = r->in;
    struct arena *a = xchg_arena(r->x);
    struct sandbox_spec spec;
    struct sandbox_job *j;
    struct err e = {0};

    if (spec_read_sandbox(r, &in->sandbox, a, &spec, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    spec.name = in->name;
    spec.env = spec_pairs(&in->env, a);
    spec.env_count = in->env.n;
    j = job_new(r);
    j->idem = TAKE(r->idem);
    if (j->idem)
        spec.tx_hook = idem_hook(idem_ref(j->idem), 201, put_created, &spec.tx_hook_arg);
    sandbox_create(r->api->c.sandboxes, &spec, &j->by, job_done, j);
}

/* --- list, get --- */

static bool has_labels(const struct sandbox_info *i, const struct op_map *want)
{
    for (size_t k = 0; k < want->n; k++) {
        bool found = false;

        for (size_t l = 0; l < i->label_count && !found; l++)
            found = str_eq(i->labels[l].key, want->v[k].key) &&
                    str_eq(i->labels[l].value, want->v[k].value);
        if (!found)
            return false;
    }
    return true;
}

static bool is_wanted(struct request *r, const struct sandbox *s, struct sandbox_info *i)
{
    const struct sandbox_list_in *in = r->in;

    sandbox_info(s, i);
    return (in->state < 0 || shown_state(i) == in->state) &&
           (!in->runtime.p || str_eq(i->runtime, in->runtime)) && has_labels(i, &in->label);
}

void sandbox_list_run(struct request *r)
{
    const struct sandbox_list_in *in = r->in;
    struct sandboxes *all = r->api->c.sandboxes;
    struct jw w = request_json(r);
    struct sandbox_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "sandboxes", STR(""), in->limit);
    for (struct sandbox *s = sandbox_next(all, &r->who, in->cursor); s && !l.more;
         s = sandbox_next(all, &r->who, str_of(i.id)))
        if (is_wanted(r, s, &i) && reply_list_take(&l, str_of(i.id)))
            sandbox_write_json(&w, s);
    reply_list_end(&l);
    request_send_json(r, 0);
}

void sandbox_get_run(struct request *r)
{
    const struct sandbox_id_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct jw w;

    if (!s)
        return;
    w = request_json(r);
    sandbox_write_json(&w, s);
    request_send_json(r, 0);
}

/* --- update, destroy, start, stop --- */

void sandbox_update_run(struct request *r)
{
    const struct sandbox_update_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_change c = {
        .name = in->name,
        .traits = in->traits,
        .given = in->given,
        .policy = in->policy,
    };
    struct sandbox_job *j;
    struct err e = {0};

    if (!s)
        return;
    if (spec_read_labels(in->labels, xchg_arena(r->x), &c, &e) < 0 ||
        spec_read_network(in->network, &(struct op_list){0}, xchg_arena(r->x), &c.network, &e) <
            0) {
        request_fail(r, &e);
        return;
    }
    j = job_new(r);
    sandbox_update(s, &c, &j->by, job_done, j);
}

void sandbox_destroy_run(struct request *r)
{
    const struct sandbox_id_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_job *j;

    if (!s)
        return;
    j = job_new(r);
    j->empty = true;
    sandbox_destroy(s, &j->by, job_done, j);
}

void sandbox_start_run(struct request *r)
{
    const struct sandbox_id_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_job *j;

    if (!s)
        return;
    j = job_new(r);
    sandbox_start(s, &j->by, job_done, j);
}

void sandbox_stop_run(struct request *r)
{
    const struct sandbox_stop_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_job *j;

    if (!s)
        return;
    j = job_new(r);
    sandbox_stop(s, in->grace_ms, in->force, &j->by, job_done, j);
}

/* Continues after the client has disconnected: a restart must not leave it stopped. */
static void stopped_to_start(void *arg, struct sandbox *s, const struct err *e)
{
    struct sandbox_job *j = arg;

    if (e->code == ERR_NONE)
        sandbox_start(s, &j->by, job_done, j);
    else
        job_done(j, s, e);
}

void sandbox_restart_run(struct request *r)
{
    const struct sandbox_stop_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_info i;
    struct sandbox_job *j;

    if (!s)
        return;
    j = job_new(r);
    sandbox_info(s, &i);
    if (i.state == SANDBOX_STOPPED)
        sandbox_start(s, &j->by, job_done, j);
    else
        sandbox_stop(s, in->grace_ms, in->force, &j->by, stopped_to_start, j);
}

static void stopped_to_remake(void *arg, struct sandbox *s, const struct err *e)
{
    struct sandbox_job *j = arg;

    if (e->code == ERR_NONE)
        sandbox_reprovision(s, &j->by, job_done, j);
    else
        job_done(j, s, e);
}

void sandbox_reprovision_run(struct request *r)
{
    const struct sandbox_id_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_info i;
    struct sandbox_job *j;

    if (!s)
        return;
    j = job_new(r);
    sandbox_info(s, &i);
    if (i.state == SANDBOX_STOPPED || i.state == SANDBOX_FAILED)
        sandbox_reprovision(s, &j->by, job_done, j);
    else
        sandbox_stop(s, 0, true, &j->by, stopped_to_remake, j);
}

static void write_history(struct jw *w, const struct sandbox_crashes *c)
{
    jw_key(w, "history");
    jw_array(w);
    for (int64_t i = c->n; i > 0; i--) {
        const struct sandbox_crash *x = &c->v[i - 1];

        jw_object(w);
        jw_ktime(w, "at", x->at_ms);
        jw_kint_if(w, "uptime_ms", x->uptime_ms >= 0, x->uptime_ms);
        jw_kc(w, "why", x->why);
        jw_object_end(w);
    }
    jw_array_end(w);
}

void sandbox_crashes_run(struct request *r)
{
    const struct sandbox_id_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_crashes c;
    struct sandbox_info i;
    struct jw w;

    if (!s)
        return;
    sandbox_crashes(s, &c);
    sandbox_info(s, &i);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "id", i.id);
    jw_kc(&w, "state", crash_state_name(crash_state(&c)));
    jw_kint(&w, "crashes", c.total);
    jw_kint(&w, "rebuilds", c.rebuilds);
    jw_ktime(&w, "loop_since", c.loop_ms);
    jw_ktime(&w, "rebuild_at", c.rebuild_at_ms);
    write_history(&w, &c);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void sandbox_crash_reset_run(struct request *r)
{
    const struct sandbox_id_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_job *j;

    if (!s)
        return;
    j = job_new(r);
    sandbox_crash_reset(s, &j->by, job_done, j);
}

static void pause_or_resume(struct request *r, bool on)
{
    const struct sandbox_id_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_job *j;

    if (!s)
        return;
    j = job_new(r);
    sandbox_pause(s, on, &j->by, job_done, j);
}

void sandbox_pause_run(struct request *r)
{
    pause_or_resume(r, true);
}

void sandbox_resume_run(struct request *r)
{
    pause_or_resume(r, false);
}
