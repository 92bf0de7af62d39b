/* policy: the registry of policies: rows, events, and which are in force. */
#include "core/policy/policy.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "core/columns.h"
#include "core/event/event.h"
#include "core/policy/policy_internal.h"

#include <stdio.h>

struct policies {
    struct store *store;
    struct policy **sorted; /* by id */
    size_t count, size;
    struct policy *of_agents; /* of every agent; NULL: none */
    void (*changed)(void *arg);
    void *changed_arg;
};

/* --- the list --- */

static struct policy *policy_free(struct policy *p)
{
    if (!p)
        return NULL;
    arena_done(&p->mem);
    mem_free(p->name);
    mem_free(p->text);
    mem_free(p);
    return NULL;
}
DEFINE_AUTO(struct policy *, policy_free)

static void list_policy(struct policies *l, struct policy *p)
{
    sorted_add(SORTED(l, id), p);
    p->all = l;
}

static void drop_policy(struct policy *p)
{
    sorted_remove(SORTED(p->all, id), p);
    policy_free(p);
}

struct policies *policies_free(struct policies *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->count; i++)
        policy_free(l->sorted[i]);
    mem_free(l->sorted);
    mem_free(l);
    return NULL;
}

static void tell_change(struct policies *l)
{
    if (l->changed)
        l->changed(l->changed_arg);
}

void policies_on_change(struct policies *l, void (*changed)(void *arg), void *arg)
{
    l->changed = changed;
    l->changed_arg = arg;
}

/* --- rules of one --- */

static int set_rules(struct policy *p, const json_t *rules, struct err *e)
{
    AUTO(arena_done) struct arena mem = {0};
    struct policy_rules r = {0};
    char *text;

    if (policy_read_rules(rules, &mem, &r, e) < 0)
        return -1;
    text = json_dumps(rules, JSON_COMPACT);
    arena_done(&p->mem);
    mem_free(p->text);
    p->mem = mem;
    p->rules = r;
    p->text = xstrdup(text);
    free(text); /* jansson's */
    mem = (struct arena){0};
    return 0;
}

/* --- rows and events --- */

#define HAS(member, kind, ...) COLUMN(struct policy, member, kind, __VA_ARGS__)
static const struct column policy_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT, .flags = COLUMN_ONCE),
    COLUMN_AS("rules", struct policy, text, COLUMN_TEXT),
    HAS(created_by, COLUMN_CHARS, .flags = COLUMN_ONCE),
    HAS(created_ms, COLUMN_INT, .flags = COLUMN_ONCE),
    HAS(updated_ms, COLUMN_INT),
};
static struct columns policy_columns = {.table = "policies",
                                        .list = policy_column_list,
                                        .count = ARRAY_LEN(policy_column_list),
                                        .order = "ORDER BY id",
                                        .prefix = "po"};

static int load_one(void *arg, const struct store_rows *rows, struct err *e)
{
    AUTO(policy_free) struct policy *p = xzalloc(sizeof *p);
    AUTO(json_decref) json_t *rules = NULL;

    if (columns_load(&policy_columns, rows, p, e) < 0)
        return -1;
    if (json_read(str_of(p->text), &rules, e) < 0 || set_rules(p, rules, e) < 0)
        return err_wrap(e, "policy '%s'", p->name);
    p->state = POLICY_READY;
    list_policy(arg, TAKE(p));
    return 0;
}

static int load_policies(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_each(tx, &policy_columns, load_one, arg, e);
}

static int add_shipped(struct policies *l, struct err *e)
{
    AUTO(json_decref) json_t *rules = policy_defaults();
    AUTO(policy_free) struct policy *p = xzalloc(sizeof *p);

    (void)snprintf(p->id, sizeof p->id, "po_00000000000000000001"); /* the same everywhere */
    (void)snprintf(p->created_by, sizeof p->created_by, "system");
    p->name = xstrdup(POLICY_DEFAULTS);
    p->shipped = true;
    p->state = POLICY_READY;
    if (set_rules(p, rules, e) < 0)
        return -1;
    list_policy(l, TAKE(p));
    return 0;
}

