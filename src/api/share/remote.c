/* remote: one change of a secret: checked, written, recorded, told. */
#include "api/share/remote.h"

#include "api/share/sandbox.h"
#include "base/mem.h"
#include "core/remote/remote.h"

#include <stdio.h>

struct change {
    struct waiter waiter;
    struct api *api;
    const char *event;
    char agent[REMOTE_ID_MAX + 1];
    char made[REMOTE_SECRET_TEXT]; /* "": none to show */
    char actor[64];
    remote_secret_told told;
};

/* --- the change --- */

static struct change *change_new(struct request *r, struct str agent, const char *event,
                                 remote_secret_told told)
{
    const struct principal by = request_who(r);
    struct change *c = xzalloc(sizeof *c);

    c->api = r->api;
    c->event = event;
    c->told = told;
    memcpy(c->agent, agent.p, size_min(agent.n, REMOTE_ID_MAX));
    memcpy(c->actor, by.actor, sizeof c->actor);
    return c;
}

static void change_free(struct change *c)
{
    mem_wipe(c->made, sizeof c->made);
    mem_free(c);
}

static void change_end(struct change *c, const struct err *e)
{
    struct request *r = waiter_end(&c->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r)
        c->told(r, str_of(c->agent), c->made[0] ? c->made : NULL);
    change_free(c);
}

static int record_work(struct store_tx *tx, void *arg, struct err *e)
{
    const struct change *c = arg;
    AUTO(mem_free) char *object = xasprintf("remote-secret/%s", c->agent);

    (void)e;
    tx_event(tx,
             &(struct event_spec){
                 .type = c->event, .object = object, .actor = c->actor, .data = STR("{}")},
             NULL);
    return 0;
}

/* The change holds, whatever becomes of its event. */
static void recorded(void *arg, const struct err *e)
{
    struct change *c = arg;
    const struct err none = {0};

    if (e->code != ERR_NONE)
        log_warn("an event could not be written", LOG_C("type", c->event), LOG_C("agent", c->agent),
                 LOG_E(e));
    change_end(c, &none);
}

/* It is on disk: the reply waits for its event too. */
static void change_saved(void *arg, const struct err *e)
{
    struct change *c = arg;

    if (e->code != ERR_NONE)
        change_end(c, e);
    else
        store_write(c->api->c.store, STORE_RELAXED, record_work, recorded, c);
}

static void change_begin(struct request *r, struct change *c, int begun, const struct err *e)
{
    if (begun == 0) {
        request_wait(r, &c->waiter);
        return;
    }
    change_free(c);
    if (e->code == ERR_FORBIDDEN)
        request_refuse(r, e);
    else
        request_fail(r, e);
}

static bool make_or_take(struct change *c, struct str secret, char to[REMOTE_SECRET_TEXT])
{
    if (secret.n > 0) {
        (void)snprintf(to, REMOTE_SECRET_TEXT, "%.*s", (int)secret.n, secret.p);
        return remote_secret_is_valid(secret);
    }
    remote_secret_make(to);
    memcpy(c->made, to, REMOTE_SECRET_TEXT);
    return true;
}

void remote_secret_add(struct request *r, struct str agent, struct str secret,
                       remote_secret_told told)
{
    struct remote_secrets *all = r->api->c.remote_secrets;
    const struct principal by = request_who(r);
    struct change *c = change_new(r, agent, "remote.secret_added", told);
    char text[REMOTE_SECRET_TEXT];
    struct remote_secret_info i;
    struct err e = {0};
    int begun = -1;

    if (remote_secret_get(all, &principal_system, agent, &i)) {
        (void)err_set(&e, ERR_CONFLICT, 0, "agent '" STR_FMT "' has a secret already",
                      (int)size_min(agent.n, REMOTE_ID_MAX), agent.p);
        (void)err_hint(&e, "replace it: holt remote rotate");
    } else if (!make_or_take(c, secret, text)) {
        (void)err_set(&e, ERR_INVALID, 0, "a secret is 64 hex digits");
    } else {
        begun = remote_secret_set(all, agent, str_of(text), &by, change_saved, c, &e);
    }
    mem_wipe(text, sizeof text);
    change_begin(r, c, begun, &e);
}

void remote_secret_renew(struct request *r, struct str agent, int64_t grace_ms,
                         remote_secret_told told)
{
    struct change *c = change_new(r, agent, "remote.secret_rotated", told);
    char text[REMOTE_SECRET_TEXT];
    struct err e = {0};
    int begun;

    (void)make_or_take(c, STR(""), text);
    begun = remote_secret_rotate(r->api->c.remote_secrets, &r->who, agent, str_of(text), grace_ms,
                                 change_saved, c, &e);
    mem_wipe(text, sizeof text);
    change_begin(r, c, begun, &e);
}

void remote_secret_revoke(struct request *r, struct str agent, remote_secret_told told)
{
    struct change *c = change_new(r, agent, "remote.secret_revoked", told);
    struct remote *remote;
    struct err e = {0}, why = {0};
    int begun = remote_secret_remove(r->api->c.remote_secrets, &r->who, agent, change_saved, c, &e);

    remote = begun == 0 ? remotes_find(r->api->c.remotes, agent) : NULL;
    if (remote) {
        (void)err_set(&why, ERR_UNAUTHENTICATED, 0, "the secret of this agent was revoked");
        remote_cut(remote, &why);
    }
    change_begin(r, c, begun, &e);
}
