/* playbook: fluid's playbooks: create, list, get, export, delete, and their tasks. */
#include "core/playbook/playbook.h"

#include "api/dialects/fluid/fluid.h"
#include "base/mem.h"

struct book_in {
    struct str name, hosts, module;
    bool become;
    json_t *params;
    struct fluid_strs task_ids;
};
#define BOOK(name_, kind, required) {#name_, kind, offsetof(struct book_in, name_), required}
static const struct fluid_field book_fields[] = {
    BOOK(name, FLUID_STR, true),
    BOOK(hosts, FLUID_STR, false),
    BOOK(become, FLUID_BOOL, false),
};
static const struct fluid_field task_fields[] = {
    BOOK(name, FLUID_STR, true),
    BOOK(module, FLUID_STR, true),
    BOOK(params, FLUID_JSON, false),
};
static const struct fluid_field task_change_fields[] = {
    BOOK(name, FLUID_STR, false),
    BOOK(module, FLUID_STR, false),
    BOOK(params, FLUID_JSON, false),
};
static const struct fluid_field order_fields[] = {BOOK(task_ids, FLUID_STRS, true)};
const struct fluid_form fluid_book_form = {FLUID_FORM(book_fields, struct book_in)};
const struct fluid_form fluid_book_task_form = {FLUID_FORM(task_fields, struct book_in)};
const struct fluid_form fluid_book_change_form = {FLUID_FORM(task_change_fields, struct book_in)};
const struct fluid_form fluid_book_order_form = {FLUID_FORM(order_fields, struct book_in)};

/* --- as JSON --- */

static void write_book(struct jw *w, const struct playbook *p)
{
    struct playbook_info i;
    char id[FLUID_ID];

    playbook_info(p, &i);
    jw_object(w);
    jw_kc(w, "id", fluid_uuid(i.id, id));
    jw_kstr(w, "name", i.name);
    jw_kstr(w, "hosts", i.hosts);
    jw_kbool(w, "become", i.become);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "updated_at", i.updated_ms);
    jw_object_end(w);
}

static void write_task(struct jw *w, const struct playbook *p, size_t at)
{
    const json_t *t = json_array_get(playbook_tasks(p), at);
    struct playbook_info i;
    char id[FLUID_ID], book[FLUID_ID];

    playbook_info(p, &i);
    jw_object(w);
    jw_kc(w, "id", fluid_uuid(json_string_value(json_object_get(t, "id")), id));
    jw_kc(w, "playbook_id", fluid_uuid(i.id, book));
    jw_kint(w, "position", (int64_t)at);
    jw_key(w, "name");
    jw_json(w, json_object_get(t, "name"));
    jw_kc(w, "module", json_string_value(json_object_get(t, "module")));
    jw_key(w, "params");
    jw_json(w, json_object_get(t, "params"));
    jw_ktime(w, "created_at", json_integer_value(json_object_get(t, "created_ms")));
    jw_object_end(w);
}

/* --- finding --- */

static struct playbook *find_book(struct request *r, enum owner_use use)
{
    struct str name = r->params.v[0];
    struct err e = {0};
    struct playbook *p = playbook_find(r->api->c.playbooks, &r->who, use, name, &e);

    if (!p && e.code == ERR_NOT_FOUND)
        fluid_error(r, 404, "playbook not found: " STR_FMT, (int)size_min(name.n, 64), name.p);
    else if (!p)
        fluid_refuse(r, &e);
    return p;
}

/* By the id of this interface or ours; NULL: there is none. */
static const char *task_of(const struct playbook *p, struct str id, size_t *ret_at)
{
    const json_t *tasks = playbook_tasks(p);
    char uuid[FLUID_ID];

    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const char *own = json_string_value(json_object_get(json_array_get(tasks, i), "id"));

        if (str_eq_c(id, own) || str_eq_c(id, fluid_uuid(own, uuid))) {
            *ret_at = i;
            return own;
        }
    }
    return NULL;
}

static const char *need_task(struct request *r, const struct playbook *p, struct str id)
{
    size_t at;
    const char *own = task_of(p, id, &at);

    if (!own)
        fluid_error(r, 404, "task not found: " STR_FMT, (int)size_min(id.n, 64), id.p ? id.p : "");
    return own;
}

/* --- replies of changes --- */

struct book_job {
    struct waiter waiter;
    struct principal by;
    char task[ID_SIZE]; /* the reply shows it; empty: the playbook, or nothing */
    int status;
};

static void send_book(struct request *r, const struct book_job *j, const struct playbook *p)
{
    struct jw w = request_json(r);
    size_t at = 0;

    jw_object(&w);
    jw_key(&w, j->task[0] ? "task" : "playbook");
    if (j->task[0] && task_of(p, str_of(j->task), &at))
        write_task(&w, p, at);
    else
        write_book(&w, p);
    jw_object_end(&w);
    fluid_send(r, j->status);
}

static void book_written(void *arg, struct named *n, const struct err *e)
{
    AUTO(mem_free) struct book_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (!r)
        return;
    if (e->code != ERR_NONE)
        fluid_refuse(r, e);
    else if (j->status == 204)
        request_send(r, 204, NULL, STR(""));
    else
        send_book(r, j, playbook_of(n));
}

static struct book_job *job_new(const struct request *r, int status)
{
    struct book_job *j = xzalloc(sizeof *j);

