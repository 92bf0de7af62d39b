/* secret: /api/v1/secrets: what agents authenticate with, and what sandboxes use at the proxy. */
#include "core/network/secret.h"
#include "api/dialects/agentic/agentic.h"
#include "api/share/remote.h"
#include "base/mem.h"
#include "core/remote/remote.h"

/* --- the list: both kinds --- */

static void write_agent_secret(struct jw *w, const struct remote_secret_info *i)
{
    jw_object(w);
    jw_kc(w, "kind", "agent");
    jw_kc(w, "agent_id", i->id);
    jw_kbool(w, "rotation_pending", i->rotating);
    jw_ktime(w, "updated_at", i->updated_ms);
    jw_object_end(w);
}

static void write_binding(struct jw *w, const struct secret *s)
{
    struct secret_info i;

    secret_info(s, &i);
    jw_object(w);
    jw_kc(w, "kind", "egress");
    jw_kstr(w, "name", i.name);
    jw_key(w, "hosts");
    jw_json(w, json_object_get(i.rule, "hosts"));
    jw_ktime(w, "updated_at", i.updated_ms);
    jw_object_end(w);
}

void agentic_secrets(struct request *r)
{
    struct str kind = agentic_query(r, "kind"), after = STR("");
    struct jw w = request_json(r);
    struct remote_secret_info i;
    struct secret_info b;

    jw_object(&w);
    jw_key(&w, "secrets");
    jw_array(&w);
    while ((kind.n == 0 || str_eq_c(kind, "agent")) &&
           remote_secret_next(r->api->c.remote_secrets, &r->who, after, &i)) {
        write_agent_secret(&w, &i);
        after = str_of(i.id);
    }
    if (kind.n == 0 || str_eq_c(kind, "egress"))
        for (struct secret *s = secret_next(r->api->c.secrets, &r->who, STR("")); s;
             s = secret_next(r->api->c.secrets, &r->who, str_of(b.id))) {
            secret_info(s, &b);
            write_binding(&w, s);
        }
    jw_array_end(&w);
    jw_object_end(&w);
    request_send_json(r, 200);
}

/* --- of agents --- */

static void secret_told(struct request *r, struct str agent, const char *made)
{
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "kind", "agent");
    jw_kstr(&w, "agent_id", agent);
    if (made)
        jw_kc(&w, "secret", made);
    jw_object_end(&w);
    request_send_json(r, 201);
}

static void body_post(struct request *r, const json_t *body)
{
    struct str agent = agentic_member(body, "agent_id"), secret = agentic_member(body, "secret");
    struct remote_secret_info i;

    if (agent.n == 0)
        agentic_error(r, 422, "'agent_id' is missing");
    else if (json_is_true(json_object_get(body, "rotate")) && secret.n == 0 &&
             remote_secret_get(r->api->c.remote_secrets, &r->who, agent, &i))
        remote_secret_renew(r, agent, 0, secret_told);
    else
        remote_secret_add(r, agent, secret, secret_told);
}

void agentic_secret_create(struct request *r)
{
    agentic_collect(r, body_post);
}

static void secret_gone(struct request *r, struct str agent, const char *made)
{
    struct jw w = request_json(r);

    (void)made;
    jw_object(&w);
    jw_kbool(&w, "deleted", true);
    jw_kstr(&w, "agent_id", agent);
    jw_object_end(&w);
    request_send_json(r, 200);
}

void agentic_secret_delete(struct request *r)
{
    remote_secret_revoke(r, r->params.v[0], secret_gone);
}

static void body_delete(struct request *r, const json_t *body)
{
    struct str agent = agentic_query(r, "agent_id");

    agent = agent.n > 0 ? agent : agentic_member(body, "agent_id");
    if (agent.n == 0)
        agentic_error(r, 422, "'agent_id' is missing");
    else
        remote_secret_revoke(r, agent, secret_gone);
}

void agentic_secrets_delete(struct request *r)
{
    agentic_collect(r, body_delete);
}

/* --- rotation --- */

#define GRACE_S 300
#define GRACE_MAX_S (7 * 24 * 3600)

static int64_t grace_s(const struct request *r)
{
    int64_t s;

    if (str_parse_i64(agentic_query(r, "grace_seconds"), &s) < 0)
        return GRACE_S;
    return i64_min(i64_max(s, 0), GRACE_MAX_S);
}

/* The new one is in the reply: who asks brings it to the agent. */
static void rotated(struct request *r, struct str agent, const char *made)
{
    struct operation *o = operation_begin(r, "rotate_secret", agent);
    const struct err none = {0};
    struct jw w = request_json(r);

    jw_object(&w);
    jw_kc(&w, "operation_id", operation_id(o));
    jw_kc(&w, "status", "accepted");
    jw_kint(&w, "deadline_ms", clock_wall_ms() + 1000 * grace_s(r));
    jw_kint(&w, "grace_seconds", grace_s(r));
    jw_kc(&w, "secret", made);
    jw_object_end(&w);
    operation_end(o, NULL, &none);
    request_send_json(r, 202);
}

void agentic_agent_rotate(struct request *r)
{
    struct remote_secret_info i;

    if (!remote_secret_get(r->api->c.remote_secrets, &r->who, r->params.v[0], &i))
        agentic_error(r, 404, "Agent '" STR_FMT "' not found", STR_ARG(r->params.v[0]));
    else
        remote_secret_renew(r, r->params.v[0], 1000 * grace_s(r), rotated);
}
