/* snapshot: private to src/api/native: finding the snapshot of a request. */
#pragma once

#include "api/request.h"
#include "core/snapshot/snapshot.h"

/* The snapshot if the caller may; NULL: the reply is sent. */
struct snapshot *request_snapshot(struct request *r, enum snapshot_want want,
                                  const struct sandbox *of, struct str ref);
