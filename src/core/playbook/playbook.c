/* playbook: playbooks and their tasks: create, change, reorder, find, remove. */
#include "core/playbook/playbook.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/columns.h"

#define PLAYBOOKS_MAX 2000
#define PLAYBOOKS_OF_OWNER 200
#define NAME_MAX_LEN 128
#define TEXT_MAX_LEN 1024

struct playbooks {
    struct named_list list;
};

struct playbook {
    struct named named; /* first */
    char *hosts, *notes;
    json_t *tasks; /* the row's text, read */
    int64_t updated_ms;
    bool become;
};

struct playbook *playbook_of(struct named *n)
{
    return n ? CONTAINER_OF(n, struct playbook, named) : NULL;
}

struct playbooks *playbooks_free(struct playbooks *l)
{
    if (!l)
        return NULL;
    named_list_done(&l->list);
    mem_free(l);
    return NULL;
}

/* --- rows and events --- */

static bool put_tasks(const void *object, struct buf *to)
{
    const struct playbook *p = object;
    struct jw w = {.to = to};

    jw_json(&w, p->tasks);
    return true;
}

static int get_tasks(void *object, struct str text, struct err *e)
{
    struct playbook *p = object;

    return json_read(text, &p->tasks, e);
}

static const struct column playbook_column_list[] = {
    NAMED_COLUMNS(struct playbook),
    COLUMN(struct playbook, hosts, COLUMN_TEXT),
    COLUMN(struct playbook, become, COLUMN_BOOL),
    COLUMN(struct playbook, notes, COLUMN_TEXT),
    COLUMN(struct playbook, tasks, COLUMN_MADE, .put = put_tasks, .get = get_tasks),
    COLUMN(struct playbook, updated_ms, COLUMN_INT),
};
static struct columns playbook_columns = {.table = "playbooks",
                                          .list = playbook_column_list,
                                          .count = ARRAY_LEN(playbook_column_list),
                                          .order = "ORDER BY id",
                                          .prefix = "pb"};

static void playbook_done(struct named *n)
{
    struct playbook *p = playbook_of(n);

    mem_free(p->hosts);
    mem_free(p->notes);
    json_decref(p->tasks);
}

/* Without params: among them may be what only its owner knows. */
static void playbook_put(const struct named *n, struct jw *w)
{
    const struct playbook *p = CONTAINER_OF(n, struct playbook, named);

    jw_kc(w, "hosts", p->hosts);
    jw_kbool(w, "become", p->become);
    jw_kint(w, "tasks", (int64_t)json_array_size(p->tasks));
}

static const struct named_kind playbook_kind = {
    .noun = "playbook",
    .hint = "holt playbook ls lists those there are",
    .size = sizeof(struct playbook),
    .columns = &playbook_columns,
    .durability = STORE_DURABLE,
    .done = playbook_done,
    .put = playbook_put,
};

int playbooks_open(struct store *store, struct playbooks **ret, struct err *e)
{
    struct playbooks *l = xzalloc(sizeof *l);

    if (named_list_open(&l->list, &playbook_kind, store, e) < 0) {
        playbooks_free(l);
        return -1;
    }
    *ret = l;
    return 0;
}

/* --- tasks --- */

static size_t task_index(const struct playbook *p, struct str id)
{
    size_t n = json_array_size(p->tasks), i = 0;

    while (i < n &&
           !str_eq_c(id, json_string_value(json_object_get(json_array_get(p->tasks, i), "id"))))
        i++;
    return i;
}

static int check_task(const struct playbook_task *t, struct err *e)
{
    if (t->name.p && (t->name.n == 0 || t->name.n > TEXT_MAX_LEN || !str_is_utf8(t->name)))
        return err_set(e, ERR_INVALID, 0, "field 'name': 1 to %d bytes of UTF-8", TEXT_MAX_LEN);
    if (t->module.p && !playbook_module_is_valid(t->module)) {
        err_set(e, ERR_INVALID, 0, "field 'module': '" STR_FMT "' is not the name of a module",
                (int)size_min(t->module.n, 64), t->module.p);
        return err_hint(e, "a name like 'apt' or 'ansible.builtin.copy'");
    }
    if (t->params && !json_is_object(t->params) && !json_is_null(t->params))
        return err_set(e, ERR_INVALID, 0, "field 'params' must be an object or null");
    return 0;
}

static json_t *task_new(const struct playbook_task *t)
{
    char id[ID_SIZE];
    json_t *o = json_object();

    json_object_set_new(o, "id", json_string(id_make("pt", id)));
    json_object_set_new(o, "name", json_stringn(t->name.p, t->name.n));
    json_object_set_new(o, "module", json_stringn(t->module.p, t->module.n));
    json_object_set_new(o, "params", t->params ? json_deep_copy(t->params) : json_null());
    json_object_set_new(o, "created_ms", json_integer(clock_wall_ms()));
    return o;
}

