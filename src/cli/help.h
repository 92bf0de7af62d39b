/* help: the texts of `holt --help` and `holt VERB --help`, printed from the tables. */
#pragma once

#include "cli/cli.h"

void help_all(const struct cmd_set *set, struct buf *to, bool color);
void help_word(const struct cmd_set *set, const char *word, struct buf *to,
               bool color); /* "token" */
void help_cmd(const struct cmd *cmd, struct buf *to, bool color);
