/* login: login codes, sessions, logout. */
#include "api/native/login.h"

#include "api/native/handlers.h"
#include "base/mem.h"
#include "ops/login.h"
#include "ops/token.h"

/* --- login --- */

struct login_job {
    struct waiter waiter;
};

static void set_cookie(struct request *r, const char *text, int64_t max_age_s)
{
    const char *secure = xchg_peer(r->x)->tls ? "; Secure" : "";

    xchg_add_header(r->x, "set-cookie",
                    str_of(arena_printf(xchg_arena(r->x),
                                        OP_COOKIE "=%s; Path=/; HttpOnly; SameSite=Strict; "
                                                  "Max-Age=%lld%s",
                                        text, (long long)max_age_s, secure)));
    xchg_add_header(r->x, "cache-control", STR("no-store"));
}

void login_failed(struct request *r, const struct err *e)
{
    struct auth_view v = request_view(r);

    if (e->code != ERR_UNAUTHENTICATED) {
        request_fail(r, e);
        return;
    }
    auth_failed(&r->api->auth, &v);
    request_refuse(r, e);
}

void login_begin_session(struct request *r, const struct token *t, const char *text)
{
    (void)snprintf(r->who.actor, sizeof r->who.actor, "token/%s", t->id);
    request_audit(r, "login", NULL, 200);
    set_cookie(r, text, (t->expires_ms - t->created_ms) / 1000);
}

static void logged_in(void *arg, const struct token *t, const char *text, const struct err *e)
{
    struct login_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    mem_free(j);
    if (!r)
        return;
    if (e->code != ERR_NONE) {
        login_failed(r, e);
        return;
    }
    login_begin_session(r, t, text);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "role", role_name(t->role));
    jw_object_end(&w);
    request_send_json(r, 0);
}

void login_run(struct request *r)
{
    const struct login_in *in = r->in;
    struct auth_view v = request_view(r);
    struct login_job *j;
    int64_t retry_ms;
    struct err e = {0};

    if (auth_throttle(&r->api->auth, &v, &retry_ms, &e) < 0) {
        request_refuse_for(r, retry_ms, &e);
        return;
    }
    j = xzalloc(sizeof *j);
    request_wait(r, &j->waiter);
    identity_login(r->api->c.identity, in->code, logged_in, j);
}

/* --- login codes --- */

static bool is_within(enum role inner, enum role outer)
{
    for (int p = 0; p < PERM_COUNT; p++)
        if (role_may(inner, (enum perm)p) && !role_may(outer, (enum perm)p))
            return false;
    return true;
}

static int choose_role(const struct request *r, enum role *ret, struct err *e)
{
    const struct login_code_in *in = r->in;
    enum role role = r->who.role;

    if (in->role >= 0 && !role_parse(str_of(op_roles[in->role]), &role))
        return err_set(e, ERR_INVALID, 0, "field 'role' is not a role");
    if (role == ROLE_AGENT)
        return err_set(e, ERR_INVALID, 0, "field 'role': an agent cannot log in");
    if (!is_within(role, r->who.role)) {
        err_set(e, ERR_FORBIDDEN, 0, "role %s may not create a login for role %s",
                role_name(r->who.role), role_name(role));
        return err_hint(e, "request your own role or one with fewer permissions");
    }
    *ret = role;
    return 0;
}

void login_code_run(struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    char code[TOKEN_TEXT];
    enum role role = ROLE_NONE;
    struct err e = {0};
    struct jw w;

    if (choose_role(r, &role, &e) < 0) {
        if (e.code == ERR_FORBIDDEN)
            request_refuse(r, &e);
        else
            request_fail(r, &e);
        return;
    }
    identity_login_code(r->api->c.identity, role, r->who.token, code);
    xchg_add_header(r->x, "cache-control", STR("no-store"));
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "url",
          arena_printf(xchg_arena(r->x), STR_FMT "://" STR_FMT "/#login=%s", STR_ARG(req->scheme),
                       STR_ARG(req->authority), code));
    jw_kc(&w, "code", code);
    jw_kc(&w, "role", role_name(role));
    jw_object_end(&w);
    request_send_json(r, 0);
    mem_wipe(code, sizeof code);
}

/* --- logout --- */

static void logged_out(void *arg, const struct err *e)
{
    struct login_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    mem_free(j);
    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
        return;
    }
    set_cookie(r, "", 0);
    request_send_empty(r);
}

void logout_run(struct request *r)
{
    const struct token *t = r->who.token;
    struct login_job *j;
    struct err e = {0};

    if (!t || !t->session) {
        err_set(&e, ERR_CONFLICT, 0, "this request has no session to end");
        err_hint(&e, "holt token revoke ends a token");
        request_fail(r, &e);
        return;
    }
    j = xzalloc(sizeof *j);
    request_wait(r, &j->waiter);
    identity_revoke(r->api->c.identity, str_of(t->id), &r->who, logged_out, j);
}
