/* oidc: the authorization code flow of OpenID Connect, and the session at its end. */
#include "api/native/oidc.h"

#include "api/native/handlers.h"
#include "api/native/login.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "net/client.h"
#include "proto/digest.h"
#include "proto/idtoken.h"
#include "proto/json.h"

#include <stdio.h>

#define COOKIE "holt_oidc"
#define PATH "/holt/v1/login/oidc"
#define LOGIN_S 600 /* from the redirect to the issuer until the way back */
#define CONNECT_MS 5000
#define TOTAL_MS 10000
#define BODY_MAX (256 * 1024)
#define CONFIG_MS (60 * 60 * 1000)
#define KEYS_MS (10 * 60 * 1000)
#define JOBS_MAX 64
#define KEY_BYTES 32
#define DERIVED 44 /* base64 of 32 bytes, and a NUL */

struct oidc {
    struct api *a;
    unsigned char key[KEY_BYTES];
    struct list jobs;
    size_t job_count;
    json_t *config, *keys;      /* NULL: not fetched */
    int64_t config_ms, keys_ms; /* clock_mono_ms: when */
    char *issuer;               /* whose they are */
};

struct oidc_job { /* one request of a browser */
    struct list link;
    struct oidc *all;
    struct waiter waiter;
    struct client *client;
    void (*fetched)(struct oidc_job *j, json_t *reply);
    struct buf body;
    int status;
    char *code; /* NULL: the beginning of a login */
    char *redirect, *id_token;
    char state[DERIVED], nonce[DERIVED], verifier[DERIVED];
    bool new_keys; /* they were fetched for this one */
};

static void job_advance(struct oidc_job *j);

/* --- the end of a job --- */

static struct request *job_end(struct oidc_job *j)
{
    struct request *r = waiter_end(&j->waiter);

    list_unlink(&j->link);
    j->all->job_count--;
    buf_wipe(&j->body);
    mem_free(j->code);
    mem_free(j->redirect);
    mem_free(j->id_token);
    mem_free(j);
    return r;
}

static void job_fail(struct oidc_job *j, const struct err *cause)
{
    struct err e = *cause;
    struct request *r = job_end(j);

    err_wrap(&e, "log in by OpenID Connect");
    if (r)
        login_failed(r, &e);
}

/* --- requests to the issuer --- */

static bool is_loopback(const struct client_url *u)
{
    return u->host && (strcmp(u->host, "127.0.0.1") == 0 || strcmp(u->host, "::1") == 0 ||
                       strcmp(u->host, "localhost") == 0);
}

static void reply_head(struct client *c, int status, const struct http_header *h, size_t count)
{
    struct oidc_job *j = client_arg(c);

    (void)h, (void)count;
    j->status = status;
}

static void reply_body(struct client *c, struct str part)
{
    struct oidc_job *j = client_arg(c);

    if (buf_len(&j->body) + part.n > BODY_MAX) {
        client_cancel(c);
        return;
    }
    buf_add_str(&j->body, part);
    client_consume(c, part.n);
}

static void reply_closed(struct client *c, const struct err *why)
{
    struct oidc_job *j = client_arg(c);
    AUTO(json_decref) json_t *v = NULL;
    struct err e = *why;

    j->client = NULL;
    if (e.code == ERR_NONE &&
        (j->status != 200 || json_read(buf_str(&j->body), &v, &e) < 0 || !json_is_object(v)))
        err_set(&e, ERR_UNAUTHENTICATED, 0, "the issuer refused: status %d", j->status);
    buf_wipe(&j->body);
    if (e.code != ERR_NONE)
        job_fail(j, &e);
    else
        j->fetched(j, v);
}

/* RFC 6749 section 2.3.1; false: a client without a secret, which PKCE protects. */
static bool put_basic(const struct config *c, struct buf *to)
{
    AUTO(buf_wipe) struct buf pair = {0};

    if (!c->oidc_client_secret || !c->oidc_client_secret[0])
        return false;
    enc_percent(&pair, str_of(c->oidc_client_id));
    buf_add_char(&pair, ':');
    enc_percent(&pair, str_of(c->oidc_client_secret));
    buf_add_c(to, "Basic ");
    enc_base64(to, buf_data(&pair), buf_len(&pair));
    return true;
}

