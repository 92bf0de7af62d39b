/* claim: claims of sandboxes: create, find, change, report, remove. */
#include "core/claim/claim.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/texts.h"

struct claims {
    struct named_list list;
};

struct claim {
    struct named named; /* first */
    char *space, *template, *spec, *meta;
    char *maker_agent, *sandbox, *reason, *message;
    int role; /* of its maker */
    bool ready, ended, forget, removes;
    int64_t shutdown_ms, keep_ms, moved_ms, ended_ms, generation;
};

struct claim *claim_of(struct named *n)
{
    return n ? CONTAINER_OF(n, struct claim, named) : NULL;
}

struct claims *claims_free(struct claims *l)
{
    if (!l)
        return NULL;
    named_list_done(&l->list);
    mem_free(l);
    return NULL;
}

/* --- rows and events --- */

#define HAS(member, kind) COLUMN(struct claim, member, kind)
static const struct column claim_column_list[] = {
    NAMED_COLUMNS(struct claim), HAS(space, COLUMN_TEXT),   HAS(template, COLUMN_TEXT),
    HAS(spec, COLUMN_TEXT),      HAS(meta, COLUMN_TEXT),    HAS(maker_agent, COLUMN_TEXT),
    HAS(role, COLUMN_I32),       HAS(sandbox, COLUMN_TEXT), HAS(reason, COLUMN_TEXT),
    HAS(message, COLUMN_TEXT),   HAS(ready, COLUMN_BOOL),   HAS(ended, COLUMN_BOOL),
    HAS(forget, COLUMN_BOOL),    HAS(removes, COLUMN_BOOL), HAS(shutdown_ms, COLUMN_INT),
    HAS(keep_ms, COLUMN_INT),    HAS(moved_ms, COLUMN_INT), HAS(ended_ms, COLUMN_INT),
    HAS(generation, COLUMN_INT),
};
static struct columns claim_columns = {.table = "claims",
                                       .list = claim_column_list,
                                       .count = ARRAY_LEN(claim_column_list),
                                       .order = "ORDER BY id",
                                       .prefix = "cl"};

static void claim_done(struct named *n)
{
    struct claim *c = claim_of(n);

    mem_free(c->space);
    mem_free(c->template);
    mem_free(c->spec);
    mem_free(c->meta);
    mem_free(c->maker_agent);
    mem_free(c->sandbox);
    mem_free(c->reason);
    mem_free(c->message);
}

void claim_hide(json_t *spec, json_t *meta)
{
    json_t *v;
    size_t i;

    json_array_foreach(json_object_get(spec, "env"), i, v) json_object_del(v, "value");
    json_object_del(json_object_get(meta, "annotations"), CLAIM_APPLIED);
}

/* The log is for more readers than a claim is: it names variables, without their values. */
static void put_texts(struct jw *w, const struct claim *c)
{
    AUTO(json_decref) json_t *spec = json_loads(c->spec, 0, NULL);
    AUTO(json_decref) json_t *meta = json_loads(c->meta, 0, NULL);

    claim_hide(spec, meta);
    jw_key(w, "spec");
    jw_json(w, spec);
    jw_key(w, "meta");
    jw_json(w, meta);
}

static void claim_put(const struct named *n, struct jw *w)
{
    const struct claim *c = CONTAINER_OF(n, struct claim, named);

    jw_kc(w, "space", c->space);
    jw_kc(w, "template", c->template);
    put_texts(w, c);
    jw_kc(w, "sandbox", c->sandbox);
    jw_kbool(w, "ready", c->ready);
    jw_kbool(w, "ended", c->ended);
    jw_kc(w, "reason", c->reason);
    jw_kc(w, "message", c->message);
    jw_ktime(w, "moved_at", c->moved_ms);
    jw_ktime(w, "ended_at", c->ended_ms);
    jw_ktime(w, "shutdown_at", c->shutdown_ms);
    jw_kint(w, "generation", c->generation);
}

static const struct named_kind claim_kind = {
    .noun = "claim",
    .hint = "a list of the namespace names those there are",
    .size = sizeof(struct claim),
    .columns = &claim_columns,
    .durability = STORE_RELAXED,
    .done = claim_done,
    .put = claim_put,
};

int claims_open(struct store *store, struct claims **ret, struct err *e)
{
    struct claims *l = xzalloc(sizeof *l);

    if (named_list_open(&l->list, &claim_kind, store, e) < 0) {
        claims_free(l);
        return -1;
    }
    *ret = l;
    return 0;
}

