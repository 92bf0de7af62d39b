#include "base/mem.h"
#include "proto/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads in parts of `step` bytes; notes what came out, so that two readings can be compared. */
static void read_all(struct str type, struct str in, size_t step, struct buf *notes)
{
    struct multipart m;
    struct err e = {0};
    enum multipart_event ev = MULTIPART_MORE;
    int r = 0;

    if (multipart_init(&m, type, &e) < 0)
        return;
    while (in.n > 0 && r == 0) {
        struct str part = str_make(in.p, size_min(step, in.n));

        in = str_skip(in, part.n);
        multipart_feed(&m, part);
        while ((r = multipart_next(&m, &ev, &e)) == 0 && ev != MULTIPART_MORE) {
            if (ev == MULTIPART_DATA)
                buf_add_str(notes, m.data);
            else
                buf_printf(notes, "[%d]", (int)ev);
            if (ev == MULTIPART_PART)
                buf_printf(notes, "%zu %zu %d", m.name.n, m.filename.n, m.filename.p != NULL);
        }
        assert(buf_len(&m.in) <= step + MULTIPART_HEAD_MAX + sizeof m.delimiter);
    }
    if (r < 0)
        buf_printf(notes, "error %s", e.msg);
    multipart_done(&m);
}

/* The first line is the content type, the rest the body. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(buf_done) struct buf whole = {0}, parts = {0};
    struct str body, type = str_cut(str_make(data, size), '\n', &body);

    read_all(type, body, size_max(size, 1), &whole);
    read_all(type, body, size > 0 ? data[size - 1] % 7U + 1U : 1, &parts);
    assert(str_eq(buf_str(&whole), buf_str(&parts)));
    return 0;
}
