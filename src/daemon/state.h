/* state: the state directory: made 0700, held by one holtd at a time.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"

/* Makes it if need be, checks that nobody else can write there, and locks it.  The lock lasts as
 * long as the descriptor that it returns. */
CHECKED int state_open(const char *dir, struct err *e);