/* --- finding --- */

struct claim *claim_next(struct claims *l, const struct principal *by, struct str after)
{
    return claim_of(named_next(&l->list, by, after));
}

struct claim *claim_get(struct claims *l, struct str id)
{
    return claim_of(named_get(&l->list, id));
}

static bool is_called(const struct claim *c, struct str space, struct str name)
{
    return str_eq_c(name, c->named.name) && str_eq_c(space, c->space);
}

struct claim *claim_find(struct claims *l, const struct principal *by, enum owner_use use,
                         struct str space, struct str name, struct err *e)
{
    struct owner_look look = {.by = by, .use = use, .text = name, .name = name};
    struct err why = {0};
    struct claim *c;

    for (size_t i = 0; i < l->list.count; i++) {
        struct claim *at = claim_of(l->list.sorted[i]);
        const struct owned o = {.owner = str_of(at->named.owner),
                                .tenant = str_of(at->named.tenant)};

        if (at->named.state == NAMED_READY && is_called(at, space, name))
            owner_offer(&look, at, at->named.id, &o, 0);
    }
    c = owner_found(&look, claim_kind.noun, &why);
    if (!c && why.code == ERR_NONE)
        (void)named_not_found(&claim_kind, name, &why);
    if (!c)
        *e = why;
    return c;
}

struct claim *claim_of_sandbox(struct claims *l, struct str sandbox)
{
    for (size_t i = 0; i < l->list.count && sandbox.n > 0; i++) {
        struct claim *c = claim_of(l->list.sorted[i]);

        if (c->named.state == NAMED_READY && str_eq_c(sandbox, c->sandbox ? c->sandbox : ""))
            return c;
    }
    return NULL;
}

static struct str text(const char *s)
{
    return str_of(s ? s : "");
}

void claim_info(const struct claim *c, struct claim_info *ret)
{
    *ret = (struct claim_info){
        .id = c->named.id,
        .name = text(c->named.name),
        .space = text(c->space),
        .template = text(c->template),
        .tenant = text(c->named.tenant),
        .owner = str_of(c->named.owner),
        .spec = text(c->spec),
        .meta = text(c->meta),
        .state = {.ready = c->ready,
                  .ended = c->ended,
                  .reason = text(c->reason),
                  .message = text(c->message),
                  .sandbox = text(c->sandbox)},
        .times = {.shutdown_ms = c->shutdown_ms,
                  .keep_ms = c->keep_ms,
                  .forget = c->forget,
                  .removes = c->removes},
        .created_ms = c->named.created_ms,
        .moved_ms = c->moved_ms,
        .ended_ms = c->ended_ms,
        .generation = c->generation,
    };
}

struct principal claim_maker(const struct claim *c)
{
    return principal_kept((enum role)c->role, c->named.owner, c->named.tenant,
                          c->maker_agent ? c->maker_agent : "");
}

/* --- changing --- */

static void take_spec(struct claim *c, const struct claim_spec *spec)
{
    text_set(&c->spec, spec->spec);
    text_set(&c->meta, spec->meta);
    c->shutdown_ms = spec->times.shutdown_ms;
    c->keep_ms = spec->times.keep_ms;
    c->forget = spec->times.forget;
    c->removes = spec->times.removes;
}

static int check_sizes(const struct claim_spec *spec, struct err *e)
{
    if (spec->name.n == 0 || spec->name.n > CLAIM_NAME_MAX)
        return err_set(e, ERR_INVALID, 0, "a name has 1 to %d characters", CLAIM_NAME_MAX);
    if (spec->space.n == 0 || spec->space.n > CLAIM_SPACE_MAX)
        return err_set(e, ERR_INVALID, 0, "a namespace has 1 to %d characters", CLAIM_SPACE_MAX);
    if (spec->spec.n > CLAIM_TEXT_MAX || spec->meta.n > CLAIM_TEXT_MAX)
        return err_set(e, ERR_TOO_LARGE, 0,
                       "a claim's spec and metadata have at most %d bytes each", CLAIM_TEXT_MAX);
    return 0;
}

