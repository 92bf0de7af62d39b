/* event_stream: private to src/api: open event streams, over SSE or WebSocket.
 * A stream ends when its client disconnects, its token expires or is revoked, or the daemon
 * stops. */
#pragma once

#include "api/request.h"

/* Formats an event for a dialect: its JSON into `to` (empty), its name into *ret_name.  false: not
 * for its streams.  The same event always has the same form: it is written once for all readers. */
typedef bool (*event_form)(const struct event *ev, struct buf *to, struct str *ret_name);
/* Takes the exchange over; f's texts must live as long as the exchange.  form NULL: the native
 * one. */
void event_stream_sse(struct request *r, const struct event_filter *f, event_form form);
void event_stream_ws(struct request *r, const struct event_filter *f);
void event_streams_check(struct api *a); /* ends those whose token is revoked or expired */
void event_streams_end(struct api *a);   /* ends all */

void event_write_json(struct jw *w, const struct event *ev);
void event_streams_done(struct api *a);
