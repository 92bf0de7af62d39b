/* template: descriptions of sandboxes under a name: create, find, remove. */
#include "core/template/template.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "core/columns.h"
#include "core/event/event.h"
#include "core/identity/owner.h"
#include "proto/json.h"

#include <stdio.h>

#define TEMPLATES_MAX 1024
#define NAME_MAX_LEN 63

struct templates {
    struct store *store;
    struct sandboxes *sandboxes;
    struct template **sorted; /* by id */
    size_t count, size;
};

struct template
{
    struct templates *all;
    enum { TEMPLATE_MAKING, TEMPLATE_READY, TEMPLATE_REMOVING } state;
    char id[ID_SIZE];
    char *name, *tenant, *fields, *runtime;
    char owner[64];
    int64_t pool, created_ms;
    bool shared;
};

/* --- the list --- */

static void list_template(struct templates *l, struct template *t)
{
    sorted_add(SORTED(l, id), t);
    t->all = l;
}

static struct template *template_free(struct template *t)
{
    if (!t)
        return NULL;
    mem_free(t->name);
    mem_free(t->tenant);
    mem_free(t->fields);
    mem_free(t->runtime);
    mem_free(t);
    return NULL;
}
DEFINE_AUTO(struct template *, template_free)

struct templates *templates_free(struct templates *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->count; i++)
        template_free(l->sorted[i]);
    mem_free(l->sorted);
    mem_free(l);
    return NULL;
}

/* Spares are of no kind of their own, so those of all templates of a runtime are one number. */
static void reserve_spares(struct templates *l)
{
    const struct driver_ops *d;

    for (size_t i = 0; (d = sandboxes_driver(l->sandboxes, i)); i++) {
        int64_t sum = 0;

        for (size_t k = 0; k < l->count; k++) {
            const struct template *t = l->sorted[k];

            if (t->state == TEMPLATE_READY &&
                (t->runtime[0] ? strcmp(t->runtime, d->name) == 0 : i == 0))
                sum += t->pool;
        }
        sandboxes_reserve(l->sandboxes, str_of(d->name), sum);
    }
}

static void drop_template(struct template *t)
{
    struct templates *l = t->all;

    sorted_remove(SORTED(l, id), t);
    template_free(t);
    reserve_spares(l);
}

/* --- rows and events --- */

#define HAS(member, kind, ...) COLUMN(struct template, member, kind, __VA_ARGS__)
static const struct column template_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT),
    HAS(tenant, COLUMN_TEXT),
    HAS(owner, COLUMN_CHARS),
    HAS(fields, COLUMN_TEXT),
    HAS(runtime, COLUMN_TEXT),
    HAS(pool, COLUMN_INT),
    HAS(shared, COLUMN_BOOL),
    HAS(created_ms, COLUMN_INT),
};
static struct columns template_columns = {.table = "templates",
                                          .list = template_column_list,
                                          .count = ARRAY_LEN(template_column_list),
                                          .order = "ORDER BY id"};

static int load_one(struct templates *l, const struct store_rows *rows, struct err *e)
{
    AUTO(template_free) struct template *t = xzalloc(sizeof *t);

    if (columns_load(&template_columns, rows, t, e) < 0)
        return -1;
    if (!id_is_valid("tp", str_of(t->id)))
        return err_set(e, ERR_INTERNAL, 0, "a row of templates has a damaged id");
    t->state = TEMPLATE_READY;
    list_template(l, TAKE(t));
    return 0;
}

