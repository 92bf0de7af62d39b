/* team_webhook: the native operations on webhooks. */
#include "api/team/team_op.h"
#include "api/team/webhooks.h"
#include "core/notify/webhook.h"
#include "ops/webhook.h"

static void write_webhook(struct jw *w, const struct webhook *h, const char *secret)
{
    jw_object(w);
    jw_kstr(w, "id", h->id);
    jw_ktext(w, "url", h->url);
    jw_ktext(w, "command", h->command);
    jw_key(w, "allow");
    team_write_tags(w, h->allow);
    jw_key(w, "types");
    team_write_tags(w, h->types);
    jw_kint(w, "done_seq", h->done_seq);
    jw_kstr(w, "created_by", h->created_by);
    jw_ktime(w, "created_at", h->created_ms);
    if (secret)
        jw_kc(w, "secret", secret);
    jw_object_end(w);
}

/* The loop's thread knows the settings, the key and the newest event. */
static int prepare_add(struct team_call *c, struct request *r, struct err *e)
{
    const struct webhook_add_in *in = c->in;

    if ((in->url.n > 0) == (in->command.n > 0))
        return err_set(e, ERR_INVALID, 0, "a webhook needs 'url' or 'command', and not both");
    if (in->url.n > 0 ? webhooks_check_url(r->api, in->url, e) < 0
                      : webhooks_check_command(in->types.n, e) < 0)
        return -1;
    c->key = arena_str(&c->arena, webhooks_key(r->api));
    c->head_seq = events_head(r->api->c.events, NULL);
    return 0;
}

static int webhook_add_op(struct team_call *c, struct err *e)
{
    const struct webhook_add_in *in = c->in;
    struct webhook h = {.url = in->url.p ? in->url : STR(""),
                        .command = in->command.p ? in->command : STR(""),
                        .done_seq = c->head_seq};
    char secret[WEBHOOK_SECRET];

    if (team_list_tags(c, in->types, &h.types, e) < 0 ||
        team_list_tags(c, in->allow, &h.allow, e) < 0 || webhook_add(&c->t, &h, e) < 0)
        return -1;
    webhook_secret(c->key, h.id, secret);
    write_webhook(&c->w, &h, h.url.n > 0 ? secret : "");
    return 0;
}

static int webhook_list_op(struct team_call *c, struct err *e)
{
    const struct webhook_list_in *in = c->in;
    struct webhook_list all;

    if (webhook_all(&c->t, &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "webhooks", in->cursor, in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (reply_list_take(&c->page, all.v[i].id))
            write_webhook(&c->w, &all.v[i], NULL);
    reply_list_end(&c->page);
    return 0;
}

static int webhook_remove_op(struct team_call *c, struct err *e)
{
    const struct webhook_id_in *in = c->in;

    return webhook_remove(&c->t, in->id, e);
}

static int webhook_deliveries_op(struct team_call *c, struct err *e)
{
    const struct webhook_deliveries_in *in = c->in;
    struct delivery_list all;
    struct webhook h;

    if (webhook_need(&c->t, in->id, &h, e) < 0 ||
        webhook_deliveries(&c->t, in->id, in->state, in->limit, &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "deliveries", STR(""), in->limit);
    for (size_t i = 0; i < all.n; i++) {
        const struct delivery *d = &all.v[i];

        (void)reply_list_take(&c->page, d->type);
        jw_object(&c->w);
        jw_kint(&c->w, "seq", d->seq);
        jw_kstr(&c->w, "type", d->type);
        jw_kc(&c->w, "state", op_delivery_states[d->state]);
        jw_kint(&c->w, "attempts", d->attempts);
        jw_kint(&c->w, "status", d->status);
        jw_kstr(&c->w, "error", d->error);
        jw_kstr(&c->w, "output", d->output);
        jw_ktime(&c->w, "at", d->at_ms);
        jw_object_end(&c->w);
    }
    reply_list_end(&c->page);
    return 0;
}

const struct team_op team_webhook_ops[] = {
    {&op_webhook_add, TEAM_DURABLE, webhook_add_op, .prepare = prepare_add},
    {&op_webhook_list, TEAM_READ, webhook_list_op},
    {&op_webhook_remove, TEAM_DURABLE, webhook_remove_op},
    {&op_webhook_deliveries, TEAM_READ, webhook_deliveries_op},
};
const size_t team_webhook_op_count = ARRAY_LEN(team_webhook_ops);
