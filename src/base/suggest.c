/* suggest: finds the known word that is nearest to a mistyped one. */
#include "base/suggest.h"

#define WORD_MAX 64 /* longer words are not typing mistakes */
#define START_MIN 3 /* shorter prefixes mean nothing */

static size_t min3(size_t a, size_t b, size_t c)
{
    return size_min(a, size_min(b, c));
}

/* Optimal string alignment: insert, delete, replace and swap of neighbours cost 1 each. */
static size_t distance(struct str a, struct str b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b.n; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *oldest = before;

        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t other = a.p[i - 1] != b.p[j - 1];

            row[j] = min3(row[j - 1] + 1, last[j] + 1, last[j - 1] + other);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
                row[j] = size_min(row[j], before[j - 2] + 1);
        }
        before = last;
        last = row;
        row = oldest;
    }
    return last[b.n];
}

/* A rank after all mistyped words: first the words that begin with this one ("memory" for
 * "memory_bytes"), then words with the same first part ("memory_mb"); 0 if neither. */
static size_t begins_alike(struct str word, struct str known)
{
    struct str rest, first = str_cut(word, '_', &rest);

    if (word.n >= START_MIN && str_starts(known, word))
        return WORD_MAX;
    if (first.n >= START_MIN && str_eq(first, str_cut(known, '_', &rest)))
        return 2 * WORD_MAX;
    return 0;
}

void suggest_try(struct suggest *n, const char *known)
{
    struct str k = str_of(known);
    size_t d, further;

    if (n->word.n == 0 || n->word.n > WORD_MAX || k.n > WORD_MAX)
        return;
    d = distance(n->word, k);
    if (d > 1 + k.n / 4 || d >= k.n) {
        further = begins_alike(n->word, k);
        if (further == 0)
            return;
        d += further;
    }
    if (n->best && d >= n->distance)
        return;
    n->best = known;
    n->distance = d;
}
