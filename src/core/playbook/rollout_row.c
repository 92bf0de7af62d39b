/* rollout_row: rollouts as rows and events. */
#include "base/log.h"
#include "base/mem.h"
#include "core/playbook/rollout_internal.h"
#include "proto/json.h"

#include <stdio.h>

#define HAS(member, kind, ...) COLUMN(struct rollout, member, kind, __VA_ARGS__)
#define ONCE .flags = COLUMN_ONCE
/* clang-format off */
static const struct column rollout_column_list[] = {
    COLUMN_AS("id", struct rollout, named.id, COLUMN_CHARS, .flags = COLUMN_KEY),
    NAMED_OWNER_COLUMNS(struct rollout),
    HAS(role, COLUMN_I32, ONCE),
    HAS(agent, COLUMN_TEXT, ONCE),
    HAS(person, COLUMN_TEXT, ONCE),
    HAS(playbook, COLUMN_CHARS, ONCE),
    HAS(playbook_name, COLUMN_TEXT, ONCE),
    COLUMN_AS("content", struct rollout, text, COLUMN_TEXT, ONCE),
    HAS(unchecked, COLUMN_TEXT, ONCE),
    HAS(target, COLUMN_CHARS, ONCE),
    HAS(target_name, COLUMN_TEXT, ONCE),
    COLUMN_AS("address", struct rollout, at.address, COLUMN_TEXT, ONCE),
    COLUMN_AS("port", struct rollout, at.port, COLUMN_INT, ONCE),
    COLUMN_AS("login", struct rollout, at.login, COLUMN_TEXT, ONCE),
    COLUMN_AS("host_key", struct rollout, at.host_key, COLUMN_TEXT, ONCE),
    COLUMN_AS("principals", struct rollout, at.principals, COLUMN_TEXT, ONCE),
    COLUMN_AS("sandbox", struct rollout, at.sandbox, COLUMN_CHARS, ONCE),
    COLUMN_AS("become", struct rollout, at.become, COLUMN_BOOL, ONCE),
    HAS(people, COLUMN_INT, ONCE),
    COLUMN_AS("check_only", struct rollout, check, COLUMN_BOOL, ONCE),
    HAS(note, COLUMN_TEXT, ONCE),
    COLUMN_AS("state", struct rollout, sm.state, COLUMN_I32),
    HAS(error, COLUMN_TEXT),
    HAS(approval, COLUMN_CHARS),
    HAS(decided_by, COLUMN_TEXT),
    HAS(snapshot, COLUMN_CHARS),
    HAS(check_exit, COLUMN_I32),
    HAS(exit_code, COLUMN_I32),
    HAS(changed_ms, COLUMN_INT),
    HAS(ended_ms, COLUMN_INT),
};
/* clang-format on */
static struct columns rollout_columns = {.table = "rollouts",
                                         .list = rollout_column_list,
                                         .count = ARRAY_LEN(rollout_column_list),
                                         .order = "ORDER BY id",
                                         .prefix = "ro"};

static void rollout_done(struct named *n)
{
    struct rollout *ro = rollout_of(n);
    char *const owned[] = {ro->agent,       ro->person,       ro->playbook_name, ro->target_name,
                           ro->text,        ro->unchecked,    ro->note,          ro->error,
                           ro->decided_by,  ro->reason,       ro->at.address,    ro->at.login,
                           ro->at.host_key, ro->at.principals};

    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        mem_free(owned[i]);
}

static void put_members(struct jw *w, const struct rollout *ro)
{
    jw_kc(w, "state", rollout_state_name((enum rollout_state)ro->sm.state));
    jw_kc(w, "playbook", ro->playbook);
    jw_kc(w, "playbook_name", ro->playbook_name);
    jw_kc(w, "target", ro->target);
    jw_kc(w, "target_name", ro->target_name);
    jw_kc(w, "sandbox", ro->at.sandbox);
    jw_kbool(w, "check", ro->check);
    jw_kc(w, "approval", ro->approval);
    jw_kc(w, "decided_by", ro->decided_by);
    jw_kc(w, "snapshot", ro->snapshot);
    jw_kint_if(w, "check_exit", ro->check_exit >= 0, ro->check_exit);
    jw_kint_if(w, "exit_code", ro->exit_code >= 0, ro->exit_code);
    jw_kc(w, "error", ro->error);
}

static void rollout_put(const struct named *n, struct jw *w)
{
    put_members(w, CONTAINER_OF(n, struct rollout, named));
}

const struct named_kind rollout_kind = {
    .noun = "rollout",
    .hint = "holt rollout ls lists those there are",
    .size = sizeof(struct rollout),
    .columns = &rollout_columns,
    .durability = STORE_DURABLE,
    .done = rollout_done,
    .put = rollout_put,
};

void rollout_event_data(const struct rollout *ro, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kc(&w, "id", ro->named.id);
    jw_kc(&w, "tenant", ro->named.tenant);
    jw_kc(&w, "owner", ro->named.owner);
    jw_ktime(&w, "created_at", ro->named.created_ms);
    put_members(&w, ro);
    jw_object_end(&w);
}

void rollout_put_event(struct store_tx *tx, const char *id, enum rollout_state s, const char *actor,
                       struct str data)
{
    char object[ID_SIZE + 16], type[40];

    (void)snprintf(object, sizeof object, "rollout/%s", id);
    (void)snprintf(type, sizeof type, "rollout.%s", rollout_state_name(s));
    tx_event(tx, &(struct event_spec){.type = type, .object = object, .actor = actor, .data = data},
             NULL);
}

/* --- a save --- */

struct saving {
    struct rollout *ro;
    struct row *row;
    struct buf data;
    char id[ID_SIZE], actor[64];
    enum rollout_state state;
    rollout_then then;
    struct rollout_also also;
};

static int save_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct saving *j = arg;

    if (row_save(tx, j->row, e) < 0 || (j->also.work && j->also.work(tx, j->also.arg, e) < 0))
        return -1;
    rollout_put_event(tx, j->id, j->state, j->actor, buf_str(&j->data));
    return 0;
}

static void save_written(void *arg, const struct err *e)
{
    struct saving *j = arg;
    struct rollout *ro = j->ro;
    rollout_then then = j->then;

    if (j->also.free)
        j->also.free(j->also.arg);
    row_free(j->row);
    buf_done(&j->data);
    mem_free(j);
    ro->busy = false;
    ro->shown = ro->sm.state;
    if (ro->named.list && CONTAINER_OF(ro->named.list, struct rollouts, list)->closed)
        return;
    if (e->code != ERR_NONE)
        log_error("a rollout could not be written", LOG_C("id", ro->named.id), LOG_E(e));
    if (then)
        then(ro);
}

void rollout_save(struct rollout *ro, const char *actor, rollout_then then,
                  const struct rollout_also *also)
{
    struct rollouts *l = CONTAINER_OF(ro->named.list, struct rollouts, list);
    struct saving *j = xzalloc(sizeof *j);

    ro->busy = true;
    j->ro = ro;
    j->then = then;
    j->state = (enum rollout_state)ro->sm.state;
    if (also)
        j->also = *also;
    memcpy(j->id, ro->named.id, sizeof j->id);
    (void)snprintf(j->actor, sizeof j->actor, "%s", actor);
    rollout_event_data(ro, &j->data);
    j->row = row_take(&rollout_columns, ro);
    store_write(l->c.store, STORE_DURABLE, save_work, save_written, j);
}