static int check_size(const json_t *tasks, struct err *e)
{
    size_t n = json_dumpb(tasks, NULL, 0, JSON_COMPACT);

    if (n <= PLAYBOOK_BYTES_MAX && json_array_size(tasks) <= PLAYBOOK_TASKS_MAX)
        return 0;
    err_set(e, ERR_TOO_LARGE, 0, "a playbook has at most %d tasks and %d MiB", PLAYBOOK_TASKS_MAX,
            PLAYBOOK_BYTES_MAX >> 20);
    return err_hint(e, "make several playbooks of it");
}

/* --- create --- */

static struct str member_text(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v))
                             : (struct str){0};
}

static int take_tasks(const json_t *given, json_t *to, struct err *e)
{
    for (size_t i = 0; i < json_array_size(given); i++) {
        const json_t *one = json_array_get(given, i);
        struct playbook_task t = {member_text(one, "name"), member_text(one, "module"),
                                  json_object_get(one, "params")};

        if (!t.name.p || !t.module.p)
            return err_set(e, ERR_INVALID, 0, "task %zu: 'name' and 'module' are required", i + 1);
        if (check_task(&t, e) < 0)
            return err_wrap(e, "task %zu", i + 1);
        json_array_append_new(to, task_new(&t));
    }
    return check_size(to, e);
}

static int check_spec(const struct playbooks *l, const struct playbook_spec *spec,
                      const struct principal *by, struct err *e)
{
    if (spec->name.n == 0 || spec->name.n > NAME_MAX_LEN)
        return err_set(e, ERR_INVALID, 0, "field 'name': 1 to %d characters", NAME_MAX_LEN);
    if (!op_pattern_fits(op_pattern(OP_PATTERN_NAME), spec->name)) {
        err_set(e, ERR_INVALID, 0, "field 'name': '" STR_FMT "' cannot be a playbook's name",
                STR_ARG(spec->name));
        return err_hint(e, "letters, digits, '.', '_' and '-'; a letter or digit first");
    }
    if (spec->hosts.n == 0 || spec->hosts.n > TEXT_MAX_LEN || !str_is_utf8(spec->hosts))
        return err_set(e, ERR_INVALID, 0, "field 'hosts': 1 to %d bytes of UTF-8", TEXT_MAX_LEN);
    if (l->list.count >= PLAYBOOKS_MAX ||
        named_count_of(&l->list, principal_owner(by)) >= PLAYBOOKS_OF_OWNER) {
        err_set(e, ERR_LIMIT, 0, "there are too many playbooks");
        return err_limit_fixed(e, PLAYBOOKS_OF_OWNER,
                               "remove some (holt playbook ls, holt playbook rm)");
    }
    return 0;
}

int playbook_create(struct playbooks *l, const struct playbook_spec *spec,
                    const struct named_call *c, struct err *e)
{
    AUTO(json_decref) json_t *tasks = json_array();
    struct str tenant;
    struct playbook *p;
    struct buf notes = {0};

    if (check_spec(l, spec, c->by, e) < 0 || owner_tenant(c->by, STR(""), &tenant, e) < 0 ||
        named_check_free(&l->list, c->by, tenant, spec->name, e) < 0 ||
        take_tasks(spec->tasks, tasks, e) < 0)
        return err_wrap(e, "create a playbook");
    p = playbook_of(named_new(&l->list, c->by, tenant, spec->name));
    p->hosts = str_dup(spec->hosts);
    p->become = spec->become;
    p->tasks = TAKE(tasks);
    if (spec->notes)
        jw_json(&(struct jw){.to = &notes}, spec->notes);
    p->notes = buf_steal(&notes);
    p->updated_ms = p->named.created_ms;
    named_create(&p->named, "playbook.created", c);
    return 0;
}

/* --- changes: a new list replaces the old one, so that a refused change leaves it as it was --- */

static int check_ready(const struct playbook *p, struct err *e)
{
    return p->named.state == NAMED_READY
               ? 0
               : err_set(e, ERR_CONFLICT, 0, "playbook '%s' is being removed", p->named.name);
}

static int task_need(const struct playbook *p, struct str id, size_t *ret, struct err *e)
{
    *ret = task_index(p, id);
    if (*ret < json_array_size(p->tasks))
        return 0;
    err_set(e, ERR_NOT_FOUND, 0, "playbook '%s' has no task '" STR_FMT "'", p->named.name,
            (int)size_min(id.n, 64), id.p ? id.p : "");
    return err_hint(e, "holt playbook show %s lists its tasks", p->named.name);
}

static int save(struct playbook *p, json_t *tasks, const char *event, const struct named_call *c,
                struct err *e)
{
    if (check_size(tasks, e) < 0)
        return -1;
    json_decref(p->tasks);
    p->tasks = json_incref(tasks);
    p->updated_ms = clock_wall_ms();
    named_save(&p->named, event, c);
    return 0;
}

