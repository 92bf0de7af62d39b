/* stats: resource use of a sandbox. */
#include "api/native/handlers.h"
#include "api/share/sandbox.h"
#include "base/mem.h"

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
    jw_kc(&w, "id", j->id);
    jw_kint(&w, "memory_bytes", s->memory_bytes);
    jw_kint(&w, "memory_peak_bytes", s->memory_peak_bytes);
    jw_kint(&w, "cpu_us", s->cpu_us);
    jw_kint(&w, "pids", s->pids);
    jw_kint(&w, "oom_kills", s->oom_kills);
    jw_kint(&w, "disk_bytes", s->disk_bytes);
    jw_kint(&w, "net_rx_bytes", s->net_rx_bytes);
    jw_kint(&w, "net_tx_bytes", s->net_tx_bytes);
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
