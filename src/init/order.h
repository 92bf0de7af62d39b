/* order: the order in which the bytes of a command's two streams arrived, as long as they are not
 * acknowledged: they are sent, and after a new connection sent again, in this order.  Streams that
 * alternate more than ORDER_MAX times within that part are joined: the newest bytes of one may then
 * go before older ones of the other.  Zero-initialised is empty.  Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ORDER_MAX 256

struct order_run { /* of one stream, without a byte of the other in between */
    uint64_t end;
    int stream; /* 0 or 1 */
};
struct order {
    struct order_run *runs; /* the oldest first; their streams alternate */
    size_t n, size;
};

void order_done(struct order *o);
void order_add(struct order *o, int stream, uint64_t end); /* the stream has bytes up to end */
/* The stream of the oldest bytes that are not sent, and where they end; -1: all are sent. */
int order_next(const struct order *o, uint64_t sent0, uint64_t sent1, uint64_t *ret_end);
void order_drop(struct order *o, uint64_t acked0, uint64_t acked1);
