/* event_stream: private to src/api: event streams that are open, over SSE or WebSocket.
 * A stream ends when its reader goes, its token dies, or the daemon stops. */
#pragma once

#include "api/request.h"

/* Takes the exchange over; f's texts live as long as the exchange. */
void event_stream_sse(struct request *r, const struct event_filter *f);
void event_stream_ws(struct request *r, const struct event_filter *f);
void event_streams_check(struct api *a); /* ends those whose token is revoked or expired */
void event_streams_end(struct api *a);   /* ends all */

void event_write_json(struct jw *w, const struct event *ev);
