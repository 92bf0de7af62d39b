/* rollout: the registry of rollouts: create, queue, moves, cancel, find. */
#include "core/playbook/rollout.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/omit.h"
#include "core/playbook/playbook.h"
#include "core/playbook/rollout_internal.h"
#include "core/playbook/target.h"
#include "core/sandbox/sandbox.h"
#include "core/texts.h"

#include <stdarg.h>
#include <unistd.h>

#define ROLLOUTS_MAX 2000 /* kept; the oldest that has ended makes room */
#define OPEN_MAX 100      /* of one owner, that have not ended */
#define RUNNING_MAX 4     /* sandboxes of ansible at once */
#define NOTE_MAX_LEN 4096

#define ENDS (SM_TO(ROLLOUT_FAILED) | SM_TO(ROLLOUT_CANCELLED))
#define BACK SM_TO(ROLLOUT_ROLLING_BACK)
/* clang-format off */
static const struct sm_state rollout_states[] = {
    [ROLLOUT_PENDING]      = {"pending", SM_TO(ROLLOUT_CHECKING) | SM_TO(ROLLOUT_WAITING) | SM_TO(ROLLOUT_APPROVED) | ENDS},
    [ROLLOUT_CHECKING]     = {"checking", SM_TO(ROLLOUT_WAITING) | SM_TO(ROLLOUT_APPROVED) | SM_TO(ROLLOUT_SUCCEEDED) | ENDS},
    [ROLLOUT_WAITING]      = {"waiting", SM_TO(ROLLOUT_APPROVED) | SM_TO(ROLLOUT_REJECTED) | ENDS},
    [ROLLOUT_APPROVED]     = {"approved", SM_TO(ROLLOUT_APPLYING) | ENDS},
    [ROLLOUT_APPLYING]     = {"applying", SM_TO(ROLLOUT_SUCCEEDED) | ENDS},
    [ROLLOUT_SUCCEEDED]    = {"succeeded", BACK},
    [ROLLOUT_FAILED]       = {"failed", BACK},
    [ROLLOUT_REJECTED]     = {"rejected", 0},
    [ROLLOUT_CANCELLED]    = {"cancelled", BACK},
    [ROLLOUT_ROLLING_BACK] = {"rolling_back", SM_TO(ROLLOUT_ROLLED_BACK) | SM_TO(ROLLOUT_FAILED)},
    [ROLLOUT_ROLLED_BACK]  = {"rolled_back", 0},
};
/* clang-format on */

const char *rollout_state_name(enum rollout_state s)
{
    return rollout_states[s].name;
}

bool rollout_state_parse(struct str s, enum rollout_state *ret)
{
    int i;

    if (!sm_find(rollout_states, ROLLOUT_STATE_COUNT, s, &i))
        return false;
    *ret = (enum rollout_state)i;
    return true;
}

bool rollout_state_is_end(enum rollout_state s)
{
    return s == ROLLOUT_SUCCEEDED || s == ROLLOUT_FAILED || s == ROLLOUT_REJECTED ||
           s == ROLLOUT_CANCELLED || s == ROLLOUT_ROLLED_BACK;
}

struct rollout *rollout_of(struct named *n)
{
    return n ? CONTAINER_OF(n, struct rollout, named) : NULL;
}

static struct rollouts *all_of(const struct rollout *ro)
{
    return CONTAINER_OF(ro->named.list, struct rollouts, list);
}

static bool has_ended(const struct rollout *ro)
{
    return rollout_state_is_end((enum rollout_state)ro->sm.state);
}

/* --- the registry --- */

static void on_stuck(void *arg, const struct err *e)
{
    struct rollouts *l = arg;

    log_warn("the log of decisions about rollouts cannot be read", LOG_E(e));
    l->stuck = true;
}

