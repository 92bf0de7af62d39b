/* sandbox_row: sandboxes as rows and events, and their states. */
#include "core/sandbox/sandbox_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/columns.h"
#include "proto/json.h"

#include <stdio.h>

/* --- events --- */

static void put_aliases(struct jw *w, const struct sandbox *s)
{
    jw_key(w, "aliases");
    jw_array(w);
    for (const struct alias *a = alias_first(s->all->aliases, str_of(s->id)); a; a = a->next) {
        jw_object(w);
        jw_kstr(w, "dialect", a->name.dialect);
        jw_kstr(w, "alias", a->name.alias);
        jw_object_end(w);
    }
    jw_array_end(w);
}

/* The members of an event: all but the values of the environment, placeholders too. */
static void put_all(struct buf *to, const struct sandbox *s)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "id", s->id);
    jw_kc(&w, "name", s->name);
    jw_kc(&w, "state", sm_name(&s->sm));
    if (sandbox_is_leaving(s))
        jw_kc(&w, "goal", "destroy");
    jw_kc(&w, "runtime", s->runtime);
    if (s->host && s->host[0])
        jw_kc(&w, "host", s->host);
    jw_kc(&w, "image", s->image);
    jw_kc(&w, "tenant", s->tenant);
    jw_kc(&w, "owner", s->owner);
    jw_kc(&w, "failure", s->failure);
    jw_kint(&w, "enforced", s->enforced);
    jw_kbool(&w, "orphan", s->orphan);
    jw_ktime(&w, "created_at", s->created_ms);
    jw_ktime(&w, "started_at", s->started_ms);
    jw_ktime(&w, "ended_at", s->ended_ms);
    jw_kint(&w, "ttl_ms", s->traits.ttl_ms);
    jw_kint(&w, "idle_ttl_ms", s->traits.idle_ttl_ms);
    sandbox_put_spec(&w, s);
    put_aliases(&w, s);
    sandbox_put_secrets(&w, s, false);
    jw_key(&w, "env");
    jw_array(&w);
    for (size_t i = 0; i < s->env_count; i++)
        jw_str(&w, s->env[i].key);
    jw_array_end(&w);
    jw_object_end(&w);
}

struct owed {
    struct list link; /* first: sandbox_unref frees through it */
    const char *type;
    char actor[64];
    size_t n;
    char data[];
};

void sandbox_owe(struct sandbox *s, const char *type)
{
    AUTO(buf_done) struct buf data = {0};
    struct owed *o;

    put_all(&data, s);
    o = xmalloc(sizeof *o + buf_len(&data));
    o->type = type;
    (void)snprintf(o->actor, sizeof o->actor, "%s", *s->actor ? s->actor : "system");
    o->n = buf_len(&data);
    memcpy(o->data, buf_data(&data), o->n);
    list_push(&s->owed, &o->link);
}

static const char *event_of(int from, int to)
{
    switch ((enum sandbox_state)to) {
    case SANDBOX_RUNNING:
        return from == SANDBOX_PAUSED     ? "sandbox.resumed"
               : from == SANDBOX_STARTING ? "sandbox.started"
                                          : "sandbox.running";
    case SANDBOX_PAUSED:
        return "sandbox.paused";
    case SANDBOX_STOPPING:
        return "sandbox.stopping";
    case SANDBOX_STOPPED:
        return "sandbox.stopped";
    case SANDBOX_STARTING:
        return "sandbox.starting";
    case SANDBOX_FAILED:
        return "sandbox.failed";
    case SANDBOX_DESTROYED:
        return "sandbox.destroyed";
    case SANDBOX_CREATING:
    case SANDBOX_STATE_COUNT:
        break;
    }
    return "sandbox.created";
}

/* The one place that sees a move: the next save stores it. */
void sandbox_moved(struct sm *m, int from)
{
    struct sandbox *s = CONTAINER_OF(m, struct sandbox, sm);
    int64_t now = clock_wall_ms();

    if (m->state == SANDBOX_RUNNING && from != SANDBOX_PAUSED) {
        s->started_ms = now;
        s->ended_ms = 0;
        text_set(&s->failure, STR(""));
    } else if (m->state >= SANDBOX_STOPPED && m->state != SANDBOX_STARTING && s->ended_ms == 0) {
        s->ended_ms = now;
    }
    if (m->state == SANDBOX_STOPPED || m->state == SANDBOX_FAILED ||
        (m->state == SANDBOX_STOPPING && step_is(s, STEP_DESTROY)))
        sandbox_unwire(s);
    log_debug("sandbox", LOG_C("id", s->id), LOG_C("state", sm_name(m)),
              LOG_C("why", s->failure ? s->failure : ""));
    sandbox_owe(s, event_of(from, m->state));
    sandbox_verify(s);
}

/* --- the row --- */

static bool put_state(const void *object, struct buf *to)
{
    const struct sandbox *s = object;

    buf_add_c(to, sm_name(&s->sm));
    return true;
}

