/* flow: the byte counts of one stream of a guest channel: bytes sent, bytes the peer has stored,
 * and how far we may send.  All are absolute offsets from the stream's start, so repeating one
 * changes nothing and a resumed stream needs no recalculation.  Values, no I/O. Errors: -1 with *e
 * set means the peer broke the protocol: drop the connection. */
#pragma once

#include "wire/guest.h"

struct flow_out {
    uint64_t acked; /* the peer has everything before this; our copy may be freed */
    uint64_t sent;
    uint64_t limit;
};

struct flow_in {
    uint64_t got;
    uint64_t told;   /* acknowledged in the last ack */
    uint64_t limit;  /* granted in the last ack */
    uint32_t window; /* granted beyond what is acknowledged */
};

void flow_out_init(struct flow_out *f, uint64_t from, uint32_t window);
void flow_in_init(struct flow_in *f, uint64_t from, uint32_t window);

size_t flow_room(const struct flow_out *f); /* bytes that may be sent now */
void flow_sent(struct flow_out *f, size_t n);
CHECKED int flow_on_ack(struct flow_out *f, const struct guest_ack *a, struct err *e);

/* Data arrived.  *ret_new is the part not seen before (empty for a repetition). */
CHECKED int flow_on_data(struct flow_in *f, const struct guest_data *d, struct str *ret_new,
                         struct err *e);
/* Everything before `upto` is stored.  True: send *ret.  Small steps are saved up to a quarter of
 * the first window, unless `now`. */
bool flow_ack(struct flow_in *f, uint64_t upto, bool now, struct guest_ack *ret);