int rollouts_open(const struct rollouts_config *c, struct rollouts **ret, struct err *e)
{
    struct rollouts *l = xzalloc(sizeof *l);

    l->c = *c;
    l->logs = -1;
    if (named_list_open(&l->list, &rollout_kind, c->store, e) < 0 || rollout_logs_open(l, e) < 0) {
        rollouts_free(l);
        return err_wrap(e, "open the rollouts");
    }
    for (size_t i = 0; i < l->list.count; i++) {
        struct rollout *ro = rollout_of(l->list.sorted[i]);

        ro->sm.table = rollout_states;
        if (ro->sm.state < 0 || ro->sm.state >= ROLLOUT_STATE_COUNT)
            ro->sm.state = ROLLOUT_FAILED;
        ro->shown = ro->sm.state;
        list_init(&ro->watches);
    }
    l->sub = events_subscribe(c->events,
                              &(struct event_filter){.since_seq = events_head(c->events, NULL)},
                              rollout_on_event, on_stuck, l);
    *ret = l;
    return 0;
}

void rollouts_set_door(struct rollouts *l, rollout_door door, void *arg)
{
    l->door = door;
    l->door_arg = arg;
}

static void tell_caller(struct rollout *ro, const struct err *e);

void rollouts_close(struct rollouts *l)
{
    struct err e = {0};

    if (!l)
        return;
    l->closed = true;
    subscription_end(TAKE(l->sub));
    err_set(&e, ERR_UNAVAILABLE, 0, "holtd is stopping");
    for (size_t i = 0; i < l->list.count; i++) {
        tell_caller(rollout_of(l->list.sorted[i]), &e);
        rollout_run_leave(rollout_of(l->list.sorted[i]));
    }
}

struct rollouts *rollouts_free(struct rollouts *l)
{
    if (!l)
        return NULL;
    if (l->sub)
        subscription_end(l->sub);
    named_list_done(&l->list);
    if (l->logs >= 0)
        (void)close(l->logs);
    mem_free(l);
    return NULL;
}

/* --- moves --- */

void rollout_tell(struct rollout *ro)
{
    LIST_EACH (&ro->watches, node) {
        struct rollout_watch *w = LIST_ENTRY(node, struct rollout_watch, link);

        w->changed(w);
    }
}

void rollout_state_set(struct rollout *ro, enum rollout_state to)
{
    sm_move(&ro->sm, (int)to);
    ro->changed_ms = clock_wall_ms();
    if (rollout_state_is_end(to))
        ro->ended_ms = ro->changed_ms;
}

static void queue_serve(struct rollouts *l);

/* The caller of a cancel or rollback. */
static void tell_caller(struct rollout *ro, const struct err *e)
{
    if (ro->told)
        TAKE(ro->told)(ro->told_arg, e->code == ERR_NONE ? &ro->named : NULL, e);
}

static void move_written(struct rollout *ro)
{
    const struct err none = {0};

    rollout_tell(ro);
    if (has_ended(ro) || ro->sm.state == ROLLOUT_ROLLING_BACK)
        tell_caller(ro, &none);
    if (!has_ended(ro))
        rollout_step(ro);
    queue_serve(all_of(ro));
}

void rollout_go(struct rollout *ro, enum rollout_state to)
{
    rollout_state_set(ro, to);
    rollout_save(ro, "system", move_written, NULL);
}

void rollout_fail(struct rollout *ro, const struct err *e)
{
    AUTO(mem_free)
    char *text = e->hint[0] ? xasprintf("%s (%s)", e->msg, e->hint) : xstrdup(e->msg);

    text_set(&ro->error, str_of(text));
    rollout_go(ro, ROLLOUT_FAILED);
}

void rollout_failed(struct rollout *ro, const char *fmt, ...)
{
    AUTO(buf_done) struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    text_set(&ro->error, buf_str(&text));
    rollout_go(ro, ROLLOUT_FAILED);
}

bool rollout_stops(struct rollout *ro)
{
    struct rollout_also unask = {0};

    if (all_of(ro)->closed || has_ended(ro))
        return true;
    if (!ro->cancel || !sm_may(&ro->sm, ROLLOUT_CANCELLED))
        return false;
    rollout_unask(ro, &unask);
    text_set(&ro->error, str_of(ro->reason));
    rollout_state_set(ro, ROLLOUT_CANCELLED);
    rollout_save(ro, ro->named.owner, move_written, &unask);
    return true;
}

