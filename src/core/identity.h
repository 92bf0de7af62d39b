/* identity: who is asking and what they may: tokens, roles, permissions.
 * All live tokens are kept in memory by their SHA-256; the store holds them too.  A token is
 * "holt_" + 43 characters (256 random bits), shown once.
 * Thread: the loop's. */
#pragma once

#include "base/id.h"
#include "core/event.h"
#include "ops/op.h"

enum role { ROLE_NONE, ROLE_OBSERVER, ROLE_AGENT, ROLE_OPERATOR, ROLE_ADMIN, ROLE_COUNT };
const char *role_name(enum role r);
bool role_parse(struct str s, enum role *ret);
bool role_may(enum role r, enum perm p);

struct token {
    char id[ID_SIZE]; /* "tk_…" */
    char *name;
    enum role role;
    char *agent;                    /* the agent it acts as (role agent), or NULL */
    int64_t created_ms, expires_ms; /* 0: never */
    int64_t last_used_ms;
    unsigned char hash[32];
};

struct principal { /* the asker of one request */
    enum role role;
    char actor[64];            /* "token/tk_…", "system", "anonymous", "seed-port" */
    const struct token *token; /* or NULL */
};

struct identity;
CHECKED int identity_open(struct store *s, struct events *l, struct identity **ret, struct err *e);
struct identity *identity_close(struct identity *i);

#define TOKEN_TEXT 64
/* First start: makes the admin token and writes it to path (0600).  1: made, 0: there is one
 * already. */
CHECKED int identity_first_admin(struct identity *i, const char *path, struct err *e);

struct token_spec {
    struct str name;
    enum role role;
    struct str agent;
    int64_t ttl_ms; /* 0: for ever */
};
/* text is given once, to the callback. */
typedef void (*token_made)(void *arg, const struct token *t, const char *text, const struct err *e);
void identity_create(struct identity *i, const struct token_spec *spec, const struct principal *by,
                     token_made done, void *arg);
void identity_revoke(struct identity *i, struct str id, const struct principal *by, store_done done,
                     void *arg); /* acts at once for new requests */
/* The live token with this text; NULL: none, expired or revoked. */
const struct token *identity_check(struct identity *i, struct str text);
const struct token *identity_get(struct identity *i, struct str id);
/* In order of id, after *cursor (empty: from the start); NULL at the end. */
const struct token *identity_next(struct identity *i, struct str after);

/* Login: a one-time code becomes a session cookie value, which identity_check_cookie knows. */
char *identity_login_code(struct identity *i, enum role role, char *to); /* TOKEN_TEXT bytes */
CHECKED int identity_login(struct identity *i, struct str code, char *ret_cookie, struct err *e);
const struct token *identity_check_cookie(struct identity *i, struct str cookie);

/* Failed logins by peer: true while the peer must wait; retry_ms says how long. */
bool identity_throttled(struct identity *i, const char *peer, int64_t *ret_retry_ms);
void identity_failed(struct identity *i, const char *peer);
void identity_set_throttle(struct identity *i, int64_t failures, int64_t window_ms);
