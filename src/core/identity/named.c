/* named: the list, rows, events and lookups of objects with a name and an owner. */
#include "core/identity/named.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "base/thread.h"
#include "core/event/event.h"
#include "proto/json.h"

#include <stdio.h>

/* --- the list --- */

static void named_add(struct named_list *l, struct named *n)
{
    assert(thread_is_loop() && !n->list);
    n->list = l;
    sorted_add(SORTED(l, id), n);
}

static void named_free(const struct named_kind *kind, struct named *n)
{
    assert(n->writes == 0);
    if (kind->done)
        kind->done(n);
    mem_free(n->name);
    mem_free(n->tenant);
    mem_free(n);
}

void named_forget(struct named *n)
{
    struct named_list *l = n->list;

    assert(sorted_find(SORTED(l, id), str_of(n->id)) == n);
    sorted_remove(SORTED(l, id), n);
    named_free(l->kind, n);
}

void named_list_done(struct named_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        named_free(l->kind, l->sorted[i]);
    mem_free(l->sorted);
    *l = (struct named_list){0};
}

static int load_row(void *arg, const struct store_rows *rows, struct err *e)
{
    struct named_list *l = arg;
    struct named *n = xzalloc(l->kind->size);

    if (columns_load(l->kind->columns, rows, n, e) < 0) {
        named_free(l->kind, n);
        return -1;
    }
    n->state = NAMED_READY;
    named_add(l, n);
    return 0;
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct named_list *l = arg;

    return columns_each(tx, l->kind->columns, load_row, l, e);
}

int named_list_open(struct named_list *l, const struct named_kind *kind, struct store *store,
                    struct err *e)
{
    *l = (struct named_list){.kind = kind, .store = store};
    return store_now(store, load_work, l, e) < 0 ? err_wrap(e, "read the %ss", kind->noun) : 0;
}

/* --- finding --- */

static struct owned owned_of(const struct named *n)
{
    return (struct owned){
        .owner = str_of(n->owner), .tenant = str_of(n->tenant), .shared = n->shared};
}

bool named_may(const struct named *n, const struct principal *by, enum owner_use use)
{
    const struct owned o = owned_of(n);

    return owner_may(by, &o, use);
}

struct named *named_get(const struct named_list *l, struct str id)
{
    struct named *n = sorted_find(SORTED(l, id), id);

    return n && n->state == NAMED_READY ? n : NULL;
}

struct named *named_next(const struct named_list *l, const struct principal *by, struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++)
        if (l->sorted[i]->state == NAMED_READY && named_may(l->sorted[i], by, OWNER_SEE))
            return l->sorted[i];
    return NULL;
}

size_t named_count_of(const struct named_list *l, const char *owner)
{
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++)
        n += strcmp(l->sorted[i]->owner, owner) == 0;
    return n;
}

/* Those of a tenant come before those of the installation. */
static void offer_named(const struct named_list *l, struct str tenant, struct owner_look *look)
{
    for (size_t i = 0; i < l->count; i++) {
        struct named *n = l->sorted[i];
        const struct owned o = owned_of(n);

        if (n->state == NAMED_READY && str_eq_c(look->name, n->name) &&
            (tenant.n == 0 || str_eq_c(tenant, n->tenant)))
            owner_offer(look, n, n->id, &o, n->tenant[0] ? 0 : 1);
    }
}

int named_not_found(const struct named_kind *kind, struct str ref, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, 0, "there is no %s '" STR_FMT "'", kind->noun,
            (int)size_min(ref.n, 64), ref.p ? ref.p : "");
    return err_hint(e, "%s", kind->hint);
}

struct named *named_find(const struct named_list *l, const struct named_look *look, struct err *e)
{
    struct owner_look by_name = {.by = look->by,
                                 .use = look->use,
                                 .own_only = look->own_only,
                                 .text = look->ref,
                                 .name = look->ref};
    struct named *n = named_get(l, look->ref);
    struct err why = {0};

    if (n) {
        const struct owned o = owned_of(n);

        return owner_check(look->by, &o, look->use, l->kind->noun, n->id, e) == 0 ? n : NULL;
    }
    if (look->ref.n > 0)
        offer_named(l, look->tenant, &by_name);
    if (!by_name.found && owner_look_split(&by_name))
        offer_named(l, look->tenant, &by_name);
    n = owner_found(&by_name, l->kind->noun, &why);
    if (!n && why.code == ERR_NONE)
        (void)named_not_found(l->kind, look->ref, &why);
    if (!n)
        *e = why;
    return n;
}

/* --- changing --- */

int named_check_free(const struct named_list *l, const struct principal *by, struct str tenant,
                     struct str name, struct err *e)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct named *n = l->sorted[i];

        if (!str_eq_c(name, n->name) || !str_eq_c(tenant, n->tenant) ||
            strcmp(n->owner, principal_owner(by)) != 0)
            continue;
        err_set(e, ERR_CONFLICT, 0, "a %s named '%s' exists already", l->kind->noun, n->name);
        err_object(e, l->kind->noun, n->id);
        return err_hint(e, "choose another name, or remove it: holt %s rm %s", l->kind->noun,
                        n->id);
    }
    return 0;
}

