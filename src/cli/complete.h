/* complete: what could stand where the cursor is.  The bash script that `holt completion bash`
 * prints calls `holt __complete WORD…`; the last word is the one being typed. */
#pragma once

#include "cli/cli.h"

/* Adds the names that an argument of the command may be; the words tell which server is meant. */
typedef void (*complete_names_fn)(const struct cmd *cmd, const struct cmd_arg *a,
                                  char *const *words, size_t n, struct str typed, struct buf *to);

/* One candidate a line; those that do not start with the last word are left out.  names may be
 * NULL: then nobody is asked. */
void complete_words(const struct cmd_set *set, char *const *words, size_t n,
                    complete_names_fn names, struct buf *to);
void complete_run(const struct cmd_set *set, char *const *words, size_t n);
/* complete_names.c: of sandboxes, images and volumes, from the daemon; none if it does not answer
 * at once. */
void complete_names(const struct cmd *cmd, const struct cmd_arg *a, char *const *words, size_t n,
                    struct str typed, struct buf *to);
