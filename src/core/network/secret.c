/* secret: the registry of secrets: set, remove, find. */
#include "core/network/secret.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/event/event.h"
#include "core/network/secret_internal.h"

#include <stdio.h>

#define SECRETS_MAX 4096

/* --- the list --- */

static void add(struct secrets *l, struct secret *s)
{
    assert(thread_is_loop() && s->state != SECRET_CHANGING);
    sorted_add(SORTED(l, id), s);
    s->all = l;
}

static void secret_free(struct secret *s)
{
    buf_done(&s->sealed);
    json_decref(s->rule);
    mem_free(s->name);
    mem_free(s);
}

static void drop(struct secret *s)
{
    sorted_remove(SORTED(s->all, id), s);
    secret_free(s);
}

void secrets_set_users(struct secrets *l, const struct secret_users *ops, void *arg)
{
    l->users = ops;
    l->users_arg = arg;
}

static void tell_users(struct secrets *l, const char *id, store_done done, void *arg)
{
    if (l->users)
        l->users->tell(l->users_arg, id, done, arg);
    else
        done(arg, &(struct err){0});
}

struct secrets *secrets_free(struct secrets *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < l->count; i++)
        secret_free(l->sorted[i]);
    mem_wipe(l->key, sizeof l->key);
    mem_free(l->key_path);
    mem_free(l->sorted);
    mem_free(l);
    return NULL;
}

/* --- reading --- */

static int load_one(struct secrets *l, const struct store_rows *rows, struct err *e)
{
    struct str id = rows_text(rows, 0), sealed = rows_blob(rows, 2);
    AUTO(json_decref) json_t *rule = NULL;
    struct secret *s;

    if (!id_is_valid("sc", id) || sealed.n < SEAL_EXTRA)
        return err_set(e, ERR_INTERNAL, 0, "a row of secrets is damaged");
    if (json_read(rows_text(rows, 3), &rule, e) < 0)
        return err_wrap(e, "the row of secret '" STR_FMT "'", STR_ARG(id));
    s = xzalloc(sizeof *s);
    s->state = SECRET_READY;
    memcpy(s->id, id.p, id.n);
    s->name = str_dup(rows_text(rows, 1));
    buf_add_str(&s->sealed, sealed);
    s->rule = TAKE(rule);
    (void)snprintf(s->owner, sizeof s->owner, STR_FMT, STR_ARG(rows_text(rows, 4)));
    s->created_ms = rows_int(rows, 5);
    s->updated_ms = rows_int(rows, 6);
    s->rotated_ms = rows_int(rows, 7);
    (void)snprintf(s->tenant, sizeof s->tenant, STR_FMT, STR_ARG(rows_text(rows, 8)));
    add(l, s);
    return 0;
}

static int load_secrets(struct store_tx *tx, void *arg, struct err *e)
{
    struct store_rows *rows;
    int r;

    if (tx_query(tx,
                 "SELECT id, name, sealed, rule, owner, created_ms, updated_ms, rotated_ms, tenant "
                 "FROM secrets ORDER BY id",
                 NO_PARAMS, &rows, e) < 0)
        return -1;
    while ((r = rows_step(rows, e)) > 0)
        if (load_one(arg, rows, e) < 0)
            return -1;
    rows_end(rows);
    return r;
}

bool secret_opens(const struct secrets *l, const struct secret *s, struct buf *to)
{
    return l->has_key && seal_open(l->key, str_of(s->name), buf_str(&s->sealed), to) == 0;
}

static int try_key(struct secrets *l, struct err *e)
{
    int r = secret_key_read(l->key_path, l->key, e);
    size_t opened = 0;

    if (r < 0)
        return -1;
    if (r == 0) {
        (void)err_set(e, ERR_NOT_FOUND, 0, "'%s' is missing: it seals %zu secrets", l->key_path,
                      l->count);
        return err_hint(e, "restore it from a backup and restart holtd, or set the secrets again: "
                           "holt secret rm, holt secret set");
    }
    l->has_key = true;
    for (size_t i = 0; i < l->count; i++) {
        AUTO(buf_wipe) struct buf value = {0};

        if (secret_opens(l, l->sorted[i], &value))
            opened++;
        else
            log_error("a secret cannot be decrypted: set it again",
                      LOG_C("name", l->sorted[i]->name));
    }
    if (opened > 0)
        return 0;
    l->has_key = false;
    (void)err_set(e, ERR_CONFLICT, 0, "'%s' is not the key that sealed the secrets", l->key_path);
    return err_hint(e, "restore the right one and restart holtd, or set the secrets again: holt "
                       "secret rm, holt secret set");
}

