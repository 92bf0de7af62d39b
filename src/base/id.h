/* id: sortable, readable names of objects: "sb_" + 10 digits of time + 10 random digits, in
 * lower-case Crockford base 32 (no i, l, o, u).  Ids made in the same millisecond by one process
 * still sort in the order of creation. */
#pragma once

#include "base/str.h"

#define ID_SIZE 32 /* bytes that hold any id and its NUL */

char *id_make(const char *prefix, char *to);           /* to has ID_SIZE bytes; returns it */
bool id_is_valid(const char *prefix, struct str text); /* "sb", "sb_0123…" */
