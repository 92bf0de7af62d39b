/* sandbox: fluid's sandboxes: find, list, get, start, stop, destroy, address. */
#include "api/dialects/fluid/fluid.h"

#include "api/share/ssh_door.h"
#include "base/mem.h"
#include "core/sandbox/host.h"

#define GRACE_MS 10000 /* of a stop without force */

/* --- what only this interface knows --- */

static struct str note_text(const json_t *note, const char *key)
{
    const json_t *v = json_object_get(note, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

void fluid_note_read(const struct sandbox_info *i, struct fluid_note *ret)
{
    bool ours = str_eq_c(i->dialect, FLUID_DIALECT);

    *ret = (struct fluid_note){.json = ours ? json_loadb(i->note.p, i->note.n, 0, NULL) : NULL};
    ret->agent = note_text(ret->json, "agent_id");
    ret->job = note_text(ret->json, "job_id");
    ret->source = note_text(ret->json, "source");
    ret->idle = json_is_true(json_object_get(ret->json, "idle"));
}

void fluid_note_write(struct buf *to, const struct fluid_note *n)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kstr(&w, "agent_id", n->agent);
    jw_kstr(&w, "job_id", n->job);
    jw_kstr(&w, "source", n->source);
    jw_kbool(&w, "idle", n->idle);
    jw_object_end(&w);
}

/* --- finding --- */

struct sandbox *fluid_find_named(struct request *r, struct str ref)
{
    struct err e = {0};
    struct sandbox *s = sandbox_find_as(r->api->c.sandboxes, &r->who, STR(FLUID_DIALECT), ref, &e);
    struct sandbox_info i;

    if (s) {
        sandbox_info(s, &i);
        if (i.state != SANDBOX_DESTROYED && !i.destroying)
            return s;
    }
    if (!s && e.code == ERR_CONFLICT)
        fluid_refuse(r, &e);
    else
        fluid_error(r, 404, "sandbox not found: " STR_FMT, (int)size_min(ref.n, 64), ref.p);
    return NULL;
}

struct sandbox *fluid_find(struct request *r)
{
    return fluid_find_named(r, r->params.v[0]);
}

struct str fluid_sandbox_id(const struct sandbox_info *i)
{
    for (const struct alias *a = i->aliases; a; a = a->next)
        if (str_eq_c(a->name.dialect, FLUID_DIALECT))
            return a->name.alias;
    return str_of(i->id);
}

struct str fluid_sandbox_name(const struct sandbox_info *i)
{
    return i->name.n > 0 ? i->name : str_of(i->id);
}

/* --- as JSON --- */

const char *fluid_state(const struct sandbox_info *i, const struct fluid_note *n)
{
    if (i->destroying)
        return "DESTROYED";
    switch (i->state) {
    case SANDBOX_CREATING:
    case SANDBOX_STARTING:
        return "STARTING";
    case SANDBOX_RUNNING:
    case SANDBOX_PAUSED:
        return "RUNNING";
    case SANDBOX_STOPPING:
    case SANDBOX_STOPPED:
        return n->idle ? "CREATED" : "STOPPED";
    case SANDBOX_DESTROYED:
        return "DESTROYED";
    case SANDBOX_FAILED:
    case SANDBOX_STATE_COUNT:
        break;
    }
    return "ERROR";
}

static void write_network(struct jw *w, const struct sandbox_info *i)
{
    AUTO(json_decref) json_t *policy = json_loadb(i->network.p, i->network.n, 0, NULL);
    const char *mode = json_string_value(json_object_get(policy, "mode"));

    jw_kc(w, "network", mode ? mode : "none");
}

static struct str source_of(const struct sandbox_info *i, const struct fluid_note *n)
{
    return n->source.n > 0 ? n->source : i->asked_image.n > 0 ? i->asked_image : i->image;
}

static int64_t updated_ms(const struct sandbox_info *i)
{
    return i64_max(i64_max(i->created_ms, i->started_ms), i->ended_ms);
}

static void write_head(struct jw *w, const struct sandbox_info *i, const struct fluid_note *n)
{
    char job[FLUID_ID];

    jw_kstr(w, "id", fluid_sandbox_id(i));
    jw_kstr(w, "job_id", n->job.n > 0 ? n->job : str_of(fluid_id("JOB-", i->id, job)));
    jw_kstr(w, "agent_id", n->agent.n > 0 ? n->agent : i->agent.n > 0 ? i->agent : i->owner);
    jw_kstr(w, "sandbox_name", fluid_sandbox_name(i));
    jw_kstr(w, "base_image", source_of(i, n));
    write_network(w, i);
    if (i->state == SANDBOX_RUNNING)
        jw_kc(w, "ip_address", FLUID_ADDRESS);
    jw_kc(w, "state", fluid_state(i, n));
    if (i->traits.ttl_ms > 0)
        jw_kint(w, "ttl_seconds", (i->traits.ttl_ms + 999) / 1000);
}

void fluid_write_sandbox(struct jw *w, const struct sandbox *s)
{
    struct sandbox_info i;
    struct host_info host;
    struct fluid_note n;
    struct err none = {0};

    sandbox_info(s, &i);
    fluid_note_read(&i, &n);
    jw_object(w);
    write_head(w, &i, &n);
    if (i.host.n > 0) {
        jw_kstr(w, "host_name", i.host);
        if (host_find(sandbox_registry(s), i.host, &host, &none) == 0)
            jw_kc(w, "host_address", host.conf->uri);
    }
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "updated_at", updated_ms(&i));
    jw_object_end(w);
    json_decref(n.json);
}

