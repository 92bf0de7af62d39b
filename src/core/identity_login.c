#include "core/identity_inside.h"

#include "base/clock.h"
#include "base/mem.h"

char *identity_login_code(struct identity *i, enum role role, char *to)
{
    struct login_code *c = &i->codes[i->next_code++ % LOGIN_CODES];

    identity_make_secret("holtc_", to);
    sha256(str_of(to), c->hash);
    c->role = role;
    c->until_ms = clock_mono_ms() + LOGIN_CODE_MS;
    return to;
}

static struct login_code *find_code(struct identity *i, struct str code)
{
    unsigned char hash[SHA256_SIZE];
    struct login_code *found = NULL;

    sha256(code, hash);
    for (size_t k = 0; k < LOGIN_CODES; k++) {
        struct login_code *c = &i->codes[k];

        if (str_eq_secret(hash_str(hash), hash_str(c->hash)) && c->role != ROLE_NONE &&
            clock_mono_ms() < c->until_ms)
            found = c;
    }
    return found;
}

void identity_login(struct identity *i, struct str code, token_made done, void *arg)
{
    struct login_code *c = code.n < TOKEN_TEXT ? find_code(i, code) : NULL;
    struct token_spec spec = {.name = STR("login session"), .ttl_ms = SESSION_MS};
    const struct principal by = {.actor = "login-code"};
    struct err e = {0};

    if (!c) {
        err_set(&e, ERR_UNAUTHENTICATED, 0, "the login code is wrong, used or too old");
        err_hint(&e, "get a new one: holt login, or restart holtd and use the link it prints");
        done(arg, NULL, NULL, &e);
        return;
    }
    spec.role = c->role;
    mem_wipe(c, sizeof *c); /* once */
    identity_create_session(i, &spec, &by, done, arg);
}
