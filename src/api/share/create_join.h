/* create_join: private to src/api: sandboxes that dialects are creating under a name of their own,
 * with the requests that wait for them: a second request for the same name joins the
 * first.  Ownership: each frees itself when its sandbox is ready or has failed.  Thread: the
 * loop's. */
#pragma once

#include "api/request.h"
#include "core/sandbox/sandbox.h"

struct create_join;
typedef void (*create_join_cb)(struct request *r, struct sandbox *s, const struct err *e);

/* tell: called once, unless the client disconnects.  False: nobody is creating it. */
bool create_join_try(struct request *r, struct alias_name n, create_join_cb tell);
/* r is the first request for it: any time may pass before its sandbox_create. */
struct create_join *create_join_begin(struct request *r, struct alias_name n, create_join_cb tell);
/* A sandbox_cb whose argument is the struct create_join. */
void create_join_end(void *creating, struct sandbox *s, const struct err *e);
