/* texts: copies of texts that an object owns. */
#include "core/texts.h"

#include "base/mem.h"

void text_set(char **to, struct str s)
{
    mem_free(*to);
    *to = str_dup(s);
}

void *texts_block(const void *items, size_t n, size_t size, size_t text_bytes, char **texts)
{
    char *p;

    if (n == 0)
        return NULL;
    p = xmalloc(n * size + text_bytes);
    memcpy(p, items, n * size);
    *texts = p + n * size;
    return p;
}

void texts_move(struct str *s, char **texts)
{
    char *to = *texts;

    if (s->n > 0)
        memcpy(to, s->p, s->n);
    to[s->n] = '\0';
    *texts += s->n + 1;
    s->p = to;
}

struct pair *pairs_copy(const struct pair *p, size_t n)
{
    size_t bytes = 0;
    struct pair *to;
    char *texts;

    for (size_t i = 0; i < n; i++)
        bytes += p[i].key.n + p[i].value.n + 2;
    to = texts_block(p, n, sizeof *p, bytes, &texts);
    for (size_t i = 0; i < n; i++) {
        texts_move(&to[i].key, &texts);
        texts_move(&to[i].value, &texts);
    }
    return to;
}

struct str *texts_copy(const struct str *t, size_t n)
{
    size_t bytes = 0;
    struct str *to;
    char *texts;

    for (size_t i = 0; i < n; i++)
        bytes += t[i].n + 1;
    to = texts_block(t, n, sizeof *t, bytes, &texts);
    for (size_t i = 0; i < n; i++)
        texts_move(&to[i], &texts);
    return to;
}
