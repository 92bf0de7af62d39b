/* sandbox: gets, lists and deletes sbx sandboxes. */
#include "api/share/sandbox.h"
#include "api/dialects/sbx/sbx.h"
#include "base/clock.h"
#include "base/mem.h"

/* --- finding --- */

struct sandbox *sbx_find(struct request *r)
{
    struct err e = {0};
    struct sandbox *s =
        sandbox_find_as(r->api->c.sandboxes, &r->who, STR(SBX_DIALECT), r->params.v[0], &e);

    return s;
}

/* A sandbox made by another interface has no namespace: its id is used. */
struct str sbx_namespace(const struct sandbox *s)
{
    struct sandbox_info i;

    sandbox_info(s, &i);
    for (const struct alias *a = i.aliases; a; a = a->next)
        if (str_eq_c(a->name.dialect, SBX_DIALECT) && str_starts(a->name.alias, STR(SBX_PREFIX)))
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

/* --- replies --- */

void sbx_send_names(struct request *r, const struct sandbox *s, const char *phase,
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

/* Kubernetes' phases of a pod. */
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
    sbx_send_names(r, s, phase_of(i.state), NULL);
}

/* In the largest unit, rounded down. */
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
    struct jw w;
    size_t n = 0;

    for (struct sandbox *s = sandbox_next(all, &r->who, STR("")); s;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        if (i.state != SANDBOX_DESTROYED && str_starts(sbx_namespace(s), STR(SBX_PREFIX)))
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

/* --- deleting --- */

void sbx_refuse(struct request *r, const struct err *e)
{
    int status = err_table[e->code].http;

    if (e->code == ERR_CANCELLED) /* a create whose sandbox was deleted meanwhile */
        status = 409;
    sbx_error(r, status >= 400 && status < 500 ? status : 500, "%s", e->msg);
}

struct delete_job {
    struct waiter waiter;
};

static void sandbox_deleted(void *arg, struct sandbox *s, const struct err *e)
{
    AUTO(mem_free) struct delete_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    (void)s;
    if (r && e->code != ERR_NONE) {
        sbx_refuse(r, e);
        return;
    }
    if (!r)
        return;
    sbx_of(r->api)->deletes++;
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
    sandbox_destroy(s, &by, sandbox_deleted, j);
}
