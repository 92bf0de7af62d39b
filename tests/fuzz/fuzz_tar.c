#include "wire/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct str in, size_t step, struct buf *notes)
{
    struct tar_reader r = {0};
    int n = 0;

    while (in.n > 0 && n >= 0) {
        struct str part = str_make(in.p, size_min(step, in.n));

        in = str_skip(in, part.n);
        while ((n = tar_reader_next(&r, &part)) > 0) {
            if (n == TAR_DATA) {
                buf_add_str(notes, r.data);
                continue;
            }
            assert(r.entry.size >= 0 && r.entry.name.n <= TAR_NAME_MAX);
            buf_printf(notes, "[%d %d " STR_FMT "]", n, (int)r.entry.kind, STR_ARG(r.entry.name));
        }
    }
    if (n < 0)
        buf_add_c(notes, r.fault);
    tar_reader_done(&r);
}

/* Whole and in parts it says the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(buf_done) struct buf whole = {0}, parts = {0};
    struct str in = str_make(data, size);

    read_all(in, size_max(size, 1), &whole);
    read_all(in, size > 0 ? data[0] * 3U + 1U : 1, &parts);
    assert(str_eq(buf_str(&whole), buf_str(&parts)));
    return 0;
}
