/* create_join: private to src/api: sandboxes that dialects are making under a name of their own,
 * and everybody who waits for one: a second request for the same name joins the first. Ownership:
 * each frees itself when its sandbox is there, or could not be made.  Thread: the loop's. */
#pragma once

#include "api/request.h"
#include "core/sandbox/sandbox.h"

struct create_join;
typedef void (*create_join_cb)(struct request *r, struct sandbox *s, const struct err *e);

/* tell: once, unless the asker goes.  False: nobody makes it just now. */
bool create_join_try(struct request *r, struct alias_name n, create_join_cb tell);
/* r is the first who asks for it: whatever comes before its sandbox_create may take its time. */
struct create_join *create_join_begin(struct request *r, struct alias_name n, create_join_cb tell);
/* A sandbox_cb, whose argument is the struct create_join. */
void create_join_end(void *creating, struct sandbox *s, const struct err *e);
