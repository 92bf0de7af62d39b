#include "base/mem.h"
#include "proto/grpc.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct str in, size_t step, struct buf *notes)
{
    struct grpc_reader r = {.limit = 512, .trailers = true};
    int n = 0;

    while (in.n > 0 && n >= 0) {
        struct str part = str_make(in.p, size_min(step, in.n));
        struct grpc_frame f;

        in = str_skip(in, part.n);
        while ((n = grpc_reader_next(&r, &part, &f)) > 0) {
            assert(f.data.n <= 512);
            buf_printf(notes, "%d %zu ", f.trailer, f.data.n);
            buf_add_str(notes, f.data);
        }
    }
    assert(n == 0 || n == -EMSGSIZE || n == -EOPNOTSUPP || n == -EPROTO);
    buf_printf(notes, "%d %d", n, n < 0 || grpc_reader_is_between(&r));
    grpc_reader_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(buf_done) struct buf whole = {0}, parts = {0}, text = {0};
    struct str in = str_make(data, size);
    int64_t ms;

    read_all(in, size_max(size, 1), &whole);
    read_all(in, size > 0 ? data[0] % 7U + 1U : 1, &parts);
    assert(str_eq(buf_str(&whole), buf_str(&parts)));
    grpc_text_encode(&text, in);
    for (size_t i = 0; i < buf_len(&text); i++)
        assert(buf_str(&text).p[i] >= ' ' && buf_str(&text).p[i] <= '~');
    if (grpc_timeout_parse(in, &ms) == 0)
        assert(ms >= 0);
    return 0;
}
