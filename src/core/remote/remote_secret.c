/* remote_secret: the credentials of remote agents, in two files. */
#include "core/remote/remote_secret.h"

#include "base/clock.h"
#include "base/enc.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "core/remote/remote.h"
#include "proto/digest.h"
#include "proto/json.h"

#include <errno.h>
#include <stdio.h>

#define HASHES "agent-hashes.json"
#define OWNERS "agent-owners.json"
#define FILE_MAX (4 << 20)
#define HASH_TEXT (2 * SHA256_SIZE)

struct entry {
    char id[REMOTE_ID_MAX + 1];
    char hash[HASH_TEXT + 1];
    char next[HASH_TEXT + 1]; /* of the new one, during a rotation; else "" */
    char owner[64], tenant[PRINCIPAL_TENANT];
    enum role role;
    int64_t updated_ms, grace_until_ms;
};

struct save_wait {
    struct list node;
    remote_secret_done done;
    void *arg;
};

struct remote_secrets {
    uv_loop_t *loop;
    char *dir;
    struct entry *v; /* by id */
    size_t n, size;
    struct list waits;   /* for the next save */
    struct saving *busy; /* NULL: none is under way */
};

struct saving { /* copied data for the worker */
    uv_work_t work;
    struct remote_secrets *l; /* NULL: freed meanwhile */
    char *dir;
    struct buf hashes, owners;
    struct list waits;
    int result;
};

/* --- the list --- */

/* Where it is, or where it belongs. */
static size_t place_of(const struct remote_secrets *l, struct str id, bool *ret_found)
{
    size_t lo = 0, hi = l->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (str_cmp(str_of(l->v[mid].id), id) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_found = lo < l->n && str_eq_c(id, l->v[lo].id);
    return lo;
}

static struct entry *find(const struct remote_secrets *l, struct str id)
{
    bool found;
    size_t at = place_of(l, id, &found);

    return found ? &l->v[at] : NULL;
}

static struct entry *add(struct remote_secrets *l, struct str id)
{
    bool found;
    size_t at = place_of(l, id, &found);

    if (!found) {
        if (l->n == l->size) {
            l->size = size_max(16, l->size * 2);
            l->v = xrealloc(l->v, l->size * sizeof *l->v);
        }
        memmove(&l->v[at + 1], &l->v[at], (l->n - at) * sizeof *l->v);
        l->n++;
        l->v[at] = (struct entry){.role = ROLE_NONE};
        memcpy(l->v[at].id, id.p, id.n);
        l->v[at].id[id.n] = '\0';
    }
    return &l->v[at];
}

static void drop(struct remote_secrets *l, struct entry *x)
{
    size_t at = (size_t)(x - l->v);

    memmove(x, x + 1, (l->n - at - 1) * sizeof *x);
    l->n--;
}

/* --- reading --- */

static bool is_hex(struct str s, size_t n)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
            return false;
    return s.n == n;
}

static struct str member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");
}

static int read_object(const char *dir, const char *name, json_t **ret, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/%s", dir, name);
    AUTO(buf_done) struct buf text = {0};
    int r = file_read(path, FILE_MAX, &text);

    if (r == -ENOENT)
        buf_add_c(&text, "{}");
    else if (r < 0)
        return err_set(e, ERR_INTERNAL, -r, "read '%s'", path);
    if (json_read(buf_str(&text), ret, e) < 0)
        return err_wrap(e, "'%s'", path);
    if (!json_is_object(*ret))
        return err_set(e, ERR_INVALID, 0, "'%s' is not a JSON object", path);
    return 0;
}

static void keep(char *to, size_t size, struct str from)
{
    (void)snprintf(to, size, "%.*s", (int)size_min(from.n, size - 1), from.p ? from.p : "");
}

