/* secret_use: which secrets fit a sandbox, and their form for holt-egress. */
#include "core/network/secret.h"

#include "core/network/egress.h"
#include "core/network/secret_internal.h"

#define ENTRY_EXTRA 160 /* names of members, placeholder, commas */

/* --- size: all secrets of one sandbox go to holt-egress in one message --- */

static size_t weight(const json_t *rule, size_t value)
{
    return json_dumpb(rule, NULL, 0, JSON_COMPACT) + 2 * value + ENTRY_EXTRA; /* 2: \" and \\ */
}

static size_t weight_of(const struct secret *s)
{
    return weight(s->rule, buf_len(&s->sealed) - SEAL_EXTRA);
}

static size_t weigh_all(const struct secrets *l, const struct sandbox_secret *v, size_t n)
{
    size_t sum = 2;

    for (size_t i = 0; i < n; i++) {
        const struct secret *s = sorted_find(SORTED(l, id), str_of(v[i].id));

        sum += s ? weight_of(s) : 0;
    }
    return sum;
}

bool secrets_next_user(const struct secrets *l, size_t *at, struct secret_user *ret)
{
    return l->users && l->users->next(l->users_arg, at, ret);
}

bool secret_is_used_by(const struct secret *s, const struct secret_user *u)
{
    for (size_t i = 0; i < u->count; i++)
        if (strcmp(u->secrets[i].id, s->id) == 0)
            return true;
    return false;
}

static int too_heavy(const char *box, struct err *e)
{
    (void)err_set(e, ERR_LIMIT, 0, "the secrets of sandbox '%s' would exceed %d bytes", box,
                  EGRESS_SECRETS_MAX);
    return err_limit_fixed(e, EGRESS_SECRETS_MAX, "choose a shorter value or fewer hosts");
}

int secret_fits_users(const struct secret *s, const json_t *rule, struct str value, struct err *e)
{
    struct secret_user u;
    size_t at = 0;
    size_t now = weight(rule, value.p ? value.n : buf_len(&s->sealed) - SEAL_EXTRA);

    while (secrets_next_user(s->all, &at, &u))
        if (secret_is_used_by(s, &u) &&
            weigh_all(s->all, u.secrets, u.count) - weight_of(s) + now > EGRESS_SECRETS_MAX)
            return too_heavy(u.id, e);
    return 0;
}

/* --- for sandboxes --- */

int secret_check(const struct secret *s, bool intercept, struct err *e)
{
    if (s->all->locked.code != ERR_NONE) {
        *e = s->all->locked;
        return -1;
    }
    if (intercept || json_is_true(json_object_get(s->rule, "plain")))
        return 0;
    (void)err_set(e, ERR_CONFLICT, 0, "secret '%s' is for HTTPS, which is not intercepted here",
                  s->name);
    (void)err_object(e, "secret", s->id);
    return err_hint(e, "an operator can allow it with the setting 'intercept'");
}

int secrets_fit(const struct secrets *l, const struct sandbox_secret *v, size_t n, struct err *e)
{
    if (weigh_all(l, v, n) <= EGRESS_SECRETS_MAX)
        return 0;
    (void)err_set(e, ERR_LIMIT, 0, "field 'secrets': values and rules exceed %d bytes",
                  EGRESS_SECRETS_MAX);
    return err_limit_fixed(e, EGRESS_SECRETS_MAX, "use fewer secrets");
}

static void print_one(struct jw *w, const struct secret *s, const char *placeholder)
{
    AUTO(buf_wipe) struct buf value = {0};
    const char *key;
    json_t *v;

    if (!secret_opens(s->all, s, &value))
        return;
    jw_object(w);
    jw_kc(w, "placeholder", placeholder);
    jw_kstr(w, "value", buf_str(&value));
    json_object_foreach(s->rule, key, v)
    {
        jw_key(w, key);
        jw_json(w, v);
    }
    jw_object_end(w);
}

void secrets_print(const struct secrets *l, const struct sandbox_secret *v, size_t n,
                   struct buf *to)
{
    struct jw w = {.to = to};
    char *room;

    if (buf_reserve(to, EGRESS_SECRETS_MAX, &room) < 0)
        abort(); /* the buffer has no limit: it cannot fail */
    jw_array(&w);
    for (size_t i = 0; l && i < n; i++) {
        const struct secret *s = sorted_find(SORTED(l, id), str_of(v[i].id));

        if (s)
            print_one(&w, s, v[i].placeholder);
    }
    jw_array_end(&w);
}
