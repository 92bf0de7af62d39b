/* remote: private to src/api: changes of the secrets of remote agents, with their events, for the
 * native operations and the dialects.  Thread: the loop's. */
#pragma once

#include "api/request.h"
#include "core/remote/remote_secret.h"

/* made: the secret, to be shown once; NULL: it was given, or there is none.  Valid in the call. */
typedef void (*remote_secret_told)(struct request *r, struct str agent, const char *made);
/* secret empty: a random one.  Replies with the error, or calls told once it is on disk. */
void remote_secret_add(struct request *r, struct str agent, struct str secret,
                       remote_secret_told told);
void remote_secret_renew(struct request *r, struct str agent, int64_t grace_ms,
                         remote_secret_told told);
void remote_secret_revoke(struct request *r, struct str agent, remote_secret_told told);
