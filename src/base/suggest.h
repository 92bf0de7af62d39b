/* suggest: "did you mean …?": the known word with the smallest distance from a typed one, else one
 * that begins like it.
 * struct suggest n = {.word = typed}; suggest_try(&n, each known word); n.best is NULL or the
 * nearest. */
#pragma once

#include "base/str.h"

struct suggest {
    struct str word;
    const char *best; /* of the words tried; NULL: none is near */
    size_t distance;  /* of best */
};

void suggest_try(struct suggest *n, const char *known);
