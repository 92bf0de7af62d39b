/* args: turns words of the command line into typed values.  A field `ttl_ms` is the flag --ttl-ms,
 * and --ttl if it is a duration (likewise --memory for a size in bytes, --cpu for thousandths); a
 * bool also has --no-NAME; lists repeat or are comma-separated; maps repeat KEY=VALUE; JSON may
 * come from a file (@FILE) or standard input (@-); letters may share a word (-it, -m512m).  Types
 * and choices are checked here, so that a wrong value is never sent; ranges are checked by the
 * server. */
#pragma once

#include "cli/cli.h"

/* Parses the words after the verb.  *ret_args gets the command's values, *globals (made by the
 * caller) the global ones.  Missing required arguments are no error if --help is among the
 * words. */
CHECKED int args_parse(const struct cmd *cmd, char *const *words, size_t n, json_t *globals,
                       json_t **ret_args, struct err *e);
/* Parses global flags before the verb: *ret_used words were consumed. */
CHECKED int args_parse_globals(char *const *words, size_t n, json_t *globals, size_t *ret_used,
                               struct err *e);
/* "ttl-ms"; "ttl" with friendly, if the field has such a name (else ""). */
#define ARGS_NAME 64
char *args_flag_name(const struct op_field *f, bool friendly, char *to); /* ARGS_NAME bytes */
/* The name to show: without the unit if that may be left out. */
char *args_flag_shown(const struct op_field *f, char *to);
/* The name of an argument in the help and in errors: "SANDBOX", "--ttl". */
void args_add_label(const struct cmd_arg *a, struct buf *to);
bool args_required(const struct cmd_arg *a);
/* Whether the flag takes a value. */
bool args_takes_value(const struct op_field *f);
/* The argument named by the word "--x", "--x=v", "--no-x" or "-x"; NULL: none. */
const struct cmd_arg *args_find(const struct cmd_arg *args, size_t n, struct str word);