bool fluid_write_address(struct request *r, struct sandbox *s, struct jw *w, struct err *e)
{
    int port = ssh_door_need(r->api->ssh, s, e);

    if (port < 0)
        return false;
    jw_kc(w, "ip_address", FLUID_ADDRESS);
    jw_kint(w, "ssh_port", port);
    return true;
}

/* --- list, get --- */

static bool matches(const struct request *r, const char *key, struct str value)
{
    struct str want = fluid_query(r, key);

    return want.n == 0 || str_eq(want, value);
}

static bool is_wanted(const struct request *r, const struct sandbox_info *i,
                      const struct fluid_note *n)
{
    char job[FLUID_ID];

    return i->state != SANDBOX_DESTROYED && !i->destroying &&
           matches(r, "agent_id",
                   n->agent.n > 0   ? n->agent
                   : i->agent.n > 0 ? i->agent
                                    : i->owner) &&
           matches(r, "job_id", n->job.n > 0 ? n->job : str_of(fluid_id("JOB-", i->id, job))) &&
           matches(r, "base_image", source_of(i, n)) &&
           matches(r, "state", str_of(fluid_state(i, n))) &&
           matches(r, "vm_name", fluid_sandbox_name(i));
}

static int newest_first(const void *a, const void *b)
{
    struct sandbox_info x, y;

    sandbox_info(*(struct sandbox *const *)a, &x);
    sandbox_info(*(struct sandbox *const *)b, &y);
    return strcmp(y.id, x.id); /* ids are in the order of creation */
}

static size_t wanted_sandboxes(struct request *r, struct sandbox **found)
{
    struct sandboxes *all = r->api->c.sandboxes;
    struct sandbox_info i;
    struct fluid_note n;
    size_t count = 0;

    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        fluid_note_read(&i, &n);
        if (is_wanted(r, &i, &n))
            found[count++] = s;
        json_decref(n.json);
    }
    qsort(found, count, sizeof *found, newest_first);
    return count;
}

static void write_row(struct jw *w, const struct sandbox *s)
{
    struct sandbox_info i;
    struct fluid_note n;

    sandbox_info(s, &i);
    fluid_note_read(&i, &n);
    jw_object(w);
    write_head(w, &i, &n);
    fluid_seconds(w, "created_at", i.created_ms);
    fluid_seconds(w, "updated_at", updated_ms(&i));
    jw_object_end(w);
    json_decref(n.json);
}

void fluid_list(struct request *r)
{
    struct sandbox **found =
        arena_alloc(xchg_arena(r->x), (sandboxes_count(r->api->c.sandboxes) + 1) * sizeof *found);
    struct fluid_page page;
    size_t count, shown = 0;
    struct jw w;

    if (!fluid_read_page(r, &page))
        return;
    count = wanted_sandboxes(r, found);
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "sandboxes");
    jw_array(&w);
    for (size_t k = 0; k < count; k++)
        if (fluid_on_page(&page, (int64_t)k)) {
            write_row(&w, found[k]);
            shown++;
        }
    jw_array_end(&w);
    jw_kint(&w, "total", (int64_t)shown);
    jw_object_end(&w);
    fluid_send(r, 200);
}

void fluid_get(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    struct jw w;
    struct err e = {0};

    if (!s)
        return;
    if (str_eq_c(fluid_query(r, "include_commands"), "true")) {
        if (request_authorise(r, PERM_SANDBOX_CONTENT, &e) < 0)
            request_refuse(r, &e);
        else
            fluid_get_with_commands(r, s);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "sandbox");
    fluid_write_sandbox(&w, s);
    jw_object_end(&w);
    fluid_send(r, 200);
}

/* --- changes --- */

struct change { /* one of a sandbox, and its reply */
    struct waiter waiter;
    struct api *api;
    struct principal by;
    struct sandbox *s;
    bool wait_for_ip;
};

static struct change *change_begin(struct request *r, struct sandbox *s)
{
    struct change *c = xzalloc(sizeof *c);

    c->api = r->api;
    c->by = request_who(r);
    c->s = sandbox_ref(s);
    request_wait(r, &c->waiter);
    return c;
}

static void change_free(struct change *c)
{
    sandbox_unref(c->s);
    mem_free(c);
}
DEFINE_AUTO(struct change *, change_free)

/* --- start --- */

struct start_in {
    bool wait_for_ip;
};
static const struct fluid_field start_fields[] = {
    {"wait_for_ip", FLUID_BOOL, offsetof(struct start_in, wait_for_ip), false},
};
const struct fluid_form fluid_start_form = {FLUID_FORM(start_fields, struct start_in),
                                            .optional = true};

