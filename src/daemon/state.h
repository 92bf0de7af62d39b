/* state: the state directory: made 0700, held by one holtd at a time.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"
#include "base/id.h"

#include <sys/types.h>

/* Makes it if need be, checks that nobody else can write there, and locks it.  The lock lasts as
 * long as the descriptor that it returns. */
CHECKED int state_open(const char *dir, struct err *e);
/* The same as root, for a user that we become. */
CHECKED int state_open_for(const char *dir, uid_t heir, struct err *e);

/* The name of this installation, made at its first start; to has ID_SIZE bytes.  What carries it,
 * and only that, is ours to end. */
CHECKED int state_installation(const char *dir, char *to, struct err *e);
struct store;
/* Does the database belong to this directory?  One that is new, restored or the wrong one knows
 * nothing of what is there: then *ret is true, and what has no row is kept.  A directory that holds
 * nothing is anybody's.  Blocking: at start-up only. */
CHECKED int state_is_foreign(const char *dir, const char *installation, struct store *s, bool *ret,
                             struct err *e);
/* The directory that holds this program; heap. */
char *state_bindir(void);