int secrets_open(struct store *store, const char *state, struct secrets **ret, struct err *e)
{
    struct secrets *l = xzalloc(sizeof *l);

    l->max = SECRETS_MAX;
    l->store = store;
    l->key_path = xasprintf("%s/secret.key", state);
    if (store_now(store, load_secrets, l, e) < 0) {
        secrets_free(l);
        return err_wrap(e, "read the secrets");
    }
    if (l->count > 0 && try_key(l, &l->locked) < 0)
        log_error("the secrets cannot be used", LOG_E(&l->locked));
    *ret = l;
    return 0;
}

void secrets_set_max(struct secrets *l, int64_t max)
{
    l->max = max;
}

/* --- writing --- */

struct job { /* the secret's name, id and owner do not change meanwhile, and it is not freed */
    struct secret *s;
    const char *event;
    char actor[64];
    secret_cb done;
    void *arg;
    struct buf value, sealed; /* value: plain text; empty: unchanged */
    json_t *rule;
    char *rule_text, *key_path;
    unsigned char key[SEAL_KEY];
    bool has_key;
    int64_t now_ms;
};

static struct job *job_new(struct secret *s, const char *event, const struct secret_call *c)
{
    struct job *j = xzalloc(sizeof *j);

    *j = (struct job){.s = s, .event = event, .done = c->done, .arg = c->arg};
    (void)snprintf(j->actor, sizeof j->actor, "%s", c->by->actor);
    j->now_ms = clock_wall_ms();
    return j;
}

static void job_free(struct job *j)
{
    buf_wipe(&j->value);
    buf_done(&j->sealed);
    json_decref(j->rule);
    mem_free(j->rule_text);
    mem_free(j->key_path);
    mem_wipe(j->key, sizeof j->key);
    mem_free(j);
}

static void put_event(struct store_tx *tx, const struct job *j)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    char object[ID_SIZE + 8];

    (void)snprintf(object, sizeof object, "secret/%s", j->s->id);
    jw_object(&w);
    jw_kc(&w, "id", j->s->id);
    jw_kc(&w, "name", j->s->name);
    jw_kc(&w, "owner", j->s->owner);
    if (j->s->tenant[0])
        jw_kc(&w, "tenant", j->s->tenant);
    if (j->rule_text) {
        jw_key(&w, "rule");
        jw_raw(&w, str_of(j->rule_text));
        jw_kbool(&w, "rotated", buf_len(&j->value) > 0);
    }
    jw_ktime(&w, "at", j->now_ms);
    jw_object_end(&w);
    tx_event(tx,
             &(struct event_spec){
                 .type = j->event, .object = object, .actor = j->actor, .data = buf_str(&data)},
             NULL);
}

/* On the store's thread, which may wait for the key's file. */
static int seal_value(struct job *j, struct err *e)
{
    int r = j->has_key ? 1 : secret_key_read(j->key_path, j->key, e);

    if (r == 0)
        r = secret_key_make(j->key_path, j->key, e);
    if (r < 0)
        return err_wrap(e, "seal secret '%s'", j->s->name);
    j->has_key = true;
    buf_clear(&j->sealed);
    seal(j->key, str_of(j->s->name), buf_str(&j->value), &j->sealed);
    return 0;
}

static int insert_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    if (seal_value(j, e) < 0 ||
        tx_run(tx,
               "INSERT INTO secrets (id, name, sealed, rule, owner, created_ms, updated_ms, "
               "rotated_ms, tenant) VALUES (:id, :name, :sealed, :rule, :owner, :now, :now, :now, "
               ":tenant)",
               PARAMS(P_C("id", j->s->id), P_C("name", j->s->name),
                      P_BLOB("sealed", buf_str(&j->sealed)), P_C("rule", j->rule_text),
                      P_C("owner", j->s->owner), P_INT("now", j->now_ms),
                      P_C("tenant", j->s->tenant)),
               e) < 0)
        return -1;
    put_event(tx, j);
    return 0;
}

static int update_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct job *j = arg;

    if (tx_run(tx, "UPDATE secrets SET rule = :rule, updated_ms = :now WHERE id = :id",
               PARAMS(P_C("rule", j->rule_text), P_INT("now", j->now_ms), P_C("id", j->s->id)),
               e) < 0)
        return -1;
    if (buf_len(&j->value) > 0 &&
        (seal_value(j, e) < 0 ||
         tx_run(tx, "UPDATE secrets SET sealed = :sealed, rotated_ms = :now WHERE id = :id",
                PARAMS(P_BLOB("sealed", buf_str(&j->sealed)), P_INT("now", j->now_ms),
                       P_C("id", j->s->id)),
                e) < 0))
        return -1;
    put_event(tx, j);
    return 0;
}