int policies_open(struct store *store, struct policies **ret, struct err *e)
{
    struct policies *l = xzalloc(sizeof *l);

    l->store = store;
    if (add_shipped(l, e) < 0 || store_now(store, load_policies, l, e) < 0) {
        policies_free(l);
        return err_wrap(e, "read the policies");
    }
    *ret = l;
    return 0;
}

struct policy_job {
    struct policy *p; /* it stays while its row is written */
    struct row *row;  /* NULL: of a removal */
    json_t *rules;    /* of a change: taken over when it is stored */
    const char *type;
    char id[ID_SIZE], actor[64];
    struct buf data; /* of the event */
    policy_cb done;
    void *arg;
};

static void put_event_data(struct policy_job *j, const struct policy *p,
                           const struct policy_rules *rules)
{
    struct jw w = {.to = &j->data};

    jw_object(&w);
    jw_kc(&w, "id", p->id);
    jw_kc(&w, "name", p->name);
    policy_put_rules(&w, rules);
    jw_kc(&w, "created_by", p->created_by);
    jw_ktime(&w, "created_at", p->created_ms);
    jw_ktime(&w, "updated_at", p->updated_ms);
    jw_object_end(&w);
}

static int policy_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct policy_job *j = arg;
    char object[ID_SIZE + 16];

    if (j->row ? row_save(tx, j->row, e) < 0 : columns_erase(tx, &policy_columns, j->id, e) < 0)
        return -1;
    (void)snprintf(object, sizeof object, "policy/%s", j->id);
    tx_event(tx,
             &(struct event_spec){
                 .type = j->type, .object = object, .actor = j->actor, .data = buf_str(&j->data)},
             NULL);
    return 0;
}

static void policy_written(void *arg, const struct err *e)
{
    struct policy_job *j = arg;
    struct policies *l = j->p->all;
    bool ok = e->code == ERR_NONE, making = j->p->state == POLICY_MAKING;
    struct err none = {0};

    if (ok && j->rules)
        (void)!set_rules(j->p, j->rules, &none); /* checked before */
    if (ok && j->row)
        j->p->updated_ms = j->p->state == POLICY_CHANGING ? clock_wall_ms() : j->p->updated_ms;
    if (ok ? j->row != NULL : !making)
        j->p->state = POLICY_READY;
    else
        drop_policy(TAKE(j->p));
    if (ok)
        tell_change(l);
    j->done(j->arg, ok ? j->p : NULL, e);
    row_free(j->row);
    json_decref(j->rules);
    buf_done(&j->data);
    mem_free(j);
}

static void policy_write(struct policy *p, struct row *row, json_t *rules,
                         const struct policy_rules *shown, const struct policy_call *c)
{
    struct policy_job *j = xzalloc(sizeof *j);

    *j = (struct policy_job){.p = p, .row = row, .rules = rules, .done = c->done, .arg = c->arg};
    j->type = p->state == POLICY_MAKING     ? "policy.created"
              : p->state == POLICY_REMOVING ? "policy.removed"
                                            : "policy.updated";
    memcpy(j->id, p->id, sizeof j->id);
    (void)snprintf(j->actor, sizeof j->actor, "%s", c->by->actor);
    put_event_data(j, p, shown);
    store_write(p->all->store, STORE_DURABLE, policy_work, policy_written, j);
}

/* --- create, update, remove --- */

static struct policy *named(const struct policies *l, struct str name)
{
    for (size_t i = 0; i < l->count; i++)
        if (str_eq_c(name, l->sorted[i]->name))
            return l->sorted[i];
    return NULL;
}