/* form: the body of a POST; p NULL: a GET. */
static int fetch(struct oidc_job *j, const char *url, struct str form,
                 void (*fetched)(struct oidc_job *j, json_t *reply), struct err *e)
{
    static const struct client_ops ops = {
        .head = reply_head, .body = reply_body, .closed = reply_closed};
    struct api *a = j->all->a;
    AUTO(client_url_done) struct client_url u = {0};
    AUTO(mem_free) char *target = NULL;
    AUTO(buf_wipe) struct buf basic = {0};
    struct http_header h[3] = {{STR("accept"), STR("application/json")}};
    size_t n = 1;

    if (client_url_parse(url, &u, e) < 0)
        return err_wrap(e, "the issuer");
    target = TAKE(u.prefix); /* the whole path */
    u.prefix = xstrdup("");
    if (!u.host || (!u.tls && !is_loopback(&u)))
        return err_set(e, ERR_FORBIDDEN, 0, "the issuer's '%.100s' is not https", url);
    if (u.tls && !a->registry_tls && dial_tls_new(NULL, &a->registry_tls, e) < 0)
        return -1;
    if (form.p)
        h[n++] =
            (struct http_header){STR("content-type"), STR("application/x-www-form-urlencoded")};
    if (form.p && put_basic(a->c.conf, &basic))
        h[n++] = (struct http_header){STR("authorization"), buf_str(&basic)};
    j->fetched = fetched;
    j->status = 0;
    return client_start(&(struct client_request){.loop = store_loop(a->c.store),
                                                 .url = &u,
                                                 .tls = a->registry_tls,
                                                 .method = form.p ? "POST" : "GET",
                                                 .target = target[0] ? target : "/",
                                                 .headers = h,
                                                 .header_count = n,
                                                 .body = form,
                                                 .connect_ms = CONNECT_MS,
                                                 .head_ms = TOTAL_MS,
                                                 .total_ms = TOTAL_MS,
                                                 .ops = &ops,
                                                 .arg = j},
                        &j->client, e);
}

/* --- what a login in progress is made of --- */

static void derive(const struct oidc *o, const char *what, struct str cookie, char ret[DERIVED])
{
    AUTO(buf_done) struct buf label = {0}, text = {0};
    unsigned char mac[SHA256_SIZE];

    buf_printf(&label, "%s:" STR_FMT, what, STR_ARG(cookie));
    hmac_sha256(str_make(o->key, sizeof o->key), buf_str(&label), mac);
    enc_base64url(&text, mac, sizeof mac);
    (void)snprintf(ret, DERIVED, "%s", buf_cstr(&text));
}

static void derive_all(struct oidc_job *j, struct str cookie)
{
    derive(j->all, "state", cookie, j->state);
    derive(j->all, "nonce", cookie, j->nonce);
    derive(j->all, "verifier", cookie, j->verifier);
}

/* "TIME.RANDOM" */
static bool is_fresh(struct str cookie)
{
    struct str rest, time = str_cut(cookie, '.', &rest);
    int64_t begun_s, now_s = clock_wall_ms() / 1000;

    return str_parse_i64(time, &begun_s) == 0 && begun_s <= now_s && now_s - begun_s < LOGIN_S;
}

static void set_login_cookie(struct request *r, struct str value, int max_age_s)
{
    const char *secure = xchg_peer(r->x)->tls ? "; Secure" : "";

    /* Lax: the way back from the issuer is a link of another site. */
    xchg_add_header(r->x, "set-cookie",
                    str_of(arena_printf(xchg_arena(r->x),
                                        COOKIE "=" STR_FMT "; Path=" PATH
                                               "; HttpOnly; SameSite=Lax; Max-Age=%d%s",
                                        STR_ARG(value), max_age_s, secure)));
    xchg_add_header(r->x, "cache-control", STR("no-store"));
}

static void redirect_to(struct request *r, struct str where)
{
    xchg_add_header(r->x, "location", arena_str(xchg_arena(r->x), where));
    xchg_add_header(r->x, "referrer-policy", STR("no-referrer"));
    request_send(r, 303, "text/plain", STR(""));
}

/* --- the issuer's documents --- */

static const char *config_text(const struct oidc *o, const char *name)
{
    return json_string_value(json_object_get(o->config, name));
}

static void forget_documents(struct oidc *o)
{
    json_decref(o->config);
    json_decref(o->keys);
    o->config = o->keys = NULL;
}

/* Also after a change of the setting. */
static void drop_old(struct oidc *o)
{
    const char *issuer = o->a->c.conf->oidc_issuer;
    int64_t now_ms = clock_mono_ms();

    if (!o->issuer || strcmp(o->issuer, issuer) != 0 || now_ms - o->config_ms > CONFIG_MS)
        forget_documents(o);
    if (o->keys && now_ms - o->keys_ms > KEYS_MS) {
        json_decref(o->keys);
        o->keys = NULL;
    }
    mem_free(o->issuer);
    o->issuer = xstrdup(issuer);
}

