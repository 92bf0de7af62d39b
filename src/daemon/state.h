/* state: the state directory: mode 0700, used by one holtd at a time.  Errors: -1 with *e set. */
#pragma once

#include "base/err.h"
#include "base/id.h"

#include <sys/types.h>

/* Makes it if needed, checks that nobody else can write there, and locks it.  The lock lasts as
 * long as the returned descriptor. */
CHECKED int state_open(const char *dir, struct err *e);
/* The same as root, for a user that we change to. */
CHECKED int state_open_for(const char *dir, uid_t heir, struct err *e);

/* The name of this installation, made at its first start; `to` has ID_SIZE bytes.  We may end only
 * what carries it. */
CHECKED int state_installation(const char *dir, char *to, struct err *e);
struct store;
/* Whether the database belongs to this directory.  A new, restored or wrong one knows nothing of
 * what is there: then *ret is true, and everything without a row is kept.  An empty directory fits
 * any database.  Blocking: at start-up only. */
CHECKED int state_is_foreign(const char *dir, const char *installation, struct store *s, bool *ret,
                             struct err *e);
/* The directory of this program; heap. */
char *state_bindir(void);