    j->by = request_who(r);
    j->status = status;
    return j;
}

/* result: what core returned. */
static void job_go(struct request *r, struct book_job *j, int result, const struct err *e)
{
    if (result == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    fluid_refuse(r, e);
}

#define CALL(j) (&(struct named_call){.by = &(j)->by, .done = book_written, .arg = (j)})

/* --- playbooks --- */

void fluid_books(struct request *r)
{
    struct playbooks *all = r->api->c.playbooks;
    const size_t most = 2000;
    struct playbook **found = arena_alloc(xchg_arena(r->x), most * sizeof *found);
    struct playbook_info i;
    struct jw w = request_json(r);
    size_t n = 0, total;

    for (struct playbook *p = playbook_next(all, &r->who, STR("")); p && n < most;
         p = playbook_next(all, &r->who, str_of(i.id))) {
        playbook_info(p, &i);
        found[n++] = p;
    }
    total = n;
    jw_object(&w);
    jw_key(&w, "playbooks");
    jw_array(&w);
    while (n > 0) /* the newest first: ids are in the order of creation */
        write_book(&w, found[--n]);
    jw_array_end(&w);
    jw_kint(&w, "total", (int64_t)total);
    jw_object_end(&w);
    fluid_send(r, 200);
}

void fluid_book_create(struct request *r)
{
    const struct book_in *in = r->in;
    struct book_job *j = job_new(r, 201);
    struct err e = {0};

    job_go(
        r, j,
        playbook_create(r->api->c.playbooks,
                        &(struct playbook_spec){.name = in->name,
                                                .hosts = in->hosts.n > 0 ? in->hosts : STR("all"),
                                                .become = in->become},
                        CALL(j), &e),
        &e);
}

void fluid_book(struct request *r)
{
    struct playbook *p = find_book(r, OWNER_SEE);
    struct jw w;

    if (!p)
        return;
    w = request_json(r);
    jw_object(&w);
    jw_key(&w, "playbook");
    write_book(&w, p);
    jw_key(&w, "tasks");
    jw_array(&w);
    for (size_t i = 0; i < json_array_size(playbook_tasks(p)); i++)
        write_task(&w, p, i);
    jw_array_end(&w);
    jw_object_end(&w);
    fluid_send(r, 200);
}

void fluid_book_export(struct request *r)
{
    struct playbook *p = find_book(r, OWNER_SEE);
    AUTO(buf_done) struct buf yaml = {0};
    struct playbook_info i;
    struct jw w;

    if (!p)
        return;
    playbook_info(p, &i);
    playbook_yaml(i.name, i.hosts, i.become, playbook_tasks(p), &yaml);
    w = request_json(r);
    jw_object(&w);
    jw_kstr(&w, "yaml", buf_str(&yaml));
    jw_object_end(&w);
    fluid_send(r, 200);
}

void fluid_book_delete(struct request *r)
{
    struct playbook *p = find_book(r, OWNER_CHANGE);
    struct book_job *j;
    struct err e = {0};

    if (!p)
        return;
    j = job_new(r, 204);
    job_go(r, j, playbook_remove(p, CALL(j), &e), &e);
}

/* --- tasks --- */

void fluid_book_task_add(struct request *r)
{
    const struct book_in *in = r->in;
    struct playbook *p = find_book(r, OWNER_CHANGE);
    struct book_job *j;
    struct err e = {0};

    if (!p)
        return;
    j = job_new(r, 201);
    job_go(r, j,
           playbook_task_add(p,
                             &(struct playbook_task){
                                 .name = in->name, .module = in->module, .params = in->params},
                             CALL(j), j->task, &e),
           &e);
}

void fluid_book_task_change(struct request *r)
{
    const struct book_in *in = r->in;
    struct playbook *p = find_book(r, OWNER_CHANGE);
    const char *own = p ? need_task(r, p, r->params.v[1]) : NULL;
    struct book_job *j;
    struct err e = {0};

    if (!own)
        return;
    j = job_new(r, 200);
    (void)snprintf(j->task, sizeof j->task, "%s", own);
    job_go(r, j,
           playbook_task_change(p, str_of(j->task),
                                &(struct playbook_task){
                                    .name = in->name, .module = in->module, .params = in->params},
                                CALL(j), &e),
           &e);
}

void fluid_book_task_delete(struct request *r)
{
    struct playbook *p = find_book(r, OWNER_CHANGE);
    const char *own = p ? need_task(r, p, r->params.v[1]) : NULL;
    struct book_job *j;
    struct err e = {0};

    if (!own)
        return;
    j = job_new(r, 204);
    job_go(r, j, playbook_task_remove(p, str_of(own), CALL(j), &e), &e);
}

void fluid_book_reorder(struct request *r)
{
    const struct book_in *in = r->in;
    struct playbook *p = find_book(r, OWNER_CHANGE);
    struct str *ids;
    struct book_job *j;
    struct err e = {0};

    if (!p)
        return;
    ids = arena_zalloc(xchg_arena(r->x), (in->task_ids.n + 1) * sizeof *ids);
    for (size_t i = 0; i < in->task_ids.n; i++) {
        const char *own = need_task(r, p, in->task_ids.v[i]);

        if (!own)
            return;
        ids[i] = str_of(own);
    }
    j = job_new(r, 204);
    job_go(r, j, playbook_reorder(p, ids, in->task_ids.n, CALL(j), &e), &e);
}