static bool names_agent(const struct policy_rules *r, struct str agent)
{
    const struct policy_texts *t = &r->list[POLICY_AGENTS];

    for (size_t i = 0; i < t->n; i++)
        if (str_eq(t->v[i], agent))
            return true;
    return false;
}

/* All that name an agent are in force in its sandboxes: none may be left out for lack of room. */
static int check_agents(const struct policies *l, const struct policy *self,
                        const struct policy_rules *r, struct err *e)
{
    const struct policy_texts *t = &r->list[POLICY_AGENTS];

    for (size_t i = 0; i < t->n; i++) {
        size_t n = 1;

        for (size_t k = 0; k < l->count; k++)
            n += l->sorted[k] != self && names_agent(&l->sorted[k]->rules, t->v[i]);
        if (n > POLICIES_OF_AGENT) {
            err_set(e, ERR_LIMIT, 0, "%d policies name agent '" STR_FMT "' already",
                    POLICIES_OF_AGENT, (int)size_min(t->v[i].n, 64), t->v[i].p);
            return err_limit_fixed(e, POLICIES_OF_AGENT, "put their rules into one");
        }
    }
    return 0;
}

static int check_new(const struct policies *l, struct str name, struct err *e)
{
    const struct policy *other = named(l, name);

    if (name.n == 0 || name.n > POLICY_NAME_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'name': 1 to %d characters", POLICY_NAME_MAX);
    if (id_is_valid("po", name))
        return err_set(e, ERR_INVALID, 0, "field 'name': it has the form of an id");
    if (l->count >= POLICIES_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %zu policies already", l->count);
        return err_limit_fixed(e, POLICIES_MAX, "remove some (holt policy ls, holt policy rm)");
    }
    if (!other)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "a policy named '%s' exists already", other->name);
    err_object(e, "policy", other->id);
    return err_hint(e, "choose another name, or change it: holt policy update %s", other->name);
}

int policy_create(struct policies *l, struct str name, const json_t *rules,
                  const struct policy_call *c, struct err *e)
{
    AUTO(policy_free) struct policy *p = xzalloc(sizeof *p);

    if (check_new(l, name, e) < 0 || set_rules(p, rules, e) < 0 ||
        check_agents(l, NULL, &p->rules, e) < 0)
        return err_wrap(e, "create a policy");
    id_make("po", p->id);
    p->name = str_dup(name);
    p->created_ms = p->updated_ms = clock_wall_ms();
    (void)snprintf(p->created_by, sizeof p->created_by, "%s", c->by->actor);
    list_policy(l, p);
    policy_write(p, row_take(&policy_columns, p), NULL, &p->rules, c);
    TAKE(p);
    return 0;
}

static int must_be_free(const struct policy *p, const char *what, struct err *e)
{
    if (p->shipped) {
        err_set(e, ERR_CONFLICT, 0, "%s policy '%s': it is shipped with holt", what, p->name);
        err_object(e, "policy", p->id);
        return err_hint(e, "make one of your own from what holt policy inspect %s shows", p->name);
    }
    if (p->state == POLICY_READY)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "%s policy '%s': it is being changed", what, p->name);
    err_object(e, "policy", p->id);
    return err_hint(e, "try again in a moment");
}

int policy_update(struct policy *p, const json_t *rules, const struct policy_call *c, struct err *e)
{
    AUTO(json_decref) json_t *whole = json_loads(p->text, 0, NULL);
    AUTO(arena_done) struct arena mem = {0};
    struct policy_rules checked = {0};
    struct policy next = *p;
    char *text;

    json_object_update(whole, (json_t *)(uintptr_t)rules);
    if (must_be_free(p, "change", e) < 0 || policy_read_rules(whole, &mem, &checked, e) < 0 ||
        check_agents(p->all, p, &checked, e) < 0)
        return err_wrap(e, "change policy '%s'", p->name);
    p->state = POLICY_CHANGING;
    text = json_dumps(whole, JSON_COMPACT);
    next.text = text;
    next.updated_ms = clock_wall_ms();
    policy_write(p, row_take(&policy_columns, &next), TAKE(whole), &checked, c);
    free(text); /* jansson's */
    return 0;
}

