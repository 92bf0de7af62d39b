/* identity: tokens: create, check, revoke, expire. */
#include "core/identity/identity.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "base/thread.h"
#include "core/columns.h"
#include "core/event/event.h"
#include "core/identity/identity_internal.h"
#include "core/identity/tenant.h"
#include "proto/json.h"

#define TOKENS_MAX 100000
#define SECRET_BYTES 32
#define TOKEN_PREFIX "holt_"
#define SESSION_PREFIX "holts_"

static struct entry *entry_free(struct entry *n)
{
    if (!n)
        return NULL;
    mem_free(n->t.name);
    mem_free(n->t.agent);
    mem_free(n->t.tenant);
    mem_free(n->t.person);
    mem_free(n);
    return NULL;
}
DEFINE_AUTO(struct entry *, entry_free)

static void add(struct identity *i, struct entry *n)
{
    sorted_add(SORTED(i, t.id), n);
    map_set(&i->by_hash, hash_str(n->t.hash), n);
    map_set(&i->by_id, str_of(n->t.id), n);
    assert(i->count == i->by_id.count && i->count == i->by_hash.count && thread_is_loop());
}

static void drop(struct identity *i, struct entry *n)
{
    sorted_remove(SORTED(i, t.id), n);
    map_remove(&i->by_hash, hash_str(n->t.hash));
    map_remove(&i->by_id, str_of(n->t.id));
    assert(i->count == i->by_id.count && i->count == i->by_hash.count && thread_is_loop());
    entry_free(n);
}

static bool is_live_itself(const struct entry *n)
{
    return !n->revoked && (n->t.expires_ms == 0 || n->t.expires_ms > clock_wall_ms());
}

/* The one place that decides: a derived token is dead as soon as its root is. */
static bool is_live(const struct identity *i, const struct entry *n)
{
    const struct entry *root = n->t.root[0] ? map_get(&i->by_id, str_of(n->t.root)) : n;

    return is_live_itself(n) && root && is_live_itself(root);
}

/* --- open and close --- */

static bool put_role(const void *object, struct buf *to)
{
    const struct token *t = object;

    buf_add_c(to, role_name(t->role));
    return true;
}

static int get_role(void *object, struct str text, struct err *e)
{
    struct token *t = object;

    return role_parse(text, &t->role)
               ? 0
               : err_set(e, ERR_INTERNAL, 0, "token '%s' has no known role", t->id);
}

static bool put_hash(const void *object, struct buf *to)
{
    const struct token *t = object;

    buf_add(to, t->hash, sizeof t->hash);
    return true;
}

static int get_hash(void *object, struct str bytes, struct err *e)
{
    struct token *t = object;

    if (bytes.n != sizeof t->hash)
        return err_set(e, ERR_INTERNAL, 0, "token '%s' has a damaged hash", t->id);
    memcpy(t->hash, bytes.p, bytes.n);
    return 0;
}

#define HAS(member, kind, ...) COLUMN(struct token, member, kind, __VA_ARGS__)
static const struct column token_column_list[] = {
    HAS(id, COLUMN_CHARS, .flags = COLUMN_KEY),
    HAS(name, COLUMN_TEXT),
    {.name = "role", .type = COLUMN_MADE, .put = put_role, .get = get_role},
    HAS(agent, COLUMN_TEXT, .flags = COLUMN_NULLS),
    HAS(session, COLUMN_BOOL),
    HAS(created_ms, COLUMN_INT),
    HAS(expires_ms, COLUMN_INT),
    HAS(last_used_ms, COLUMN_INT),
    {.name = "hash", .type = COLUMN_BYTES, .put = put_hash, .get = get_hash},
    HAS(root, COLUMN_CHARS),
    HAS(tenant, COLUMN_TEXT),
    HAS(content, COLUMN_BOOL),
    HAS(person, COLUMN_TEXT),
};
static struct columns token_columns = {.table = "tokens",
                                       .list = token_column_list,
                                       .count = ARRAY_LEN(token_column_list),
                                       .prefix = "tk",
                                       .order = "ORDER BY id"};

static int load_token(void *arg, const struct store_rows *rows, struct err *e)
{
    AUTO(entry_free) struct entry *n = xzalloc(sizeof *n);

    if (columns_load(&token_columns, rows, &n->t, e) < 0)
        return -1;
    add(arg, TAKE(n));
    return 0;
}

static int load_tokens(struct store_tx *tx, void *arg, struct err *e)
{
    return columns_each(tx, &token_columns, load_token, arg, e);
}

int identity_open(struct store *s, struct identity **ret, struct err *e)
{
    struct identity *i = xzalloc(sizeof *i);

    i->max = TOKENS_MAX;
    i->store = s;
    if (store_now(s, load_tokens, i, e) < 0) {
        identity_close(i);
        return err_wrap(e, "read the tokens");
    }
    *ret = i;
    return 0;
}

