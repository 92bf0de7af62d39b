/* stats: resource use of one sandbox, and of all. */
#include "api/native/handlers.h"
#include "api/share/meter.h"
#include "api/share/sandbox.h"
#include "base/mem.h"
#include "ops/sandbox.h"

struct stats_job {
    struct waiter waiter;
    char id[ID_SIZE];
};

static void stats_measured(void *arg, const struct driver_stats *s, const struct err *e)
{
    AUTO(mem_free) struct stats_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    meter_write_stats(&w, j->id, s);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void sandbox_stats_run(struct request *r)
{
    const struct sandbox_id_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct sandbox_info i;
    struct stats_job *j;

    if (!s)
        return;
    sandbox_info(s, &i);
    j = xzalloc(sizeof *j);
    (void)snprintf(j->id, sizeof j->id, "%s", i.id);
    request_wait(r, &j->waiter);
    sandbox_stats(s, stats_measured, j);
}

void sandbox_stats_list_run(struct request *r)
{
    const struct sandbox_stats_list_in *in = r->in;
    bool head = str_eq_c(xchg_req(r->x)->method, "HEAD");

    if (!head && (in->follow || accept_prefers(r->x, "text/event-stream")))
        meter_stream(r);
    else
        meter_reply(r);
}
