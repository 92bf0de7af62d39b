/* args: words of the command line to typed values.  A field `ttl_ms` is the flag --ttl-ms, and
 * --ttl where it is a duration (likewise --memory for a size in bytes, --cpu for thousandths); a
 * bool also has --no-NAME; lists repeat or are comma-separated; maps repeat KEY=VALUE; JSON may
 * come from a file (@FILE) or standard input (@-); letters may share a word (-it, -m512m). Ranges
 * are the server's business; types and choices are checked here, because a wrong one never leaves
 * the terminal. */
#pragma once

#include "cli/cli.h"

/* The words after the verb.  *ret_args has the command's values, *globals (made by the caller)
 * gains the global ones.  Missing required arguments are not an error when --help is among the
 * words. */
CHECKED int args_parse(const struct cmd *cmd, char *const *words, size_t n, json_t *globals,
                       json_t **ret_args, struct err *e);
/* Global flags in front of the verb: *ret_used words were theirs. */
CHECKED int args_parse_globals(char *const *words, size_t n, json_t *globals, size_t *ret_used,
                               struct err *e);
/* "ttl-ms"; "ttl" with friendly, where the field has such a name (else ""). */
#define ARGS_NAME 64
char *args_flag_name(const struct op_field *f, bool friendly, char *to); /* ARGS_NAME bytes */
/* The one to show: without the unit, where that may be left out. */
char *args_flag_shown(const struct op_field *f, char *to);
/* What an argument is called in the help and in errors: "SANDBOX", "--ttl". */
void args_add_label(const struct cmd_arg *a, struct buf *to);
bool args_required(const struct cmd_arg *a);
/* Does the flag want a value behind it? */
bool args_takes_value(const struct op_field *f);
/* The argument that a word "--x", "--x=v", "--no-x" or "-x" names; NULL: none. */
const struct cmd_arg *args_find(const struct cmd_arg *args, size_t n, struct str word);
