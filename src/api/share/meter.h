/* meter: private to src/api: what all running sandboxes use, measured every two seconds while
 * somebody watches.  One round serves every watcher, one sandbox after the other, so that many
 * watchers and many sandboxes do not crowd out other requests to a runtime.
 * Thread: the loop's. */
#pragma once

#include "api/request.h"

struct driver_stats;

/* The members of a sandbox's stats, without the braces. */
void meter_write_stats(struct jw *w, const char *id, const struct driver_stats *s);
/* Replies with the next round's stats of the sandboxes that the caller may see. */
void meter_reply(struct request *r);
/* Replies with a stream: first all of them, then after each round those that changed. */
void meter_stream(struct request *r);
void meter_tick(struct api *a); /* every second */
void meter_stop(struct api *a); /* no round goes on or begins: before the sandboxes are closed */
void meter_free(struct api *a); /* after that, and after the last exchange */
