/* complete: what could stand where the cursor is.  The bash script that `holt completion bash`
 * prints calls `holt __complete WORD…`; the last word is the one being typed. */
#pragma once

#include "cli/cli.h"

/* One candidate a line; those that do not start with the last word are left out. */
void complete_words(const struct cmd_set *set, char *const *words, size_t n, struct buf *to);
void complete_run(const struct cmd_set *set, char *const *words, size_t n);