void identity_set_max(struct identity *i, int64_t max)
{
    i->max = max;
}

struct identity *identity_close(struct identity *i)
{
    if (!i)
        return NULL;
    for (size_t k = 0; k < i->count; k++)
        entry_free(i->sorted[k]);
    mem_free(i->sorted);
    map_done(&i->by_hash);
    map_done(&i->by_id);
    throttle_done(&i->throttle);
    mem_wipe(i->codes, sizeof i->codes);
    mem_free(i);
    return NULL;
}

/* --- creating --- */

void identity_make_secret(const char *prefix, char *to)
{
    unsigned char bytes[SECRET_BYTES];
    AUTO(buf_done) struct buf text = {0};

    rnd_bytes(bytes, sizeof bytes);
    enc_base64url(&text, bytes, sizeof bytes);
    (void)snprintf(to, TOKEN_TEXT, "%s%s", prefix, buf_cstr(&text));
    mem_wipe(bytes, sizeof bytes);
    mem_wipe(buf_data(&text), buf_len(&text));
}

/* root NULL: a token; else a session. */
static struct entry *make_entry(const struct token_spec *spec, const char *root, char *text)
{
    struct entry *n = xzalloc(sizeof *n);
    bool session = root != NULL;

    (void)snprintf(n->t.root, sizeof n->t.root, "%s", session ? root : "");
    identity_make_secret(session ? SESSION_PREFIX : TOKEN_PREFIX, text);
    sha256(str_of(text), n->t.hash);
    id_make("tk", n->t.id);
    n->t.name = str_dup(spec->name);
    n->t.role = spec->role;
    n->t.agent = spec->agent.n > 0 ? str_dup(spec->agent) : NULL;
    n->t.tenant = str_dup(spec->tenant);
    n->t.person = str_dup(spec->person);
    n->t.content = spec->content;
    n->t.session = session;
    n->t.created_ms = clock_wall_ms();
    n->t.expires_ms = spec->ttl_ms > 0 ? n->t.created_ms + spec->ttl_ms : 0;
    return n;
}

static void write_event(struct store_tx *tx, const char *type, const struct token *t,
                        const char *actor)
{
    AUTO(buf_done) struct buf data = {0};
    struct jw w = {.to = &data};
    char object[ID_SIZE + 8];

    (void)snprintf(object, sizeof object, "token/%s", t->id);
    jw_object(&w);
    jw_kc(&w, "id", t->id);
    jw_kc(&w, "name", t->name);
    jw_kc(&w, "role", role_name(t->role));
    jw_kc(&w, "agent", t->agent);
    if (t->tenant[0])
        jw_kc(&w, "tenant", t->tenant);
    if (t->person[0])
        jw_kc(&w, "person", t->person);
    if (t->content)
        jw_kbool(&w, "content", true);
    jw_kbool(&w, "session", t->session);
    if (t->root[0])
        jw_kc(&w, "root", t->root);
    jw_ktime(&w, "created_at", t->created_ms);
    jw_ktime(&w, "expires_at", t->expires_ms);
    jw_object_end(&w);
    tx_event(tx,
             &(struct event_spec){
                 .type = type, .object = object, .actor = actor, .data = buf_str(&data)},
             NULL);
}

struct token_job { /* one token being written to or removed from the store */
    struct identity *i;
    struct entry *n;
    char actor[64];
    char text[TOKEN_TEXT];
    int (*tx_hook)(struct store_tx *tx, void *arg, const char *id, struct err *e);
    void *tx_hook_arg;
    token_made made;
    store_done done;
    void *arg;
};

static void job_free(struct token_job *j)
{
    mem_wipe(j->text, sizeof j->text);
    mem_free(j);
}

static int insert_token(struct store_tx *tx, void *arg, struct err *e)
{
    const struct token_job *j = arg;
    const struct token *t = &j->n->t;

    if (columns_insert(tx, &token_columns, t, e) < 0)
        return -1;
    if (j->tx_hook && j->tx_hook(tx, j->tx_hook_arg, t->id, e) < 0)
        return -1;
    write_event(tx, "token.created", t, j->actor);
    return 0;
}

static void token_inserted(void *arg, const struct err *e)
{
    struct token_job *j = arg;

    if (e->code != ERR_NONE) {
        struct err why = *e;

        err_wrap(&why, "make a token");
        j->made(j->arg, NULL, NULL, &why);
        entry_free(j->n);
    } else {
        add(j->i, j->n);
        j->made(j->arg, &j->n->t, j->text, e);
    }
    job_free(j);
}

