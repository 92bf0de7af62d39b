/* wild: patterns with wildcards. */
#pragma once

#include "base/str.h"

/* The whole text: '*' matches any text, '?' one character. */
bool wild_fits(struct str pattern, struct str text);
