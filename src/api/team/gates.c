/* gates: asks for a grant before an operation that a gate matches. */
#include "api/team/gates.h"

#include "api/team/team.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/wild.h"
#include "core/approval/gate.h"
#include "core/approval/grant.h"

#include <stdio.h>

#define REFUSED_MAX 512 /* the newest are kept */

struct refused {
    char id[ID_SIZE], owner[64], hash[GRANT_HASH];
    char *operation, *arguments, *sandbox;
    int64_t people;
};

struct gates {
    struct api *api;
    struct arena arena; /* of list */
    struct gate_list list;
    struct subscription *sub;
    bool stuck;
    struct refused refused[REFUSED_MAX];
    size_t next;
};

/* --- the gates in memory --- */

struct load {
    struct gates *gates;
    struct arena arena;
    struct team t;
    struct gate_list list;
};

static int load_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct load *l = arg;

    team_enter(&l->t, tx);
    return gate_all(&l->t, &l->list, e);
}

static struct load *load_new(struct gates *g)
{
    struct load *l = xzalloc(sizeof *l);

    l->gates = g;
    l->t = (struct team){.arena = &l->arena, .who = {.actor = "system"}};
    return l;
}

static void load_take(struct load *l)
{
    arena_done(&l->gates->arena);
    l->gates->arena = l->arena;
    l->gates->list = l->list;
    mem_free(l);
}

static struct str member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

static struct gate gate_of(const json_t *o)
{
    return (struct gate){.id = member(o, "id"),
                         .operation = member(o, "operation"),
                         .role = member(o, "role"),
                         .label = member(o, "label"),
                         .command = member(o, "command"),
                         .path = member(o, "path"),
                         .reason = member(o, "reason"),
                         .people = json_integer_value(json_object_get(o, "people"))};
}

static struct gate gate_copy(struct arena *a, const struct gate *g)
{
    struct gate to = *g;
    struct str *const texts[] = {&to.id,      &to.operation, &to.role,   &to.label,
                                 &to.command, &to.path,      &to.reason, &to.created_by};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        *texts[i] = arena_str(a, *texts[i]);
    return to;
}

/* Events come before the reply to the request that made the change: a gate holds, or holds no more,
 * once its caller knows. */
static int on_event(void *arg, const struct event *ev)
{
    struct gates *g = arg;
    AUTO(json_decref) json_t *o = NULL;
    struct arena arena = {0};
    struct gate_list to = {0};
    struct gate one;
    struct err e = {0};

    if (json_read(ev->data, &o, &e) < 0) {
        log_warn("an event of a gate is unreadable", LOG_E(&e));
        return 0;
    }
    one = gate_of(o);
    to.v = arena_alloc(&arena, (g->list.n + 1) * sizeof *to.v);
    for (size_t i = 0; i < g->list.n; i++)
        if (!str_eq(g->list.v[i].id, one.id))
            to.v[to.n++] = gate_copy(&arena, &g->list.v[i]);
    if (str_eq_c(ev->type, "gate.added"))
        to.v[to.n++] = gate_copy(&arena, &one);
    arena_done(&g->arena);
    g->arena = arena;
    g->list = to;
    return 0;
}

static void on_stuck(void *arg, const struct err *e)
{
    struct gates *g = arg;

    (void)e;
    g->stuck = true;
}

int gates_open(struct api *a, struct err *e)
{
    struct gates *g = xzalloc(sizeof *g);
    struct load *l = load_new(g);

    a->gates = g;
    g->api = a;
    if (store_now(a->c.store, load_work, l, e) < 0) {
        arena_done(&l->arena);
        mem_free(l);
        return err_wrap(e, "read the gates");
    }
    load_take(l);
    g->sub = events_subscribe(
        a->c.events,
        &(struct event_filter){.type = STR("gate.*"), .since_seq = events_head(a->c.events, NULL)},
        on_event, on_stuck, g);
    return 0;
}

static void refused_done(struct refused *f)
{
    mem_free(f->operation);
    mem_free(f->arguments);
    mem_free(f->sandbox);
    *f = (struct refused){0};
}

void gates_close(struct api *a)
{
    struct gates *g = a->gates;

    if (!g)
        return;
    subscription_end(g->sub);
    for (size_t i = 0; i < REFUSED_MAX; i++)
        refused_done(&g->refused[i]);
    arena_done(&g->arena);
    mem_free(g);
    a->gates = NULL;
}

void gates_tick(struct api *a)
{
    if (a->gates && a->gates->stuck)
        subscription_resume(a->gates->sub);
    if (a->gates)
        a->gates->stuck = false;
}

/* --- the action of a request --- */

