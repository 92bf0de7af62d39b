/* identity_login: one-time login codes and the sessions they become. */
#include "core/identity/identity_internal.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>

static bool is_good(const struct login_code *c)
{
    return c->role != ROLE_NONE && clock_mono_ms() < c->until_ms;
}

/* A free slot, else the oldest of this root if it has used its share, else the oldest: one caller
 * cannot push out the codes of others with fewer than LOGIN_CODES / LOGIN_CODES_OF roots. */
static struct login_code *code_slot(struct identity *i, const char *root)
{
    struct login_code *free_one = NULL, *oldest = &i->codes[0], *own = NULL;
    size_t of_root = 0;

    for (size_t k = 0; k < LOGIN_CODES; k++) {
        struct login_code *c = &i->codes[k];

        if (!is_good(c)) {
            free_one = free_one ? free_one : c;
            continue;
        }
        if (!is_good(oldest) || c->until_ms < oldest->until_ms)
            oldest = c;
        if (strcmp(c->root, root) != 0)
            continue;
        of_root++;
        if (!own || c->until_ms < own->until_ms)
            own = c;
    }
    if (of_root >= LOGIN_CODES_OF)
        return own;
    return free_one ? free_one : oldest;
}

static const char *root_of(const struct token *t)
{
    if (!t)
        return "";
    return t->root[0] ? t->root : t->id;
}

char *identity_login_code(struct identity *i, enum role role, const struct token *from, char *to)
{
    struct login_code *c = code_slot(i, root_of(from));

    identity_make_secret("holtc_", to);
    sha256(str_of(to), c->hash);
    c->role = role;
    (void)snprintf(c->root, sizeof c->root, "%s", root_of(from));
    c->end_ms = from ? from->expires_ms : 0;
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

        if (str_eq_secret(hash_str(hash), hash_str(c->hash)) && is_good(c))
            found = c;
    }
    if (found && found->root[0] && !identity_get(i, str_of(found->root)))
        return NULL; /* the token it was derived from has ended */
    return found;
}

/* Twelve hours, but not beyond the token it was derived from: a session cannot prolong itself. */
static int64_t session_ttl(const struct login_code *c)
{
    int64_t left = c->end_ms > 0 ? c->end_ms - clock_wall_ms() : SESSION_MS;

    return left < 1 ? 1 : left < SESSION_MS ? left : SESSION_MS;
}

void identity_login(struct identity *i, struct str code, token_made done, void *arg)
{
    struct login_code *c = code.n < TOKEN_TEXT ? find_code(i, code) : NULL;
    struct token_spec spec = {.name = STR("login session")};
    const struct token *from;
    char root[ID_SIZE];
    struct err e = {0};

    if (!c) {
        err_set(&e, ERR_UNAUTHENTICATED, 0, "the login code is wrong, used or too old");
        err_hint(&e, "get a new one: holt login, or restart holtd and use the link it prints");
        done(arg, NULL, NULL, &e);
        return;
    }
    spec.role = c->role;
    spec.ttl_ms = session_ttl(c);
    memcpy(root, c->root, sizeof root);
    from = root[0] ? identity_get(i, str_of(root)) : NULL;
    if (from) {
        spec.tenant = str_of(from->tenant);
        spec.person = str_of(from->person);
        spec.content = from->content && spec.role == ROLE_OBSERVER;
    }
    mem_wipe(c, sizeof *c); /* usable once */
    identity_create_session(i, &spec, root, done, arg);
}

/* As tokens have them, and '@' for addresses. */
bool identity_is_person(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && (i == 0 || (c != '.' && c != '_' && c != '-' && c != '@')))
            return false;
    }
    return name.n > 0 && name.n < PRINCIPAL_PERSON;
}

void identity_login_person(struct identity *i, const struct token_spec *spec, token_made done,
                           void *arg)
{
    assert(spec->ttl_ms > 0 && identity_is_person(spec->person));
    identity_create_session(i, spec, "", done, arg);
}
