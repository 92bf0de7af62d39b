/* rule: lasting answers to network questions: list, remove. */
#include "api/native/handlers.h"
#include "core/ask/ask.h"
#include "ops/egress.h"

static void text_or_null(struct jw *w, const char *key, struct str s)
{
    jw_key(w, key);
    if (s.n > 0)
        jw_str(w, s);
    else
        jw_null(w);
}

static void write_rule(struct jw *w, const struct egress_rule *r)
{
    jw_object(w);
    jw_kstr(w, "id", r->id);
    jw_kbool(w, "allow", r->allow);
    jw_kstr(w, "host", r->host);
    jw_kint(w, "port", r->port);
    text_or_null(w, "sandbox", r->sandbox);
    text_or_null(w, "tenant", r->tenant);
    jw_kstr(w, "created_by", r->created_by);
    jw_ktime(w, "created_at", r->created_ms);
    jw_object_end(w);
}

void rule_list_run(struct request *r)
{
    const struct rule_list_in *in = r->in;
    const struct egress_rule *rule = asks_rule_next(r->api->c.asks, in->cursor);
    struct jw w = request_json(r);
    struct str last = {0};

    jw_object(&w);
    jw_key(&w, "rules");
    jw_array(&w);
    for (int64_t n = 0; rule && n < in->limit; n++) {
        write_rule(&w, rule);
        last = rule->id;
        rule = asks_rule_next(r->api->c.asks, last);
    }
    jw_array_end(&w);
    text_or_null(&w, "cursor", rule ? last : STR(""));
    jw_object_end(&w);
    request_send_json(r, 0);
}

void rule_remove_run(struct request *r)
{
    const struct rule_id_in *in = r->in;

    asks_rule_remove(r->api->c.asks, in->id, &r->who, request_ended, request_wait_end(r));
}