int playbook_task_add(struct playbook *p, const struct playbook_task *t, const struct named_call *c,
                      char ret_id[ID_SIZE], struct err *e)
{
    AUTO(json_decref) json_t *tasks = NULL;
    json_t *task;

    if (check_ready(p, e) < 0 || check_task(t, e) < 0)
        return -1;
    if (!t->name.p || !t->module.p)
        return err_set(e, ERR_INVALID, 0, "a task needs 'name' and 'module'");
    tasks = json_copy(p->tasks);
    task = task_new(t);
    (void)snprintf(ret_id, ID_SIZE, "%s", json_string_value(json_object_get(task, "id")));
    json_array_append_new(tasks, task);
    return save(p, tasks, "playbook.changed", c, e);
}

int playbook_task_change(struct playbook *p, struct str id, const struct playbook_task *t,
                         const struct named_call *c, struct err *e)
{
    AUTO(json_decref) json_t *tasks = NULL;
    json_t *task;
    size_t at;

    if (check_ready(p, e) < 0 || check_task(t, e) < 0 || task_need(p, id, &at, e) < 0)
        return -1;
    tasks = json_copy(p->tasks);
    task = json_copy(json_array_get(tasks, at));
    if (t->name.p)
        json_object_set_new(task, "name", json_stringn(t->name.p, t->name.n));
    if (t->module.p)
        json_object_set_new(task, "module", json_stringn(t->module.p, t->module.n));
    if (t->params)
        json_object_set_new(task, "params", json_deep_copy(t->params));
    json_array_set_new(tasks, at, task);
    return save(p, tasks, "playbook.changed", c, e);
}

int playbook_task_remove(struct playbook *p, struct str id, const struct named_call *c,
                         struct err *e)
{
    AUTO(json_decref) json_t *tasks = NULL;
    size_t at;

    if (check_ready(p, e) < 0 || task_need(p, id, &at, e) < 0)
        return -1;
    tasks = json_copy(p->tasks);
    json_array_remove(tasks, at);
    return save(p, tasks, "playbook.changed", c, e);
}

int playbook_reorder(struct playbook *p, const struct str *ids, size_t n,
                     const struct named_call *c, struct err *e)
{
    AUTO(json_decref) json_t *tasks = json_array();
    AUTO(map_done) struct map left = {0};

    if (check_ready(p, e) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(p->tasks); i++) {
        json_t *task = json_array_get(p->tasks, i);

        (void)map_set(&left, member_text(task, "id"), task);
    }
    for (size_t i = 0; i < n; i++) {
        json_t *task = map_remove(&left, ids[i]);
        size_t at;

        if (!task && task_need(p, ids[i], &at, e) < 0)
            return -1;
        if (!task)
            return err_set(e, ERR_INVALID, 0, "task '" STR_FMT "' is named twice", STR_ARG(ids[i]));
        json_array_append(tasks, task);
    }
    if (n != json_array_size(p->tasks)) {
        err_set(e, ERR_INVALID, 0, "%zu of %zu tasks are named", n, json_array_size(p->tasks));
        return err_hint(e, "name every task of the playbook once");
    }
    return save(p, tasks, "playbook.changed", c, e);
}

int playbook_replace(struct playbook *p, const json_t *tasks, const json_t *notes,
                     const struct named_call *c, struct err *e)
{
    AUTO(json_decref) json_t *list = json_array();
    struct buf text = {0};

    if (check_ready(p, e) < 0)
        return -1;
    if (!p->notes[0])
        return err_set(e, ERR_CONFLICT, 0, "playbook '%s' was made by hand", p->named.name);
    if (take_tasks(tasks, list, e) < 0)
        return -1;
    jw_json(&(struct jw){.to = &text}, notes);
    mem_free(p->notes);
    p->notes = buf_steal(&text);
    return save(p, list, "playbook.changed", c, e);
}

int playbook_remove(struct playbook *p, const struct named_call *c, struct err *e)
{
    if (check_ready(p, e) < 0)
        return -1;
    named_remove(&p->named, "playbook.removed", c);
    return 0;
}

/* --- reading --- */

struct playbook *playbook_find(struct playbooks *l, const struct principal *by, enum owner_use use,
                               struct str ref, struct err *e)
{
    return playbook_of(
        named_find(&l->list, &(struct named_look){.by = by, .use = use, .ref = ref}, e));
}

struct playbook *playbook_next(struct playbooks *l, const struct principal *by, struct str after)
{
    return playbook_of(named_next(&l->list, by, after));
}

void playbook_info(const struct playbook *p, struct playbook_info *ret)
{
    *ret = (struct playbook_info){.id = p->named.id,
                                  .name = str_of(p->named.name),
                                  .tenant = str_of(p->named.tenant),
                                  .owner = str_of(p->named.owner),
                                  .hosts = str_of(p->hosts),
                                  .notes = str_of(p->notes),
                                  .created_ms = p->named.created_ms,
                                  .updated_ms = p->updated_ms,
                                  .tasks = json_array_size(p->tasks),
                                  .become = p->become};
}

const json_t *playbook_tasks(const struct playbook *p)
{
    return p->tasks;
}
