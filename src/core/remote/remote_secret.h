/* remote_secret: what remote agents authenticate with: 256 random bits each, as 64 hex digits; only
 * the SHA-256 is kept.  DIR/agent-hashes.json is one object {agent id: hash in hex}, which other
 * tools may write too; DIR/agent-owners.json has what else is known.  Both are replaced whole, by a
 * worker, and calls end when that is on disk.  After a rotation the old secret stays valid until
 * the new one is used or the grace is over.  Ownership: the registry's.  Thread: the loop's. */
#pragma once

#include "core/identity/identity.h"
#include "core/identity/owner.h"

#include <uv.h>

#define REMOTE_SECRETS_MAX 10000
#define REMOTE_SECRET_TEXT 65 /* 64 hex digits and a NUL */

struct remote_secrets;

struct remote_secret_info { /* borrowed until the loop turns */
    const char *id;
    const char *owner, *tenant; /* "": written by another tool */
    bool rotating;              /* a new one waits to be used */
    int64_t updated_ms, grace_until_ms;
};

enum remote_match { REMOTE_UNKNOWN, REMOTE_WRONG, REMOTE_RIGHT };

/* Blocking: at start-up, and again on SIGHUP.  A damaged file: -1, and nothing is changed. */
CHECKED int remote_secrets_open(uv_loop_t *loop, const char *dir, struct remote_secrets **ret,
                                struct err *e);
CHECKED int remote_secrets_reload(struct remote_secrets *l, struct err *e);
/* A save that is under way goes on.  Takes NULL; returns NULL. */
struct remote_secrets *remote_secrets_free(struct remote_secrets *l);

/* In time that does not depend on the secret.  A new one that is used replaces the old one. */
enum remote_match remote_secret_match(struct remote_secrets *l, struct str id, struct str secret);
/* The first contact of an agent decides its secret. */
typedef void (*remote_secret_done)(void *arg, const struct err *e);
CHECKED int remote_secret_set(struct remote_secrets *l, struct str id, struct str secret,
                              const struct principal *by, remote_secret_done done, void *arg,
                              struct err *e);
/* The old one stays valid for grace_ms; 0: not at all. */
CHECKED int remote_secret_rotate(struct remote_secrets *l, const struct principal *by,
                                 struct str id, struct str secret, int64_t grace_ms,
                                 remote_secret_done done, void *arg, struct err *e);
CHECKED int remote_secret_remove(struct remote_secrets *l, const struct principal *by,
                                 struct str id, remote_secret_done done, void *arg, struct err *e);
void remote_secret_make(char to[REMOTE_SECRET_TEXT]); /* a random one */
bool remote_secret_is_valid(struct str secret);       /* 64 hex digits */
/* The one of this agent, or the first after it in the order of ids (empty: the first); false: none.
 * Only those that the caller may see. */
bool remote_secret_get(const struct remote_secrets *l, const struct principal *by, struct str id,
                       struct remote_secret_info *ret);
bool remote_secret_next(const struct remote_secrets *l, const struct principal *by,
                        struct str after, struct remote_secret_info *ret);
/* The principal that an agent's objects belong to. */
struct principal remote_secret_owner(const struct remote_secrets *l, struct str id);