static bool has_label(void *arg, struct str key, struct str value)
{
    const struct sandbox_info *i = arg;

    for (size_t n = 0; i->id && n < i->label_count; n++)
        if (str_eq(i->labels[n].key, key) && (!value.p || str_eq(i->labels[n].value, value)))
            return true;
    return false;
}

static struct str query_path(const struct request *r)
{
    struct str left = xchg_req(r->x)->query, name, value, plain;
    struct err e = {0};

    while (left.n > 0 && http_query_next(&left, &name, &value))
        if (str_eq_c(name, "path") && request_decode(r, value, &plain, &e) == 0)
            return plain;
    return STR("");
}

static struct str text_of(const struct request *r, const char *key)
{
    const json_t *v = json_object_get(r->body, key);
    AUTO(buf_done) struct buf all = {0};

    if (json_is_string(v))
        return str_make(json_string_value(v), json_string_length(v));
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *one = json_string_value(json_array_get(v, i));

        buf_printf(&all, "%s%s", i ? " " : "", one ? one : "");
    }
    return arena_str(xchg_arena(r->x), buf_str(&all));
}

struct attempt { /* one request that a gate matches */
    struct waiter waiter;
    struct api *api;
    struct arena arena;
    struct team t;
    struct grant_action action;
    struct str arguments;
    char hash[GRANT_HASH], gate[ID_SIZE];
    struct str reason;
    int64_t people;
    int used;
    void (*run)(struct request *r);
};

/* The sandbox of the path, if it names one that the caller may use. */
static void find_sandbox(const struct request *r, struct sandbox_info *ret)
{
    struct sandbox *s = NULL;
    struct err e = {0};

    *ret = (struct sandbox_info){0};
    if (r->params.n > 0 && str_starts(str_of(r->op->path), STR("/holt/v1/sandboxes/{id}")))
        s = sandbox_find(r->api->c.sandboxes, &r->who, r->params.v[0], &e);
    if (s)
        sandbox_info(s, ret);
}

static const struct gate *find_gate(const struct request *r, const struct sandbox_info *box,
                                    struct str *ret_text)
{
    const struct gates *g = r->api->gates;
    struct str command = text_of(r, "command"), path = text_of(r, "path");
    struct gate_action a = {.operation = str_of(r->op->name),
                            .role = str_of(role_name(r->who.role)),
                            .command = command,
                            .path = path.n > 0 ? path : query_path(r),
                            .has_label = has_label,
                            .arg = (void *)(uintptr_t)box};

    *ret_text = a.command.n > 0 ? a.command : a.path;
    for (size_t i = 0; i < g->list.n; i++)
        if (gate_matches(&g->list.v[i], &a))
            return &g->list.v[i];
    return NULL;
}

/* A secret is known by its hash: a person sees that there is one, and a grant is bound to it. */
static json_t *body_of(const struct request *r)
{
    json_t *body = json_deep_copy(r->body);

    for (size_t i = 0; i < r->op->in_count; i++) {
        const json_t *v = json_object_get(body, r->op->in[i].name);
        char hash[GRANT_HASH];

        if (!v || !r->op->in[i].secret)
            continue;
        grant_hash(STR("secret"), v, hash);
        json_object_set_new(body, r->op->in[i].name, json_string(hash));
    }
    return body;
}

/* The request as it was sent; a sandbox by its id, however the path names it. */
static json_t *arguments_of(const struct request *r, const struct sandbox_info *box)
{
    const struct http_req *req = xchg_req(r->x);
    json_t *o = json_object();

    json_object_set_new(o, "method", json_stringn(req->method.p, req->method.n));
    json_object_set_new(o, "path", json_stringn(req->path.p, req->path.n));
    if (req->query.n > 0)
        json_object_set_new(o, "query", json_stringn(req->query.p, req->query.n));
    if (box->id)
        json_object_set_new(o, "sandbox", json_string(box->id));
    if (r->body)
        json_object_set_new(o, "body", body_of(r));
    return o;
}

/* --- refusing --- */

static const char *remember(struct gates *g, const struct attempt *t)
{
    struct refused *f = &g->refused[g->next++ % REFUSED_MAX];

    refused_done(f);
    id_make("rf", f->id);
    (void)snprintf(f->owner, sizeof f->owner, STR_FMT, STR_ARG(t->t.who.owner));
    memcpy(f->hash, t->hash, sizeof f->hash);
    f->operation = str_dup(t->action.operation);
    f->arguments = str_dup(t->arguments);
    f->sandbox = str_dup(t->action.sandbox);
    f->people = t->people;
    return f->id;
}