struct named *named_new(struct named_list *l, const struct principal *by, struct str tenant,
                        struct str name)
{
    struct named *n = xzalloc(l->kind->size);

    id_make(l->kind->columns->prefix, n->id);
    n->name = str_dup(name);
    n->tenant = str_dup(tenant);
    n->created_ms = clock_wall_ms();
    (void)snprintf(n->owner, sizeof n->owner, "%s", principal_owner(by));
    named_add(l, n);
    return n;
}

struct named_job { /* copies: the store's thread sees nothing else */
    struct named *n;
    struct columns *columns;
    const char *event;
    char id[ID_SIZE], object[ID_SIZE + 24], actor[64];
    char *data;
    struct row *row; /* NULL: of a removal */
    const struct tx_hook *hook;
    void *hook_arg;
    named_cb done;
    void *arg;
};

static char *event_data(const struct named *n)
{
    struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kc(&w, "id", n->id);
    if (n->name[0]) {
        jw_kc(&w, "name", n->name);
        jw_kbool(&w, "shared", n->shared);
    }
    jw_kc(&w, "tenant", n->tenant);
    jw_kc(&w, "owner", n->owner);
    jw_ktime(&w, "created_at", n->created_ms);
    n->list->kind->put(n, &w);
    jw_object_end(&w);
    return buf_steal(&data);
}

static struct named_job *job_new(struct named *n, const char *event, const struct named_call *c)
{
    const struct named_kind *kind = n->list->kind;
    struct named_job *j = xzalloc(sizeof *j);

    *j = (struct named_job){.n = n,
                            .event = event,
                            .columns = kind->columns,
                            .data = event_data(n),
                            .done = c->done,
                            .arg = c->arg};
    memcpy(j->id, n->id, sizeof j->id);
    (void)snprintf(j->object, sizeof j->object, "%s/%s", kind->noun, n->id);
    (void)snprintf(j->actor, sizeof j->actor, "%s", c->by->actor);
    n->writes++;
    return j;
}

static void job_free(struct named_job *j)
{
    assert(j->n->writes > 0);
    j->n->writes--;
    if (j->hook)
        j->hook->free(j->hook_arg);
    row_free(j->row);
    mem_free(j->data);
    mem_free(j);
}

static int put_event(struct store_tx *tx, const struct named_job *j)
{
    tx_event(tx,
             &(struct event_spec){
                 .type = j->event, .object = j->object, .actor = j->actor, .data = str_of(j->data)},
             NULL);
    return 0;
}

static int save_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct named_job *j = arg;

    if (row_save(tx, j->row, e) < 0 || (j->hook && j->hook->write(tx, j->hook_arg, e) < 0))
        return -1;
    return put_event(tx, j);
}

static int remove_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct named_job *j = arg;

    return columns_erase(tx, j->columns, j->id, e) < 0 ? -1 : put_event(tx, j);
}

static void write_ended(struct named_job *j, struct named *told, bool gone, const struct err *e)
{
    struct named *n = j->n;

    j->done(j->arg, told, e);
    job_free(j);
    if (gone)
        named_forget(n);
}

static void create_written(void *arg, const struct err *e)
{
    struct named_job *j = arg;
    bool good = e->code == ERR_NONE;

    assert(j->n->state == NAMED_MAKING);
    if (good)
        j->n->state = NAMED_READY;
    write_ended(j, good ? j->n : NULL, !good, e);
}

static void save_written(void *arg, const struct err *e)
{
    struct named_job *j = arg;

    write_ended(j, j->n, false, e);
}

static void remove_written(void *arg, const struct err *e)
{
    struct named_job *j = arg;
    bool good = e->code == ERR_NONE;

    assert(j->n->state == NAMED_REMOVING);
    if (!good)
        j->n->state = NAMED_READY;
    write_ended(j, NULL, good, e);
}

static void write_job(struct named_job *j, store_work work, store_done written)
{
    const struct named_list *l = j->n->list;

    assert(j->n->writes > 0 && thread_is_loop());
    if (work == save_work)
        j->row = row_take(l->kind->columns, j->n);
    store_write(l->store, l->kind->durability, work, written, j);
}

void named_create(struct named *n, const char *event, const struct named_call *c)
{
    struct named_job *j = job_new(n, event, c);

    assert(n->state == NAMED_MAKING);
    j->hook = c->hook;
    j->hook_arg = c->hook_arg;
    if (j->hook)
        j->hook->ready(j->hook_arg, n);
    write_job(j, save_work, create_written);
}

void named_save(struct named *n, const char *event, const struct named_call *c)
{
    assert(n->state == NAMED_READY);
    write_job(job_new(n, event, c), save_work, save_written);
}

void named_remove(struct named *n, const char *event, const struct named_call *c)
{
    assert(n->state != NAMED_MAKING);
    n->state = NAMED_REMOVING;
    write_job(job_new(n, event, c), remove_work, remove_written);
}
