/* named: replies to requests about named objects. */
#include "api/share/named.h"

#include "api/idempotency.h"
#include "api/share/sandbox.h"
#include "base/mem.h"

struct named_job {
    struct waiter waiter;
    struct principal by;
    named_writer write;
};

void named_refuse(struct request *r, const struct err *e)
{
    if (e->code == ERR_FORBIDDEN)
        request_refuse(r, e);
    else
        request_fail(r, e);
}

void named_reply(struct request *r, struct named *n, named_writer write)
{
    struct jw w = request_json(r);

    write(&w, n);
    request_send_json(r, 0);
}

static void named_ended(void *arg, struct named *n, const struct err *e)
{
    AUTO(mem_free) struct named_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r && j->write)
        named_reply(r, n, j->write);
    else if (r)
        request_send_empty(r);
}

/* --- the request's Idempotency-Key, in the transaction that creates the object --- */

struct named_key {
    struct idem *idem;
    named_writer write;
    int status;
    char object[ID_SIZE + 24];
    struct buf reply;
};

static void key_ready(void *arg, const void *object)
{
    struct named *n = (void *)(uintptr_t)object; /* writers change nothing */
    struct named_key *k = arg;
    struct jw w = {.to = &k->reply};

    (void)snprintf(k->object, sizeof k->object, "%s/%s", n->list->kind->noun, n->id);
    k->write(&w, n);
    buf_add_char(&k->reply, '\n');
}

static int key_write(struct store_tx *tx, void *arg, struct err *e)
{
    const struct named_key *k = arg;

    return idem_record(tx, k->idem, k->object, k->status, buf_str(&k->reply), e);
}

static void key_free(void *arg)
{
    struct named_key *k = arg;

    idem_unref(k->idem);
    buf_done(&k->reply);
    mem_free(k);
}

static void add_key(struct request *r, named_writer write, struct named_call *c)
{
    static const struct tx_hook hook = {key_ready, key_write, key_free};
    struct named_key *k = xzalloc(sizeof *k);

    k->idem = TAKE(r->idem);
    k->write = write;
    k->status = r->op->status ? r->op->status : 200;
    c->hook = &hook;
    c->hook_arg = k;
}

struct named_call named_wait(struct request *r, named_writer write)
{
    struct named_job *j = xzalloc(sizeof *j);
    struct named_call c = {.by = &j->by, .done = named_ended, .arg = j};

    j->by = request_who(r);
    j->write = write;
    if (r->idem)
        add_key(r, write, &c);
    return c;
}

void named_reply_later(struct request *r, const struct named_call *c, int result,
                       const struct err *e)
{
    struct named_job *j = c->arg;

    if (result == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    if (c->hook)
        c->hook->free(c->hook_arg);
    mem_free(j);
    named_refuse(r, e);
}