bool gates_refused(const struct request *r, struct str id, struct refused_action *ret)
{
    const struct gates *g = r->api->gates;

    for (size_t i = 0; g && i < REFUSED_MAX; i++) {
        const struct refused *f = &g->refused[i];

        if (!f->id[0] || !str_eq_c(id, f->id) || strcmp(f->owner, principal_owner(&r->who)) != 0)
            continue;
        *ret = (struct refused_action){str_of(f->operation), str_of(f->arguments), str_of(f->hash),
                                       str_of(f->sandbox), f->people};
        return true;
    }
    return false;
}

static void refuse(struct request *r, const struct attempt *t)
{
    const char *id = remember(r->api->gates, t);
    struct err e = {0};

    err_set(&e, ERR_FORBIDDEN, 0, STR_FMT " needs a person's approval%s" STR_FMT " (gate %s)",
            STR_ARG(t->action.operation), t->reason.n > 0 ? ": " : "",
            (int)size_min(t->reason.n, 100), t->reason.p, t->gate);
    err_hint(&e,
             "ask: holt approval ask 'WHY' --refused %s; repeat the request once it is approved",
             id);
    request_refuse(r, &e);
}

/* --- passing --- */

static int use_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct attempt *t = arg;
    struct grant g;

    team_enter(&t->t, tx);
    t->used = grant_use(&t->t, &t->action, &g, e);
    return t->used < 0 ? -1 : 0;
}

static void use_done(void *arg, const struct err *failure)
{
    struct attempt *t = arg;
    struct request *r = waiter_end(&t->waiter);
    struct err e = *failure;

    /* The token may have been revoked meanwhile; a grant that was used then is lost. */
    if (r && (e.code != ERR_NONE || request_still_may(r, &e) < 0))
        request_fail(r, &e);
    else if (r && t->used == 0)
        refuse(r, t);
    else if (r)
        t->run(r);
    arena_done(&t->arena);
    mem_free(t);
}

void gates_pass(struct request *r, void (*run)(struct request *r))
{
    struct gates *g = r->api->gates;
    AUTO(json_decref) json_t *arguments = NULL;
    AUTO(buf_done) struct buf dumped = {0};
    struct jw w = {.to = &dumped};
    const struct gate *gate;
    struct sandbox_info box;
    struct attempt *t;
    struct str text;
    struct err e = {0};

    if (!g || g->list.n == 0) {
        run(r);
        return;
    }
    find_sandbox(r, &box);
    gate = find_gate(r, &box, &text);
    if (!gate) {
        run(r);
        return;
    }
    t = xzalloc(sizeof *t);
    if (team_of_anyone(r, &t->arena, &t->t, &e) < 0) {
        request_fail(r, &e);
        arena_done(&t->arena);
        mem_free(t);
        return;
    }
    arguments = arguments_of(r, &box);
    jw_json(&w, arguments);
    grant_hash(str_of(r->op->name), arguments, t->hash);
    t->api = r->api;
    t->run = run;
    t->arguments = arena_str(&t->arena, buf_str(&dumped));
    t->reason = arena_str(&t->arena, gate->reason);
    t->people = gate->people;
    (void)snprintf(t->gate, sizeof t->gate, STR_FMT, STR_ARG(gate->id));
    t->action = (struct grant_action){.asker = t->t.who.owner,
                                      .operation = str_of(r->op->name),
                                      .hash = str_of(t->hash),
                                      .sandbox = arena_str(&t->arena, str_of(box.id ? box.id : "")),
                                      .text = arena_str(&t->arena, text)};
    request_wait(r, &t->waiter);
    store_write(r->api->c.store, STORE_DURABLE, use_work, use_done, t);
}

int gates_check_dialect(const struct request *r, enum perm p, struct err *e)
{
    const struct gates *g = r->api->gates;

    if (!g || g->list.n == 0 || perm_is_safe(p) || op_find(r->route->name) ||
        r->route == &r->api->preview_route)
        return 0;
    for (size_t i = 0; i < g->list.n; i++) {
        const struct gate *gate = &g->list.v[i];

        if (gate->role.n > 0 && !str_eq_c(gate->role, role_name(r->who.role)))
            continue;
        for (size_t o = 0; o < op_count; o++) {
            const struct op *op = op_table[o];

            if (op->perm != p || gate_is_exempt(str_of(op->name)) ||
                !wild_fits(gate->operation, str_of(op->name)))
                continue;
            err_set(e, ERR_FORBIDDEN, 0,
                    "%s is closed to you: %s needs a person's approval (gate " STR_FMT ")",
                    r->route->name, op->name, STR_ARG(gate->id));
            return err_hint(e, "use the native operation, which can be asked for");
        }
    }
    return 0;
}
