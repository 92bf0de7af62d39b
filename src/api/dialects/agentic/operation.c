/* operation: work that goes on after its reply. */
#include "api/dialects/agentic/agentic.h"

#include "base/mem.h"
#include "core/identity/owner.h"

#define KEEP_MS (60 * 60 * 1000) /* after their end */
#define OPERATIONS_MAX 10000

struct operation {
    struct list link;
    struct agentic *all; /* NULL: the daemon ends */
    char id[ID_SIZE];
    const char *type;
    char *target, *owner, *tenant, *error;
    int64_t created_ms, ended_ms; /* 0: it runs */
};

static void operation_free(struct operation *o)
{
    list_unlink(&o->link);
    mem_free(o->target);
    mem_free(o->owner);
    mem_free(o->tenant);
    mem_free(o->error);
    mem_free(o);
}

struct operation *operation_begin(struct request *r, const char *type, struct str target)
{
    struct agentic *g = agentic_of(r->api);
    struct operation *o = xzalloc(sizeof *o);

    o->all = g;
    id_make("op", o->id);
    o->type = type;
    o->target = str_dup(target);
    o->owner = xstrdup(principal_owner(&r->who));
    o->tenant = xstrdup(r->who.tenant);
    o->created_ms = clock_wall_ms();
    list_push(&g->operations, &o->link);
    g->operation_count++;
    return o;
}

const char *operation_id(const struct operation *o)
{
    return o->id;
}

void operation_end(void *operation, struct sandbox *s, const struct err *e)
{
    struct operation *o = operation;

    (void)s;
    if (!o->all) {
        operation_free(o);
        return;
    }
    o->ended_ms = clock_wall_ms();
    if (e->code != ERR_NONE)
        o->error = xstrdup(e->msg);
}

void operation_write(struct jw *w, const struct operation *o)
{
    jw_object(w);
    jw_kc(w, "id", o->id);
    jw_kc(w, "type", o->type);
    jw_kc(w, "status", o->error ? "failed" : o->ended_ms ? "completed" : "running");
    jw_kc(w, "state", o->error ? "failed" : o->ended_ms ? "succeeded" : "running");
    if (o->error)
        jw_kc(w, "error", o->error);
    jw_kc(w, "target", o->target);
    jw_ktime(w, "created_at", o->created_ms);
    if (o->ended_ms)
        jw_ktime(w, "completed_at", o->ended_ms);
    jw_kint(w, "progress_percent", o->ended_ms ? 100 : 10);
    jw_object_end(w);
}

/* Those that still run are freed by their ends. */
void operations_done(struct agentic *g)
{
    while (!list_is_empty(&g->operations)) {
        struct operation *o = LIST_ENTRY(g->operations.next, struct operation, link);

        if (o->ended_ms) {
            operation_free(o);
        } else {
            list_unlink(&o->link);
            o->all = NULL;
        }
    }
}

void operations_tick(struct agentic *g)
{
    int64_t now = clock_wall_ms();

    while (!list_is_empty(&g->operations)) {
        struct operation *o = LIST_ENTRY(g->operations.next, struct operation, link);

        if (!o->ended_ms || (now < o->ended_ms + KEEP_MS && g->operation_count < OPERATIONS_MAX))
            return;
        operation_free(o);
        g->operation_count--;
    }
}

void agentic_operation(struct request *r)
{
    struct agentic *g = agentic_of(r->api);

    LIST_EACH (&g->operations, node) {
        const struct operation *o = LIST_ENTRY(node, struct operation, link);
        const struct owned owned = {.owner = str_of(o->owner), .tenant = str_of(o->tenant)};
        struct jw w;

        if (!str_eq_c(r->params.v[0], o->id) || !owner_may(&r->who, &owned, OWNER_SEE))
            continue;
        w = request_json(r);
        operation_write(&w, o);
        request_send_json(r, 200);
        return;
    }
    agentic_code(r, 404, "OPERATION_NOT_FOUND", "Operation '" STR_FMT "' not found",
                 (int)size_min(r->params.v[0].n, 64), r->params.v[0].p);
}