/* Whoever sees a claim of this name cannot make another one: it could not tell them apart. */
static int check_free(const struct claims *l, const struct claim_spec *spec,
                      const struct principal *by, struct err *e)
{
    if (l->list.count >= CLAIMS_MAX) {
        err_set(e, ERR_LIMIT, 0, "there are %zu claims already", l->list.count);
        return err_limit_fixed(e, CLAIMS_MAX, "delete some that have ended");
    }
    if (named_count_of(&l->list, principal_owner(by)) >= CLAIMS_OWNER_MAX) {
        err_set(e, ERR_LIMIT, 0, "you have %d claims already", CLAIMS_OWNER_MAX);
        return err_limit_fixed(e, CLAIMS_OWNER_MAX, "delete some that have ended");
    }
    for (size_t i = 0; i < l->list.count; i++) {
        struct claim *c = claim_of(l->list.sorted[i]);

        if (!is_called(c, spec->space, spec->name) || !named_may(&c->named, by, OWNER_SEE))
            continue;
        err_set(e, ERR_CONFLICT, 0, "a claim named '%s' exists already", c->named.name);
        return err_object(e, claim_kind.noun, c->named.id);
    }
    return 0;
}

int claim_create(struct claims *l, const struct claim_spec *spec, const struct named_call *call,
                 struct err *e)
{
    struct str tenant;
    struct claim *c;

    if (principal_is_inside(call->by))
        return err_set(e, ERR_FORBIDDEN, 0, "a sandbox makes no claims");
    if (check_sizes(spec, e) < 0 || owner_tenant(call->by, STR(""), &tenant, e) < 0 ||
        check_free(l, spec, call->by, e) < 0)
        return -1;
    c = claim_of(named_new(&l->list, call->by, tenant, spec->name));
    c->space = str_dup(spec->space);
    c->template = str_dup(spec->template);
    c->role = (int)call->by->role;
    c->maker_agent = str_dup(str_of(call->by->agent));
    c->moved_ms = c->named.created_ms;
    c->generation = 1;
    take_spec(c, spec);
    named_create(&c->named, "claim.created", call);
    return 0;
}

static int check_here(const struct claim *c, struct err *e)
{
    if (c->named.state == NAMED_READY)
        return 0;
    return err_set(e, ERR_CONFLICT, 0, "claim '%s' is being removed", c->named.name);
}

int claim_change(struct claim *c, const struct claim_spec *spec, bool relabelled,
                 const struct named_call *call, struct err *e)
{
    if (check_here(c, e) < 0 || check_sizes(spec, e) < 0)
        return -1;
    c->generation += !str_eq_c(spec->spec, c->spec);
    take_spec(c, spec);
    named_save(&c->named, relabelled ? "claim.relabelled" : "claim.changed", call);
    return 0;
}

int claim_remove(struct claim *c, const struct named_call *call, struct err *e)
{
    if (check_here(c, e) < 0)
        return -1;
    named_remove(&c->named, "claim.removed", call);
    return 0;
}

/* The next report writes it again if the store failed. */
static void report_written(void *arg, struct named *n, const struct err *e)
{
    struct claim *c = claim_of(n);

    (void)arg;
    if (e->code != ERR_NONE && c)
        text_set(&c->reason, STR(""));
}

static bool is_new(const struct claim *c, const struct claim_state *s)
{
    return c->ready != s->ready || c->ended != s->ended || !str_eq(text(c->reason), s->reason) ||
           !str_eq(text(c->message), s->message) || !str_eq(text(c->sandbox), s->sandbox);
}

/* The new text may be the old one, as claim_info lends it. */
static void replace(char **to, struct str s)
{
    char *old = *to;

    *to = str_dup(s);
    mem_free(old);
}

void claim_report(struct claim *c, const struct claim_state *s)
{
    const struct named_call call = {&principal_system, report_written, NULL};

    if (c->named.state != NAMED_READY || !is_new(c, s))
        return;
    if (c->ready != s->ready)
        c->moved_ms = clock_wall_ms();
    if (s->ended && !c->ended)
        c->ended_ms = clock_wall_ms();
    c->ready = s->ready;
    c->ended = s->ended;
    replace(&c->reason, s->reason);
    replace(&c->message, s->message);
    replace(&c->sandbox, s->sandbox);
    named_save(&c->named, "claim.changed", &call);
}

/* --- time --- */

enum claim_due claim_due(const struct claim *c, int64_t now_ms)
{
    bool over = c->shutdown_ms > 0 && now_ms >= c->shutdown_ms;

    if (over && c->removes)
        return CLAIM_DUE_REMOVAL;
    if (c->ended && c->forget && now_ms - c->ended_ms >= c->keep_ms)
        return CLAIM_DUE_REMOVAL;
    return over && !c->ended ? CLAIM_DUE_EXPIRY : CLAIM_DUE_NOTHING;
}