static int remove_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct job *j = arg;

    if (tx_run(tx, "DELETE FROM secrets WHERE id = :id", PARAMS(P_C("id", j->s->id)), e) < 0)
        return -1;
    put_event(tx, j);
    return 0;
}

/* --- setting --- */

static void set_told(void *arg, const struct err *e)
{
    struct job *j = arg;

    assert(j->s->state != SECRET_READY);
    j->s->state = SECRET_READY;
    j->done(j->arg, j->s, e);
    job_free(j);
}

static void take_over(struct job *j)
{
    struct secret *s = j->s;

    if (buf_len(&j->sealed) > 0) {
        buf_done(&s->sealed);
        s->sealed = j->sealed;
        j->sealed = (struct buf){0};
        s->rotated_ms = j->now_ms;
        memcpy(s->all->key, j->key, sizeof j->key);
        s->all->has_key = true;
        s->all->locked = (struct err){0};
    }
    json_decref(s->rule);
    s->rule = TAKE(j->rule);
    s->updated_ms = j->now_ms;
}

static void set_written(void *arg, const struct err *e)
{
    struct job *j = arg;
    struct secret *s = j->s;
    struct err why = *e;

    if (e->code == ERR_NONE) {
        take_over(j);
        tell_users(s->all, s->id, set_told, j);
        return;
    }
    err_wrap(&why, "set secret '%s'", s->name);
    j->done(j->arg, NULL, &why);
    if (s->state == SECRET_MAKING)
        drop(s);
    else
        s->state = SECRET_READY;
    job_free(j);
}

static struct secret *by_name(const struct secrets *l, const char *tenant, struct str name)
{
    for (size_t i = 0; i < l->count; i++)
        if (str_eq_c(name, l->sorted[i]->name) && strcmp(l->sorted[i]->tenant, tenant) == 0)
            return l->sorted[i];
    return NULL;
}

static int not_found(struct str ref, struct err *e)
{
    (void)err_set(e, ERR_NOT_FOUND, 0, "there is no secret '" STR_FMT "'", (int)size_min(ref.n, 64),
                  ref.p ? ref.p : "");
    return err_hint(e, "holt secret ls lists the secrets; holt secret set creates one");
}

static int check_how(struct secrets *l, const struct secret_spec *spec, enum secret_how how,
                     const struct secret *old, struct err *e)
{
    if (old && how == SECRET_MAKE) {
        (void)err_set(e, ERR_CONFLICT, 0, "a secret named '%s' exists already", old->name);
        (void)err_object(e, "secret", old->id);
        return err_hint(e, "change it with PUT, or remove it: holt secret rm %s", old->name);
    }
    if (old && old->state != SECRET_READY) {
        (void)err_set(e, ERR_CONFLICT, 0, "secret '%s' is being changed", old->name);
        (void)err_object(e, "secret", old->id);
        return err_hint(e, "try again in a moment");
    }
    if (!old && how == SECRET_CHANGE)
        return not_found(spec->name, e);
    if (!old && !spec->value.p)
        return err_set(e, ERR_INVALID, 0,
                       "field 'value' is needed: there is no secret '" STR_FMT "' yet",
                       STR_ARG(spec->name));
    if (!old && (int64_t)l->count >= l->max) {
        err_set(e, ERR_LIMIT, 0, "there are %zu secrets already", l->count);
        return err_limit(e, "secrets_max", l->max, "remove some (holt secret ls)");
    }
    if (spec->value.p && l->locked.code != ERR_NONE && l->count > 0) {
        *e = l->locked;
        return -1;
    }
    return 0;
}

static struct secret *new_secret(struct secrets *l, struct str name, const struct principal *by)
{
    struct secret *s = xzalloc(sizeof *s);

    id_make("sc", s->id);
    s->name = str_dup(name);
    s->created_ms = clock_wall_ms();
    (void)snprintf(s->owner, sizeof s->owner, "%s", principal_owner(by));
    (void)snprintf(s->tenant, sizeof s->tenant, "%s", by->tenant);
    add(l, s);
    return s;
}

