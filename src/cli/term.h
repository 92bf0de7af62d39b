/* term: the terminal this command runs in.  Raw mode is undone at any exit except SIGKILL. */
#pragma once

#include "base/err.h"

bool term_is_on(int fd);
void term_size(int *ret_rows, int *ret_cols); /* 24 and 80 if unknown */
size_t term_width(void);             /* columns of standard output; 0 if it is not a terminal */
CHECKED int term_raw(struct err *e); /* of standard input */
/* likewise: each key at once, without echo; signal keys stay */
CHECKED int term_keys(struct err *e);
/* Reads one line of standard input without echo; `to` has size bytes.  The prompt is printed after
 * echo is off. */
CHECKED int term_secret(const char *prompt, char *to, size_t size, struct err *e);
void term_restore(void); /* harmless if nothing was changed */
