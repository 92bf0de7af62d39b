/* id: makes and checks sortable object ids. */
#include "base/id.h"

#include "base/clock.h"
#include "base/rnd.h"

#include <stdio.h>

#define TIME_DIGITS 10
#define RANDOM_DIGITS 10

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

static void put_digits(uint64_t v, size_t n, char *to)
{
    for (size_t i = n; i > 0; i--) {
        to[i - 1] = alphabet[v & 31];
        v >>= 5;
    }
}

char *id_make(const char *prefix, char *to)
{
    static _Thread_local uint64_t last_time, last_random;
    uint64_t now = (uint64_t)clock_wall_ms(), mask = (1ULL << (5 * RANDOM_DIGITS)) - 1;
    size_t n = strlen(prefix);

    assert(n > 0 && n + 1 + TIME_DIGITS + RANDOM_DIGITS < ID_SIZE);
    if (now == last_time) {
        last_random = (last_random + 1 + (rnd_u64() & 0xffff)) & mask;
    } else {
        last_time = now;
        last_random = rnd_u64() & (mask >> 1); /* leaves room to count up within the millisecond */
    }
    memcpy(to, prefix, n);
    to[n] = '_';
    put_digits(now, TIME_DIGITS, to + n + 1);
    put_digits(last_random, RANDOM_DIGITS, to + n + 1 + TIME_DIGITS);
    to[n + 1 + TIME_DIGITS + RANDOM_DIGITS] = '\0';
    return to;
}

bool id_is_valid(const char *prefix, struct str text)
{
    size_t n = strlen(prefix);

    if (text.n != n + 1 + TIME_DIGITS + RANDOM_DIGITS || !str_starts(text, str_of(prefix)) ||
        text.p[n] != '_')
        return false;
    for (size_t i = n + 1; i < text.n; i++)
        if (text.p[i] == '\0' || !strchr(alphabet, text.p[i]))
            return false;
    return true;
}
