/* plan: an agent's plans: create, advance, change, abort, remove. */
#include "core/plan/plan.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/columns.h"

const char *const plan_statuses[] = {"pending", "in_progress", "completed",
                                     "failed",  "aborted",     NULL};
const char *const plan_step_statuses[] = {"pending", "active",  "completed",
                                          "failed",  "skipped", NULL};

struct plans {
    struct named_list list;
};

struct step {
    char *text, *result, *error;
    enum plan_step_status status;
    int64_t started_ms, ended_ms;
};

struct plan {
    struct named named; /* first; its name is its id */
    char *title, *description;
    char *steps; /* the row's form of what follows */
    struct step *v;
    size_t n;
    int64_t status, current, updated_ms, ended_ms;
};

struct plan *plan_of(struct named *n)
{
    return n ? CONTAINER_OF(n, struct plan, named) : NULL;
}

/* --- steps as JSON, for the row --- */

static void put_steps(struct plan *p)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_array(&w);
    for (size_t i = 0; i < p->n; i++) {
        const struct step *s = &p->v[i];

        jw_object(&w);
        jw_kc(&w, "text", s->text);
        jw_kc(&w, "result", s->result);
        jw_kc(&w, "error", s->error);
        jw_kint(&w, "status", s->status);
        jw_kint(&w, "started_ms", s->started_ms);
        jw_kint(&w, "ended_ms", s->ended_ms);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    mem_free(p->steps);
    p->steps = str_dup(buf_str(&text));
}

static char *text_of(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_dup(str_make(json_string_value(v), json_string_length(v)))
                             : NULL;
}

static void take_steps(struct plan *p)
{
    AUTO(json_decref) json_t *all = json_loads(p->steps, 0, NULL);

    p->n = size_min(json_array_size(all), PLAN_STEPS_MAX);
    p->v = xzalloc((p->n + 1) * sizeof *p->v);
    for (size_t i = 0; i < p->n; i++) {
        const json_t *o = json_array_get(all, i);
        json_int_t status = json_integer_value(json_object_get(o, "status"));

        p->v[i] = (struct step){
            .text = text_of(o, "text"),
            .result = text_of(o, "result"),
            .error = text_of(o, "error"),
            .status = status >= 0 && status <= STEP_SKIPPED ? (enum plan_step_status)status : 0,
            .started_ms = json_integer_value(json_object_get(o, "started_ms")),
            .ended_ms = json_integer_value(json_object_get(o, "ended_ms"))};
    }
}

/* --- the kind --- */

static const struct column plan_column_list[] = {
    NAMED_COLUMNS(struct plan),
    COLUMN(struct plan, title, COLUMN_TEXT),
    COLUMN(struct plan, description, COLUMN_TEXT),
    COLUMN(struct plan, steps, COLUMN_TEXT),
    COLUMN(struct plan, status, COLUMN_INT),
    COLUMN_AS("at_step", struct plan, current, COLUMN_INT),
    COLUMN(struct plan, updated_ms, COLUMN_INT),
    COLUMN(struct plan, ended_ms, COLUMN_INT),
};
static struct columns plan_columns = {.table = "plans",
                                      .list = plan_column_list,
                                      .count = ARRAY_LEN(plan_column_list),
                                      .order = "ORDER BY id",
                                      .prefix = "pn"};

static void plan_done(struct named *n)
{
    struct plan *p = plan_of(n);

    for (size_t i = 0; i < p->n; i++) {
        mem_free(p->v[i].text);
        mem_free(p->v[i].result);
        mem_free(p->v[i].error);
    }
    mem_free(p->v);
    mem_free(p->title);
    mem_free(p->description);
    mem_free(p->steps);
}

static void plan_put(const struct named *n, struct jw *w)
{
    const struct plan *p = CONTAINER_OF(n, struct plan, named);

    jw_kc(w, "title", p->title);
    jw_kc(w, "status", plan_statuses[p->status]);
    jw_kint(w, "step", p->current);
    jw_kint(w, "steps", (int64_t)p->n);
}

static const struct named_kind plan_kind = {
    .noun = "plan",
    .hint = "GET /v1/plan/ lists those there are",
    .size = sizeof(struct plan),
    .columns = &plan_columns,
    .durability = STORE_RELAXED,
    .done = plan_done,
    .put = plan_put,
};

struct plans *plans_free(struct plans *l)
{
    if (!l)
        return NULL;
    named_list_done(&l->list);
    mem_free(l);
    return NULL;
}

