/* help: the texts of `holt --help` and `holt VERB --help`, printed from the tables. */
#pragma once

#include "cli/cli.h"

void help_all(const struct cmd_set *set, struct buf *to, bool color);
void help_word(const struct cmd_set *set, const char *word, struct buf *to,
               bool color); /* "token" */
void help_cmd(const struct cmd *cmd, struct buf *to, bool color);

/* Shared with the manual pages (man.c). */
extern const struct op_group help_own_groups[]; /* of verbs without an operation; ends with NULL */
bool help_group_is_used(const struct cmd_set *set, const char *group);
void help_usage(const struct cmd *cmd, struct buf *to);      /* "usage: holt …" */
void help_flag(const struct cmd_arg *a, struct buf *to);     /* "-f, --follow", "SANDBOX" */
void help_arg_text(const struct cmd_arg *a, struct buf *to); /* with its default */
void help_examples(const struct cmd *cmd, struct buf *to);
extern const char help_exit_status[];
