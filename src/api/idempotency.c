/* idempotency: stores replies of creating requests and replays them. */
#include "api/idempotency.h"

#include "base/clock.h"
#include "base/mem.h"
#include "proto/digest.h"

struct idem {
    struct waiter waiter;
    struct api *api;
    char actor[64];
    char key[IDEM_KEY_MAX + 1];
    const char *op;
    unsigned char request[SHA256_SIZE];
    void (*run)(struct request *r);
    /* the stored row */
    bool found, same, secret;
    int status;
    char object[96];
    char *body;
};

static struct str claim_name(const struct idem *i, char *to, size_t size)
{
    int n = snprintf(to, size, "%s\n%s\n%s", i->actor, i->op, i->key);

    assert(n > 0 && (size_t)n < size);
    return str_make(to, (size_t)n);
}

struct idem *idem_free(struct idem *i)
{
    char name[sizeof i->actor + sizeof i->key + 128];
    struct str claim;

    if (!i)
        return NULL;
    claim = claim_name(i, name, sizeof name);
    if (map_get(&i->api->running_keys, claim) == i)
        map_remove(&i->api->running_keys, claim);
    mem_free(i->body);
    mem_free(i);
    return NULL;
}

struct idem *idem_copy(const struct idem *i)
{
    struct idem *c = xmemdup(i, sizeof *i);

    c->waiter = (struct waiter){0};
    c->body = NULL;
    return c;
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
        i->secret = rows_is_null(rows, 3);
        i->body = i->secret ? NULL : str_dup(rows_text(rows, 3));
    }
    rows_end(rows);
    return r < 0 ? -1 : 0;
}

static void replay(struct request *r, const struct idem *i)
{
    struct err e = {0};

    if (!i->same) {
        err_set(&e, ERR_CONFLICT, 0, "Idempotency-Key '%s' was used for another request", i->key);
        err_hint(&e, "take a new key for each new request");
    } else if (i->secret) {
        err_set(
            &e, ERR_CONFLICT, 0,
            "this request was carried out before, and its reply held a secret that is not kept");
        err_hint(&e, "if that reply is lost: revoke %s and create anew with a new key", i->object);
    } else {
        xchg_add_header(r->x, "idempotency-replayed", STR("true"));
        request_send(r, i->status, "application/json", str_of(i->body));
        return;
    }
    (void)snprintf(e.object, sizeof e.object, "%s", i->object);
    request_fail(r, &e);
}

static void looked_up(void *arg, const struct err *e)
{
    AUTO(idem_free) struct idem *i = arg;
    struct request *r = waiter_end(&i->waiter);

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
    } else if (i->found) {
        replay(r, i);
    } else {
        r->who.token = NULL; /* it may be revoked meanwhile */
        r->idem = TAKE(i);
        r->idem->run(r);
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

void idem_run(struct request *r, struct str body, void (*run)(struct request *r))
{
    struct str key = http_req_header(xchg_req(r->x), "idempotency-key");
    AUTO(idem_free) struct idem *i = NULL;
    char name[sizeof i->actor + sizeof i->key + 128];
    struct err e = {0};

    if (!key.p || !r->op->creates) {
        run(r);
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
    i->api = r->api;
    i->op = r->op->name;
    i->run = run;
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
    request_wait(r, &i->waiter);
    store_read(r->api->c.store, look_up, looked_up, TAKE(i));
}