static void read_more(struct entry *x, const json_t *o)
{
    keep(x->owner, sizeof x->owner, member(o, "owner"));
    keep(x->tenant, sizeof x->tenant, member(o, "tenant"));
    if (is_hex(member(o, "next"), HASH_TEXT))
        keep(x->next, sizeof x->next, member(o, "next"));
    if (!role_parse(member(o, "role"), &x->role))
        x->role = ROLE_NONE;
    x->updated_ms = json_integer_value(json_object_get(o, "updated_ms"));
    x->grace_until_ms = json_integer_value(json_object_get(o, "grace_until_ms"));
}

int remote_secrets_reload(struct remote_secrets *l, struct err *e)
{
    AUTO(json_decref) json_t *hashes = NULL;
    AUTO(json_decref) json_t *owners = NULL;
    const char *id;
    json_t *v;

    if (l->busy) /* what is written now is what would be read */
        return 0;
    if (read_object(l->dir, HASHES, &hashes, e) < 0 || read_object(l->dir, OWNERS, &owners, e) < 0)
        return -1;
    l->n = 0;
    json_object_foreach(hashes, id, v)
    {
        struct str hash = str_make(json_string_value(v), json_string_length(v));
        struct entry *x;

        if (!json_is_string(v) || !is_hex(hash, HASH_TEXT) || !remote_id_is_valid(str_of(id)) ||
            l->n >= REMOTE_SECRETS_MAX) {
            log_warn("an entry of " HASHES " is ignored", LOG_C("agent", id));
            continue;
        }
        x = add(l, str_of(id));
        keep(x->hash, sizeof x->hash, hash);
        read_more(x, json_object_get(owners, id));
    }
    return 0;
}

int remote_secrets_open(uv_loop_t *loop, const char *dir, struct remote_secrets **ret,
                        struct err *e)
{
    struct remote_secrets *l = xzalloc(sizeof *l);
    int r = dir_make_all(dir, 0700);

    l->loop = loop;
    l->dir = xstrdup(dir);
    list_init(&l->waits);
    if (r < 0)
        (void)err_set(e, ERR_INTERNAL, -r, "make the directory '%s'", dir);
    if (r < 0 || remote_secrets_reload(l, e) < 0) {
        (void)remote_secrets_free(l);
        return err_wrap(e, "the credentials of agents");
    }
    *ret = l;
    return 0;
}

/* --- saving --- */

static void write_hashes(const struct remote_secrets *l, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    for (size_t i = 0; i < l->n; i++)
        jw_kc(&w, l->v[i].id, l->v[i].hash);
    jw_object_end(&w);
    buf_add_char(to, '\n');
}

static void write_owners(const struct remote_secrets *l, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    for (size_t i = 0; i < l->n; i++) {
        const struct entry *x = &l->v[i];

        jw_key(&w, x->id);
        jw_object(&w);
        jw_kc(&w, "owner", x->owner);
        jw_kc(&w, "tenant", x->tenant);
        jw_kc(&w, "role", role_name(x->role));
        jw_kc(&w, "next", x->next);
        jw_kint(&w, "updated_ms", x->updated_ms);
        jw_kint(&w, "grace_until_ms", x->grace_until_ms);
        jw_object_end(&w);
    }
    jw_object_end(&w);
    buf_add_char(to, '\n');
}

static void save_work(uv_work_t *work)
{
    struct saving *s = work->data;
    AUTO(mem_free) char *owners = xasprintf("%s/" OWNERS, s->dir);
    AUTO(mem_free) char *hashes = xasprintf("%s/" HASHES, s->dir);

    s->result = file_replace(owners, 0600, buf_str(&s->owners));
    if (s->result == 0)
        s->result = file_replace(hashes, 0600, buf_str(&s->hashes));
}

static void tell(struct list *waits, const struct err *e)
{
    struct list *node;

    while ((node = list_pop(waits))) {
        struct save_wait *w = LIST_ENTRY(node, struct save_wait, node);

        w->done(w->arg, e);
        mem_free(w);
    }
}

static void save_begin(struct remote_secrets *l);

