/* idempotency: a creating request that is repeated (a lost reply, a proxy's retry) creates once.
 *
 * The Idempotency-Key belongs to the caller and the operation, on every route with .creates, of the
 * native API and of dialects.  Its row is written in the transaction of the change and kept for a
 * day, with the hash of the request: another request with the same key is a conflict.  Repeating
 * the request returns the stored reply with `Idempotency-Replayed: true`.  What changes with time
 * (a command) or cannot be stored is made anew from the object (.remakes).  A reply that holds a
 * secret is not kept: repeating it is a conflict that names the object, so that its owner can
 * revoke it and create another with a new key. */
#pragma once

#include "api/request.h"
#include "core/exec/exec.h"

#define IDEM_KEY_MAX 128
#define IDEM_KEEP_MS (24 * 60 * 60 * 1000)
#define IDEM_REPLY_MAX (1024 * 1024) /* a longer reply of a run is not kept */

struct idem; /* counted; while one is referred to, the key is taken.  Thread: the loop's */
/* Calls run(r, body) now or later, with r->idem set if the request has a key; or replies itself. */
void idem_run(struct request *r, struct str body, void (*run)(struct request *r, struct str body));
struct idem *idem_ref(struct idem *i);   /* takes NULL */
struct idem *idem_unref(struct idem *i); /* takes NULL; returns NULL */
DEFINE_AUTO(struct idem *, idem_unref)

/* On a route with .remakes: the id of the object that an earlier request made; empty: none. */
struct str idem_made(const struct request *r);

/* Inside the change's transaction: writes the row.  object: "token/tk_…".  body with p NULL: the
 * reply is not kept. */
CHECKED int idem_record(struct store_tx *tx, const struct idem *i, const char *object, int status,
                        struct str body, struct err *e);
/* For a change that takes a hook.  put writes the object's name, and the reply unless that is
 * remade; *ret_arg takes the reference over. */
typedef void (*idem_put)(const void *object, struct buf *name, struct buf *reply);
const struct tx_hook *idem_hook(struct idem *i, int status, idem_put put, void **ret_arg);
/* The request's key, for a command or a sandbox whose reply is remade. */
void idem_of_exec(struct request *r, struct exec_spec *spec);
const struct tx_hook *idem_of_sandbox(struct request *r, void **ret_arg); /* NULL: no key */
/* A reply that is known long after the change.  Takes the reference over; done always comes. */
void idem_keep_reply(struct idem *i, struct str body, store_done done, void *arg);
