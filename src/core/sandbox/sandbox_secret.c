/* sandbox_secret: the secrets of a sandbox, their variables, and their form for holt-egress. */
#include "core/sandbox/sandbox_internal.h"

#include "base/enc.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rnd.h"
#include "proto/policy.h"

#include <stdio.h>

#define SECRETS_PER_SANDBOX 32
#define PLACEHOLDER "holt-secret-"

/* --- requests --- */

static bool is_variable(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
              (c >= '0' && c <= '9' && i > 0)))
            return false;
    }
    return s.n > 0 && s.n <= SECRET_NAME_MAX;
}

/* "github-token": GITHUB_TOKEN */
static void variable_of(const char *name, char to[static SECRET_NAME_MAX + 1])
{
    size_t n = 0;

    if (name[0] >= '0' && name[0] <= '9')
        to[n++] = '_';
    for (; *name && n < SECRET_NAME_MAX; name++) {
        char c = *name;

        to[n++] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c == '-' || c == '.' ? '_' : c;
    }
    to[n] = '\0';
}

static void make_placeholder(char to[static PLACEHOLDER_SIZE])
{
    unsigned char bytes[16];
    size_t n = strlen(PLACEHOLDER);

    _Static_assert(sizeof PLACEHOLDER + 2 * sizeof bytes <= PLACEHOLDER_SIZE, "no room");
    memcpy(to, PLACEHOLDER, n);
    rnd_bytes(bytes, sizeof bytes);
    enc_hex(bytes, sizeof bytes, to + n);
}

static int check_variable(const struct sandbox_spec *spec, const struct sandbox_secret *v,
                          size_t at, struct err *e)
{
    struct str env = str_of(v[at].env);

    if (!is_variable(env))
        return err_set(e, ERR_INVALID, 0, "field 'secrets': '%s' is not a valid name of a variable",
                       v[at].env);
    for (size_t i = 0; i < at; i++)
        if (strcmp(v[i].env, v[at].env) == 0)
            return err_set(e, ERR_INVALID, 0, "field 'secrets': two secrets have the variable '%s'",
                           v[at].env);
    for (size_t i = 0; i < spec->env_count; i++)
        if (str_eq(spec->env[i].key, env))
            return err_set(e, ERR_INVALID, 0, "field 'secrets': 'env' also sets the variable '%s'",
                           v[at].env);
    return 0;
}

static int check_one(struct sandboxes *all, const struct principal *by, const struct secret_use *u,
                     struct sandbox_secret *to, struct err *e)
{
    struct secret_info i;
    struct secret *s = all->secrets ? secret_find(all->secrets, by, u->name, e) : NULL;