int plans_open(struct store *store, struct plans **ret, struct err *e)
{
    struct plans *l = xzalloc(sizeof *l);

    if (named_list_open(&l->list, &plan_kind, store, e) < 0) {
        plans_free(l);
        return -1;
    }
    for (size_t i = 0; i < l->list.count; i++)
        take_steps(plan_of(l->list.sorted[i]));
    *ret = l;
    return 0;
}

/* --- create --- */

static int check_spec(const struct plan_spec *spec, struct err *e)
{
    if (spec->step_count == 0 || spec->step_count > PLAN_STEPS_MAX)
        return err_set(e, ERR_INVALID, 0, "a plan has 1 to %d steps", PLAN_STEPS_MAX);
    if (spec->name.n > PLAN_TEXT_MAX || spec->description.n > PLAN_TEXT_MAX)
        return err_set(e, ERR_INVALID, 0, "texts of a plan have at most %d bytes", PLAN_TEXT_MAX);
    for (size_t i = 0; i < spec->step_count; i++)
        if (spec->steps[i].n == 0 || spec->steps[i].n > PLAN_TEXT_MAX)
            return err_set(e, ERR_INVALID, 0, "step %zu must have 1 to %d bytes", i, PLAN_TEXT_MAX);
    return 0;
}

int plan_create(struct plans *l, const struct plan_spec *spec, const struct named_call *c,
                struct err *e)
{
    char name[ID_SIZE];
    struct plan *p;

    if (check_spec(spec, e) < 0)
        return -1;
    if (named_count_of(&l->list, principal_owner(c->by)) >= PLANS_MAX) {
        err_set(e, ERR_LIMIT, 0, "you have %d plans already", PLANS_MAX);
        return err_limit_fixed(e, PLANS_MAX, "delete some");
    }
    p = plan_of(named_new(&l->list, c->by, str_of(c->by->tenant), str_of(id_make("pn", name))));
    p->title = str_dup(spec->name);
    p->description = str_dup(spec->description);
    p->current = -1;
    p->updated_ms = clock_wall_ms();
    p->n = spec->step_count;
    p->v = xzalloc(p->n * sizeof *p->v);
    for (size_t i = 0; i < p->n; i++)
        p->v[i].text = str_dup(spec->steps[i]);
    put_steps(p);
    named_create(&p->named, "plan.created", c);
    return 0;
}

/* --- changes --- */

static void set_text(char **to, struct str text)
{
    if (text.n == 0)
        return;
    mem_free(*to);
    *to = str_dup(text);
}

static void move_step(struct plan *p, size_t at, enum plan_step_status status)
{
    struct step *s = &p->v[at];
    int64_t now = clock_wall_ms();

    if (status == STEP_ACTIVE && s->started_ms == 0)
        s->started_ms = now;
    if (status >= STEP_COMPLETED && s->ended_ms == 0)
        s->ended_ms = now;
    s->status = status;
}

/* What the plan is, by its steps. */
static void settle(struct plan *p)
{
    size_t active = 0, failed = 0, open = 0;

    for (size_t i = 0; i < p->n; i++) {
        active += p->v[i].status == STEP_ACTIVE;
        failed += p->v[i].status == STEP_FAILED;
        open += p->v[i].status == STEP_PENDING;
    }
    if (failed > 0 && active == 0)
        p->status = PLAN_FAILED;
    else if (active + open == 0)
        p->status = PLAN_COMPLETED;
    else
        p->status = active > 0 || p->current >= 0 ? PLAN_IN_PROGRESS : PLAN_PENDING;
    p->updated_ms = clock_wall_ms();
    p->ended_ms = p->status >= PLAN_COMPLETED ? p->updated_ms : 0;
}

static int check_open(const struct plan *p, struct err *e)
{
    if (p->named.state != NAMED_READY)
        return err_set(e, ERR_CONFLICT, 0, "plan '%s' is being removed", p->named.id);
    if (p->status >= PLAN_COMPLETED)
        return err_set(e, ERR_CONFLICT, 0, "plan '%s' is %s", p->named.id,
                       plan_statuses[p->status]);
    return 0;
}

static int save(struct plan *p, const char *event, const struct named_call *c)
{
    put_steps(p);
    named_save(&p->named, event, c);
    return 0;
}