/* Also after a restart: every step but the run itself can be done again. */
void rollout_step(struct rollout *ro)
{
    static void (*const steps[ROLLOUT_STATE_COUNT])(struct rollout *) = {
        [ROLLOUT_CHECKING] = rollout_check_begin,
        [ROLLOUT_WAITING] = rollout_look,
        [ROLLOUT_APPLYING] = rollout_run_resume,
        [ROLLOUT_ROLLING_BACK] = rollout_back_begin,
    };

    if (!ro->busy && !rollout_stops(ro) && steps[ro->sm.state]) /* the queue begins the others */
        steps[ro->sm.state](ro);
}

bool rollout_needs_people(const struct rollout *ro)
{
    return ro->people > 0 && !rule_is_omitted("approval");
}

/* --- the queue: by age --- */

static bool is_running(const struct rollout *ro)
{
    return ro->sm.state == ROLLOUT_CHECKING || ro->sm.state == ROLLOUT_APPLYING ||
           ro->sm.state == ROLLOUT_ROLLING_BACK || (ro->sm.state == ROLLOUT_APPROVED && ro->busy);
}

static bool is_same_machine(const struct rollout *a, const struct rollout *b)
{
    return a->target[0] ? strcmp(a->target, b->target) == 0
                        : strcmp(a->at.sandbox, b->at.sandbox) == 0;
}

/* One change at a time on each machine. */
static bool machine_is_free(const struct rollout *ro)
{
    const struct rollouts *l = all_of(ro);

    for (size_t i = 0; i < l->list.count; i++) {
        const struct rollout *other = rollout_of(l->list.sorted[i]);

        if (other != ro && is_running(other) && other->sm.state != ROLLOUT_CHECKING &&
            is_same_machine(ro, other))
            return false;
    }
    return true;
}

static void queue_begin(struct rollout *ro)
{
    if (rollout_stops(ro))
        return;
    if (ro->sm.state == ROLLOUT_APPROVED)
        rollout_apply_begin(ro);
    else if (!ro->unchecked[0])
        rollout_go(ro, ROLLOUT_CHECKING);
    else if (rollout_needs_people(ro))
        rollout_ask(ro);
    else
        rollout_go(ro, ROLLOUT_APPROVED);
}

static void queue_serve(struct rollouts *l)
{
    size_t running = 0;

    if (!l->resumed || l->closed)
        return;
    for (size_t i = 0; i < l->list.count; i++)
        running += is_running(rollout_of(l->list.sorted[i]));
    for (size_t i = 0; i < l->list.count && running < RUNNING_MAX; i++) {
        struct rollout *ro = rollout_of(l->list.sorted[i]);
        bool due = ro->sm.state == ROLLOUT_PENDING ||
                   (ro->sm.state == ROLLOUT_APPROVED && machine_is_free(ro));

        if (!due || ro->busy || ro->named.state != NAMED_READY || ro->named.writes > 0)
            continue;
        queue_begin(ro);
        running++;
    }
}

void rollouts_tick(struct rollouts *l)
{
    if (l->closed)
        return;
    if (l->stuck)
        subscription_resume(l->sub);
    l->stuck = false;
    if (!l->resumed && sandboxes_settled(l->c.sandboxes)) {
        l->resumed = true;
        for (size_t i = 0; i < l->list.count; i++)
            if (!has_ended(rollout_of(l->list.sorted[i])))
                rollout_step(rollout_of(l->list.sorted[i]));
    }
    for (size_t i = 0; l->resumed && i < l->list.count; i++)
        if (rollout_of(l->list.sorted[i])->sm.state == ROLLOUT_ROLLING_BACK)
            rollout_step(rollout_of(l->list.sorted[i])); /* one that could not begin yet */
    queue_serve(l);
}

/* --- create --- */

static int forget_work(struct store_tx *tx, void *arg, struct err *e)
{
    return tx_run(tx, "DELETE FROM rollouts WHERE id = :id", PARAMS(P_C("id", arg)), e) < 0 ? -1
                                                                                            : 0;
}

