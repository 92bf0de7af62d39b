/* idempotency: stores replies of creating requests and replays them. */
#include "api/idempotency.h"

#include "base/clock.h"
#include "base/mem.h"
#include "proto/digest.h"

struct idem {
    int refs;
    struct waiter waiter;
    struct api *api;
    char actor[64];
    char key[IDEM_KEY_MAX + 1];
    const char *op;
    unsigned char request[SHA256_SIZE];
    void (*run)(struct request *r, struct str body);
    struct str body; /* in the request's memory, until run is called */
    /* the stored row */
    bool found, same;
    int status;
    char object[96];
    char *reply; /* NULL: not kept */
};

static struct str claim_name(const struct idem *i, char *to, size_t size)
{
    int n = snprintf(to, size, "%s\n%s\n%s", i->actor, i->op, i->key);

    assert(n > 0 && (size_t)n < size);
    return str_make(to, (size_t)n);
}

struct idem *idem_ref(struct idem *i)
{
    if (i)
        i->refs++;
    return i;
}

struct idem *idem_unref(struct idem *i)
{
    char name[sizeof i->actor + sizeof i->key + 128];
    struct str claim;

    if (!i || --i->refs > 0)
        return NULL;
    assert(i->refs == 0);
    claim = claim_name(i, name, sizeof name);
    if (map_get(&i->api->running_keys, claim) == i)
        map_remove(&i->api->running_keys, claim);
    mem_free(i->reply);
    mem_free(i);
    return NULL;
}

struct str idem_made(const struct request *r)
{
    struct str id = {0};

    if (r->idem && r->idem->found)
        (void)str_cut(str_of(r->idem->object), '/', &id);
    return id;
}

int idem_record(struct store_tx *tx, const struct idem *i, const char *object, int status,
                struct str body, struct err *e)
{
    int64_t now = clock_wall_ms();

    if (tx_run(tx, "DELETE FROM idempotency WHERE created_ms < :old",
               PARAMS(P_INT("old", now - IDEM_KEEP_MS)), e) < 0)
        return -1;
    if (tx_run(tx,
               "INSERT INTO idempotency (principal, key, op, request_hash, status, object, body, "
               "created_ms) VALUES (:principal, :key, :op, :hash, :status, :object, :body, :now)",
               PARAMS(P_C("principal", i->actor), P_C("key", i->key), P_C("op", i->op),
                      P_BLOB("hash", str_make(i->request, sizeof i->request)),
                      P_INT("status", status), P_C("object", object), P_TEXT("body", body),
                      P_INT("now", now)),
               e) < 0)
        return err_wrap(e, "remember the Idempotency-Key");
    return 0;
}

static int look_up(struct store_tx *tx, void *arg, struct err *e)
{
    struct idem *i = arg;
    struct store_rows *rows;
    int r;

    if (tx_query(tx,
                 "SELECT request_hash, status, object, body FROM idempotency WHERE principal = "
                 ":principal AND key = :key AND op = :op AND created_ms >= :old",
                 PARAMS(P_C("principal", i->actor), P_C("key", i->key), P_C("op", i->op),
                        P_INT("old", clock_wall_ms() - IDEM_KEEP_MS)),
                 &rows, e) < 0)
        return -1;
    r = rows_step(rows, e);
    if (r > 0) {
        struct str object = rows_text(rows, 2);

        i->found = true;
        i->same = str_eq(rows_blob(rows, 0), str_make(i->request, sizeof i->request));
        i->status = (int)rows_int(rows, 1);
        (void)snprintf(i->object, sizeof i->object, STR_FMT, STR_ARG(object));
        i->reply = rows_is_null(rows, 3) ? NULL : str_dup(rows_text(rows, 3));
    }
    rows_end(rows);
    return r < 0 ? -1 : 0;
}

static void refuse(struct request *r, const struct idem *i)
{
    struct err e = {0};

    if (!i->same) {
        err_set(&e, ERR_CONFLICT, 0, "Idempotency-Key '%s' was used for another request", i->key);
        err_hint(&e, "take a new key for each new request");
    } else if (str_starts(str_of(i->object), STR("exec/"))) {
        err_set(&e, ERR_CONFLICT, 0, "this command was run before, and its reply is not kept");
        err_hint(&e, "take a new key to run it again");
    } else {
        err_set(
            &e, ERR_CONFLICT, 0,
            "this request was carried out before, and its reply held a secret that is not kept");
        err_hint(&e, "if that reply is lost: revoke %s and create anew with a new key", i->object);
    }
    (void)snprintf(e.object, sizeof e.object, "%s", i->object);
    request_fail(r, &e);
}

static void looked_up(void *arg, const struct err *e)
{
    AUTO(idem_unref) struct idem *i = arg;
    struct request *r = waiter_end(&i->waiter);

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (i->found && i->same && i->reply) {
        xchg_add_header(r->x, "idempotency-replayed", STR("true"));
        request_send(r, i->status, "application/json", str_of(i->reply));
    } else if (i->found && (!i->same || !r->route->remakes)) {
        refuse(r, i);
    } else {
        if (i->found)
            xchg_add_header(r->x, "idempotency-replayed", STR("true"));
        r->who.token = NULL; /* it may be revoked meanwhile */
        r->idem = TAKE(i);
        r->idem->run(r, r->idem->body);
    }
}

static bool is_key(struct str key)
{
    if (key.n == 0 || key.n > IDEM_KEY_MAX)
        return false;
    for (size_t i = 0; i < key.n; i++)
        if (key.p[i] <= ' ' || key.p[i] > '~')
            return false;
    return true;
}