static int load_templates(struct store_tx *tx, void *arg, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (columns_query(tx, &template_columns, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0)
        if (load_one(arg, rows, e) < 0)
            return -1;
    rows_end(rows);
    return r;
}

int templates_open(struct store *store, struct sandboxes *sandboxes, struct templates **ret,
                   struct err *e)
{
    struct templates *l = xzalloc(sizeof *l);

    l->store = store;
    l->sandboxes = sandboxes;
    if (store_now(store, load_templates, l, e) < 0) {
        templates_free(l);
        return err_wrap(e, "read the templates");
    }
    reserve_spares(l);
    *ret = l;
    return 0;
}

struct template_job { /* the template does not change while its row is written, and is not freed */
    struct template *t;
    char actor[64];
    template_cb done;
    void *arg;
};

static struct template_job *template_job_new(struct template *t, const struct template_call *c)
{
    struct template_job *j = xzalloc(sizeof *j);

    j->t = t;
    j->done = c->done;
    j->arg = c->arg;
    (void)snprintf(j->actor, sizeof j->actor, "%s", c->by->actor);
    return j;
}

/* Without its fields: among them may be an environment. */
static void put_event(struct store_tx *tx, const struct template_job *j, const char *type)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    const struct template *t = j->t;
    char object[ID_SIZE + 16];

    (void)snprintf(object, sizeof object, "template/%s", t->id);
    jw_object(&w);
    jw_kc(&w, "id", t->id);
    jw_kc(&w, "name", t->name);
    jw_kc(&w, "tenant", t->tenant);
    jw_kc(&w, "owner", t->owner);
    jw_kc(&w, "runtime", t->runtime);
    jw_kint(&w, "pool", t->pool);
    jw_kbool(&w, "shared", t->shared);
    jw_ktime(&w, "created_at", t->created_ms);
    jw_object_end(&w);
    tx_event(tx,
             &(struct event_spec){
                 .type = type, .object = object, .actor = j->actor, .data = buf_str(&data)},
             NULL);
}

static int create_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct template_job *j = arg;

    if (columns_insert(tx, &template_columns, j->t, e) < 0)
        return -1;
    put_event(tx, j, "template.created");
    return 0;
}

static int remove_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct template_job *j = arg;

    if (tx_run(tx, "DELETE FROM templates WHERE id = :id", PARAMS(P_C("id", j->t->id)), e) < 0)
        return -1;
    put_event(tx, j, "template.removed");
    return 0;
}

/* --- create --- */

static const struct template *template_namesake(const struct templates *l,
                                                const struct template_spec *spec, const char *owner)
{
    for (size_t i = 0; i < l->count; i++)
        if (str_eq_c(spec->name, l->sorted[i]->name) &&
            str_eq_c(spec->tenant, l->sorted[i]->tenant) && strcmp(l->sorted[i]->owner, owner) == 0)
            return l->sorted[i];
    return NULL;
}

/* A sandbox's owner is gone with it; only people may share, and reserve what all have. */
static int check_maker(const struct template_spec *spec, const struct principal *by, struct err *e)
{
    if (principal_is_inside(by)) {
        err_set(e, ERR_FORBIDDEN, 0, "a sandbox makes no templates");
        return err_hint(e, "ask its owner, or use a token from outside");
    }
    if (by->role != ROLE_AGENT || (!spec->shared && spec->pool == 0))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "field '%s': not for an agent's template",
            spec->shared ? "shared" : "pool");
    return err_hint(e, "ask an operator to create it");
}

static int check_spec(const struct templates *l, const struct template_spec *spec,
                      const struct principal *by, struct err *e)
{
    const struct template *other = template_namesake(l, spec, principal_owner(by));

    if (spec->name.n == 0 || spec->name.n > NAME_MAX_LEN)
        return err_set(e, ERR_INVALID, 0, "field 'name': 1 to %d characters", NAME_MAX_LEN);
    if (l->count >= TEMPLATES_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %zu templates already", l->count);
        return err_limit_fixed(e, TEMPLATES_MAX,
                               "remove some (holt template ls, holt template rm)");
    }
    if (!other)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "a template named '%s' exists already", other->name);
    err_object(e, "template", other->id);
    return err_hint(e, "choose another name, or remove it: holt template rm %s", other->id);
}

static void create_written(void *arg, const struct err *e)
{
    struct template_job *j = arg;

    if (e->code == ERR_NONE) {
        j->t->state = TEMPLATE_READY;
        reserve_spares(j->t->all);
    }
    j->done(j->arg, e->code == ERR_NONE ? j->t : NULL, e);
    if (e->code != ERR_NONE)
        drop_template(j->t);
    mem_free(j);
}