static void forgotten(void *arg, const struct err *e)
{
    if (e->code != ERR_NONE)
        log_warn("an old rollout could not be forgotten", LOG_C("id", arg), LOG_E(e));
    mem_free(arg);
}

static void forget_oldest(struct rollouts *l)
{
    for (size_t i = 0; i < l->list.count; i++) {
        struct rollout *ro = rollout_of(l->list.sorted[i]);

        if (!has_ended(ro) || ro->busy || ro->looking || ro->named.writes > 0 ||
            !list_is_empty(&ro->watches))
            continue;
        rollout_log_remove(ro);
        store_write(l->c.store, STORE_RELAXED, forget_work, forgotten, xstrdup(ro->named.id));
        named_forget(&ro->named);
        return;
    }
}

static int check_room(struct rollouts *l, const struct principal *by, struct err *e)
{
    size_t open = 0;

    if (principal_is_inside(by)) {
        err_set(e, ERR_FORBIDDEN, 0, "a sandbox applies no playbooks");
        return err_hint(e, "ask its owner, or use a token from outside");
    }
    for (size_t i = 0; i < l->list.count; i++) {
        const struct rollout *ro = rollout_of(l->list.sorted[i]);

        open += !has_ended(ro) && strcmp(ro->named.owner, principal_owner(by)) == 0;
    }
    if (open >= OPEN_MAX) {
        err_set(e, ERR_LIMIT, 0, "%zu of your rollouts have not ended", open);
        return err_limit_fixed(e, OPEN_MAX, "wait for answers, or cancel some (holt rollout ls)");
    }
    if (l->list.count >= ROLLOUTS_MAX)
        forget_oldest(l);
    if (l->list.count < ROLLOUTS_MAX)
        return 0;
    err_set(e, ERR_LIMIT, 0, "there are %zu rollouts already", l->list.count);
    return err_limit_fixed(e, ROLLOUTS_MAX, "cancel some that wait (holt rollout ls)");
}

static void take_machine(struct rollout *ro, const struct target_info *t)
{
    (void)snprintf(ro->target, sizeof ro->target, "%s", t->id);
    (void)snprintf(ro->at.sandbox, sizeof ro->at.sandbox, STR_FMT, STR_ARG(t->sandbox));
    ro->target_name = str_dup(t->name);
    ro->at.address = str_dup(t->address);
    ro->at.port = t->port;
    ro->at.login = str_dup(t->user);
    ro->at.host_key = str_dup(t->host_key);
    ro->at.principals = str_dup(t->principals);
    ro->at.become = t->become;
    ro->people = t->people;
}

/* A sandbox of the caller's own is no production: it may do there what it likes anyway. */
static int find_machine(struct rollouts *l, const struct rollout_spec *spec,
                        const struct principal *by, struct target_info *ret, char id[ID_SIZE],
                        struct err *e)
{
    struct target *t = target_find(l->c.targets, by, OWNER_SEE, spec->to, e);
    struct err none = {0};
    struct sandbox *s = t ? NULL : sandbox_find(l->c.sandboxes, by, spec->to, &none);
    struct sandbox_info i;

    if (!t && s) {
        sandbox_info(s, &i);
        t = target_of_sandbox(l->c.targets, i.id);
    }
    if (t) {
        target_info(t, ret);
        return 0;
    }
    if (!s)
        return -1;
    (void)snprintf(id, ID_SIZE, "%s", i.id);
    *ret = (struct target_info){.id = "",
                                .name = i.name.n > 0 ? i.name : str_of(id),
                                .sandbox = str_of(id),
                                .user = STR("root"),
                                .host_key = STR(""),
                                .principals = STR(""),
                                .address = STR("")};
    *e = none;
    return 0;
}

