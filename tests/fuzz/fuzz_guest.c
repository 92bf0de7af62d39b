/* Both directions of the guest protocol.  Byte 0: bit 0 the side the rest comes from, bit 1 whether
 * the stream is scanned for marks; byte 1: how many bytes arrive at a time.  What decodes must
 * encode again, to the same bytes. */
#include "wire/flow.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again(const struct guest_frame *f, const struct guest_msg *m, enum guest_side from)
{
    static uint8_t again[GUEST_HEAD + GUEST_START_MAX];
    struct wire_out o = {.p = again, .size = sizeof again};
    struct err e = {0};
    bool has_error = f->type == GUEST_RESET || f->type == GUEST_EXEC_EXIT;

    if (guest_encode(m, from, &o, &e) < 0) {
        if (memmem(f->payload.p, f->payload.n, guest_mark, GUEST_MARK) == NULL)
            abort(); /* only the mark may come in and not go out */
        return;
    }
    if (o.n != GUEST_HEAD + f->payload.n + (guest_types[f->type].layout ? 1 : 0))
        abort();
    /* An error's text is cleaned on the way in; everything else is kept. */
    if (!has_error && f->payload.n > 0 && memcmp(again + GUEST_HEAD, f->payload.p, f->payload.n))
        abort();
}

static void walk_rows(const struct guest_msg *m)
{
    struct wire_rows rows = m->u.start.argv;
    struct wire_text text;
    struct guest_exec_row exec;
    size_t n = 0;

    if (m->type == GUEST_EXEC_START)
        while (wire_rows_next(&wire_text_row, &rows, &text))
            n += text.text.n;
    rows = m->u.hello_init.execs;
    if (m->type == GUEST_HELLO_INIT)
        while (wire_rows_next(&guest_exec_row_layout, &rows, &exec))
            n += exec.id.n;
    if (n > GUEST_START_MAX)
        abort();
}

static void on_message(const struct guest_frame *f, const struct guest_msg *m, enum guest_side from,
                       struct flow_in *in, struct flow_out *out)
{
    struct guest_file_done entry;
    struct guest_ack ack;
    struct str fresh, records;
    struct err e = {0};

    walk_rows(m);
    if (m->type == GUEST_ACK)
        (void)!flow_on_ack(out, &m->u.ack, &e);
    if (m->type != GUEST_DATA) {
        same_again(f, m, from);
        return;
    }
    if (flow_on_data(in, &m->u.data, &fresh, &e) == 0)
        (void)flow_ack(in, in->got, false, &ack);
    records = m->u.data.bytes;
    while (guest_record_next(&guest_file_done_layout, &records, &entry, &e) == 1)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct guest_reader r;
    struct flow_in in;
    struct flow_out out;
    enum guest_side from;
    size_t step;
    int got = 0;

    if (size < 2)
        return 0;
    from = data[0] & 1 ? GUEST_INIT : GUEST_HOST;
    step = data[1] ? data[1] : 1;
    flow_in_init(&in, 0, GUEST_WINDOW_UP);
    flow_out_init(&out, 0, GUEST_WINDOW_DOWN);
    guest_reader_init(&r, from, data[0] & 2);
    for (size_t at = 2; at < size && got >= 0;) {
        struct guest_frame f;
        struct guest_msg m;
        struct err e = {0};
        char *room;
        size_t n = size_min(size_min(guest_reader_room(&r, &room), step), size - at);

        if (n == 0)
            abort(); /* the reader asked for more and has no room */
        memcpy(room, data + at, n);
        guest_reader_added(&r, n);
        at += n;
        while ((got = guest_reader_next(&r, &f, &e)) > GUEST_READ_MORE)
            if (got == GUEST_READ_FRAME && guest_decode(&f, from, &m, &e) == 0)
                on_message(&f, &m, from, &in, &out);
    }
    guest_reader_done(&r);
    return 0;
}