/* The document must be that of the issuer in the setting, to the letter: otherwise one issuer could
 * stand in for another. */
static void config_fetched(struct oidc_job *j, json_t *reply)
{
    struct oidc *o = j->all;
    static const char *const needed[] = {"authorization_endpoint", "token_endpoint", "jwks_uri"};
    const char *issuer = json_string_value(json_object_get(reply, "issuer"));
    struct err e = {0};

    if (!issuer || strcmp(issuer, o->issuer) != 0) {
        err_set(&e, ERR_UNAUTHENTICATED, 0, "the issuer calls itself '%.100s'",
                issuer ? issuer : "");
        err_hint(&e, "the setting oidc_issuer must be the same, to the letter");
        job_fail(j, &e);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!json_is_string(json_object_get(reply, needed[i]))) {
            err_set(&e, ERR_UNAUTHENTICATED, 0, "the issuer has no '%s'", needed[i]);
            job_fail(j, &e);
            return;
        }
    json_decref(o->config);
    o->config = json_incref(reply);
    o->config_ms = clock_mono_ms();
    job_advance(j);
}

static void keys_fetched(struct oidc_job *j, json_t *reply)
{
    struct oidc *o = j->all;

    json_decref(o->keys);
    o->keys = json_incref(reply);
    o->keys_ms = clock_mono_ms();
    j->new_keys = true;
    job_advance(j);
}

static int fetch_config(struct oidc_job *j, struct err *e)
{
    struct str issuer = str_of(j->all->issuer);
    AUTO(mem_free) char *url = NULL;

    while (issuer.n > 0 && issuer.p[issuer.n - 1] == '/')
        issuer.n--;
    url = xasprintf(STR_FMT "/.well-known/openid-configuration", STR_ARG(issuer));
    return fetch(j, url, (struct str){0}, config_fetched, e);
}

/* --- the way there --- */

static void put_parameter(struct buf *to, const char *name, struct str value)
{
    buf_printf(to, "%s%s=", buf_len(to) ? "&" : "", name);
    enc_percent(to, value);
}

static void put_challenge(const struct oidc_job *j, struct buf *to)
{
    unsigned char hash[SHA256_SIZE];

    sha256(str_of(j->verifier), hash);
    enc_base64url(to, hash, sizeof hash);
}

static void send_there(struct oidc_job *j)
{
    const struct config *c = j->all->a->c.conf;
    const char *endpoint = config_text(j->all, "authorization_endpoint");
    AUTO(buf_done) struct buf query = {0}, challenge = {0}, where = {0};
    struct request *r;

    put_challenge(j, &challenge);
    put_parameter(&query, "response_type", STR("code"));
    put_parameter(&query, "client_id", str_of(c->oidc_client_id));
    put_parameter(&query, "redirect_uri", str_of(j->redirect));
    put_parameter(&query, "scope", str_of(c->oidc_scopes));
    put_parameter(&query, "state", str_of(j->state));
    put_parameter(&query, "nonce", str_of(j->nonce));
    put_parameter(&query, "code_challenge", buf_str(&challenge));
    put_parameter(&query, "code_challenge_method", STR("S256"));
    buf_printf(&where, "%s%c" STR_FMT, endpoint, strchr(endpoint, '?') ? '&' : '?',
               STR_ARG(buf_str(&query)));
    r = job_end(j);
    if (r)
        redirect_to(r, buf_str(&where));
}

/* --- the way back --- */

static void tokens_fetched(struct oidc_job *j, json_t *reply)
{
    const char *text = json_string_value(json_object_get(reply, "id_token"));
    struct err e = {0};

    if (!text) {
        err_set(&e, ERR_UNAUTHENTICATED, 0, "the issuer sent no ID token");
        job_fail(j, &e);
        return;
    }
    j->id_token = xstrdup(text);
    job_advance(j);
}

static int exchange(struct oidc_job *j, struct err *e)
{
    AUTO(buf_wipe) struct buf form = {0};

    put_parameter(&form, "grant_type", STR("authorization_code"));
    put_parameter(&form, "code", str_of(j->code));
    put_parameter(&form, "redirect_uri", str_of(j->redirect));
    put_parameter(&form, "client_id", str_of(j->all->a->c.conf->oidc_client_id));
    put_parameter(&form, "code_verifier", str_of(j->verifier));
    return fetch(j, config_text(j->all, "token_endpoint"), buf_str(&form), tokens_fetched, e);
}

