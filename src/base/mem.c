/* mem: heap allocation that aborts when memory runs out. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static NORETURN void out_of_memory(size_t n)
{
    (void)fprintf(stderr, "holt: out of memory (%zu bytes)\n", n);
    abort();
}

void *xmalloc(size_t n)
{
    void *p = malloc(n ? n : 1);

    if (!p)
        out_of_memory(n);
    return p;
}

void *xzalloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);

    if (!p)
        out_of_memory(n);
    return p;
}

void *xrealloc(void *p, size_t n)
{
    p = realloc(p, n ? n : 1);
    if (!p)
        out_of_memory(n);
    return p;
}

void *xmemdup(const void *p, size_t n)
{
    void *copy = xmalloc(n);

    if (n)
        memcpy(copy, p, n);
    return copy;
}

char *xstrndup(const char *s, size_t n)
{
    char *copy = xmalloc(n + 1);

    if (n)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *xstrdup(const char *s)
{
    return xstrndup(s, strlen(s));
}

char *xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory(0);
    return s;
}

void mem_wipe(void *p, size_t n)
{
    explicit_bzero(p, n);
}

void mem_free(void *p)
{
    free(p);
}
