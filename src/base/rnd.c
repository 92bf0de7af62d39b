/* rnd: random bytes from getrandom(2). */
#include "base/rnd.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

void rnd_bytes(void *to, size_t n)
{
    char *at = to;

    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            abort();
        at += got;
        n -= (size_t)got;
    }
}

uint64_t rnd_u64(void)
{
    uint64_t v;

    rnd_bytes(&v, sizeof v);
    return v;
}
