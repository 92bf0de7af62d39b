/* named: replies to requests about named objects. */
#include "api/share/named.h"

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

struct named_call named_wait(struct request *r, named_writer write)
{
    struct named_job *j = xzalloc(sizeof *j);

    j->by = request_who(r);
    j->write = write;
    return (struct named_call){&j->by, named_ended, j};
}

void named_reply_later(struct request *r, const struct named_call *c, int result,
                       const struct err *e)
{
    struct named_job *j = c->arg;

    if (result == 0) {
        request_wait(r, &j->waiter);
        return;
    }
    mem_free(j);
    named_refuse(r, e);
}
