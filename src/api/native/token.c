/* token: tokens: create, list, get, revoke. */
#include "ops/token.h"
#include "api/idempotency.h"
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/event_stream.h"
#include "api/share/revocable_stream.h"
#include "base/mem.h"

static void write_token(struct jw *w, const struct token *t, const char *text)
{
    jw_object(w);
    jw_kc(w, "id", t->id);
    jw_kc(w, "name", t->name);
    jw_kc(w, "role", role_name(t->role));
    jw_kc(w, "agent", t->agent);
    jw_kc(w, "tenant", t->tenant[0] ? t->tenant : NULL);
    jw_kc(w, "person", t->person[0] ? t->person : NULL);
    jw_kbool(w, "content", t->content);
    jw_ktime(w, "created_at", t->created_ms);
    jw_ktime(w, "expires_at", t->expires_ms);
    jw_ktime(w, "last_used_at", t->last_used_ms);
    if (text)
        jw_kc(w, "token", text);
    jw_object_end(w);
}

/* --- create --- */

struct create_job {
    struct waiter waiter;
    struct idem *idem; /* or NULL */
};

static int remember_key(struct store_tx *tx, void *arg, const char *id, struct err *e)
{
    const struct create_job *j = arg;
    char object[ID_SIZE + 8];

    if (!j->idem)
        return 0;
    (void)snprintf(object, sizeof object, "token/%s", id);
    return idem_record(tx, j->idem, object, 201, (struct str){0}, e);
}

static void token_created(void *arg, const struct token *t, const char *text, const struct err *e)
{
    struct create_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    idem_unref(j->idem);
    mem_free(j);
    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
        return;
    }
    w = request_json(r);
    write_token(&w, t, text);
    /* A secret must not be cached on its way. */
    xchg_add_header(r->x, "cache-control", STR("no-store"));
    request_send_json(r, 0);
    mem_wipe(buf_data(&r->api->scratch), buf_len(&r->api->scratch));
}

void token_create_run(struct request *r)
{
    const struct token_create_in *in = r->in;
    struct create_job *j = xzalloc(sizeof *j);
    struct token_spec spec = {
        .name = in->name,
        .agent = in->agent,
        .tenant = in->tenant,
        .person = in->person,
        .content = in->content,
        .ttl_ms = in->ttl_ms == OP_ABSENT ? 0 : in->ttl_ms,
        .tx_hook = remember_key,
        .tx_hook_arg = j,
    };
    bool known = role_parse(str_of(op_roles[in->role]), &spec.role);

    assert(known); /* op_roles and role_name agree: a test checks it */
    j->idem = TAKE(r->idem);
    request_wait(r, &j->waiter);
    identity_create(r->api->c.identity, &spec, &r->who, token_created, j);
}

/* --- list, get --- */

void token_list_run(struct request *r)
{
    const struct token_list_in *in = r->in;
    struct identity *all = r->api->c.identity;
    struct jw w = request_json(r);
    struct reply_list l;

    reply_list_begin(&l, &w, "tokens", STR(""), in->limit);
    for (const struct token *t = identity_next(all, in->cursor); t && !l.more;
         t = identity_next(all, str_of(t->id)))
        if (reply_list_take(&l, str_of(t->id)))
            write_token(&w, t, NULL);
    reply_list_end(&l);
    request_send_json(r, 0);
}

void token_get_run(struct request *r)
{
    const struct token_id_in *in = r->in;
    const struct token *t = identity_get(r->api->c.identity, in->id);
    struct err e = {0};
    struct jw w;

    if (!t) {
        err_set(&e, ERR_NOT_FOUND, 0, "there is no token '" STR_FMT "'", STR_ARG(in->id));
        err_hint(&e, "see the ids: holt token ls");
        request_fail(r, &e);
        return;
    }
    w = request_json(r);
    write_token(&w, t, NULL);
    request_send_json(r, 0);
}

void token_self_run(struct request *r)
{
    const struct token *t = r->who.token;
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "actor", r->who.actor);
    jw_kc(&w, "role", role_name(r->who.role));
    jw_kc(&w, "id", t ? t->id : NULL);
    jw_kc(&w, "name", t ? t->name : NULL);
    jw_kc(&w, "agent", t ? t->agent : NULL);
    jw_kc(&w, "tenant", r->who.tenant[0] ? r->who.tenant : NULL);
    jw_kc(&w, "person", r->who.person[0] ? r->who.person : NULL);
    jw_ktime(&w, "expires_at", t ? t->expires_ms : 0);
    jw_key(&w, "permissions");
    jw_array(&w);
    for (int p = 0; p < PERM_COUNT; p++)
        if (principal_may(&r->who, (enum perm)p))
            jw_c(&w, perm_name((enum perm)p));
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 0);
}

/* --- revoke --- */

void token_revoke_run(struct request *r)
{
    const struct token_id_in *in = r->in;
    struct api *a = r->api;

    identity_revoke(a->c.identity, in->id, &r->who, request_ended, request_wait_end(r));
    event_streams_check(a); /* effective at once: also for streams */
    revocable_streams_check(a);
}
