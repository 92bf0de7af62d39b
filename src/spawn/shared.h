/* shared: memory volumes of several sandboxes; removed with the last one.  Thread: holt-spawn's
 * one.  Errors: 0 or an fd, or -1 with *e set. */
#pragma once

#include "base/err.h"

#define SHARED_MAX 64

typedef uint64_t shared_set; /* the ones a sandbox has: bits */

/* An fd on the volume's root (made if needed), owned by the caller; adds its bit to *set. */
CHECKED int shared_open(const char *id, uint64_t size, shared_set *set, struct err *e);
/* One of a sandbox of the last holt-spawn: no new sandbox can join it. */
void shared_found(const char *id, shared_set *set);
void shared_close(shared_set *set);
/* Its size; 0 also if no sandbox has it.  -ESTALE: it belongs to the last holt-spawn. */
CHECKED int shared_bytes(const char *id, uint64_t *ret);
const char *shared_name(size_t i);
