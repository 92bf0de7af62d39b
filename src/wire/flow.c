/* flow: byte counts, windows and acknowledgements of one stream of a guest channel. */
#include "wire/flow.h"

#include <inttypes.h>

void flow_out_init(struct flow_out *f, uint64_t from, uint32_t window)
{
    *f = (struct flow_out){.acked = from, .sent = from, .limit = from + window};
}

void flow_in_init(struct flow_in *f, uint64_t from, uint32_t window)
{
    *f = (struct flow_in){.got = from, .told = from, .limit = from + window, .window = window};
}

size_t flow_room(const struct flow_out *f)
{
    return (size_t)(f->limit - f->sent);
}

void flow_sent(struct flow_out *f, size_t n)
{
    assert(n <= f->limit - f->sent);
    f->sent += n;
}

int flow_on_ack(struct flow_out *f, const struct guest_ack *a, struct err *e)
{
    if (a->acked < f->acked || a->acked > f->sent)
        return err_set(e, ERR_INVALID, 0, "ack of %" PRIu64 ", expected %" PRIu64 " to %" PRIu64,
                       a->acked, f->acked, f->sent);
    if (a->limit < f->limit)
        return err_set(e, ERR_INVALID, 0, "ack takes back the limit %" PRIu64, f->limit);
    f->acked = a->acked;
    f->limit = a->limit;
    return 0;
}

int flow_on_data(struct flow_in *f, const struct guest_data *d, struct str *ret_new, struct err *e)
{
    uint64_t end = d->offset + d->bytes.n;
    size_t seen;

    if (d->offset > f->got)
        return err_set(e, ERR_INVALID, 0, "data at %" PRIu64 " leaves a gap after %" PRIu64,
                       d->offset, f->got);
    if (end > f->limit)
        return err_set(e, ERR_INVALID, 0, "data to %" PRIu64 " is past the limit %" PRIu64, end,
                       f->limit);
    seen = size_min((size_t)(f->got - d->offset), d->bytes.n);
    *ret_new = str_skip(d->bytes, seen);
    f->got += ret_new->n;
    return 0;
}

bool flow_ack(struct flow_in *f, uint64_t upto, bool now, struct guest_ack *ret)
{
    assert(upto >= f->told && upto <= f->got);
    if (upto == f->told || (!now && upto - f->told < size_min(f->window, GUEST_WINDOW_UP) / 4))
        return false;
    f->told = upto;
    f->limit = upto + f->window;
    *ret = (struct guest_ack){.acked = f->told, .limit = f->limit};
    return true;
}