static int check_rights(const struct target_info *t, const struct playbook_info *p,
                        const struct rollout_spec *spec, const struct principal *by, struct err *e)
{
    if (spec->check && t->people > 0 && by->role == ROLE_AGENT && !rule_is_omitted("readers")) {
        err_set(e, ERR_FORBIDDEN, 0, "only people check a target without applying a playbook");
        return err_hint(e, "leave out 'check': then people see the check and decide");
    }
    if (!p->become || t->become || str_eq_c(t->user, "root"))
        return 0;
    err_set(e, ERR_CONFLICT, 0,
            "playbook '" STR_FMT "' needs root, and target '" STR_FMT "' logs in as '" STR_FMT
            "' without sudo",
            STR_ARG(p->name), STR_ARG(t->name), STR_ARG(t->user));
    return err_hint(e, "add the target again with --become, if its user may use sudo there");
}

static void take_playbook(struct rollout *ro, struct playbook *p)
{
    struct playbook_info i;
    struct buf text = {0}, why = {0};

    playbook_info(p, &i);
    playbook_yaml(i.name, STR("all"), i.become, playbook_tasks(p), &text);
    if (!rule_is_omitted("looking"))
        (void)playbook_check_acts(playbook_tasks(p), &why);
    (void)snprintf(ro->playbook, sizeof ro->playbook, "%s", i.id);
    ro->playbook_name = str_dup(i.name);
    ro->text = buf_steal(&text);
    ro->unchecked = buf_steal(&why);
}

static int check_spec(struct rollouts *l, const struct rollout_spec *spec,
                      const struct named_call *c, struct err *e)
{
    struct buf why = {0};

    if (spec->note.n > NOTE_MAX_LEN)
        return err_set(e, ERR_INVALID, 0, "field 'note': at most %d bytes", NOTE_MAX_LEN);
    if (check_room(l, c->by, e) < 0)
        return -1;
    if (spec->check && playbook_check_acts(playbook_tasks(spec->playbook), &why)) {
        err_set(e, ERR_CONFLICT, 0, "it cannot be checked alone: " STR_FMT, STR_ARG(buf_str(&why)));
        err_hint(e, "apply it: then a person decides first");
        buf_done(&why);
        return -1;
    }
    buf_done(&why);
    return 0;
}

int rollout_create(struct rollouts *l, const struct rollout_spec *spec, const struct named_call *c,
                   struct err *e)
{
    struct target_info t;
    struct playbook_info p;
    char id[ID_SIZE];
    struct str tenant;
    struct rollout *ro;

    playbook_info(spec->playbook, &p);
    if (check_spec(l, spec, c, e) < 0 || find_machine(l, spec, c->by, &t, id, e) < 0 ||
        check_rights(&t, &p, spec, c->by, e) < 0 || owner_tenant(c->by, STR(""), &tenant, e) < 0)
        return err_wrap(e, "apply playbook '%s'", p.id);
    ro = rollout_of(named_new(&l->list, c->by, tenant, STR("")));
    ro->sm = (struct sm){.table = rollout_states, .state = ROLLOUT_PENDING};
    list_init(&ro->watches);
    take_machine(ro, &t);
    take_playbook(ro, spec->playbook);
    ro->role = (int)c->by->role;
    ro->agent = xstrdup(c->by->agent);
    ro->person = str_dup(spec->person);
    ro->note = str_dup(spec->note);
    ro->error = xstrdup("");
    ro->decided_by = xstrdup("");
    ro->check = spec->check;
    ro->check_exit = ro->exit_code = -1;
    ro->changed_ms = ro->named.created_ms;
    named_create(&ro->named, "rollout.created", c);
    return 0;
}

/* --- cancel, rollback --- */

int rollout_cancel(struct rollout *ro, struct str reason, const struct named_call *c, struct err *e)
{
    if (has_ended(ro) || ro->cancel || ro->named.state != NAMED_READY ||
        ro->sm.state == ROLLOUT_ROLLING_BACK) {
        err_set(e, ERR_CONFLICT, 0, "rollout '%s' is %s already", ro->named.id,
                ro->cancel ? "being cancelled" : sm_name(&ro->sm));
        err_object(e, "rollout", ro->named.id);
        return err_hint(e, "holt rollout show %s has its end", ro->named.id);
    }
    ro->cancel = true;
    if (reason.n == 0)
        reason = ro->sm.state == ROLLOUT_APPLYING
                     ? STR("cancelled while it ran: its target may be changed in part")
                     : STR("cancelled on request");
    text_set(&ro->reason, reason);
    ro->told = c->done;
    ro->told_arg = c->arg;
    if (ro->run)
        rollout_run_stop(ro);
    if (!ro->busy)
        (void)rollout_stops(ro);
    return 0;
}