    if (!all->secrets)
        return err_set(e, ERR_UNSUPPORTED, 0, "this installation has no secrets");
    if (!s || secret_check(s, all->authority != NULL, e) < 0)
        return -1;
    secret_info(s, &i);
    memcpy(to->id, i.id, sizeof to->id);
    (void)snprintf(to->name, sizeof to->name, STR_FMT, STR_ARG(i.name));
    if (u->env.n > SECRET_NAME_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'secrets': a variable's name is too long");
    if (u->env.n > 0)
        (void)snprintf(to->env, sizeof to->env, STR_FMT, STR_ARG(u->env));
    else
        variable_of(to->name, to->env);
    make_placeholder(to->placeholder);
    return 0;
}

/* An agent could send a secret to any host its rule allows: people decide. */
static int may_use(const struct principal *by, struct err *e)
{
    if (by->role != ROLE_AGENT)
        return 0;
    (void)err_set(e, ERR_FORBIDDEN, 0, "an agent may not give a sandbox secrets");
    return err_hint(e, "ask an operator to create it");
}

int sandbox_secrets_check(struct sandboxes *all, const struct sandbox_spec *spec,
                          const struct principal *by, struct sandbox_secret **ret, struct err *e)
{
    AUTO(mem_free) struct sandbox_secret *v = NULL;

    if (spec->secret_count == 0)
        return 0;
    if (may_use(by, e) < 0)
        return -1;
    if (spec->secret_count > SECRETS_PER_SANDBOX)
        return err_set(e, ERR_INVALID, 0, "field 'secrets': more than %d", SECRETS_PER_SANDBOX);
    v = xzalloc(spec->secret_count * sizeof *v);
    for (size_t i = 0; i < spec->secret_count; i++)
        if (check_one(all, by, &spec->secrets[i], &v[i], e) < 0 ||
            check_variable(spec, v, i, e) < 0)
            return -1;
    if (secrets_fit(all->secrets, v, spec->secret_count, e) < 0)
        return -1;
    *ret = TAKE(v);
    return 0;
}

/* --- rows --- */

void sandbox_put_secrets(struct jw *w, const struct sandbox *s, bool placeholders)
{
    jw_key(w, "secrets");
    jw_array(w);
    for (size_t i = 0; i < s->secret_count; i++) {
        jw_object(w);
        jw_kc(w, "id", s->secrets[i].id);
        jw_kc(w, "name", s->secrets[i].name);
        jw_kc(w, "env", s->secrets[i].env);
        if (placeholders)
            jw_kc(w, "placeholder", s->secrets[i].placeholder);
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void get_text(const json_t *o, const char *key, char *to, size_t size)
{
    const char *text = json_string_value(json_object_get(o, key));

    (void)snprintf(to, size, "%s", text ? text : "");
}

void sandbox_get_secrets(struct sandbox *s, const json_t *list)
{
    size_t n = json_array_size(list);

    s->secrets = n > 0 ? xzalloc(n * sizeof s->secrets[0]) : NULL;
    s->secret_count = n;
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i);
        struct sandbox_secret *v = &s->secrets[i];

        get_text(o, "id", v->id, sizeof v->id);
        get_text(o, "name", v->name, sizeof v->name);
        get_text(o, "env", v->env, sizeof v->env);
        get_text(o, "placeholder", v->placeholder, sizeof v->placeholder);
    }
}

/* --- hosts that its policy forbids --- */

static bool is_reached(const struct policy *p, const json_t *rule, const char *host)
{
    const json_t *methods = json_object_get(rule, "methods");
    const char *method = json_string_value(json_array_get(methods, 0));
    const char *path = json_string_value(json_object_get(rule, "path"));
    struct policy_query q = {.method = str_of(method ? method : "GET"),
                             .path = str_of(path ? path : "/")};
    struct host h;
    struct err e;

    if (host_parse(str_of(host), &h, &e) < 0)
        return true; /* "*.example.com": the host is not known yet */
    for (int plain = 0; plain < 2; plain++) {
        struct policy_verdict v;

        q.host = &h;
        q.port = plain ? 80 : 443;
        policy_judge(p, &q, &v);
        if (v.answer != POLICY_DENY && (!plain || json_is_true(json_object_get(rule, "plain"))))
            return true;
    }
    return false;
}

void sandbox_secret_unreached(const struct sandbox *s, size_t at, struct jw *w)
{
    AUTO(policy_free) struct policy *p = NULL;
    struct err e;
    struct secret *of = s->all->secrets ? secret_find(s->all->secrets, &principal_system,
                                                      str_of(s->secrets[at].id), &e)
                                        : NULL;
    struct secret_info i = {0};
    const json_t *hosts;

    jw_array(w);
    if (of && policy_parse(str_of(s->network), true, &p, &e) == 0) {
        secret_info(of, &i);
        hosts = json_object_get(i.rule, "hosts");
        for (size_t k = 0; k < json_array_size(hosts); k++) {
            const char *host = json_string_value(json_array_get(hosts, k));

            if (!is_reached(p, i.rule, host))
                jw_c(w, host);
        }
    }
    jw_array_end(w);
}

/* --- to holt-egress --- */

void sandbox_tell_secrets(struct sandbox *s, driver_done done, void *arg)
{
    AUTO(buf_wipe) struct buf list = {0};

    secrets_print(s->all->secrets, s->secrets, s->secret_count, &list);
    egress_put_secrets(s->all->egress, s->id, buf_str(&list), done, arg);
}

struct telling {
    size_t pending;
    store_done done;
    void *arg;
};

static void telling_over(struct telling *t)
{
    assert(t->pending > 0);
    if (--t->pending > 0)
        return;
    t->done(t->arg, &(struct err){0});
    mem_free(t);
}

static void secrets_sent(void *arg, const struct err *e)
{
    if (e->code != ERR_NONE) /* when holt-egress is back, all are sent again */
        log_warn("holt-egress refused the secrets of a sandbox", LOG_E(e));
    telling_over(arg);
}

static bool has(const struct sandbox *s, const char *id)
{
    for (size_t i = 0; i < s->secret_count; i++)
        if (strcmp(s->secrets[i].id, id) == 0)
            return true;
    return false;
}

static void tell_users(void *sandboxes, const char *id, store_done done, void *arg)
{
    struct sandboxes *all = sandboxes;
    struct telling *t = xzalloc(sizeof *t);

    *t = (struct telling){.pending = 1, .done = done, .arg = arg};
    for (size_t i = 0; i < all->count; i++) {
        struct sandbox *s = all->sorted[i];

        if (!sandbox_is_networked(s) || !has(s, id))
            continue;
        if (!egress_is_up(all->egress)) { /* nobody waits for it: when it is there, all is told */
            if (s->wiring != WIRING_NONE) /* but what waits to be told is older than this */
                sandbox_tell_secrets(s, NULL, NULL);
            continue;
        }
        t->pending++;
        sandbox_tell_secrets(s, secrets_sent, t);
    }
    telling_over(t); /* the count this began with */
}

static bool next_user(void *sandboxes, size_t *at, struct secret_user *ret)
{
    const struct sandboxes *all = sandboxes;

    while (*at < all->count) {
        const struct sandbox *s = all->sorted[(*at)++];

        *ret = (struct secret_user){s->id, s->secrets, s->secret_count};
        if (s->secret_count > 0)
            return true;
    }
    return false;
}

void sandboxes_set_secrets(struct sandboxes *all, struct secrets *l)
{
    static const struct secret_users users = {next_user, tell_users};

    all->secrets = l;
    secrets_set_users(l, &users, all);
}
