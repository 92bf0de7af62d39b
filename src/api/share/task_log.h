/* task_log: private to src/api: the output of a task as server-sent events: what is there, then
 * what comes, then the end. */
#pragma once

#include "api/request.h"
#include "core/task/task.h"

/* Takes the exchange over.  Last-Event-ID is stronger than offset. */
void task_log_stream(struct request *r, struct task *t, int64_t offset, bool follow);