int template_create(struct templates *l, const struct template_spec *spec,
                    const struct template_call *c, struct err *e)
{
    struct template_spec checked = *spec;
    struct template *t;

    if (check_maker(spec, c->by, e) < 0 ||
        owner_tenant(c->by, spec->tenant, &checked.tenant, e) < 0 ||
        check_spec(l, &checked, c->by, e) < 0)
        return err_wrap(e, "create a template");
    t = xzalloc(sizeof *t);
    id_make("tp", t->id);
    t->name = str_dup(spec->name);
    t->tenant = str_dup(checked.tenant);
    t->fields = str_dup(spec->fields);
    t->runtime = str_dup(spec->runtime);
    t->pool = spec->pool;
    t->shared = spec->shared;
    t->created_ms = clock_wall_ms();
    (void)snprintf(t->owner, sizeof t->owner, "%s", principal_owner(c->by));
    list_template(l, t);
    store_write(l->store, STORE_RELAXED, create_work, create_written, template_job_new(t, c));
    return 0;
}

/* --- lookup --- */

static struct owned template_owned(const struct template *t)
{
    return (struct owned){
        .owner = str_of(t->owner), .tenant = str_of(t->tenant), .shared = t->shared};
}

static void offer_named(struct templates *l, struct str tenant, struct owner_look *look)
{
    for (size_t i = 0; i < l->count; i++) {
        struct template *t = l->sorted[i];
        const struct owned o = template_owned(t);

        if (t->state == TEMPLATE_READY && str_eq_c(look->name, t->name) &&
            (tenant.n == 0 || str_eq_c(tenant, t->tenant)))
            owner_offer(look, t, t->id, &o, t->tenant[0] ? 0 : 1);
    }
}

struct template *template_find(struct templates *l, const struct principal *by,
                               enum template_want want, struct str tenant, struct str ref,
                               struct err *e)
{
    struct owner_look look = {.by = by,
                              .use = want == TEMPLATE_CHANGE ? OWNER_CHANGE : OWNER_SEE,
                              .own_only = want == TEMPLATE_USE,
                              .text = ref};
    struct template *t = sorted_find(SORTED(l, id), ref);
    struct err why = {0};

    if (t && t->state == TEMPLATE_READY) {
        const struct owned o = template_owned(t);

        return owner_check(by, &o, look.use, "template", t->id, e) == 0 ? t : NULL;
    }
    look.name = ref;
    offer_named(l, tenant, &look);
    if (!look.found && owner_look_split(&look))
        offer_named(l, tenant, &look);
    t = owner_found(&look, "template", &why);
    if (t)
        return t;
    *e = why;
    if (why.code == ERR_NONE) {
        err_set(e, ERR_NOT_FOUND, 0, "there is no template '" STR_FMT "'", (int)size_min(ref.n, 64),
                ref.p ? ref.p : "");
        err_hint(e, "holt template ls lists those there are; another's is OWNER/NAME");
    }
    return NULL;
}

struct template *template_next(struct templates *l, const struct principal *by, struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++) {
        const struct owned o = template_owned(l->sorted[i]);

        if (l->sorted[i]->state == TEMPLATE_READY && owner_may(by, &o, OWNER_SEE))
            return l->sorted[i];
    }
    return NULL;
}

void template_info(const struct template *t, struct template_info *ret)
{
    *ret = (struct template_info){.id = t->id,
                                  .name = str_of(t->name),
                                  .tenant = str_of(t->tenant),
                                  .owner = str_of(t->owner),
                                  .fields = str_of(t->fields),
                                  .runtime = str_of(t->runtime),
                                  .pool = t->pool,
                                  .created_ms = t->created_ms,
                                  .shared = t->shared,
                                  .pooled =
                                      sandboxes_makes_ahead(t->all->sandboxes, str_of(t->runtime))};
}

/* --- remove: sandboxes that were made by it stay --- */

static void remove_written(void *arg, const struct err *e)
{
    struct template_job *j = arg;

    if (e->code != ERR_NONE)
        j->t->state = TEMPLATE_READY;
    j->done(j->arg, NULL, e);
    if (e->code == ERR_NONE)
        drop_template(j->t);
    mem_free(j);
}

int template_remove(struct template *t, const struct template_call *c, struct err *e)
{
    if (t->state != TEMPLATE_READY)
        return err_set(e, ERR_CONFLICT, 0, "template '%s' is being removed", t->name);
    t->state = TEMPLATE_REMOVING;
    store_write(t->all->store, STORE_RELAXED, remove_work, remove_written, template_job_new(t, c));
    return 0;
}
