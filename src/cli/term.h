/* term: the terminal this command runs in.  Raw mode is undone at exit, whatever way that is,
 * except for a kill that no program sees. */
#pragma once

#include "base/err.h"

bool term_is_on(int fd);
void term_size(int *ret_rows, int *ret_cols); /* 24 and 80 where nothing is known */
size_t term_width(void);              /* columns of standard output; 0 where it is no terminal */
CHECKED int term_raw(struct err *e);  /* of standard input */
CHECKED int term_keys(struct err *e); /* likewise: each key at once, unseen; signals stay */
/* One line of standard input that is not shown as it is typed; to has size bytes.  The prompt comes
 * once nothing is shown any more. */
CHECKED int term_secret(const char *prompt, char *to, size_t size, struct err *e);
void term_restore(void); /* harmless when nothing was changed */
