#include "base/rnd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t fake_state;

void rnd_set_fake(uint64_t seed)
{
    fake_state = seed;
}

static uint64_t fake_next(void) /* splitmix64 */
{
    uint64_t z = (fake_state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

void rnd_bytes(void *to, size_t n)
{
    char *at = to;

    while (n > 0) {
        uint64_t word;
        ssize_t got;

        if (fake_state) {
            word = fake_next();
            got = (ssize_t)size_min(n, sizeof word);
            memcpy(at, &word, (size_t)got);
        } else {
            got = getrandom(at, n, 0);
            if (got < 0 && errno == EINTR)
                continue;
            if (got < 0)
                abort();
        }
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