int rollout_rollback(struct rollout *ro, const struct named_call *c, struct err *e)
{
    if (c->by->role == ROLE_AGENT || principal_is_inside(c->by)) {
        err_set(e, ERR_FORBIDDEN, 0, "only people roll back a target");
        return err_hint(e, "ask an operator");
    }
    if (!ro->snapshot[0] || ro->busy || !sm_may(&ro->sm, ROLLOUT_ROLLING_BACK) ||
        !machine_is_free(ro)) {
        err_set(e, ERR_CONFLICT, 0, "rollout '%s' is %s and %s", ro->named.id, sm_name(&ro->sm),
                ro->snapshot[0] ? "cannot be rolled back now" : "has no snapshot");
        err_object(e, "rollout", ro->named.id);
        return err_hint(e, "a snapshot is taken where the target is a sandbox");
    }
    rollout_state_set(ro, ROLLOUT_ROLLING_BACK);
    ro->told = c->done;
    ro->told_arg = c->arg;
    rollout_save(ro, c->by->actor, move_written, NULL);
    return 0;
}

/* --- lookup --- */

struct rollout *rollout_find(struct rollouts *l, const struct principal *by, enum owner_use use,
                             struct str ref, struct err *e)
{
    struct named *n = named_get(&l->list, ref);

    if (!n || n->state == NAMED_MAKING || (!named_may(n, by, OWNER_SEE))) {
        (void)named_not_found(&rollout_kind, ref, e);
        return NULL;
    }
    if (!named_may(n, by, use)) {
        err_set(e, ERR_FORBIDDEN, 0, "rollout '%s' is not yours", n->id);
        return NULL;
    }
    return rollout_of(n);
}

struct rollout *rollout_next(struct rollouts *l, const struct principal *by, struct str after)
{
    return rollout_of(named_next(&l->list, by, after));
}

static bool is_person(const struct principal *by)
{
    return by->role != ROLE_AGENT && !principal_is_inside(by);
}

int rollout_may_read(const struct rollout *ro, const struct principal *by, enum rollout_phase phase,
                     struct err *e)
{
    bool approved =
        ro->exit_code >= 0 || ro->shown == ROLLOUT_APPROVED || ro->shown == ROLLOUT_APPLYING;

    if (phase == ROLLOUT_RUN || ro->people == 0 || approved || is_person(by) ||
        rule_is_omitted("readers"))
        return 0;
    err_set(e, ERR_FORBIDDEN, 0, "the check of a target is for those who approve");
    err_object(e, "rollout", ro->named.id);
    return err_hint(e, "its output is open once a person has approved the rollout");
}

void rollout_info(const struct rollout *ro, struct rollout_info *ret)
{
    *ret = (struct rollout_info){.id = ro->named.id,
                                 .owner = str_of(ro->named.owner),
                                 .tenant = str_of(ro->named.tenant),
                                 .playbook = str_of(ro->playbook),
                                 .playbook_name = str_of(ro->playbook_name),
                                 .target = str_of(ro->target),
                                 .target_name = str_of(ro->target_name),
                                 .sandbox = str_of(ro->at.sandbox),
                                 .text = str_of(ro->text),
                                 .unchecked = str_of(ro->unchecked),
                                 .note = str_of(ro->note),
                                 .error = str_of(ro->error),
                                 .approval = str_of(ro->approval),
                                 .decided_by = str_of(ro->decided_by),
                                 .snapshot = str_of(ro->snapshot),
                                 .state = (enum rollout_state)ro->shown,
                                 .check = ro->check,
                                 .check_exit = ro->check_exit,
                                 .exit_code = ro->exit_code,
                                 .people = ro->people,
                                 .created_ms = ro->named.created_ms,
                                 .changed_ms = ro->changed_ms,
                                 .ended_ms = ro->ended_ms};
}