static void save_end(uv_work_t *work, int status)
{
    struct saving *s = work->data;
    struct remote_secrets *l = s->l;
    struct err e = {0};

    if (status < 0 || s->result < 0) {
        int sys = status < 0 ? -status : -s->result;

        (void)err_set(&e, err_code_from_errno(sys), sys, "write " HASHES);
        log_error("the credentials of agents were not saved", LOG_E(&e));
    }
    if (l)
        l->busy = NULL;
    if (l && !list_is_empty(&l->waits))
        save_begin(l);
    tell(&s->waits, &e);
    buf_done(&s->hashes);
    buf_done(&s->owners);
    mem_free(s->dir);
    mem_free(s);
}

static void save_begin(struct remote_secrets *l)
{
    struct saving *s = xzalloc(sizeof *s);
    struct list *node;

    s->work.data = s;
    s->l = l;
    s->dir = xstrdup(l->dir);
    list_init(&s->waits);
    while ((node = list_pop(&l->waits)))
        list_push(&s->waits, node);
    write_hashes(l, &s->hashes);
    write_owners(l, &s->owners);
    l->busy = s;
    if (uv_queue_work(l->loop, &s->work, save_work, save_end) < 0) {
        s->result = -ENOMEM;
        save_end(&s->work, 0);
    }
}

static void ignore(void *arg, const struct err *e)
{
    (void)arg, (void)e;
}

static void save(struct remote_secrets *l, remote_secret_done done, void *arg)
{
    struct save_wait *w = xzalloc(sizeof *w);

    w->done = done ? done : ignore;
    w->arg = arg;
    list_push(&l->waits, &w->node);
    if (!l->busy)
        save_begin(l);
}

struct remote_secrets *remote_secrets_free(struct remote_secrets *l)
{
    struct err e = {.code = ERR_CANCELLED, .msg = "holtd is stopping"};

    if (!l)
        return NULL;
    if (l->busy) {
        l->busy->l = NULL;
        tell(&l->busy->waits, &e);
    }
    tell(&l->waits, &e);
    mem_free(l->dir);
    mem_free(l->v);
    mem_free(l);
    return NULL;
}

/* --- checking --- */

static void hash_of(struct str secret, char to[HASH_TEXT + 1])
{
    unsigned char hash[SHA256_SIZE];

    sha256(secret, hash);
    enc_hex(hash, sizeof hash, to);
}

static bool fits(const char *kept, const char *hash)
{
    return str_eq_secret(str_of(kept), str_of(hash));
}

enum remote_match remote_secret_match(struct remote_secrets *l, struct str id, struct str secret)
{
    struct entry *x = find(l, id);
    char hash[HASH_TEXT + 1];
    bool old, now, over;

    hash_of(secret, hash);
    if (!x)
        return REMOTE_UNKNOWN;
    over = x->next[0] && x->grace_until_ms <= clock_wall_ms();
    old = fits(x->hash, hash) && !over;
    now = x->next[0] && fits(x->next, hash);
    if (now || over) { /* from here on only the new one */
        memcpy(x->hash, x->next, sizeof x->hash);
        x->next[0] = '\0';
        x->grace_until_ms = 0;
        save(l, NULL, NULL);
    }
    return old || now ? REMOTE_RIGHT : REMOTE_WRONG;
}

bool remote_secret_is_valid(struct str secret)
{
    return is_hex(secret, REMOTE_SECRET_TEXT - 1);
}

void remote_secret_make(char to[REMOTE_SECRET_TEXT])
{
    unsigned char bytes[32];

    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, to);
    mem_wipe(bytes, sizeof bytes);
}

/* --- changes --- */

int remote_secret_set(struct remote_secrets *l, struct str id, struct str secret,
                      const struct principal *by, remote_secret_done done, void *arg, struct err *e)
{
    struct entry *x;

    if (!remote_id_is_valid(id)) {
        (void)err_set(e, ERR_INVALID, 0, "'" STR_FMT "' is not an agent's id",
                      (int)size_min(id.n, REMOTE_ID_MAX), id.p ? id.p : "");
        return err_hint(e, "up to %d of a-z, 0-9 and '-', not '-' first", REMOTE_ID_MAX);
    }
    if (!find(l, id) && l->n >= REMOTE_SECRETS_MAX) {
        (void)err_set(e, ERR_LIMIT, 0, "%d agents have credentials already", REMOTE_SECRETS_MAX);
        return err_limit_fixed(e, REMOTE_SECRETS_MAX, "remove some");
    }
    x = add(l, id);
    hash_of(secret, x->hash);
    x->next[0] = '\0';
    keep(x->owner, sizeof x->owner, str_of(principal_owner(by)));
    keep(x->tenant, sizeof x->tenant, str_of(by->tenant));
    x->role = by->role;
    x->updated_ms = clock_wall_ms();
    x->grace_until_ms = 0;
    save(l, done, arg);
    return 0;
}