static void hash_request(const struct http_req *req, struct str body, unsigned char *to)
{
    struct sha256_state *s = sha256_new();
    const struct str parts[] = {req->method, req->target, body};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        /* lengths separate the parts, so that none can pass for the end of the previous one */
        uint64_t n = parts[i].n;

        sha256_add(s, &n, sizeof n);
        sha256_add(s, parts[i].p, parts[i].n);
    }
    sha256_end(s, to);
    sha256_free(s);
}

/* The body belongs to the connection: keeps a copy for the time of the look-up, and no other. */
static struct str keep_body(struct request *r, struct str body)
{
    struct str kept = arena_str(xchg_arena(r->x), body);

    if (body.n > 0)
        mem_wipe((void *)(uintptr_t)body.p, body.n);
    return kept;
}

void idem_run(struct request *r, struct str body, void (*run)(struct request *r, struct str body))
{
    struct str key = http_req_header(xchg_req(r->x), "idempotency-key");
    AUTO(idem_unref) struct idem *i = NULL;
    char name[sizeof i->actor + sizeof i->key + 128];
    struct err e = {0};

    if (!key.p || !r->route->creates) {
        run(r, body);
        return;
    }
    if (!is_key(key)) {
        err_set(&e, ERR_INVALID, 0,
                "Idempotency-Key must be 1 to %d printable ASCII characters without spaces",
                IDEM_KEY_MAX);
        request_fail(r, &e);
        return;
    }
    i = xzalloc(sizeof *i);
    *i = (struct idem){.refs = 1, .api = r->api, .op = r->route->name, .run = run};
    (void)snprintf(i->actor, sizeof i->actor, "%s", r->who.actor);
    (void)snprintf(i->key, sizeof i->key, STR_FMT, STR_ARG(key));
    hash_request(xchg_req(r->x), body, i->request);
    if (map_get(&r->api->running_keys, claim_name(i, name, sizeof name))) {
        err_set(&e, ERR_CONFLICT, 0, "a request with Idempotency-Key '%s' is still running",
                i->key);
        err_hint(&e, "ask again when it has ended");
        request_fail(r, &e);
        return;
    }
    map_set(&r->api->running_keys, claim_name(i, name, sizeof name), i);
    i->body = keep_body(r, body);
    request_wait(r, &i->waiter);
    store_read(r->api->c.store, look_up, looked_up, TAKE(i));
}

/* --- the key beside the row of an object --- */

struct beside {
    struct idem *idem;
    idem_put put;
    int status;
    struct buf name, reply;
};

static void beside_ready(void *arg, const void *object)
{
    struct beside *b = arg;

    assert(buf_len(&b->name) == 0); /* an object is made once */
    b->put(object, &b->name, &b->reply);
}

static int beside_write(struct store_tx *tx, void *arg, struct err *e)
{
    struct beside *b = arg;

    return idem_record(tx, b->idem, buf_cstr(&b->name), b->status,
                       buf_len(&b->reply) > 0 ? buf_str(&b->reply) : (struct str){0}, e);
}

static void beside_free(void *arg)
{
    struct beside *b = arg;

    idem_unref(b->idem);
    buf_done(&b->name);
    buf_done(&b->reply);
    mem_free(b);
}

const struct tx_hook *idem_hook(struct idem *i, int status, idem_put put, void **ret_arg)
{
    static const struct tx_hook hook = {beside_ready, beside_write, beside_free};
    struct beside *b = xzalloc(sizeof *b);

    assert(!i->found);
    *b = (struct beside){.idem = i, .put = put, .status = status};
    *ret_arg = b;
    return &hook;
}

static void put_exec(const void *object, struct buf *name, struct buf *reply)
{
    struct exec_info i;

    (void)reply; /* remade */
    exec_info(object, &i);
    buf_printf(name, "exec/%s", i.id);
}

void idem_of_exec(struct request *r, struct exec_spec *spec)
{
    if (r->idem && r->idem->found)
        spec->again = idem_made(r);
    else if (r->idem)
        spec->tx_hook = idem_hook(TAKE(r->idem), 200, put_exec, &spec->tx_hook_arg);
}

static void put_sandbox(const void *object, struct buf *name, struct buf *reply)
{
    struct sandbox_info i;

    (void)reply;
    sandbox_info(object, &i);
    buf_printf(name, "sandbox/%s", i.id);
}

const struct tx_hook *idem_of_sandbox(struct request *r, void **ret_arg)
{
    return r->idem ? idem_hook(TAKE(r->idem), 200, put_sandbox, ret_arg) : NULL;
}

/* --- a reply that comes later --- */

struct late_reply {
    struct idem *idem;
    char *body;
    store_done done;
    void *arg;
};

static int write_reply(struct store_tx *tx, void *arg, struct err *e)
{
    const struct late_reply *l = arg;

    return tx_run(tx,
                  "UPDATE idempotency SET body = :body WHERE principal = :principal AND key = :key "
                  "AND op = :op",
                  PARAMS(P_C("body", l->body), P_C("principal", l->idem->actor),
                         P_C("key", l->idem->key), P_C("op", l->idem->op)),
                  e) < 0
               ? -1
               : 0;
}

static void reply_written(void *arg, const struct err *e)
{
    struct late_reply *l = arg;

    l->done(l->arg, e);
    idem_unref(l->idem);
    mem_free(l->body);
    mem_free(l);
}

void idem_keep_reply(struct idem *i, struct str body, store_done done, void *arg)
{
    struct late_reply *l = xzalloc(sizeof *l);

    *l = (struct late_reply){.idem = i, .body = str_dup(body), .done = done, .arg = arg};
    store_write(i->api->c.store, STORE_RELAXED, write_reply, reply_written, l);
}
