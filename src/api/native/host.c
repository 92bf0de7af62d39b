/* host: hosts of virtual machines: list, get, drain. */
#include "core/sandbox/host.h"

#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "base/mem.h"
#include "ops/host.h"
#include "proto/json.h"

static void write_host(struct jw *w, const struct host_info *i)
{
    jw_object(w);
    jw_kc(w, "name", i->conf->name);
    jw_kc(w, "runtime", i->runtime);
    jw_kc(w, "uri", i->conf->uri);
    jw_kc(w, "network", i->conf->network);
    jw_kc(w, "state", op_host_states[i->state]);
    jw_ktext(w, "reason", i->reason);
    jw_ktime(w, "since", i->since_ms);
    jw_kbool(w, "drained", i->drained);
    jw_kint(w, "machines", i->machines);
    jw_kint(w, "running", i->has.running);
    jw_kint(w, "cpus", i->cpus_max);
    jw_kint(w, "cpus_used", i->cpus_used);
    jw_kint(w, "memory_bytes", i->memory_max);
    jw_kint(w, "memory_used_bytes", i->memory_used);
    jw_kint(w, "memory_free_bytes", i->has.memory_free_bytes);
    jw_kint(w, "disk_bytes", i->has.disk_bytes);
    jw_kint(w, "disk_free_bytes", i->has.disk_free_bytes);
    jw_ktext(w, "accel", str_of(i->has.accel ? i->has.accel : ""));
    jw_ktext(w, "hostname", str_of(i->has.name));
    jw_ktext(w, "version", str_of(i->has.version));
    jw_object_end(w);
}

static void send_host(struct request *r, struct str name)
{
    struct host_info i;
    struct err e = {0};
    struct jw w;

    if (host_find(r->api->c.sandboxes, name, &i, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    w = request_json(r);
    write_host(&w, &i);
    request_send_json(r, 0);
}

void host_list_run(struct request *r)
{
    const struct host_list_in *in = r->in;
    struct jw w = request_json(r);
    struct host_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "hosts", STR(""), in->limit);
    for (size_t n = 0; !l.more && host_next(r->api->c.sandboxes, n, &i); n++)
        if (reply_list_take(&l, str_of(i.conf->name)))
            write_host(&w, &i);
    reply_list_end(&l);
    request_send_json(r, 0);
}

void host_get_run(struct request *r)
{
    const struct host_id_in *in = r->in;

    send_host(r, in->name);
}

struct drain_job {
    struct waiter waiter;
};

static void host_drained(void *arg, const struct err *e)
{
    AUTO(mem_free) struct drain_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r)
        send_host(r, ((const struct host_drain_in *)r->in)->name);
}

void host_drain_run(struct request *r)
{
    const struct host_drain_in *in = r->in;
    struct drain_job *j = xzalloc(sizeof *j);
    struct err e = {0};

    if (host_drain(r->api->c.sandboxes, in->name, !in->off, &r->who, host_drained, j, &e) < 0) {
        mem_free(j);
        request_fail(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}
