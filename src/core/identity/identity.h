/* identity: callers and their rights: tokens, roles, permissions.
 * All live tokens are kept in memory by their SHA-256; the store holds them too.  A token is
 * "holt_" + 43 characters (256 random bits), shown once.
 * Thread: the loop's. */
#pragma once

#include "base/id.h"
#include "core/store.h"
#include "ops/op.h"

enum role { ROLE_NONE, ROLE_OBSERVER, ROLE_AGENT, ROLE_OPERATOR, ROLE_ADMIN, ROLE_COUNT };
const char *role_name(enum role r);
bool role_parse(struct str s, enum role *ret);
bool role_may(enum role r, enum perm p); /* for a principal use principal_may */
/* an agent keeps this permission while it is revoked: core/team/revoked.h */
bool perm_is_safe(enum perm p);

struct token {
    char id[ID_SIZE]; /* "tk_…" */
    char *name;
    enum role role;
    char *agent;  /* the agent it acts as (role agent), or NULL */
    char *tenant; /* the tenant whose objects it makes and sees; "": the installation */
    char *person; /* the person it belongs to (not role agent); "": nobody by name */
    bool content; /* an observer may read files and output */
    int64_t created_ms, expires_ms; /* 0: never */
    int64_t last_used_ms;           /* 0: never */
    bool session;                   /* made by a login: for a cookie, not a bearer token */
    char root[ID_SIZE]; /* of a session: the token it was derived from and ends with; "": itself */
    unsigned char hash[32];
};

#define PRINCIPAL_AGENT 132  /* TEAM_NAME_MAX and a NUL */
#define PRINCIPAL_TENANT 101 /* a tenant's name and a NUL */
#define PRINCIPAL_PERSON 101
struct principal { /* the caller of one request */
    enum role role;
    char actor[64]; /* "token/tk_…", "sandbox/sb_…", "system", "anonymous", "seed-port" */
    char agent[PRINCIPAL_AGENT]; /* the one agent that its token acts as; "": none */
    /* owner of the objects it makes: for a session its root; "": the actor itself */
    char owner[64];
    char tenant[PRINCIPAL_TENANT]; /* "": the installation */
    char person[PRINCIPAL_PERSON]; /* the person its token belongs to; "": nobody by name */
    bool content;                  /* as in struct token */
    const struct token *token; /* or NULL; valid in the turn of the loop that authenticated it */
};
extern const struct principal principal_system; /* holtd itself: sees everything */
struct principal principal_of(const struct token *t);
/* The caller of an earlier request, as an object has kept it: for work that goes on without it. */
struct principal principal_kept(enum role role, const char *owner, const char *tenant,
                                const char *agent);
/* A lasting name of the creator: sessions of one token share it. */
const char *principal_owner(const struct principal *p);
/* By role and tenant: events, settings, the team and the like belong to the installation. */
bool principal_may(const struct principal *p, enum perm perm);

/* A process inside a sandbox, through its relay: an agent that may touch that sandbox and nothing
 * else, whatever its requests carry. */
struct principal principal_inside(const char *sandbox);
bool principal_is_inside(const struct principal *p);
/* the sandbox that a principal inside belongs to */
struct str principal_sandbox(const struct principal *p);

struct identity;
/* Reads all tokens.  Blocking: at start-up only. */
CHECKED int identity_open(struct store *s, struct identity **ret, struct err *e);
void identity_set_max(struct identity *i, int64_t max); /* the setting 'tokens_max' */
/* After store_close, which may still make callbacks.  Takes NULL; returns NULL. */
struct identity *identity_close(struct identity *i);
/* Stores when tokens were last used: about every minute, and before the store closes. */
void identity_flush(struct identity *i);

#define TOKEN_TEXT 64
/* First start: makes the admin token and writes it to path (0600); renames an existing file to
 * ".old".  1: made, 0: there is one already. */
CHECKED int identity_first_admin(struct identity *i, const char *path, struct err *e);

struct token_spec {
    struct str name;
    enum role role;
    struct str agent, tenant, person;
    bool content;
    int64_t ttl_ms; /* 0: no expiry */
    /* Further work in the same transaction, on the store's thread, given the new token's id; may be
     * NULL. */
    int (*tx_hook)(struct store_tx *tx, void *arg, const char *id, struct err *e);
    void *tx_hook_arg;
};
/* text is available only in this callback. */
typedef void (*token_made)(void *arg, const struct token *t, const char *text, const struct err *e);
void identity_create(struct identity *i, const struct token_spec *spec, const struct principal *by,
                     token_made done, void *arg);
void identity_revoke(struct identity *i, struct str id, const struct principal *by, store_done done,
                     void *arg); /* effective at once for new requests */
/* The live token with this text; NULL: none, or it is expired or revoked. */
const struct token *identity_check(struct identity *i, struct str text);
const struct token *identity_get(struct identity *i, struct str id);
/* In order of id, the first after this one (empty: the first); NULL at the end. */
const struct token *identity_next(struct identity *i, struct str after);

/* Login: a one-time code, valid for an hour, is exchanged for the value of a session cookie (the
 * callback's text), which identity_check_cookie accepts.  A session is a token of its own and is
 * revoked like one. */
#define LOGIN_CODES 64    /* valid at a time: in total … */
#define LOGIN_CODES_OF 16 /* … and per root: beyond that the oldest is dropped */
#define LOGIN_CODE_MS (60 * 60 * 1000)
#define SESSION_MS (12 * 60 * 60 * 1000)
/* from: the token that requests it (NULL: none).  Code and session die with that token's root, and
 * expire when `from` does: a session cannot prolong itself. */
char *identity_login_code(struct identity *i, enum role role, const struct token *from,
                          char *to); /* TOKEN_TEXT bytes */
void identity_login(struct identity *i, struct str code, token_made done, void *arg);
/* Another way to log in has found out who it is: a session of spec's role and person. */
bool identity_is_person(struct str name); /* a name that a person may have */
void identity_login_person(struct identity *i, const struct token_spec *spec, token_made done,
                           void *arg);
const struct token *identity_check_cookie(struct identity *i, struct str cookie);

/* Failed logins by peer: true while the peer must wait; *retry_ms is how long. */
bool identity_throttled(struct identity *i, const char *peer, int64_t *ret_retry_ms);
void identity_failed(struct identity *i, const char *peer);
void identity_set_throttle(struct identity *i, int64_t failures, int64_t window_ms);