static int get_state(void *object, struct str text, struct err *e)
{
    struct sandbox *s = object;

    if (sm_find(sandbox_states, SANDBOX_STATE_COUNT, text, &s->sm.state))
        return 0;
    return err_set(e, ERR_INTERNAL, 0, "sandbox '%s' has no known state", s->id);
}

static bool put_goal(const void *object, struct buf *to)
{
    const struct sandbox *s = object;

    buf_add_c(to, sandbox_is_leaving(s) ? "destroy" : "");
    return true;
}

static int get_goal(void *object, struct str text, struct err *e)
{
    struct sandbox *s = object;

    (void)e;
    if (str_eq_c(text, "destroy"))
        s->presence.state = PRESENCE_LEAVING; /* it is listed as such */
    return 0;
}

static bool put_spec(const void *object, struct buf *to)
{
    sandbox_spec_text(object, to);
    return true;
}

static int get_spec(void *object, struct str text, struct err *e)
{
    return sandbox_get_spec(object, text, e);
}

#define HAS(member, kind, ...) COLUMN(struct sandbox, member, kind, __VA_ARGS__)
static const struct column sandbox_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT),
    {.name = "state", .type = COLUMN_MADE, .put = put_state, .get = get_state},
    {.name = "goal", .type = COLUMN_MADE, .put = put_goal, .get = get_goal},
    HAS(runtime, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(host, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(image, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(tenant, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(owner, COLUMN_TEXT, .flags = COLUMN_ONCE),
    HAS(failure, COLUMN_TEXT),
    HAS(enforced, COLUMN_U32),
    HAS(orphan, COLUMN_BOOL),
    HAS(created_ms, COLUMN_INT, .flags = COLUMN_ONCE),
    HAS(started_ms, COLUMN_INT),
    HAS(ended_ms, COLUMN_INT),
    COLUMN_AS("ttl_ms", struct sandbox, traits.ttl_ms, COLUMN_INT),
    COLUMN_AS("idle_ttl_ms", struct sandbox, traits.idle_ttl_ms, COLUMN_INT),
    HAS(last_activity_ms, COLUMN_INT),
    {.name = "spec", .type = COLUMN_MADE, .put = put_spec, .get = get_spec},
};
static struct columns sandbox_columns = {.table = "sandboxes",
                                         .list = sandbox_column_list,
                                         .count = ARRAY_LEN(sandbox_column_list),
                                         .order = "ORDER BY id"};

/* --- writing --- */

struct save { /* copies: the store's thread sees nothing else */
    struct sandbox *s;
    sandbox_saved done;
    struct list owed;
    const struct tx_hook *tx_hook; /* or NULL */
    void *tx_hook_arg;
    bool unmade; /* it was never made: forget its idempotency key */
    char id[ID_SIZE];
    struct row *row; /* NULL: of an erase */
    const struct commands_ops *commands;
    struct pair *aliases; /* dialect and alias */
    size_t alias_count;
};

static void put_events(struct store_tx *tx, const struct save *v)
{
    char object[ID_SIZE + 16];

    (void)snprintf(object, sizeof object, "sandbox/%s", v->id);
    LIST_EACH (&v->owed, node) {
        const struct owed *o = LIST_ENTRY(node, struct owed, link);

        tx_event(tx,
                 &(struct event_spec){.type = o->type,
                                      .object = object,
                                      .actor = o->actor,
                                      .data = str_make(o->data, o->n)},
                 NULL);
    }
}

static int save_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct save *v = arg;

    if (row_save(tx, v->row, e) < 0)
        return -1;
    for (size_t i = 0; i < v->alias_count; i++)
        if (alias_put(tx, (struct alias_name){v->aliases[i].key, v->aliases[i].value}, v->id, e) <
            0)
            return -1;
    if (v->tx_hook && v->tx_hook->write(tx, v->tx_hook_arg, e) < 0)
        return -1;
    put_events(tx, v);
    return 0;
}

static int erase_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct save *v = arg;
    char object[ID_SIZE + 16];

    (void)snprintf(object, sizeof object, "sandbox/%s", v->id);
    if (v->unmade && tx_run(tx, "DELETE FROM idempotency WHERE object = :object",
                            PARAMS(P_C("object", object)), e) < 0)
        return -1;
    if (v->commands->erase(tx, v->id, e) < 0 || alias_erase(tx, v->id, e) < 0 ||
        columns_erase(tx, &sandbox_columns, v->id, e) < 0)
        return -1;
    put_events(tx, v);
    return 0;
}

static void save_end(void *arg, const struct err *e)
{
    struct save *v = arg;
    struct list *node;

    if (e->code != ERR_NONE && !v->s->all->closed) {
        log_warn("the row of a sandbox could not be written; it is retried", LOG_C("id", v->id),
                 LOG_E(e));
        v->s->unsaved = true;
        /* The events were not written either: they go with the next save, before newer ones. */
        while (!list_is_empty(&v->s->owed))
            list_push(&v->owed, list_pop(&v->s->owed));
        while (!list_is_empty(&v->owed))
            list_push(&v->s->owed, list_pop(&v->owed));
    }
    if (v->done && !v->s->all->closed)
        v->done(v->s, e);
    while ((node = list_pop(&v->owed)))
        mem_free(LIST_ENTRY(node, struct owed, link));
    row_free(v->row);
    if (v->tx_hook)
        v->tx_hook->free(v->tx_hook_arg);
    mem_free(v->aliases);
    sandbox_unref(v->s);
    mem_free(v);
}

static void copy_aliases(const struct sandbox *s, struct save *v)
{
    struct pair p[ALIASES_PER_OBJECT];
    const struct alias *a = alias_first(s->all->aliases, str_of(s->id));

    for (; a && v->alias_count < ARRAY_LEN(p); a = a->next)
        p[v->alias_count++] = (struct pair){a->name.dialect, a->name.alias};
    v->aliases = pairs_copy(p, v->alias_count);
}

static void write_row(struct sandbox *s, store_work work, sandbox_saved done)
{
    struct save *v = xzalloc(sizeof *v);

    v->s = sandbox_ref(s);
    v->done = done;
    v->commands = s->all->commands;
    list_init(&v->owed);
    while (!list_is_empty(&s->owed))
        list_push(&v->owed, list_pop(&s->owed));
    memcpy(v->id, s->id, sizeof v->id);
    if (work == save_work) {
        v->row = row_take(&sandbox_columns, s);
        v->tx_hook = TAKE(s->tx_hook);
        v->tx_hook_arg = TAKE(s->tx_hook_arg);
        copy_aliases(s, v);
    }
    v->unmade = sandbox_is_making(s);
    s->unsaved = false;
    /* The row of a run goes with its command's: see made_if_all. */
    if (v->unmade && s->traits.one_shot && work == save_work)
        store_write_later(s->all->store, work, save_end, v);
    else
        store_write(s->all->store, STORE_RELAXED, work, save_end, v);
}

void sandbox_save(struct sandbox *s, sandbox_saved done)
{
    write_row(s, save_work, done);
}

void sandbox_erase(struct sandbox *s, sandbox_saved done)
{
    write_row(s, erase_work, done);
}

/* --- an event without a row --- */

struct note {
    const char *type;
    char object[ID_SIZE + 16];
    char *data;
};

static int note_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct note *n = arg;

    (void)e;
    tx_event(tx,
             &(struct event_spec){
                 .type = n->type, .object = n->object, .actor = "system", .data = str_of(n->data)},
             NULL);
    return 0;
}