int policy_remove(struct policy *p, const struct policy_call *c, struct err *e)
{
    if (must_be_free(p, "remove", e) < 0)
        return -1;
    if (p == p->all->of_agents) {
        err_set(e, ERR_CONFLICT, 0, "policy '%s' is that of all agents", p->name);
        err_object(e, "policy", p->id);
        return err_hint(e, "change the setting 'agent_policy' first");
    }
    if (p->sandboxes > 0) {
        err_set(e, ERR_CONFLICT, 0, "policy '%s' is in force in %zu sandboxes", p->name,
                p->sandboxes);
        err_object(e, "policy", p->id);
        return err_hint(e, "give them another (holt update SANDBOX --policy NAME) or destroy them");
    }
    p->state = POLICY_REMOVING;
    policy_write(p, NULL, NULL, &p->rules, c);
    return 0;
}

/* --- lookup --- */

struct policy *policy_find(struct policies *l, struct str ref, struct err *e)
{
    struct policy *p = sorted_find(SORTED(l, id), ref);

    if (!p)
        p = named(l, ref);
    if (p && p->state != POLICY_MAKING && p->state != POLICY_REMOVING)
        return p;
    err_set(e, ERR_NOT_FOUND, 0, "there is no policy '" STR_FMT "'", (int)size_min(ref.n, 64),
            ref.p ? ref.p : "");
    err_hint(e, "holt policy ls lists those there are");
    return NULL;
}

struct policy *policy_next(struct policies *l, struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++)
        if (l->sorted[i]->state != POLICY_MAKING)
            return l->sorted[i];
    return NULL;
}

void policy_info(const struct policy *p, struct policy_info *ret)
{
    *ret = (struct policy_info){.id = p->id,
                                .name = str_of(p->name),
                                .created_by = str_of(p->created_by),
                                .rules = &p->rules,
                                .created_ms = p->created_ms,
                                .updated_ms = p->updated_ms,
                                .shipped = p->shipped,
                                .sandboxes = p->sandboxes};
}

struct policy *policy_hold(struct policy *p)
{
    if (p)
        p->sandboxes++;
    return p;
}

struct policy *policy_release(struct policy *p)
{
    if (p)
        p->sandboxes--;
    return NULL;
}

/* --- in force --- */

int policies_set_agents(struct policies *l, struct str name, struct err *e)
{
    l->of_agents = NULL;
    if (name.n == 0)
        return 0;
    l->of_agents = policy_find(l, name, e);
    return l->of_agents ? 0 : err_wrap(e, "setting 'agent_policy'");
}

static void force_add(struct policy_force *to, struct policy *p)
{
    for (size_t i = 0; i < to->n; i++)
        if (to->v[i] == p)
            return;
    assert(to->n < POLICIES_IN_FORCE); /* check_agents keeps it so */
    to->v[to->n++] = p;
}

void policies_in_force(struct policies *l, const struct policy_subject *s, struct policy_force *ret)
{
    *ret = (struct policy_force){.n = 0};
    if (s->own)
        force_add(ret, s->own);
    if (s->by_agent && l && l->of_agents)
        force_add(ret, l->of_agents);
    for (size_t i = 0; l && s->agent.n > 0 && i < l->count; i++)
        if (l->sorted[i]->state != POLICY_MAKING && names_agent(&l->sorted[i]->rules, s->agent))
            force_add(ret, l->sorted[i]);
}

bool policy_has_paths(const struct policy_force *f)
{
    for (size_t i = 0; i < f->n; i++)
        for (size_t l = POLICY_PATHS_ALLOW; l <= POLICY_WRITE_DENY; l++)
            if (f->v[i]->rules.list[l].n > 0)
                return true;
    return false;
}