static int check_spec(const struct identity *i, const struct token_spec *spec, struct err *e)
{
    if ((int64_t)i->count >= i->max) {
        err_set(e, ERR_LIMIT, 0, "there are %zu tokens already", i->count);
        return err_limit(e, "tokens_max", i->max, "revoke tokens that nobody uses (holt token ls)");
    }
    if (spec->role == ROLE_NONE)
        return err_set(e, ERR_INVALID, 0, "field 'role' is required");
    if (spec->role == ROLE_AGENT && spec->agent.n == 0)
        return err_set(e, ERR_INVALID, 0, "field 'agent' is required with the role 'agent'");
    if (spec->role != ROLE_AGENT && spec->agent.n > 0)
        return err_set(e, ERR_INVALID, 0, "field 'agent' is only for the role 'agent'");
    if (spec->role == ROLE_AGENT && spec->person.n > 0)
        return err_set(e, ERR_INVALID, 0,
                       "field 'person': a token of role agent belongs to its agent");
    if (spec->content && spec->role != ROLE_OBSERVER)
        return err_set(
            e, ERR_INVALID, 0,
            "field 'content' is only for the role 'observer': other roles may read content anyway");
    if (spec->tenant.n > 0 && spec->role == ROLE_ADMIN) {
        err_set(e, ERR_INVALID, 0, "field 'tenant': an admin cannot belong to a tenant");
        return err_hint(e, "use the role 'operator' for a tenant: --role operator");
    }
    if (spec->tenant.n > 0 && tenant_check(spec->tenant, e) < 0)
        return -1;
    return 0;
}

#define EXPIRE_LOOK 16
static void expire_some(struct identity *i);

static void create(struct identity *i, const struct token_spec *spec, const char *root,
                   const char *actor, struct token_job *j)
{
    struct err e = {0};

    expire_some(i);
    if (check_spec(i, spec, &e) < 0) {
        j->made(j->arg, NULL, NULL, &e);
        job_free(j);
        return;
    }
    j->i = i;
    j->n = make_entry(spec, root, j->text);
    j->tx_hook = spec->tx_hook;
    j->tx_hook_arg = spec->tx_hook_arg;
    (void)snprintf(j->actor, sizeof j->actor, "%s", actor);
    store_write(i->store, STORE_DURABLE, insert_token, token_inserted, j);
}

void identity_create(struct identity *i, const struct token_spec *spec, const struct principal *by,
                     token_made done, void *arg)
{
    struct token_job *j = xzalloc(sizeof *j);

    j->made = done;
    j->arg = arg;
    create(i, spec, NULL, by->actor, j);
}

void identity_create_session(struct identity *i, const struct token_spec *spec, const char *root,
                             token_made done, void *arg)
{
    struct token_job *j = xzalloc(sizeof *j);

    j->made = done;
    j->arg = arg;
    create(i, spec, root, "login-code", j);
}

static size_t live_admins(const struct identity *i)
{
    size_t n = 0;

    for (size_t k = 0; k < i->count; k++)
        if (i->sorted[k]->t.role == ROLE_ADMIN && !i->sorted[k]->t.session &&
            is_live(i, i->sorted[k]))
            n++;
    return n;
}

int identity_first_admin(struct identity *i, const char *path, struct err *e)
{
    struct token_job j = {.i = i, .actor = "system"};
    const struct token_spec spec = {.name = STR("first admin"), .role = ROLE_ADMIN};
    AUTO(entry_free) struct entry *n = NULL;
    AUTO(mem_free) char *before = xasprintf("%s.old", path);
    char line[TOKEN_TEXT + 1];
    int r;

    if (live_admins(i) > 0)
        return 0;
    (void)rename(path, before); /* it may belong to another database that returns */
    n = j.n = make_entry(&spec, NULL, j.text);
    (void)snprintf(line, sizeof line, "%s\n", j.text);
    /* The file first: a crash between the two leaves a useless file, which the next start replaces,
     * not an admin token that nobody knows. */
    r = file_replace(path, 0600, str_of(line));
    mem_wipe(line, sizeof line);
    mem_wipe(j.text, sizeof j.text);
    if (r < 0)
        return err_set(e, err_code_from_errno(-r), -r, "write the admin token to '%s'", path);
    if (store_now(i->store, insert_token, &j, e) < 0)
        return err_wrap(e, "make the first admin token");
    add(i, TAKE(n));
    return 1;
}

/* --- revoking --- */

static int delete_token(struct store_tx *tx, void *arg, struct err *e)
{
    const struct token_job *j = arg;
    const struct token *t = &j->n->t;
    bool expired = t->expires_ms > 0 && t->expires_ms <= clock_wall_ms();

    if (tx_run(tx, "DELETE FROM tokens WHERE id = :id", PARAMS(P_C("id", t->id)), e) < 0)
        return -1;
    write_event(tx, expired && !j->done ? "token.expired" : "token.revoked", t, j->actor);
    return 0;
}