static bool claim_has(const json_t *claim, struct str value)
{
    if (json_is_string(claim))
        return str_eq_c(value, json_string_value(claim));
    for (size_t i = 0; i < json_array_size(claim); i++)
        if (claim_has(json_array_get(claim, i), value))
            return true;
    return false;
}

/* The first row of the setting that fits. */
static int choose_role(const struct config *c, const json_t *claims, enum role *ret, struct err *e)
{
    const json_t *claim = json_object_get(claims, c->oidc_role_claim);

    for (size_t i = 0; i < c->oidc_roles.n; i++) {
        struct str role, value = str_cut(str_of(c->oidc_roles.v[i]), '=', &role);

        if (str_eq_c(value, "*") || claim_has(claim, value))
            return role_parse(role, ret) ? 0 : err_set(e, ERR_INTERNAL, 0, "a role is unknown");
    }
    err_set(e, ERR_UNAUTHENTICATED, 0, "this person has no role here");
    return err_hint(e, "the setting oidc_roles says which values of '%s' have one",
                    c->oidc_role_claim);
}

/* An address that nobody has verified could be anybody's. */
static int choose_person(const struct config *c, const json_t *claims, struct str *ret,
                         struct err *e)
{
    const char *text = json_string_value(json_object_get(claims, c->oidc_person_claim));

    if (strcmp(c->oidc_person_claim, "email") == 0 &&
        !json_is_true(json_object_get(claims, "email_verified")))
        return err_set(e, ERR_UNAUTHENTICATED, 0, "the issuer has not verified the address");
    if (text && identity_is_person(str_of(text))) {
        *ret = str_of(text);
        return 0;
    }
    err_set(e, ERR_UNAUTHENTICATED, 0, "the claim '%.60s' is no name of a person",
            c->oidc_person_claim);
    return err_hint(e, "up to 100 letters, digits and . _ - @; the setting oidc_person_claim "
                       "chooses another");
}

static void session_made(void *arg, const struct token *t, const char *text, const struct err *e)
{
    struct oidc_job *j = arg;
    struct request *r;

    if (e->code != ERR_NONE) {
        job_fail(j, e);
        return;
    }
    r = job_end(j);
    if (!r)
        return;
    login_begin_session(r, t, text);
    set_login_cookie(r, STR(""), 0);
    redirect_to(r, STR("/"));
}

static void log_in(struct oidc_job *j, const json_t *claims)
{
    const struct config *c = j->all->a->c.conf;
    struct token_spec spec = {.name = STR("OpenID Connect"), .ttl_ms = SESSION_MS};
    struct err e = {0};

    if (choose_role(c, claims, &spec.role, &e) < 0 ||
        choose_person(c, claims, &spec.person, &e) < 0) {
        job_fail(j, &e);
        return;
    }
    identity_login_person(j->all->a->c.identity, &spec, session_made, j);
}

/* 1: keys are to be fetched again. */
static int judge(struct oidc_job *j, json_t **ret, struct err *e)
{
    const struct config *c = j->all->a->c.conf;

    return idtoken_check(str_of(j->id_token), j->all->keys,
                         &(struct idtoken_expect){.issuer = str_of(c->oidc_issuer),
                                                  .client_id = str_of(c->oidc_client_id),
                                                  .nonce = str_of(j->nonce),
                                                  .now_s = clock_wall_ms() / 1000},
                         ret, e);
}

static void check_token(struct oidc_job *j)
{
    AUTO(json_decref) json_t *claims = NULL;
    struct err e = {0};
    int r = judge(j, &claims, &e);

    if (r > 0 && !j->new_keys) { /* the issuer may have a new key */
        json_decref(j->all->keys);
        j->all->keys = NULL;
        job_advance(j);
        return;
    }
    if (r == 0)
        log_in(j, claims);
    else
        job_fail(j, &e);
}

/* Each step comes back here. */
static void job_advance(struct oidc_job *j)
{
    struct oidc *o = j->all;
    struct err e = {0};
    int r = 0;

    if (!o->config)
        r = fetch_config(j, &e);
    else if (!j->code)
        send_there(j);
    else if (!j->id_token)
        r = exchange(j, &e);
    else if (!o->keys)
        r = fetch(j, config_text(o, "jwks_uri"), (struct str){0}, keys_fetched, &e);
    else
        check_token(j);
    if (r < 0)
        job_fail(j, &e);
}

/* --- the requests of the browser --- */

static char *redirect_uri(const struct request *r)
{
    const struct http_req *req = xchg_req(r->x);
    const char *set = r->api->c.conf->oidc_redirect;

    if (set && set[0])
        return xstrdup(set);
    return xasprintf(STR_FMT "://" STR_FMT PATH "/callback", STR_ARG(req->scheme),
                     STR_ARG(req->authority));
}