/* NULL: it is not there for this caller, or not the caller's to change. */
static struct entry *find_own(struct remote_secrets *l, const struct principal *by, struct str id,
                              struct err *e)
{
    struct entry *x = find(l, id);
    struct owned o = {0};

    if (x)
        o = (struct owned){.owner = str_of(x->owner), .tenant = str_of(x->tenant)};
    if (x && owner_may(by, &o, OWNER_SEE))
        return owner_check(by, &o, OWNER_CHANGE, "the secret of agent", x->id, e) < 0 ? NULL : x;
    (void)err_set(e, ERR_NOT_FOUND, 0, "there is no secret of agent '" STR_FMT "'",
                  (int)size_min(id.n, REMOTE_ID_MAX), id.p ? id.p : "");
    (void)err_hint(e, "holt remote secrets lists them");
    return NULL;
}

int remote_secret_rotate(struct remote_secrets *l, const struct principal *by, struct str id,
                         struct str secret, int64_t grace_ms, remote_secret_done done, void *arg,
                         struct err *e)
{
    struct entry *x = find_own(l, by, id, e);

    if (!x)
        return -1;
    hash_of(secret, grace_ms > 0 ? x->next : x->hash);
    if (grace_ms <= 0)
        x->next[0] = '\0';
    x->updated_ms = clock_wall_ms();
    x->grace_until_ms = grace_ms > 0 ? x->updated_ms + grace_ms : 0;
    save(l, done, arg);
    return 0;
}

int remote_secret_remove(struct remote_secrets *l, const struct principal *by, struct str id,
                         remote_secret_done done, void *arg, struct err *e)
{
    struct entry *x = find_own(l, by, id, e);

    if (!x)
        return -1;
    drop(l, x);
    save(l, done, arg);
    return 0;
}

/* --- lists --- */

static bool may_see(const struct entry *x, const struct principal *by)
{
    const struct owned o = {.owner = str_of(x->owner), .tenant = str_of(x->tenant)};

    return owner_may(by, &o, OWNER_SEE);
}

static void describe(const struct entry *x, struct remote_secret_info *ret)
{
    *ret = (struct remote_secret_info){.id = x->id,
                                       .owner = x->owner,
                                       .tenant = x->tenant,
                                       .rotating = x->next[0] != '\0',
                                       .updated_ms = x->updated_ms,
                                       .grace_until_ms = x->grace_until_ms};
}

bool remote_secret_get(const struct remote_secrets *l, const struct principal *by, struct str id,
                       struct remote_secret_info *ret)
{
    const struct entry *x = find(l, id);

    if (!x || !may_see(x, by))
        return false;
    describe(x, ret);
    return true;
}

bool remote_secret_next(const struct remote_secrets *l, const struct principal *by,
                        struct str after, struct remote_secret_info *ret)
{
    bool found;
    size_t at = place_of(l, after, &found) + (found ? 1 : 0);

    while (at < l->n && !may_see(&l->v[at], by))
        at++;
    if (at == l->n)
        return false;
    describe(&l->v[at], ret);
    return true;
}

/* One that another tool has written belongs to nobody in particular: to people. */
struct principal remote_secret_owner(const struct remote_secrets *l, struct str id)
{
    const struct entry *x = find(l, id);
    bool known = x && x->role != ROLE_NONE;

    return principal_kept(known ? x->role : ROLE_OPERATOR, known ? x->owner : "seed-port",
                          known ? x->tenant : "", "");
}