static void token_deleted(void *arg, const struct err *e)
{
    struct token_job *j = arg;
    struct err why = *e;

    j->n->deleting = false;
    if (e->code != ERR_NONE) {
        /* It stays refused, and another revoke tries again to make that durable. */
        err_wrap(&why, "store that token '%s' is revoked (it is refused until a restart)",
                 j->n->t.id);
        if (!j->done)
            log_warn("the row of an expired token could not be removed", LOG_C("token", j->n->t.id),
                     LOG_E(&why));
    } else {
        drop(j->i, j->n);
    }
    if (j->done)
        j->done(j->arg, &why);
    job_free(j);
}

static void delete(struct identity *i, struct entry *n, const char *actor, store_done done,
                   void *arg)
{
    struct token_job *j = xzalloc(sizeof *j);

    n->revoked = n->deleting = true;
    *j = (struct token_job){.i = i, .n = n, .done = done, .arg = arg};
    (void)snprintf(j->actor, sizeof j->actor, "%s", actor);
    store_write(i->store, STORE_DURABLE, delete_token, token_deleted, j);
}

/* Deletes rows of expired tokens as new ones come: checks a few each time, in turn. */
static void expire_some(struct identity *i)
{
    for (size_t looked = 0; looked < i->count && looked < EXPIRE_LOOK; looked++) {
        struct entry *n = i->sorted[i->expire_next++ % i->count];

        if (!n->revoked && !is_live(i, n))
            delete (i, n, "system", NULL, NULL);
    }
}

/* It was refused already because of its root; now its row is deleted too. */
static void delete_derived(struct identity *i, const struct entry *root, const char *actor)
{
    for (size_t k = 0; k < i->count; k++)
        if (!i->sorted[k]->revoked && strcmp(i->sorted[k]->t.root, root->t.id) == 0)
            delete (i, i->sorted[k], actor, NULL, NULL);
}

void identity_revoke(struct identity *i, struct str id, const struct principal *by, store_done done,
                     void *arg)
{
    struct entry *n = map_get(&i->by_id, id);
    struct err e = {0};

    if (!n || n->deleting) {
        err_set(&e, ERR_NOT_FOUND, 0, "there is no token '" STR_FMT "'", (int)size_min(id.n, 64),
                id.p);
        err_hint(&e, "holt token ls lists the ids");
        done(arg, &e);
        return;
    }
    if (n->t.role == ROLE_ADMIN && !n->t.session && is_live(i, n) && live_admins(i) == 1) {
        err_set(&e, ERR_CONFLICT, 0, "token '%s' is the last admin token", n->t.id);
        err_object(&e, "token", n->t.id);
        err_hint(&e, "create another one first: holt token create --role admin");
        done(arg, &e);
        return;
    }
    delete_derived(i, n, by->actor);
    delete (i, n, by->actor, done, arg);
}

/* --- checking --- */

static const struct token *check(struct identity *i, struct str text, bool session)
{
    unsigned char hash[SHA256_SIZE];
    struct entry *n;
    int64_t now = clock_wall_ms();

    if (text.n == 0 || text.n >= TOKEN_TEXT)
        return NULL;
    sha256(text, hash);
    n = map_get(&i->by_hash, hash_str(hash));
    /* The map has compared hashes already; this comparison takes constant time. */
    if (!n || !str_eq_secret(hash_str(hash), hash_str(n->t.hash)))
        return NULL;
    if (!is_live(i, n) || n->t.session != session)
        return NULL;
    if (n->t.last_used_ms != now) {
        n->t.last_used_ms = now;
        n->used = true;
    }
    return &n->t;
}

const struct token *identity_check(struct identity *i, struct str text)
{
    return check(i, text, false);
}

const struct token *identity_check_cookie(struct identity *i, struct str cookie)
{
    return check(i, cookie, true);
}

const struct token *identity_get(struct identity *i, struct str id)
{
    const struct entry *n = map_get(&i->by_id, id);

    return n && is_live(i, n) ? &n->t : NULL;
}

const struct token *identity_next(struct identity *i, struct str after)
{
    for (size_t k = sorted_after(SORTED(i, t.id), after); k < i->count; k++)
        if (is_live(i, i->sorted[k]))
            return &i->sorted[k]->t;
    return NULL;
}

/* --- throttle --- */

bool identity_throttled(struct identity *i, const char *peer, int64_t *ret_retry_ms)
{
    return throttle_active(&i->throttle, str_of(peer), ret_retry_ms);
}

void identity_failed(struct identity *i, const char *peer)
{
    throttle_failed(&i->throttle, str_of(peer));
}

void identity_set_throttle(struct identity *i, int64_t failures, int64_t window_ms)
{
    i->throttle.failures = failures;
    i->throttle.window_ms = window_ms;
}