int secret_set(struct secrets *l, const struct secret_spec *spec, enum secret_how how,
               const struct secret_call *c, struct err *e)
{
    struct secret *s = by_name(l, c->by->tenant, spec->name);
    AUTO(json_decref) json_t *rule = NULL;
    bool make = !s;
    struct job *j;

    if (secret_name_check(spec->name, e) < 0 || check_how(l, spec, how, s, e) < 0 ||
        (spec->value.p && secret_value_check(spec->value, e) < 0) ||
        secret_rule_make(spec, s ? s->rule : NULL, &rule, e) < 0 ||
        (s && secret_fits_users(s, rule, spec->value, e) < 0))
        return err_wrap(e, "set a secret");
    if (make)
        s = new_secret(l, spec->name, c->by);
    s->state = make ? SECRET_MAKING : SECRET_CHANGING;
    j = job_new(s, make ? "secret.created" : "secret.updated", c);
    j->rule = TAKE(rule);
    j->rule_text = json_dumps(j->rule, JSON_COMPACT);
    buf_add_str(&j->value, spec->value);
    j->key_path = xstrdup(l->key_path);
    j->has_key = l->has_key;
    memcpy(j->key, l->key, sizeof j->key);
    store_write(l->store, STORE_DURABLE, make ? insert_work : update_work, set_written, j);
    return 0;
}

/* --- removing --- */

static void remove_told(void *arg, const struct err *e)
{
    struct job *j = arg;

    j->done(j->arg, NULL, e);
    job_free(j);
}

static void remove_written(void *arg, const struct err *e)
{
    struct job *j = arg;
    struct secrets *l = j->s->all;
    char id[ID_SIZE];

    if (e->code != ERR_NONE) {
        j->s->state = SECRET_READY;
        remove_told(j, e);
        return;
    }
    memcpy(id, j->s->id, sizeof id);
    drop(TAKE(j->s));
    tell_users(l, id, remove_told, j);
}

int secret_remove(struct secret *s, const struct secret_call *c, struct err *e)
{
    if (check_how(s->all, &(struct secret_spec){.name = str_of(s->name)}, SECRET_CHANGE, s, e) < 0)
        return -1;
    s->state = SECRET_CHANGING;
    store_write(s->all->store, STORE_DURABLE, remove_work, remove_written,
                job_new(s, "secret.removed", c));
    return 0;
}

/* --- lookup --- */

static struct owned secret_owned(const struct secret *s)
{
    return (struct owned){.owner = str_of(s->owner), .tenant = str_of(s->tenant)};
}

static void offer_split(struct secrets *l, struct owner_look *look)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct owned o = secret_owned(l->sorted[i]);

        if (str_eq_c(look->name, l->sorted[i]->name) && l->sorted[i]->state != SECRET_MAKING)
            owner_offer(look, l->sorted[i], l->sorted[i]->id, &o, 0);
    }
}

struct secret *secret_find(struct secrets *l, const struct principal *by, struct str ref,
                           struct err *e)
{
    struct owner_look look = {.by = by, .use = OWNER_CHANGE, .text = ref, .name = ref};
    struct secret *s = by_name(l, by->tenant, ref);
    struct err why = {0};

    if (!s)
        s = sorted_find(SORTED(l, id), ref);
    if (s && s->state != SECRET_MAKING) {
        const struct owned o = secret_owned(s);

        return owner_check(by, &o, OWNER_CHANGE, "secret", s->id, e) == 0 ? s : NULL;
    }
    if (owner_look_split(&look))
        offer_split(l, &look);
    s = owner_found(&look, "secret", &why);
    if (s)
        return s;
    if (why.code != ERR_NONE)
        *e = why;
    else
        (void)not_found(ref, e);
    return NULL;
}

struct secret *secret_next(struct secrets *l, const struct principal *by, struct str after)
{
    for (size_t i = sorted_after(SORTED(l, id), after); i < l->count; i++) {
        const struct owned o = secret_owned(l->sorted[i]);

        if (l->sorted[i]->state != SECRET_MAKING && owner_may(by, &o, OWNER_SEE))
            return l->sorted[i];
    }
    return NULL;
}

void secret_info(const struct secret *s, struct secret_info *ret)
{
    struct secret_user u;
    size_t at = 0;

    *ret = (struct secret_info){.id = s->id,
                                .name = str_of(s->name),
                                .owner = str_of(s->owner),
                                .tenant = str_of(s->tenant),
                                .rule = s->rule,
                                .created_ms = s->created_ms,
                                .updated_ms = s->updated_ms,
                                .rotated_ms = s->rotated_ms};
    while (secrets_next_user(s->all, &at, &u))
        ret->used_by += secret_is_used_by(s, &u);
}
