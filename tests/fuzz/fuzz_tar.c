#include "wire/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The same bytes at once and in parts: both must end alike. */
static uint64_t read_all(const uint8_t *p, size_t n, size_t step)
{
    AUTO(tar_reader_done) struct tar_reader r = {0};
    uint64_t sum = 0;

    for (size_t at = 0; at < n; at += step) {
        struct str in = str_make(p + at, size_min(step, n - at)), data = {0};
        struct err e = {0};
        int told;

        while ((told = tar_read(&r, &in, &data, &e)) != TAR_MORE) {
            if (told < 0 || told == TAR_END)
                return sum * 31 + (uint64_t)(told + 2);
            if (told == TAR_ENTRY)
                sum = sum * 31 + r.entry.name.n + r.entry.size + r.entry.xattr_count;
            if (told == TAR_DATA)
                sum += data.n;
        }
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    if (n > 64 * 1024)
        return 0;
    assert(read_all(p, n, n ? n : 1) == read_all(p, n, 100));
    return 0;
}
