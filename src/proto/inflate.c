/* inflate: decompresses gzip and zlib with a limit on the output. */
#include "proto/inflate.h"

#include <errno.h>
#define ZLIB_CONST
#include <zlib.h>

#define STEP (64 * 1024)
#define EITHER_FORM (MAX_WBITS + 32)

/* Grows the output step by step: the result's size is unknown in advance. */
static int run(z_stream *z, struct str in, size_t max, struct buf *to)
{
    size_t before = buf_len(to), left = in.n;
    int r = Z_OK;

    z->next_in = (const Bytef *)in.p;
    while (r == Z_OK) {
        uInt given = (uInt)size_min(left, STEP);
        char *room;

        if (buf_len(to) - before > max || buf_reserve(to, STEP, &room) < 0)
            return -EMSGSIZE;
        z->avail_in = given;
        z->next_out = (Bytef *)room;
        z->avail_out = STEP;
        r = inflate(z, Z_NO_FLUSH);
        left -= given - z->avail_in;
        buf_added(to, STEP - z->avail_out);
    }
    if (r != Z_STREAM_END || left > 0)
        return -EPROTO;
    return buf_len(to) - before > max ? -EMSGSIZE : 0;
}

int inflate_all(struct str in, size_t max, struct buf *to)
{
    z_stream z = {0};
    int r;

    if (inflateInit2(&z, EITHER_FORM) != Z_OK)
        return -EMSGSIZE; /* out of memory */
    r = run(&z, in, max, to);
    (void)inflateEnd(&z);
    return r;
}
