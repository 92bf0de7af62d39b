/* shared: memory volumes that several sandboxes have; the last one takes it away.  Thread: spawn's
 * one.  Errors: 0 or an fd, or -1 with *e set. */
#pragma once

#include "base/err.h"

#define SHARED_MAX 64

typedef uint64_t shared_set; /* which of them a sandbox has: bits */

/* An fd on the volume's root (made at need), the caller's; its bit is added to *set. */
CHECKED int shared_open(const char *id, uint64_t size, shared_set *set, struct err *e);
/* One that a sandbox of the last holt-spawn has: nobody new can join it. */
void shared_found(const char *id, shared_set *set);
void shared_close(shared_set *set);
/* What is in it; 0 too when nobody has it.  -ESTALE: it is of the last holt-spawn. */
CHECKED int shared_bytes(const char *id, uint64_t *ret);
const char *shared_name(size_t i);