static void note_end(void *arg, const struct err *e)
{
    struct note *n = arg;

    if (e->code != ERR_NONE)
        log_warn("an event could not be written", LOG_C("type", n->type),
                 LOG_C("object", n->object), LOG_E(e));
    mem_free(n->data);
    mem_free(n);
}

void sandbox_note(struct sandboxes *all, const char *type, const char *id, const char *why)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};

    jw_object(&w);
    jw_kc(&w, "id", id);
    jw_kc(&w, "failure", why);
    jw_object_end(&w);
    sandbox_note_data(all, type, id, buf_str(&data));
}

void sandbox_note_data(struct sandboxes *all, const char *type, const char *id, struct str data)
{
    struct note *n = xzalloc(sizeof *n);

    n->type = type;
    (void)snprintf(n->object, sizeof n->object, "sandbox/%s", id);
    n->data = str_dup(data);
    store_write(all->store, STORE_RELAXED, note_work, note_end, n);
}

/* --- reading, at start-up --- */

static int load_row(void *arg, const struct store_rows *rows, struct err *e)
{
    struct sandboxes *all = arg;
    char id[ID_SIZE];
    struct str text = rows_text(rows, 0);
    AUTO(sandbox_unref) struct sandbox *s = NULL;
    const struct driver_slot *slot;

    if (!id_is_valid("sb", text))
        return err_set(e, ERR_INTERNAL, 0, "a row of sandboxes has a damaged id");
    (void)snprintf(id, sizeof id, STR_FMT, STR_ARG(text));
    s = sandbox_new(all, id);
    if (columns_load(&sandbox_columns, rows, s, e) < 0)
        return -1;
    s->origin = ORIGIN_ROW;
    slot = host_slot(all, str_of(s->runtime), str_of(s->host));
    s->driver = slot ? slot->driver : NULL;
    sandbox_add(all, TAKE(s));
    return 0;
}

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct sandboxes *all = arg;

    if (columns_each(tx, &sandbox_columns, load_row, all, e) < 0 ||
        aliases_load(all->aliases, tx, e) < 0)
        return -1;
    return all->commands->load(all->execs, tx, e);
}

int sandboxes_load(struct sandboxes *all, struct err *e)
{
    return store_now(all->store, load_work, all, e) < 0 ? err_wrap(e, "read the sandboxes") : 0;
}
