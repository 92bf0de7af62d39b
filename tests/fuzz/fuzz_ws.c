#include "base/mem.h"
#include "proto/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads in parts of `step` bytes; notes what came out, so that two readings can be compared. */
static void read_all(struct str in, bool masked, size_t step, struct buf *notes)
{
    struct ws_reader r = {.limit = 1024, .masked = masked};
    int n = 0;

    while (in.n > 0 && n >= 0) {
        struct str part = str_make(in.p, size_min(step, in.n));
        struct ws_event ev;

        in = str_skip(in, part.n);
        while ((n = ws_reader_next(&r, &part, &ev)) > 0) {
            assert(ev.op != WS_OP_TEXT || str_is_utf8(ev.data));
            assert(ev.data.n <= 1024);
            buf_printf(notes, "%d %d %zu ", (int)ev.op, ev.code, ev.data.n);
            buf_add_str(notes, ev.data);
        }
    }
    if (n < 0) {
        assert(ws_code_is_valid(-n));
        buf_printf(notes, "error %d", -n);
    }
    ws_reader_done(&r);
}

/* Frames that only pass: no byte is lost, and how they are cut changes nothing. */
static void pass_all(struct str in, bool masked, size_t step, struct buf *notes)
{
    struct ws_reader r = {.limit = SIZE_MAX, .masked = masked};
    int n = 0;

    while (in.n > 0) {
        struct str part = str_make(in.p, size_min(step, in.n));

        in = str_skip(in, part.n);
        while (part.n > 0) {
            struct str head, data, before = part;

            n = ws_frame_next(&r, &part, &head, &data);
            if (n < 0)
                return;
            assert(head.n + data.n == before.n - part.n && (n > 0 || part.n == 0));
            buf_add_str(notes, head);
            buf_add_str(notes, data);
            if (n > 0)
                buf_add_c(notes, "|");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(buf_done) struct buf whole = {0}, parts = {0};
    struct str in = str_make(data, size);
    bool masked = size % 2 == 0;

    read_all(in, masked, size_max(size, 1), &whole);
    read_all(in, masked, size > 0 ? data[0] % 7U + 1U : 1, &parts);
    assert(str_eq(buf_str(&whole), buf_str(&parts)));
    buf_clear(&whole);
    buf_clear(&parts);
    pass_all(in, masked, size_max(size, 1), &whole);
    pass_all(in, masked, 1, &parts);
    /* One that breaks the rules is cut short sooner when it comes in large parts. */
    assert(str_starts(buf_str(&parts), buf_str(&whole)));
    return 0;
}
