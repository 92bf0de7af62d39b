/* idempotency: a creating request that is repeated (a lost reply, a proxy's retry) creates once.
 *
 * The Idempotency-Key belongs to the caller and the operation.  Its row is written in the
 * transaction of the change and kept for a day.  Repeating the request returns the stored reply
 * with `Idempotency-Replayed: true`; another request with the same key, or one whose first is still
 * running, is a conflict.  A reply that holds a secret is not stored: repeating it is a conflict
 * that names the object, so that its owner can revoke it and create another with a new key. */
#pragma once

#include "api/request.h"

#define IDEM_KEY_MAX 128
#define IDEM_KEEP_MS (24 * 60 * 60 * 1000)

struct idem;
/* Calls run(r) now or later, with r->idem set if the request has a key; or replies itself. */
void idem_run(struct request *r, struct str body, void (*run)(struct request *r));
struct idem *idem_free(struct idem *i); /* the request has ended; takes NULL; returns NULL */
DEFINE_AUTO(struct idem *, idem_free)

struct idem *idem_copy(const struct idem *i); /* for a change that may outlive the request */

/* Inside the change's transaction: writes the row.  object: "token/tk_…".  body with p NULL: the
 * reply holds a secret. */
CHECKED int idem_record(struct store_tx *tx, const struct idem *i, const char *object, int status,
                        struct str body, struct err *e);
