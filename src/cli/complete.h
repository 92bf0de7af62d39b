/* complete: candidates for the word at the cursor.  The script that `holt completion bash` prints
 * calls `holt __complete WORD…`; the last word is the one being typed. */
#pragma once

#include "cli/cli.h"

/* Adds candidate names for an argument of the command; the words select the server. */
typedef void (*complete_names_fn)(const struct cmd *cmd, const struct cmd_arg *a,
                                  char *const *words, size_t n, struct str typed, struct buf *to);

/* One candidate per line, only those that start with the last word.  names may be NULL: then the
 * daemon is not asked. */
void complete_words(const struct cmd_set *set, char *const *words, size_t n,
                    complete_names_fn names, struct buf *to);
void complete_run(const struct cmd_set *set, char *const *words, size_t n);
/* complete_names.c: names of sandboxes, images and volumes from the daemon; none if it does not
 * reply at once. */
void complete_names(const struct cmd *cmd, const struct cmd_arg *a, char *const *words, size_t n,
                    struct str typed, struct buf *to);