static void sandbox_started(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(change_free) struct change *c = arg;
    struct request *r = waiter_end(&c->waiter);
    struct err wrong = *e;
    struct jw w;

    (void)s;
    if (!r)
        return;
    if (wrong.code == ERR_NONE) {
        w = request_json(r);
        jw_object(&w);
        if (!c->wait_for_ip || fluid_write_address(r, c->s, &w, &wrong)) {
            jw_object_end(&w);
            fluid_send(r, 200);
            return;
        }
    }
    fluid_refuse(r, &wrong);
}

static void note_changed(void *arg, struct sandbox *s, const struct err *e)
{
    struct change *c = arg;

    if (e->code != ERR_NONE)
        sandbox_started(c, s, e);
    else
        sandbox_start(c->s, &c->by, sandbox_started, c);
}

void fluid_start(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    const struct start_in *in = r->in;
    AUTO(buf_done) struct buf text = {0};
    const struct err none = {0};
    struct sandbox_info i;
    struct fluid_note n;
    struct change *c;

    if (!s)
        return;
    sandbox_info(s, &i);
    fluid_note_read(&i, &n);
    c = change_begin(r, s);
    c->wait_for_ip = in->wait_for_ip;
    if (i.state == SANDBOX_RUNNING) {
        sandbox_started(c, s, &none);
    } else if (n.idle) { /* from now on it is one that was started */
        n.idle = false;
        fluid_note_write(&text, &n);
        sandbox_update(s, &(struct sandbox_change){.note = buf_str(&text)}, &c->by, note_changed,
                       c);
    } else {
        sandbox_start(s, &c->by, sandbox_started, c);
    }
    json_decref(n.json);
}

/* --- stop --- */

struct stop_in {
    bool force;
};
static const struct fluid_field stop_fields[] = {
    {"force", FLUID_BOOL, offsetof(struct stop_in, force), false},
};
const struct fluid_form fluid_stop_form = {FLUID_FORM(stop_fields, struct stop_in),
                                           .optional = true};

static void sandbox_stopped(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(change_free) struct change *c = arg;
    struct request *r = waiter_end(&c->waiter);
    struct sandbox_info i;
    struct jw w;

    (void)s;
    if (r && e->code != ERR_NONE)
        fluid_refuse(r, e);
    if (!r || e->code != ERR_NONE)
        return;
    sandbox_info(c->s, &i);
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "sandbox");
    fluid_write_sandbox(&w, c->s);
    jw_kbool(&w, "stopped", true);
    jw_kstr(&w, "sandbox_id", fluid_sandbox_id(&i));
    jw_object_end(&w);
    fluid_send(r, 200);
}

void fluid_stop(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    const struct stop_in *in = r->in;
    const struct err none = {0};
    struct sandbox_info i;
    struct change *c;

    if (!s)
        return;
    sandbox_info(s, &i);
    c = change_begin(r, s);
    if (i.state == SANDBOX_STOPPED || i.state == SANDBOX_FAILED)
        sandbox_stopped(c, s, &none);
    else
        sandbox_stop(s, in->force ? 0 : GRACE_MS, in->force, &c->by, sandbox_stopped, c);
}

/* --- destroy --- */

static void write_destroyed(struct jw *w, const struct sandbox *s)
{
    struct sandbox_info i;
    struct fluid_note n;

    sandbox_info(s, &i);
    fluid_note_read(&i, &n);
    jw_object(w);
    jw_kc(w, "state", "DESTROYED");
    jw_kstr(w, "base_image", source_of(&i, &n));
    jw_kstr(w, "sandbox_name", fluid_sandbox_name(&i));
    if (i.traits.ttl_ms > 0)
        jw_kint(w, "ttl_seconds", (i.traits.ttl_ms + 999) / 1000);
    jw_object_end(w);
    json_decref(n.json);
}

static void sandbox_destroyed(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(change_free) struct change *c = arg;
    struct request *r = waiter_end(&c->waiter);
    struct jw w;

    (void)s;
    if (r && e->code != ERR_NONE)
        fluid_refuse(r, e);
    if (!r || e->code != ERR_NONE)
        return;
    w = request_json(r);
    write_destroyed(&w, c->s);
    fluid_send(r, 200);
}

void fluid_destroy(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    struct change *c;

    if (!s)
        return;
    c = change_begin(r, s);
    sandbox_destroy(s, &c->by, sandbox_destroyed, c);
}

/* --- address --- */

void fluid_ip(struct request *r)
{
    struct sandbox *s = fluid_find(r);
    struct sandbox_info i;
    struct err e = {0};
    struct jw w;

    if (!s)
        return;
    sandbox_info(s, &i);
    if (i.state != SANDBOX_RUNNING) {
        fluid_error(r, 500, "sandbox " STR_FMT " is not running: it has no address",
                    STR_ARG(fluid_sandbox_id(&i)));
        return;
    }
    w = request_json(r);
    jw_object(&w);
    if (!fluid_write_address(r, s, &w, &e)) {
        fluid_refuse(r, &e);
        return;
    }
    jw_object_end(&w);
    fluid_send(r, 200);
}