/* NULL: refused. */
static struct oidc_job *job_new(struct request *r)
{
    struct oidc *o = r->api->oidc;
    struct auth_view v = request_view(r);
    struct oidc_job *j;
    int64_t retry_ms;
    struct err e = {0};

    if (!r->api->c.conf->oidc_issuer[0]) {
        err_set(&e, ERR_CONFLICT, 0, "login by OpenID Connect is not set up");
        err_hint(&e, "the settings oidc_issuer and oidc_client_id (docs/identity.md)");
        request_fail(r, &e);
        return NULL;
    }
    if (auth_throttle(&r->api->auth, &v, &retry_ms, &e) < 0) {
        request_refuse_for(r, retry_ms, &e);
        return NULL;
    }
    if (o->job_count >= JOBS_MAX) {
        err_set(&e, ERR_UNAVAILABLE, 0, "too many logins are in progress");
        request_fail(r, &e);
        return NULL;
    }
    j = xzalloc(sizeof *j);
    j->all = o;
    j->redirect = redirect_uri(r);
    list_push(&o->jobs, &j->link);
    o->job_count++;
    drop_old(o);
    return j;
}

void login_oidc_run(struct request *r)
{
    struct oidc_job *j = job_new(r);
    AUTO(buf_done) struct buf cookie = {0};
    unsigned char random[KEY_BYTES];

    if (!j)
        return;
    rnd_bytes(random, sizeof random);
    buf_printf(&cookie, "%lld.", (long long)(clock_wall_ms() / 1000));
    enc_base64url(&cookie, random, sizeof random);
    derive_all(j, buf_str(&cookie));
    set_login_cookie(r, buf_str(&cookie), LOGIN_S);
    request_wait(r, &j->waiter);
    job_advance(j);
}

/* The browser that began this login: only it has the cookie that the state is made of. */
static bool find_login(struct oidc_job *j, const struct http_req *req, struct str state)
{
    struct http_cookies left = {.req = req};
    struct str name, value;

    while (http_cookie_next(&left, &name, &value)) {
        if (!str_eq_c(name, COOKIE) || !is_fresh(value))
            continue;
        derive_all(j, value);
        if (str_eq_secret(str_of(j->state), state))
            return true;
    }
    return false;
}

static int read_answer(struct oidc_job *j, struct request *r, struct err *e)
{
    const struct http_req *req = xchg_req(r->x);
    struct arena *a = xchg_arena(r->x);
    struct str state = {0}, code = {0}, iss = {0}, error = {0};

    if (http_query_get(req->query, "state", a, &state) <= 0 || !find_login(j, req, state))
        return err_set(e, ERR_UNAUTHENTICATED, 0, "this is not the end of a login of this browser");
    if (http_query_get(req->query, "iss", a, &iss) > 0 && !str_eq_c(iss, j->all->issuer))
        return err_set(e, ERR_UNAUTHENTICATED, 0, "another issuer replied"); /* RFC 9207 */
    if (http_query_get(req->query, "error", a, &error) > 0)
        return err_set(e, ERR_UNAUTHENTICATED, 0, "the issuer refused: " STR_FMT,
                       (int)size_min(error.n, 60), error.p);
    if (http_query_get(req->query, "code", a, &code) <= 0 || code.n == 0)
        return err_set(e, ERR_UNAUTHENTICATED, 0, "the issuer sent no code");
    j->code = str_dup(code);
    return 0;
}

void login_oidc_callback_run(struct request *r)
{
    struct oidc_job *j = job_new(r);
    struct err e = {0};
    int answer;

    if (!j)
        return;
    answer = read_answer(j, r, &e);
    request_wait(r, &j->waiter);
    if (answer < 0)
        job_fail(j, &e);
    else
        job_advance(j);
}

/* --- life --- */

struct oidc *oidc_new(struct api *a)
{
    struct oidc *o = xzalloc(sizeof *o);

    o->a = a;
    rnd_bytes(o->key, sizeof o->key);
    list_init(&o->jobs);
    return o;
}

void oidc_stop(struct oidc *o)
{
    LIST_EACH (&o->jobs, at) {
        struct oidc_job *j = LIST_ENTRY(at, struct oidc_job, link);

        if (j->client)
            client_cancel(j->client);
    }
}

struct oidc *oidc_free(struct oidc *o)
{
    if (!o)
        return NULL;
    forget_documents(o);
    mem_free(o->issuer);
    mem_wipe(o, sizeof *o);
    mem_free(o);
    return NULL;
}
