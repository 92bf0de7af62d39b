/* rule: lasting answers to network questions: list, remove. */
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "core/ask/ask.h"
#include "ops/egress.h"

static void write_rule(struct jw *w, const struct egress_rule *r)
{
    jw_object(w);
    jw_kstr(w, "id", r->id);
    jw_kbool(w, "allow", r->allow);
    jw_kstr(w, "host", r->host);
    jw_kint(w, "port", r->port);
    jw_ktext(w, "sandbox", r->sandbox);
    jw_ktext(w, "tenant", r->tenant);
    jw_kstr(w, "created_by", r->created_by);
    jw_ktime(w, "created_at", r->created_ms);
    jw_object_end(w);
}

void rule_list_run(struct request *r)
{
    const struct rule_list_in *in = r->in;
    const struct asks *all = r->api->c.asks;
    struct jw w = request_json(r);
    struct reply_list l;

    reply_list_begin(&l, &w, "rules", STR(""), in->limit);
    for (const struct egress_rule *rule = asks_rule_next(all, in->cursor); rule && !l.more;
         rule = asks_rule_next(all, rule->id))
        if (reply_list_take(&l, rule->id))
            write_rule(&w, rule);
    reply_list_end(&l);
    request_send_json(r, 0);
}

void rule_remove_run(struct request *r)
{
    const struct rule_id_in *in = r->in;

    asks_rule_remove(r->api->c.asks, in->id, &r->who, request_ended, request_wait_end(r));
}
