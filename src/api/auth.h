/* auth: identifies the caller, and rejects requests forged by a browser.  Pure: looks at a
 * request's head.
 *
 * Host is checked against DNS rebinding, Origin against requests forged by other sites, then the
 * credentials: `Authorization: Bearer`, the session cookie, or none where none is needed (a seed
 * port, auth = off).  Credentials in the URL are refused: URLs end up in logs and histories. */
#pragma once

#include "conf/conf.h"
#include "core/identity/identity.h"
#include "net/server.h"

struct auth {
    const struct config *conf; /* read at each use, so that a reload takes effect */
    struct identity *identity;
};

struct auth_view { /* the parts of a request that matter here */
    const struct http_req *req;
    const struct peer *peer;
    const struct listener_info *listener;
};

enum auth_how {
    AUTH_NOBODY,  /* no credentials */
    AUTH_BEARER,  /* a token */
    AUTH_COOKIE,  /* a session: sent by a browser automatically */
    AUTH_IMPLIED, /* a seed port or auth = off: no credentials needed */
    AUTH_INSIDE,  /* a sandbox's relay: its credentials are ignored */
    AUTH_PREVIEW, /* a preview's cookie: valid for one port of one sandbox */
};

/* ERR_FORBIDDEN with the remedy when Host is not one of ours. */
CHECKED int auth_check_host(const struct auth *a, const struct auth_view *v, struct err *e);
/* Whether the page may send requests to the seed ports only, and without cookies. */
bool auth_is_seed_origin(const struct auth *a, const struct auth_view *v);
/* ERR_FORBIDDEN when a page of another site may have sent it, with or without credentials: a
 * browser adds cookies automatically, and some listeners need no credentials. */
CHECKED int auth_check_origin(const struct auth *a, const struct auth_view *v, struct err *e);
/* On a preview's origin: ERR_FORBIDDEN when a page of another origin may have sent it; a link or a
 * typed address may come from anywhere. */
CHECKED int auth_check_page(const struct auth_view *v, struct err *e);
struct str auth_host(struct str authority); /* without its port */
/* Wrong credentials: ERR_UNAUTHENTICATED, or ERR_LIMIT with *ret_retry_ms when the peer failed too
 * often.  A valid token is never throttled: a guesser behind the same address cannot lock its owner
 * out.  No credentials is AUTH_NOBODY with ROLE_NONE, not an error. */
CHECKED int auth_authenticate(const struct auth *a, const struct auth_view *v,
                              struct principal *ret, enum auth_how *ret_how, int64_t *ret_retry_ms,
                              struct err *e);
/* A wrong login code counts like a wrong token. */
CHECKED int auth_throttle(const struct auth *a, const struct auth_view *v, int64_t *ret_retry_ms,
                          struct err *e);
void auth_failed(const struct auth *a, const struct auth_view *v);

#define AUTH_PEER 64
/* The key a peer is counted under: an IPv4 address, an IPv6 /64, a Unix uid.  Returns to. */
char *auth_peer_name(const struct peer *p, char *to);