int plan_update(struct plan *p, const struct plan_change *ch, const struct named_call *c,
                struct err *e)
{
    if (check_open(p, e) < 0)
        return -1;
    if (ch->step < 0 || ch->step >= (int64_t)p->n)
        return err_set(e, ERR_INVALID, 0, "step_index must be from 0 to %zu", p->n - 1);
    if (ch->result.n > PLAN_TEXT_MAX || ch->error.n > PLAN_TEXT_MAX)
        return err_set(e, ERR_INVALID, 0, "texts of a plan have at most %d bytes", PLAN_TEXT_MAX);
    move_step(p, (size_t)ch->step, ch->status);
    set_text(&p->v[ch->step].result, ch->result);
    set_text(&p->v[ch->step].error, ch->error);
    if (ch->status == STEP_ACTIVE)
        p->current = ch->step;
    settle(p);
    return save(p, "plan.updated", c);
}

int plan_advance(struct plan *p, struct str result, const struct named_call *c, struct err *e)
{
    if (check_open(p, e) < 0)
        return -1;
    if (result.n > PLAN_TEXT_MAX)
        return err_set(e, ERR_INVALID, 0, "texts of a plan have at most %d bytes", PLAN_TEXT_MAX);
    if (p->current >= 0) {
        move_step(p, (size_t)p->current, STEP_COMPLETED);
        set_text(&p->v[p->current].result, result);
    }
    if (p->current + 1 < (int64_t)p->n)
        move_step(p, (size_t)++p->current, STEP_ACTIVE);
    settle(p);
    return save(p, "plan.advanced", c);
}

int plan_abort(struct plan *p, struct str reason, const struct named_call *c, struct err *e)
{
    if (check_open(p, e) < 0)
        return -1;
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].status <= STEP_ACTIVE) {
            move_step(p, i, STEP_SKIPPED);
            set_text(&p->v[i].error, str_make(reason.p, size_min(reason.n, PLAN_TEXT_MAX)));
        }
    settle(p);
    p->status = PLAN_ABORTED;
    return save(p, "plan.aborted", c);
}

int plan_remove(struct plan *p, const struct named_call *c, struct err *e)
{
    if (p->named.state != NAMED_READY)
        return err_set(e, ERR_CONFLICT, 0, "plan '%s' is being removed", p->named.id);
    named_remove(&p->named, "plan.removed", c);
    return 0;
}

/* --- reading --- */

struct plan *plan_find(struct plans *l, const struct principal *by, enum owner_use use,
                       struct str id, struct err *e)
{
    return plan_of(named_find(&l->list, &(struct named_look){.by = by, .use = use, .ref = id}, e));
}

struct plan *plan_next(struct plans *l, const struct principal *by, struct str after)
{
    return plan_of(named_next(&l->list, by, after));
}

const char *plan_id(const struct plan *p)
{
    return p->named.id;
}

enum plan_status plan_status(const struct plan *p)
{
    return (enum plan_status)p->status;
}

int64_t plan_current(const struct plan *p)
{
    return p->current;
}

static void write_text(struct jw *w, const char *key, const char *text)
{
    if (text && text[0])
        jw_kc(w, key, text);
}

static void write_time(struct jw *w, const char *key, int64_t ms)
{
    if (ms > 0)
        jw_ktime(w, key, ms);
}

static void write_step(struct jw *w, const struct step *s, size_t index)
{
    jw_object(w);
    jw_kint(w, "index", (int64_t)index);
    jw_kc(w, "description", s->text);
    jw_kc(w, "status", plan_step_statuses[s->status]);
    write_text(w, "result", s->result);
    write_text(w, "error", s->error);
    write_time(w, "started_at", s->started_ms);
    write_time(w, "completed_at", s->ended_ms);
    jw_object_end(w);
}

void plan_write(struct jw *w, const struct plan *p)
{
    jw_object(w);
    jw_kc(w, "id", p->named.id);
    write_text(w, "name", p->title);
    write_text(w, "description", p->description);
    jw_key(w, "steps");
    jw_array(w);
    for (size_t i = 0; i < p->n; i++)
        write_step(w, &p->v[i], i);
    jw_array_end(w);
    jw_kc(w, "status", plan_statuses[p->status]);
    jw_kint(w, "current_step", p->current);
    jw_ktime(w, "created_at", p->named.created_ms);
    jw_ktime(w, "updated_at", p->updated_ms);
    write_time(w, "completed_at", p->ended_ms);
    jw_object_end(w);
}
