/* template: descriptions of sandboxes under a name: create, find, remove. */
#include "core/template/template.h"

#include "base/mem.h"
#include "proto/json.h"

#define TEMPLATES_MAX 1024
#define NAME_MAX_LEN 63

struct templates {
    struct named_list list;
    struct sandboxes *sandboxes;
};

struct template
{
    struct named named; /* first */
    char *fields, *runtime;
    int64_t pool;
};

struct template *template_of(struct named *n)
{
    return n ? CONTAINER_OF(n, struct template, named) : NULL;
}

static struct templates *all_of(const struct template *t)
{
    return CONTAINER_OF(t->named.list, struct templates, list);
}

struct templates *templates_free(struct templates *l)
{
    if (!l)
        return NULL;
    named_list_done(&l->list);
    mem_free(l);
    return NULL;
}

/* Spares are of no kind of their own, so those of all templates of a runtime are one number. */
static void reserve_spares(struct templates *l)
{
    const struct driver_ops *d;

    for (size_t i = 0; (d = sandboxes_driver(l->sandboxes, i)); i++) {
        int64_t sum = 0;

        for (size_t k = 0; k < l->list.count; k++) {
            const struct template *t = template_of(l->list.sorted[k]);

            if (t->named.state == NAMED_READY &&
                (t->runtime[0] ? strcmp(t->runtime, d->name) == 0 : i == 0))
                sum += t->pool;
        }
        sandboxes_reserve(l->sandboxes, str_of(d->name), sum);
    }
}

/* --- rows and events --- */

static const struct column template_column_list[] = {
    NAMED_COLUMNS(struct template),
    COLUMN(struct template, fields, COLUMN_TEXT),
    COLUMN(struct template, runtime, COLUMN_TEXT),
    COLUMN(struct template, pool, COLUMN_INT),
};
static struct columns template_columns = {.table = "templates",
                                          .list = template_column_list,
                                          .count = ARRAY_LEN(template_column_list),
                                          .order = "ORDER BY id",
                                          .prefix = "tp"};

static void template_done(struct named *n)
{
    struct template *t = template_of(n);

    mem_free(t->fields);
    mem_free(t->runtime);
}

/* Without its fields: among them may be an environment. */
static void template_put(const struct named *n, struct jw *w)
{
    const struct template *t = CONTAINER_OF(n, struct template, named);

    jw_kc(w, "runtime", t->runtime);
    jw_kint(w, "pool", t->pool);
}

static const struct named_kind template_kind = {
    .noun = "template",
    .hint = "holt template ls lists those there are; another's is OWNER/NAME",
    .size = sizeof(struct template),
    .columns = &template_columns,
    .durability = STORE_RELAXED,
    .done = template_done,
    .put = template_put,
};

int templates_open(struct store *store, struct sandboxes *sandboxes, struct templates **ret,
                   struct err *e)
{
    struct templates *l = xzalloc(sizeof *l);

    l->sandboxes = sandboxes;
    if (named_list_open(&l->list, &template_kind, store, e) < 0) {
        templates_free(l);
        return -1;
    }
    reserve_spares(l);
    *ret = l;
    return 0;
}

struct template_job { /* counts the spares before it calls back */
    struct templates *all;
    named_cb done;
    void *arg;
};

static void template_written(void *arg, struct named *n, const struct err *e)
{
    struct template_job *j = arg;

    reserve_spares(j->all);
    j->done(j->arg, n, e);
    mem_free(j);
}

static struct named_call counted_call(struct templates *l, const struct named_call *c)
{
    const struct template_job j = {l, c->done, c->arg};
    struct named_call counted = *c;

    counted.done = template_written;
    counted.arg = xmemdup(&j, sizeof j);
    return counted;
}

/* --- create --- */

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
    if (spec->name.n == 0 || spec->name.n > NAME_MAX_LEN)
        return err_set(e, ERR_INVALID, 0, "field 'name': 1 to %d characters", NAME_MAX_LEN);
    if (l->list.count >= TEMPLATES_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %zu templates already", l->list.count);
        return err_limit_fixed(e, TEMPLATES_MAX,
                               "remove some (holt template ls, holt template rm)");
    }
    return named_check_free(&l->list, by, spec->tenant, spec->name, e);
}

int template_create(struct templates *l, const struct template_spec *spec,
                    const struct named_call *c, struct err *e)
{
    struct template_spec checked = *spec;
    struct named_call counted;
    struct template *t;

    if (check_maker(spec, c->by, e) < 0 ||
        owner_tenant(c->by, spec->tenant, &checked.tenant, e) < 0 ||
        check_spec(l, &checked, c->by, e) < 0)
        return err_wrap(e, "create a template");
    t = template_of(named_new(&l->list, c->by, checked.tenant, spec->name));
    t->fields = str_dup(spec->fields);
    t->runtime = str_dup(spec->runtime);
    t->pool = spec->pool;
    t->named.shared = spec->shared;
    counted = counted_call(l, c);
    named_create(&t->named, "template.created", &counted);
    return 0;
}

/* --- lookup --- */

struct template *template_find(struct templates *l, const struct principal *by,
                               enum template_want want, struct str tenant, struct str ref,
                               struct err *e)
{
    const struct named_look look = {.by = by,
                                    .use = want == TEMPLATE_CHANGE ? OWNER_CHANGE : OWNER_SEE,
                                    .own_only = want == TEMPLATE_USE,
                                    .tenant = tenant,
                                    .ref = ref};

    return template_of(named_find(&l->list, &look, e));
}

struct template *template_next(struct templates *l, const struct principal *by, struct str after)
{
    return template_of(named_next(&l->list, by, after));
}

void template_info(const struct template *t, struct template_info *ret)
{
    *ret = (struct template_info){
        .id = t->named.id,
        .name = str_of(t->named.name),
        .tenant = str_of(t->named.tenant),
        .owner = str_of(t->named.owner),
        .fields = str_of(t->fields),
        .runtime = str_of(t->runtime),
        .pool = t->pool,
        .created_ms = t->named.created_ms,
        .shared = t->named.shared,
        .pooled = sandboxes_makes_ahead(all_of(t)->sandboxes, str_of(t->runtime))};
}

/* --- its pool --- */

int template_set_pool(struct template *t, int64_t pool, const struct named_call *c, struct err *e)
{
    const struct template_spec spec = {.pool = pool};
    struct named_call counted;

    if (check_maker(&spec, c->by, e) < 0)
        return -1;
    if (t->named.state != NAMED_READY)
        return err_set(e, ERR_CONFLICT, 0, "template '%s' is being removed", t->named.name);
    t->pool = pool;
    counted = counted_call(all_of(t), c);
    named_save(&t->named, "template.changed", &counted);
    return 0;
}

/* --- remove: sandboxes that were made by it stay --- */

int template_remove(struct template *t, const struct named_call *c, struct err *e)
{
    struct named_call counted;

    if (t->named.state != NAMED_READY)
        return err_set(e, ERR_CONFLICT, 0, "template '%s' is being removed", t->named.name);
    counted = counted_call(all_of(t), c);
    named_remove(&t->named, "template.removed", &counted);
    return 0;
}
