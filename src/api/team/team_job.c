/* team_job: a request as work of the team on the store's thread. */
#include "api/team/team_job.h"

#include "api/idempotency.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>

bool team_is_refusal(const struct err *e)
{
    return e->code == ERR_FORBIDDEN || e->code == ERR_LIMIT || e->code == ERR_PRECONDITION ||
           e->code == ERR_CONFLICT;
}

void team_refused(struct request *r, const struct team *t, const struct err *e)
{
    if (team_is_refusal(e) || (t->blocked && e->code == ERR_INVALID))
        request_audit(r, "request.refused", NULL, err_table[e->code].http);
    if (e->code == ERR_LIMIT && t->retry_ms > 0)
        xchg_add_header(
            r->x, "retry-after",
            str_of(arena_printf(xchg_arena(r->x), "%" PRId64, (t->retry_ms + 999) / 1000)));
}

static void token_gone(void *arg, const struct err *e)
{
    (void)arg, (void)e; /* it is refused from now on in any case */
}

/* Revokes the tokens made at registration of an agent, or all of its tokens; but not `keep`. */
static void revoke_tokens(struct team_job *j, struct str agent, const char *name, const char *keep)
{
    struct identity *i = j->api->c.identity;
    const struct token *t = identity_next(i, STR(""));

    while (t) {
        char id[ID_SIZE];

        memcpy(id, t->id, sizeof id);
        if (t->agent && str_eq_c(agent, t->agent) && strcmp(id, keep) != 0 &&
            (!name || strcmp(t->name, name) == 0))
            identity_revoke(i, str_of(id), &j->by, token_gone, NULL);
        t = identity_next(i, str_of(id));
    }
}

static void box_stopped(void *arg, struct sandbox *s, const struct err *e)
{
    struct sandbox_info i = {0};

    (void)arg;
    if (e->code == ERR_NONE)
        return;
    if (s)
        sandbox_info(s, &i);
    log_warn("the sandbox of a revoked agent could not be stopped",
             LOG_C("sandbox", i.id ? i.id : "?"), LOG_E(e));
}

static void stop_boxes(struct api *a, struct str agent, const struct principal *by)
{
    struct sandbox *s = sandbox_next(a->c.sandboxes, &principal_system, STR(""));

    while (s) {
        struct sandbox_info i;
        char id[ID_SIZE];

        sandbox_info(s, &i);
        (void)snprintf(id, sizeof id, "%s", i.id);
        if (str_eq(api_agent_of(a, s), agent) && i.state != SANDBOX_STOPPED &&
            i.state != SANDBOX_FAILED)
            sandbox_stop(s, 0, true, by, box_stopped, NULL);
        s = sandbox_next(a->c.sandboxes, &principal_system, str_of(id));
    }
}

static int remember_key(struct store_tx *tx, const struct team_job *j, struct err *e)
{
    AUTO(buf_done) struct buf reply = {0};

    buf_printf(&reply, STR_FMT "\n", STR_ARG(buf_str(j->reply)));
    return idem_record(tx, j->idem, j->object, j->status ? j->status : 200,
                       j->token_given ? (struct str){0} : buf_str(&reply), e);
}

static int job_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct team_job *j = arg;

    team_enter(j->t, tx);
    buf_clear(j->reply);
    if (j->run(j, e) < 0)
        return -1;
    return j->idem ? remember_key(tx, j, e) : 0;
}

static void job_worked(void *arg, const struct err *e)
{
    struct team_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (e->code == ERR_NONE)
        team_settle(j->api, j->t);
    if (e->code == ERR_NONE && j->t->beat.n > 0)
        team_beat(j->api, j->t);
    else if (j->t->unnamed)
        team_heard(j->api, j->t->acted);
    if (e->code == ERR_NONE && j->take_tokens.p && team_is_person(j->t))
        revoke_tokens(j, j->take_tokens, NULL, "");
    if (e->code == ERR_NONE && j->stop_boxes.n > 0)
        stop_boxes(j->api, j->stop_boxes, &j->by);
    if (r)
        j->answer(r, j, e);
    idem_unref(j->idem);
    j->free(j);
}

static int work_with_token(struct store_tx *tx, void *arg, const char *id, struct err *e)
{
    (void)id;
    return job_work(tx, arg, e);
}

static void token_made_for(void *arg, const struct token *t, const char *text, const struct err *e)
{
    struct team_job *j = arg;

    if (e->code == ERR_NONE) { /* the previous one is lost, or should be */
        AUTO(mem_free) char *name = xstrdup(t->name);
        char id[ID_SIZE];

        memcpy(id, t->id, sizeof id);
        revoke_tokens(j, j->give_token, name, id);
    }
    if (e->code == ERR_NONE && j->waiter.r) {
        /* Appends to the object's members; a token needs no escaping. */
        buf_truncate(j->reply, buf_len(j->reply) - 1);
        buf_printf(j->reply, ",\"token\":\"%s\"}", text);
        xchg_add_header(j->waiter.r->x, "cache-control", STR("no-store"));
    }
    job_worked(j, e);
}

/* With authentication on, registering an agent returns a token that can act only as that agent. */
static bool start_with_token(struct team_job *j, struct request *r)
{
    char label[TEAM_NAME_MAX + 8];

    if (r->how == AUTH_IMPLIED || !team_is_person(j->t) || j->give_token.n == 0 ||
        j->give_token.n > TEAM_NAME_MAX)
        return false;
    j->token_given = true;
    (void)snprintf(label, sizeof label, "agent " STR_FMT, STR_ARG(j->give_token));
    identity_create(r->api->c.identity,
                    &(struct token_spec){.name = str_of(label),
                                         .role = ROLE_AGENT,
                                         .agent = j->give_token,
                                         .tx_hook = work_with_token,
                                         .tx_hook_arg = j},
                    &r->who, token_made_for, j);
    return true;
}

void team_job_start(struct team_job *j, struct request *r, enum team_class class)
{
    struct store *s = r->api->c.store;

    j->api = r->api;
    j->by = r->who;
    j->by.token = NULL;
    j->idem = TAKE(r->idem);
    request_wait(r, &j->waiter);
    if (start_with_token(j, r))
        return;
    if (class == TEAM_READ)
        store_read(s, job_work, job_worked, j);
    else
        store_write(s, class == TEAM_DURABLE ? STORE_DURABLE : STORE_RELAXED, job_work, job_worked,
                    j);
}
