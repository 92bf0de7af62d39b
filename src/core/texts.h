/* texts: copies of texts that an object owns: one text, or an array with its texts in one
 * allocation.  Every copied text is NUL-terminated.  Free with mem_free. */
#pragma once

#include "base/str.h"

struct pair {
    struct str key, value;
};

void text_set(char **to, struct str s);                /* frees the old one */
struct str *texts_copy(const struct str *t, size_t n); /* these two: NULL for none */
struct pair *pairs_copy(const struct pair *p, size_t n);

/* For arrays of other structs: copies the n items and makes room for text_bytes behind them;
 * then each text moves there.  A text takes one byte more than its length. */
void *texts_block(const void *items, size_t n, size_t size, size_t text_bytes, char **texts);
void texts_move(struct str *s, char **texts);
