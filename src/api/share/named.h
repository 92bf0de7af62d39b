/* named: replies to requests about named objects (core/identity/named.h): make a call with
 * named_wait, give it to core, and the result with the call to named_reply_later.
 * Thread: the loop's. */
#pragma once

#include "api/request.h"
#include "core/identity/named.h"

typedef void (*named_writer)(struct jw *w, struct named *n);
/* The reply is what write writes; NULL: it is empty.  With an Idempotency-Key (.creates in the
 * operation's row) the call has its hook, which the creating function of core passes on. */
struct named_call named_wait(struct request *r, named_writer write);
/* r: what core returned for this call. */
void named_reply_later(struct request *r, const struct named_call *c, int result,
                       const struct err *e);
void named_reply(struct request *r, struct named *n, named_writer write); /* now */
/* With an audit row if the caller has no permission. */
void named_refuse(struct request *r, const struct err *e);
