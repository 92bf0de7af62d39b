/* oidc: private to src/api: login of people by an OpenID Connect issuer (settings oidc_*): the
 * authorization code flow with PKCE.  A login in progress is kept by the browser alone, in a
 * cookie; state, nonce and verifier are derived from it with a key of this process. Thread: the
 * loop's. */
#pragma once

#include "api/request.h"

struct oidc *oidc_new(struct api *a);
struct oidc *oidc_free(struct oidc *o); /* takes NULL; returns NULL */
void oidc_stop(struct oidc *o); /* the daemon is shutting down: ends requests to the issuer */
