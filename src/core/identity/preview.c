/* preview: one-time codes and cookies for previews of ports. */
#include "core/identity/preview.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/identity/identity_internal.h"

#define CODES 64
#define SESSIONS 1024

struct ticket {
    unsigned char hash[SHA256_SIZE]; /* of the code or the cookie */
    int64_t until_ms;                /* 0: free */
    struct preview_grant grant;
};

struct previews {
    struct ticket codes[CODES], sessions[SESSIONS]; /* rings */
    size_t next_code, next_session;
};

struct previews *previews_new(void)
{
    return xzalloc(sizeof(struct previews));
}

struct previews *previews_free(struct previews *p)
{
    mem_free(p);
    return NULL;
}

static void make_ticket(struct ticket *t, const char *prefix, const struct preview_grant *g,
                        int64_t ms, char *to)
{
    identity_make_secret(prefix, to);
    *t = (struct ticket){.until_ms = clock_mono_ms() + ms, .grant = *g};
    t->grant.who.token = NULL;
    sha256(str_of(to), t->hash);
}

/* Compares all of them, so that the time taken reveals nothing. */
static struct ticket *find(struct ticket *t, size_t count, struct str text)
{
    unsigned char hash[SHA256_SIZE];
    struct ticket *found = NULL;

    if (text.n >= TOKEN_TEXT)
        return NULL;
    sha256(text, hash);
    for (size_t i = 0; i < count; i++)
        if (str_eq_secret(hash_str(hash), hash_str(t[i].hash)) && clock_mono_ms() < t[i].until_ms)
            found = &t[i];
    return found;
}

static bool is_for(const struct ticket *t, const char *sandbox, int port)
{
    return t && t->grant.port == port && strcmp(t->grant.sandbox, sandbox) == 0;
}

char *preview_code(struct previews *p, const struct preview_grant *g, char *to)
{
    make_ticket(&p->codes[p->next_code++ % CODES], "holtp_", g, PREVIEW_CODE_MS, to);
    return to;
}

const struct preview_grant *preview_redeem(struct previews *p, struct str code, const char *sandbox,
                                           int port, char *to)
{
    struct ticket *c = find(p->codes, CODES, code), *s;

    if (!is_for(c, sandbox, port))
        return NULL;
    s = &p->sessions[p->next_session++ % SESSIONS];
    make_ticket(s, "holtv_", &c->grant, SESSION_MS, to);
    mem_wipe(c, sizeof *c); /* usable once */
    return &s->grant;
}

const struct preview_grant *preview_check(struct previews *p, struct str cookie,
                                          const char *sandbox, int port)
{
    struct ticket *s = find(p->sessions, SESSIONS, cookie);

    return is_for(s, sandbox, port) ? &s->grant : NULL;
}
