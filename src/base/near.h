/* near: "did you mean …?": the known word that differs least from what somebody typed, else one
 * that begins like it. struct near n = {.word = typed}; near_try(&n, each known word); n.best is
 * NULL or the nearest. */
#pragma once

#include "base/str.h"

struct near {
    struct str word;
    const char *best; /* of the words tried; NULL: none is near */
    size_t distance;  /* of best */
};

void near_try(struct near *n, const char *known);
